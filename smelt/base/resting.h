// Objects that nobody uses, kept for who needs one next, without a lock. Each thread looks first at
// another seat, and seats lie on cache lines of their own, so that threads seldom contend.
#ifndef SMELT_BASE_RESTING_H_
#define SMELT_BASE_RESTING_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace smelt {

// The seat that the calling thread looks at first, counted through all threads.
inline size_t& OwnSeat() {
  static std::atomic<size_t> threads{0};
  thread_local size_t own = threads.fetch_add(1, std::memory_order_relaxed);
  return own;
}

// Another one, while it lives: of threads that take turns, one finds what the other left.
class ScopedSeat {
 public:
  explicit ScopedSeat(size_t seat) : before_(std::exchange(OwnSeat(), seat)) {}
  ScopedSeat(const ScopedSeat&) = delete;
  ScopedSeat& operator=(const ScopedSeat&) = delete;
  ~ScopedSeat() { OwnSeat() = before_; }

 private:
  const size_t before_;
};

// Thread safe but for the destructor.
template <typename T>
class Resting {
 public:
  Resting() = default;
  Resting(const Resting&) = delete;
  Resting& operator=(const Resting&) = delete;
  ~Resting() {
    for (Seat& seat : seats_) delete seat.object.load(std::memory_order_acquire);
  }

  // nullptr: there is none.
  std::unique_ptr<T> Take() {
    return Take([](const T&) { return true; });
  }
  // The same of those that fits(object) likes.
  template <typename Fits>
  std::unique_ptr<T> Take(Fits fits) {
    const size_t own = OwnSeat();
    for (size_t i = 0; i < kSeats; ++i) {
      std::atomic<T*>& seat = seats_[(own + i) % kSeats].object;
      if (seat.load(std::memory_order_relaxed) == nullptr) continue;
      std::unique_ptr<T> object(seat.exchange(nullptr, std::memory_order_acquire));
      if (object == nullptr) continue;
      if (fits(*object)) return object;
      Rest(std::move(object));
    }
    return nullptr;
  }
  // Where all seats are taken the object goes.
  void Rest(std::unique_ptr<T> object) {
    const size_t own = OwnSeat();
    for (size_t i = 0; i < kSeats; ++i) {
      std::atomic<T*>& seat = seats_[(own + i) % kSeats].object;
      T* empty = nullptr;
      if (seat.load(std::memory_order_relaxed) == nullptr &&
          seat.compare_exchange_strong(empty, object.get(), std::memory_order_release,
                                       std::memory_order_relaxed)) {
        object.release();
        return;
      }
    }
  }

 private:
  static constexpr size_t kSeats = 16;
  struct alignas(64) Seat {
    std::atomic<T*> object{nullptr};
  };
  std::array<Seat, kSeats> seats_;
};

}  // namespace smelt

#endif  // SMELT_BASE_RESTING_H_
