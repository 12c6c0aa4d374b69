// What functions of XLA's ops compute, as far as operators know it.
#ifndef SMELT_LITE_COMMON_XLA_FUNCTION_H_
#define SMELT_LITE_COMMON_XLA_FUNCTION_H_

#include <optional>
#include <span>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// The op of both arguments, in either order, that a function of two is; "_Arg" where it gives the
// second. Empty: `f` is nullptr, no function of the library, or computes something else.
OpName OpOfTwo(const FunctionLibrary& library, const FuncAttr* f);

// What a function of scalars answers, computed by our own kernels; nothing: `f` is nullptr or no
// function of the library, does more than compute of single elements, does that in more than some
// hundred ops, or one of them fails.
std::optional<std::vector<Tensor>> AnswersOf(const FunctionLibrary& library, const FuncAttr* f,
                                             std::span<const Tensor> arguments);

}  // namespace smelt

#endif  // SMELT_LITE_COMMON_XLA_FUNCTION_H_
