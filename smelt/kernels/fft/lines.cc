#include "smelt/kernels/fft/lines.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "absl/synchronization/mutex.h"

namespace smelt::fft {
namespace {

// A pass of radix r takes r steps for each point: beyond this a convolution is quicker.
constexpr int64_t kLargestRadix = 31;
constexpr size_t kMaxPlans = 64;
constexpr int64_t kLongestKept = 1 << 20;

// Fours first: they take the fewest steps.
std::vector<int64_t> Radices(int64_t n) {
  std::vector<int64_t> out;
  for (const int64_t r : {4, 2, 3, 5}) {
    for (; n % r == 0; n /= r) out.push_back(r);
  }
  for (int64_t r = 7; n > 1 && r <= kLargestRadix; r += 2) {
    for (; n % r == 0; n /= r) out.push_back(r);
  }
  if (n > 1) out.push_back(n);
  return out;
}

template <typename T>
void AddRoot(int64_t k, int64_t n, std::vector<T>* out) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
  out->push_back(static_cast<T>(std::cos(angle)));
  out->push_back(static_cast<T>(std::sin(angle)));
}

}  // namespace

template <typename T>
bool LinePlan<T>::Suits(int64_t n) {
  const std::vector<int64_t> radices = Radices(n);
  return n >= 1 && std::ranges::all_of(radices, [](int64_t r) { return r <= kLargestRadix; });
}

template <typename T>
LinePlan<T>::LinePlan(int64_t n) : length_(n) {
  int64_t l1 = 1;
  for (const int64_t r : Radices(n)) {
    Stage s{r, n / (l1 * r), l1, {}, {}};
    for (int64_t j = 0; j < r; ++j) {
      for (int64_t i = 0; i < s.ido; ++i) AddRoot(j * l1 * i, n, &s.twiddles);
    }
    for (int64_t k = 0; k < r; ++k) AddRoot(k, r, &s.roots);
    stages_.push_back(std::move(s));
    largest_ = std::max(largest_, r);
    l1 *= r;
  }
  for (int64_t k = 0; k <= n; ++k) AddRoot(k, 2 * n, &roots_of_twice_);
}

template <typename T>
std::shared_ptr<const LinePlan<T>> LinePlan<T>::Of(int64_t n) {
  static absl::Mutex mutex;
  static auto* plans = new std::map<int64_t, std::shared_ptr<const LinePlan>>;
  {
    absl::MutexLock lock(&mutex);
    if (auto it = plans->find(n); it != plans->end()) return it->second;
  }
  std::shared_ptr<const LinePlan> plan(new LinePlan(n));
  absl::MutexLock lock(&mutex);
  if (plans->size() < kMaxPlans && n <= kLongestKept) plans->emplace(n, plan);
  return plan;
}

template <typename T>
T* LinePlan<T>::Run(T* a, T* b, T* scratch) const {
  const FftLoops<T>& loops = IsaFft<T>();
  for (const Stage& s : stages_) {
    loops.pass(s.radix, s.ido, s.l1, s.twiddles.data(), s.roots.data(), a, b, scratch);
    std::swap(a, b);
  }
  return a;
}

template class LinePlan<float>;
template class LinePlan<double>;

}  // namespace smelt::fft
