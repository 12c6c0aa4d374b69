#include "smelt/lite/common/evaluate.h"

#include <algorithm>
#include <numeric>

#include "smelt/kernels/common/copy.h"
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

namespace {

// Does it leave the elements of this shape in another order?
bool Moves(const Shape& shape, std::span<const int64_t> permutation) {
  int64_t last = -1;
  for (const int64_t d : permutation) {
    if (shape[static_cast<int>(d)] == 1) continue;
    if (d < last) return true;
    last = d;
  }
  return false;
}

// Of a mapped file's tensor: each part is left as soon as it was read, so that a large one is not
// in memory twice. REQUIRES: a permutation; elements.
StatusOr<Tensor> TransposedByParts(const Tensor& t, std::span<const int64_t> permutation) {
  constexpr int64_t kPartBytes = int64_t{512} << 10;
  const Dims strides = Strides(t.shape());
  int first = 0;  // dimension with more than one index
  while (first + 1 < t.rank() && t.dim(first) == 1) ++first;
  Dims dims;
  for (const int64_t d : permutation) dims.push_back(t.dim(static_cast<int>(d)));
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(t.dtype(), Shape(dims)));
  const Dims out_strides = Strides(out.shape());
  CopyDims loops;
  size_t by_part = 0;
  for (size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] == first) by_part = i;
    loops.push_back({dims[i], out_strides[i], strides[static_cast<size_t>(permutation[i])]});
  }
  const CopyDim whole = loops[by_part];
  const auto size = static_cast<int64_t>(DtypeSize(t.dtype()));
  const int64_t rows = std::max<int64_t>(1, kPartBytes / (whole.src * size));
  for (int64_t r = 0; r < whole.size; r += rows) {
    loops[by_part].size = std::min(rows, whole.size - r);
    const char* from = static_cast<const char*>(t.raw()) + r * whole.src * size;
    CopyStrided(t.dtype(), static_cast<char*>(out.raw()) + r * whole.dst * size, from, loops);
    DropMappedPages(from, static_cast<size_t>(loops[by_part].size * whole.src * size));
  }
  return out;
}

}  // namespace

StatusOr<Tensor> Transposed(const Tensor& t, std::span<const int64_t> permutation) {
  std::vector<int64_t> dims(static_cast<size_t>(t.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  if (std::ranges::is_permutation(permutation, dims) && t.num_elements() > 0 &&
      t.buffer()->mapped_file() && Moves(t.shape(), permutation)) {
    return TransposedByParts(t, permutation);
  }
  AttrMap attrs;
  attrs.Set("T", t.dtype());
  attrs.Set("Tperm", Dtype::kInt64);
  ASSIGN_OR_RETURN(auto out, Evaluate("Transpose", {t, Tensor::Vector(permutation)}, attrs));
  return std::move(out[0]);
}

StatusOr<Tensor> Binary(OpName op, const Tensor& a, const Tensor& b) {
  AttrMap attrs;
  attrs.Set("T", a.dtype());
  ASSIGN_OR_RETURN(auto out, Evaluate(op, {a, b}, attrs));
  return std::move(out[0]);
}

}  // namespace smelt
