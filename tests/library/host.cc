// A program that has OpenMP of its own and loads smelt as a library:
//   host LIBRARY MODEL LOG local|global openmp-first|library-first [OPENMP_LIBRARY]
// Without OPENMP_LIBRARY, its OpenMP (openmp.h) is part of the program, and so is the packaged
// oneDNN, whose header is HOST_DNNL_H.
// Both run in turns and at the same time, with different numbers of threads: each must run on its
// own threads and be right.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/library/library.h"
#include "tests/library/openmp.h"

#ifdef HOST_DNNL_H
#include HOST_DNNL_H
#endif

namespace {

constexpr int kOpenMpThreads = 5, kLibraryThreads = 3, kRows = 256;
std::atomic<int> passed{0}, failed{0};

void Check(const char* what, bool truth, const char* detail = "") {
  ++(truth ? passed : failed);
  if (!truth) std::printf("FAILED %s: %s\n", what, detail);
}
void CheckNoError(const char* what, const char* error) {
  Check(what, error == nullptr, error == nullptr ? "" : error);
}

template <typename F>
F* Find(void* library, const char* name) {
  void* found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) {
    std::printf("FAILED %s: %s\n", name, dlerror());
    std::exit(1);
  }
  return reinterpret_cast<F*>(found);
}

// Small whole numbers, so that every order of additions has the same sums.
struct Product {
  std::vector<float> a, b, want, got;
  Product() : a(kRows * kRows), b(a.size()), want(a.size()), got(a.size()) {
    for (int i = 0; i < kRows * kRows; ++i) {
      a[i] = static_cast<float>(i % 7 - 3);
      b[i] = static_cast<float>(i % 5 - 2);
    }
    for (int i = 0; i < kRows; ++i) {
      for (int k = 0; k < kRows; ++k) {
        for (int j = 0; j < kRows; ++j) want[i * kRows + j] += a[i * kRows + k] * b[k * kRows + j];
      }
    }
  }
};

struct Library {
  decltype(smelt_check_multiply)* multiply;
  decltype(smelt_check_replay)* replay;
  decltype(smelt_check_regions)* regions;
};

void CheckOpenMp(const char* when, decltype(RunOpenMp)* run, const Library* library) {
  const int64_t before = library != nullptr ? library->regions() : 0;
  CheckNoError(when, run(kOpenMpThreads));
  Check("OpenMP's regions leave smelt's teams alone",
        library == nullptr || library->regions() == before);
}

void CheckLibrary(const Library& library) {
  Product p;
  int64_t regions = 0;
  CheckNoError("oneDNN in the library", library.multiply(kLibraryThreads, kRows, p.a.data(),
                                                         p.b.data(), p.got.data(), &regions));
  Check("oneDNN's regions run on smelt's teams", regions > 0);
  Check("oneDNN's product", p.got == p.want);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const int mode = RTLD_NOW | (std::strcmp(argv[4], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL);
  const bool openmp_first = std::strcmp(argv[5], "openmp-first") == 0;
  decltype(RunOpenMp)* openmp = nullptr;
  Library library{};
  const auto find_openmp = [&] {
#ifdef HOST_DNNL_H
    openmp = &RunOpenMp;
#else
    if (argc > 6) openmp = Find<decltype(RunOpenMp)>(dlopen(argv[6], mode), "RunOpenMp");
#endif
  };
  const auto load_library = [&] {
    void* handle = dlopen(argv[1], mode);
    library = {Find<decltype(smelt_check_multiply)>(handle, "smelt_check_multiply"),
               Find<decltype(smelt_check_replay)>(handle, "smelt_check_replay"),
               Find<decltype(smelt_check_regions)>(handle, "smelt_check_regions")};
  };
  if (openmp_first) {
    find_openmp();
    if (openmp == nullptr) return 2;
    CheckOpenMp("OpenMP before the library is loaded", openmp, nullptr);
    load_library();
  } else {
    load_library();
    CheckLibrary(library);
    find_openmp();
    if (openmp == nullptr) return 2;
  }

  CheckOpenMp("OpenMP beside the library", openmp, &library);
  CheckLibrary(library);
  CheckNoError("a model's answers", library.replay(kLibraryThreads, argv[2], argv[3]));
  CheckOpenMp("OpenMP after the library ran", openmp, &library);
#ifdef HOST_DNNL_H
  Product p;
  Check("the host's oneDNN",
        dnnl_sgemm('N', 'N', kRows, kRows, kRows, 1, p.a.data(), kRows, p.b.data(), kRows, 0,
                   p.got.data(), kRows) == dnnl_success &&
            p.got == p.want);
  CheckLibrary(library);
#endif
  std::thread other([&] {
    for (int i = 0; i < 10; ++i) CheckLibrary(library);
  });
  for (int i = 0; i < 10; ++i) CheckOpenMp("OpenMP while the library runs", openmp, &library);
  other.join();

  std::printf("%d passed, %d failed\n", passed.load(), failed.load());
  return failed == 0 ? 0 : 1;
}
