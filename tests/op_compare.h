// What a case got against what TensorFlow wrote down (docs/formats/op_cases.md).
#ifndef SMELT_TESTS_OP_COMPARE_H_
#define SMELT_TESTS_OP_COMPARE_H_

#include <string>

#include "smelt/tensor/tensor.h"
#include "tests/op_case.h"

namespace smelt {

// Why the tensors differ by more than the case allows, or empty.
std::string Compare(const Tensor& got, const Tensor& want, const TestCase& c);

// An outcome against the expectation of failure: why not, or empty. `done` when there is nothing
// more to compare.
std::string CompareStatus(const Status& status, const Failure& failure, bool* done);

}  // namespace smelt

#endif  // SMELT_TESTS_OP_COMPARE_H_
