#include "smelt/lite/common/evaluate.h"

#include "smelt/kernels/run_op.h"

namespace smelt {

StatusOr<std::vector<Tensor>> Evaluate(OpName op, std::vector<Tensor> inputs, AttrMap attrs,
                                       const FileSystem* files) {
  Graph graph(std::make_shared<FunctionLibrary>());
  ASSIGN_OR_RETURN(Node * n, graph.AddNode("evaluated", op.text()));
  n->AttrsToChange() = std::move(attrs);
  RETURN_IF_ERROR(graph.ResolveTypes(n));
  Step step;
  step.files = files;
  return RunOp(*n, std::move(inputs), step);
}

StatusOr<Tensor> Transposed(const Tensor& t, std::span<const int64_t> permutation) {
  AttrMap attrs;
  attrs.Set("T", t.dtype());
  attrs.Set("Tperm", Dtype::kInt64);
  ASSIGN_OR_RETURN(auto out, Evaluate("Transpose", {t, Tensor::Vector(permutation)}, attrs));
  // Weights are read once: without this all of a model would be in memory twice.
  if (t.buffer()->mapped_file()) DropMappedPages(t.raw(), t.bytes());
  return std::move(out[0]);
}

StatusOr<Tensor> Binary(OpName op, const Tensor& a, const Tensor& b) {
  AttrMap attrs;
  attrs.Set("T", a.dtype());
  ASSIGN_OR_RETURN(auto out, Evaluate(op, {a, b}, attrs));
  return std::move(out[0]);
}

}  // namespace smelt
