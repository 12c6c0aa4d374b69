#include "smelt/tensor/buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "smelt/base/resting.h"

namespace smelt {
namespace {

StatusOr<void*> TakeBytes(size_t size, size_t alignment = kAlignment) {
  const auto bytes = static_cast<int64_t>(size);
  if (bytes < 0 || size >= (size_t{1} << 46) || !HeapTake(bytes)) return HeapExhausted(size);
  void* p = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p != nullptr) return p;
  HeapGive(bytes);
  return HeapExhausted(size);
}

void GiveBytes(void* p, size_t size) {
  HeapGive(static_cast<int64_t>(size));
  std::free(p);
}

class HeapBuffer final : public Buffer {
 public:
  using Buffer::Buffer;
  ~HeapBuffer() override { GiveBytes(data_, size_); }
};

constexpr size_t kLargePage = 2 << 20;

// Memory of the system, of its own for each buffer: no byte beyond the last whole large page is
// touched that nobody asked for.
class LargePagesBuffer final : public Buffer {
 public:
  using Buffer::Buffer;
  ~LargePagesBuffer() override {
    munmap(data_, size_);
    HeapGive(static_cast<int64_t>(size_));
  }
};

// nullptr: the system has none.
char* MapLargePages(size_t size) {
  const size_t all = size + kLargePage;
  void* mapped = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* begin = static_cast<char*>(mapped);
  const size_t before = (kLargePage - reinterpret_cast<uintptr_t>(begin) % kLargePage) % kLargePage;
  if (before > 0) munmap(begin, before);
  char* const first = begin + before;
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* const end = first + (size + page - 1) / page * page;
  if (end < begin + all) munmap(end, static_cast<size_t>(begin + all - end));
  // Advice: without large pages the memory serves as well.
  madvise(first, size / kLargePage * kLargePage, MADV_HUGEPAGE);
  return first;
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SMELT_RED_ZONES
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SMELT_RED_ZONES
#endif
#ifdef SMELT_RED_ZONES
constexpr bool kHasRedZones = true;
#else
constexpr bool kHasRedZones = false;
#endif

// Memory of malloc, of large pages where it is large: a fault for each small page costs more than
// what is computed there once. Advice: any pages will do.
StatusOr<void*> TakeMostlyLargePages(size_t bytes) {
  const size_t large = bytes / kLargePage * kLargePage;
  ASSIGN_OR_RETURN(void* p, TakeBytes(bytes, large > 0 ? kLargePage : kAlignment));
  if (large > 0) madvise(p, large, MADV_HUGEPAGE);
  return p;
}

class HeapAllocatorImpl final : public Allocator {
 public:
  StatusOr<BufferRef> Allocate(size_t size) override {
    const size_t bytes = size == 0 ? 1 : size;
    // Smaller ones leave gaps between them in the heap, as far as they are aligned.
    ASSIGN_OR_RETURN(void* p,
                     bytes < 2 * kLargePage ? TakeBytes(bytes) : TakeMostlyLargePages(bytes));
    return BufferRef(new HeapBuffer(p, bytes));
  }
};

// Memory that kept buffers share, so that a buffer's end and the next one's beginning are of one
// large page.
class KeptRegion {
 public:
  static constexpr size_t kSize = 32 << 20;
  explicit KeptRegion(char* first) : first_(first) {}
  ~KeptRegion() { munmap(first_, kSize); }
  KeptRegion(const KeptRegion&) = delete;
  KeptRegion& operator=(const KeptRegion&) = delete;
  // The next `size` bytes, whole pages; nullptr: there are not so many left.
  char* Take(size_t size) {
    if (size > kSize - used_) return nullptr;
    return first_ + std::exchange(used_, used_ + size);
  }

 private:
  char* const first_;
  size_t used_ = 0;
};

class KeptBuffer final : public Buffer {
 public:
  KeptBuffer(char* data, size_t size, size_t pages, std::shared_ptr<KeptRegion> region)
      : Buffer(data, size), pages_(pages), region_(std::move(region)) {}
  ~KeptBuffer() override {
    madvise(data_, pages_, MADV_DONTNEED);
    HeapGive(static_cast<int64_t>(size_));
  }

 private:
  const size_t pages_;  // bytes of them
  const std::shared_ptr<KeptRegion> region_;
};

class KeptAllocatorImpl final : public Allocator {
 public:
  StatusOr<BufferRef> Allocate(size_t size) override {
    if (size < kLeastKept) return HeapAllocator()->Allocate(size);
    const auto bytes = static_cast<int64_t>(size);
    if (bytes < 0 || size >= (size_t{1} << 46) || !HeapTake(bytes)) return HeapExhausted(size);
    Buffer* const buffer = size <= KeptRegion::kSize / 2 ? InRegion(size) : OfItsOwn(size);
    if (buffer != nullptr) return BufferRef(buffer);
    HeapGive(bytes);
    return HeapExhausted(size);
  }

 private:
  // Sanitizers have zones around buffers of the heap that nobody may touch.
  static constexpr size_t kLeastKept = kHasRedZones ? KeptRegion::kSize / 2 + 1 : 128 << 10;

  static Buffer* OfItsOwn(size_t size) {
    char* const first = MapLargePages(size);
    return first == nullptr ? nullptr : new LargePagesBuffer(first, size);
  }
  Buffer* InRegion(size_t size) {
    static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t pages = (size + page - 1) / page * page;
    absl::MutexLock hold(&mutex_);
    char* first = region_ == nullptr ? nullptr : region_->Take(pages);
    if (first == nullptr) {
      char* const mapped = MapLargePages(KeptRegion::kSize);
      if (mapped == nullptr) return OfItsOwn(size);
      region_ = std::make_shared<KeptRegion>(mapped);
      first = region_->Take(pages);
    }
    return new KeptBuffer(first, size, pages, region_);
  }

  absl::Mutex mutex_;
  std::shared_ptr<KeptRegion> region_ ABSL_GUARDED_BY(mutex_);  // that the next buffer is of
};

class ForeignBufferImpl final : public Buffer {
 public:
  ForeignBufferImpl(const void* data, size_t size, ForeignBytes kind,
                    std::shared_ptr<const void> owner)
      : Buffer(const_cast<void*>(data), size), kind_(kind), owner_(std::move(owner)) {}
  bool read_only() const override { return kind_ != ForeignBytes::kWritable; }
  bool mapped_file() const override { return kind_ == ForeignBytes::kMappedFile; }

 private:
  ForeignBytes kind_;
  std::shared_ptr<const void> owner_;
};

// Size classes: 64 bytes, then eight for each power of two.
constexpr int kPoolClasses = 8 * 44;

int PoolClass(size_t size) {
  if (size <= kAlignment) return 0;
  const size_t units = (size - 1) / kAlignment;  // >= 1
  const int octave = std::bit_width(units) - 1;
  const size_t step = octave >= 3 ? (units >> (octave - 3)) & 7 : (units << (3 - octave)) & 7;
  return octave * 8 + static_cast<int>(step) + 1;
}

size_t PoolClassBytes(int c) {
  if (c == 0) return kAlignment;
  const int octave = (c - 1) / 8;
  const size_t step = (c - 1) % 8;
  const size_t units = (((8 + step + 1) << octave) + 7) / 8;
  return units * kAlignment;
}

class PoolShelf;

class PoolBuffer final : public Buffer {
 public:
  PoolBuffer(void* data, size_t size, int cls) : Buffer(data, size), cls_(cls) {}
  ~PoolBuffer() override { GiveBytes(data_, size_); }
  void Attach(std::shared_ptr<PoolShelf> shelf, int64_t metered) {
    ResetRefs();
    shelf_ = std::move(shelf);
    metered_ = metered;
  }
  int cls() const { return cls_; }
  int64_t metered() const { return metered_; }

 private:
  void Destroy() override;
  int cls_;
  int64_t metered_ = 0;
  std::shared_ptr<PoolShelf> shelf_;
};

// Free buffers of a pool that the threads of one seat (base/resting.h) took: a buffer comes back
// where it was taken, so that threads of other seats write to other cache lines. Outlives its pool
// while buffers are in use.
class alignas(64) PoolShelf final : public std::enable_shared_from_this<PoolShelf> {
 public:
  explicit PoolShelf(std::shared_ptr<MemoryMeter> meter) : meter_(std::move(meter)) {}
  ~PoolShelf() {
    absl::MutexLock hold(&mutex_);
    DeleteAll();
  }
  // nullptr: there is none of the class.
  PoolBuffer* Take(int c) {
    absl::MutexLock hold(&mutex_);
    if (free_ == nullptr || (*free_)[c].empty()) return nullptr;
    PoolBuffer* b = (*free_)[c].back();
    (*free_)[c].pop_back();
    return b;
  }
  void Return(PoolBuffer* b) {
    if (meter_) meter_->Give(b->metered());
    absl::MutexLock hold(&mutex_);
    if (free_ == nullptr) free_ = std::make_unique<Lists>();
    (*free_)[b->cls()].push_back(b);
  }
  void Trim() {
    absl::MutexLock hold(&mutex_);
    DeleteAll();
  }

 private:
  void DeleteAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (free_ == nullptr) return;
    for (auto& list : *free_) {
      for (PoolBuffer* b : list) delete b;
      list.clear();
    }
  }

  using Lists = std::array<std::vector<PoolBuffer*>, kPoolClasses>;  // by class
  const std::shared_ptr<MemoryMeter> meter_;
  absl::Mutex mutex_;
  // Made for the first buffer that comes back: most of a session's pools and shelves see none.
  std::unique_ptr<Lists> free_ ABSL_GUARDED_BY(mutex_);
};

class Pool final : public Allocator {
 public:
  explicit Pool(std::shared_ptr<MemoryMeter> meter) : meter_(std::move(meter)) {
    for (auto& shelf : shelves_) shelf = std::make_shared<PoolShelf>(meter_);
  }
  StatusOr<BufferRef> Allocate(size_t size) override {
    const int c = PoolClass(size);
    if (c >= kPoolClasses) return ResourceExhausted("OOM when allocating ", size, " bytes");
    const auto metered = static_cast<int64_t>(size);
    if (meter_) RETURN_IF_ERROR(meter_->Take(metered));
    const size_t seat = OwnSeat();
    auto b = Find(c, seat);
    if (!b.ok()) {
      if (meter_) meter_->Give(metered);
      return b.status();
    }
    (*b)->Attach(shelves_[seat % kShelves], metered);
    return BufferRef(*b);
  }

 private:
  StatusOr<PoolBuffer*> Find(int c, size_t seat) {
    for (size_t i = 0; i < kShelves; ++i) {
      if (PoolBuffer* b = shelves_[(seat + i) % kShelves]->Take(c)) return b;
    }
    const size_t bytes = PoolClassBytes(c);
    auto p = TakeMostlyLargePages(bytes);
    if (!p.ok()) {
      for (auto& shelf : shelves_) shelf->Trim();
      p = TakeMostlyLargePages(bytes);
    }
    if (!p.ok()) return p.status();
    return new PoolBuffer(*p, bytes, c);
  }

  static constexpr size_t kShelves = 8;
  const std::shared_ptr<MemoryMeter> meter_;
  std::array<std::shared_ptr<PoolShelf>, kShelves> shelves_;
};

void PoolBuffer::Destroy() {
  // This may be the last reference to the shelf, which then frees the buffer: no member may be
  // touched after Return.
  std::shared_ptr<PoolShelf> shelf = std::move(shelf_);
  shelf->Return(this);
}

}  // namespace

Allocator* HeapAllocator() {
  static HeapAllocatorImpl* a = new HeapAllocatorImpl;
  return a;
}

Allocator* KeptAllocator() {
  static KeptAllocatorImpl* a = new KeptAllocatorImpl;
  return a;
}

BufferRef ForeignBuffer(const void* data, size_t size, ForeignBytes kind,
                        std::shared_ptr<const void> owner) {
  return BufferRef(new ForeignBufferImpl(data, size, kind, std::move(owner)));
}

void DropMappedPages(const void* data, size_t size) {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t before = (page - reinterpret_cast<uintptr_t>(data) % page) % page;
  if (before >= size) return;
  auto* first = const_cast<char*>(static_cast<const char*>(data)) + before;
  madvise(first, (size - before) / page * page, MADV_DONTNEED);
}

std::shared_ptr<Allocator> MakePool(std::shared_ptr<MemoryMeter> meter) {
  return std::make_shared<Pool>(std::move(meter));
}

}  // namespace smelt
