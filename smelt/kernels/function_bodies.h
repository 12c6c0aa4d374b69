// The functions of a model as it states them, for kernels that know plain ones by sight (a reducer
// that only adds). Whoever runs functions may show them as well.
#ifndef SMELT_KERNELS_FUNCTION_BODIES_H_
#define SMELT_KERNELS_FUNCTION_BODIES_H_

#include "absl/strings/string_view.h"
#include "smelt/graph/graph.h"
#include "smelt/kernels/step.h"

namespace smelt {

// A second face of a FunctionRunner. Thread safe.
class FunctionBodies {
 public:
  virtual ~FunctionBodies() = default;
  // nullptr when the library has no such function. Valid as long as the runner.
  virtual const Function* FindBody(absl::string_view name) const = 0;
};

// The body of a function that `step` may call; nullptr when the runner shows none.
inline const Function* FindBody(const Step& step, absl::string_view name) {
  const auto* bodies = dynamic_cast<const FunctionBodies*>(step.functions);
  return bodies == nullptr ? nullptr : bodies->FindBody(name);
}

}  // namespace smelt

#endif  // SMELT_KERNELS_FUNCTION_BODIES_H_
