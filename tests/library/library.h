// What the tests of smelt in a shared library call: a little of smelt, with C linkage. Errors are
// texts, valid until the thread's next call; nullptr means none.
#ifndef TESTS_LIBRARY_LIBRARY_H_
#define TESTS_LIBRARY_LIBRARY_H_

#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

// product = a b, square float matrices of n rows, by one call of oneDNN in at most `threads`
// threads. Adds to *regions how many regions of several threads smelt's teams ran for it.
const char* smelt_check_multiply(int threads, int64_t n, const float* a, const float* b,
                                 float* product, int64_t* regions);

// A model's answers to the requests in a log must be those in the log.
const char* smelt_check_replay(int threads, const char* model, const char* log);

// The output of a model's serving_default that is called output_name, of `outputs` floats, for one
// input of floats.
const char* smelt_check_run(int threads, const char* model, const char* input_name, int rank,
                            const int64_t* dims, const float* input, const char* output_name,
                            int64_t outputs, float* output);

// How many regions of several threads the calling thread has started on smelt's teams.
int64_t smelt_check_regions(void);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif  // TESTS_LIBRARY_LIBRARY_H_
