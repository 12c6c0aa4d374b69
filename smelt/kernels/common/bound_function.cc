#include "smelt/kernels/common/bound_function.h"

namespace smelt {

StatusOr<std::vector<Tensor>> BoundFunction::operator()(std::vector<Tensor> args,
                                                        Step& step) const {
  if (step.functions == nullptr) {
    return Internal("function '", function_.name(), "' cannot be called here");
  }
  args.insert(args.end(), captured_.begin(), captured_.end());
  std::vector<Tensor> results;
  RETURN_IF_ERROR(step.functions->Call(function_, std::move(args), &results, step));
  if (results_.empty()) return results;
  if (results.size() != results_.size()) {
    return InvalidArgument("function '", function_.name(), "' returns ", results.size(),
                           " values where ", results_.size(), " are wanted");
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].dtype() != results_[i]) {
      return InvalidArgument("function '", function_.name(), "' returns a ",
                             DtypeName(results[i].dtype()), " as value ", i, ", not a ",
                             DtypeName(results_[i]));
    }
  }
  return results;
}

}  // namespace smelt
