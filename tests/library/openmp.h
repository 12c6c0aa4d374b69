// A host's own OpenMP, run by libgomp.
#ifndef TESTS_LIBRARY_OPENMP_H_
#define TESTS_LIBRARY_OPENMP_H_

// One parallel region of `threads` threads. What was wrong, or nullptr: a member that saw another
// size, a loop iteration that ran more or less than once, a runtime that is not libgomp.
extern "C" const char* RunOpenMp(int threads);

#endif  // TESTS_LIBRARY_OPENMP_H_
