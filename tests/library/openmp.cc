#include "tests/library/openmp.h"

#include <dlfcn.h>
#include <omp.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <vector>

extern "C" void GOMP_parallel(void (*)(void*), void*, unsigned, unsigned);

__attribute__((visibility("default"))) const char* RunOpenMp(int threads) {
  static std::string why;
  why.clear();
  const auto is_of_libgomp = [](void* function) {
    Dl_info where{};
    return dladdr(function, &where) != 0 &&
           std::string(where.dli_fname).find("libgomp") != std::string::npos;
  };
  if (!is_of_libgomp(reinterpret_cast<void*>(&GOMP_parallel)) ||
      !is_of_libgomp(reinterpret_cast<void*>(&omp_get_num_threads))) {
    why += "its entry points are not libgomp's; ";
  }

  constexpr int kIterations = 500;
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
  std::vector<std::atomic<int>> runs(kIterations);
  std::atomic<int> wrong_size{0}, before_barrier{0}, passed_early{0};
  int64_t sum = 0;
  std::mutex mutex;
  std::set<int> members;
  // The loop takes its iterations from the region's team: members of another runtime's team would
  // each run them all.
#pragma omp parallel
  {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      members.insert(gettid());
    }
    if (omp_get_num_threads() != threads) ++wrong_size;
    ++before_barrier;
#pragma omp barrier
    if (before_barrier != threads) ++passed_early;
#pragma omp for schedule(dynamic, 3) reduction(+ : sum)
    for (int i = 0; i < kIterations; ++i) {
      ++runs[i];
      sum += i;
    }
  }
  if (static_cast<int>(members.size()) != threads) {
    why += std::to_string(members.size()) + " threads instead of " + std::to_string(threads) + "; ";
  }
  if (wrong_size > 0) why += "members saw another size; ";
  if (passed_early > 0) why += "members passed a barrier early; ";
  for (const auto& r : runs) {
    if (r != 1) {
      why += "a loop iteration ran " + std::to_string(r) + " times; ";
      break;
    }
  }
  if (sum != kIterations * (kIterations - 1) / 2) why += "the sum is wrong; ";
  if (omp_get_max_threads() != threads) why += "another thread count is set; ";
  return why.empty() ? nullptr : why.c_str();
}
