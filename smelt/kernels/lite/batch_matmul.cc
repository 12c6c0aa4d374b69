// BATCH_MATMUL of quantized tensors, whose matrices broadcast.
#include "absl/strings/str_cat.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/lite/fixed_point.h"

namespace smelt::lite {
namespace {

struct MatmulState final : KernelState {
  Affine a, b, out;
  Factor factor;
  Range range;
  bool transpose_a = false, transpose_b = false;
};

StatusOr<std::unique_ptr<KernelState>> PrepareMatmul(const Node& node) {
  auto s = std::make_unique<MatmulState>();
  s->a = InputAffine(node, 0);
  s->b = InputAffine(node, 1);
  s->out = OutputAffine(node);
  s->factor = FactorOf(static_cast<double>(s->a.scale() * s->b.scale()) /
                       static_cast<double>(s->out.scale()));
  s->range = RangeOf(node.output_types[0]);
  s->transpose_a = node.Bool("adj_x");
  s->transpose_b = node.Bool("adj_y");
  return s;
}

// Rows of `depth` numbers less the zero point; columns where the matrix is not `by_row`.
template <typename T>
void FillRows(const T* x, int64_t rows, int64_t depth, bool by_row, int32_t zero, int32_t* to) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = by_row ? x + r * depth : x + r;
    const int64_t step = by_row ? 1 : rows;
    for (int64_t i = 0; i < depth; ++i) to[r * depth + i] = int32_t{from[i * step]} - zero;
  }
}

template <typename T>
struct Matrices {
  int64_t rows, columns, depth;

  void Run(const MatmulState& s, const T* a, const T* b, T* y) const {
    std::vector<int32_t> left(static_cast<size_t>(rows * depth));
    std::vector<int32_t> right(static_cast<size_t>(columns * depth));
    FillRows(a, rows, depth, !s.transpose_a, s.a.zero(), left.data());
    FillRows(b, columns, depth, s.transpose_b, s.b.zero(), right.data());
    const int64_t grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(1, columns * depth));
    ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          const int32_t *p = left.data() + r * depth, *q = right.data() + c * depth;
          y[r * columns + c] = static_cast<T>(s.range.Clamp(Scaled(p, q, s.factor), s.out.zero()));
        }
      }
    });
  }

 private:
  int32_t Scaled(const int32_t* p, const int32_t* q, const Factor& factor) const {
    if constexpr (std::is_same_v<T, int16_t>) {
      int64_t sum = 0;
      for (int64_t i = 0; i < depth; ++i) sum += int64_t{p[i]} * q[i];
      return Times(sum, factor);
    } else {
      uint32_t sum = 0;  // wraps around
      for (int64_t i = 0; i < depth; ++i) sum += static_cast<uint32_t>(p[i] * q[i]);
      return Times(static_cast<int32_t>(sum), factor);
    }
  }
};

Shape WithoutMatrix(const Shape& shape) {
  Dims dims;
  for (int i = 0; i + 2 < shape.rank(); ++i) dims.push_back(shape[i]);
  return Shape(dims);
}

Status RunMatmul(OpContext& ctx) {
  const auto& s = ctx.state<MatmulState>();
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  if (a.rank() < 2 || b.rank() < 2) {
    return InvalidArgument("a matrix of shape ", (a.rank() < 2 ? a : b).shape().ToString());
  }
  const int64_t rows = a.dim(a.rank() - (s.transpose_a ? 1 : 2));
  const int64_t depth = a.dim(a.rank() - (s.transpose_a ? 2 : 1));
  const int64_t columns = b.dim(b.rank() - (s.transpose_b ? 2 : 1));
  if (b.dim(b.rank() - (s.transpose_b ? 1 : 2)) != depth) {
    return InvalidArgument("products of ", a.shape().ToString(), " and ", b.shape().ToString());
  }
  const Shape batches_a = WithoutMatrix(a.shape()), batches_b = WithoutMatrix(b.shape());
  const Shape* shapes[] = {&batches_a, &batches_b};
  Broadcast bc;
  if (!MakeBroadcast(shapes, &bc)) return IncompatibleShapes(a.shape(), b.shape());
  Dims dims(bc.shape.dims().begin(), bc.shape.dims().end());
  dims.push_back(rows);
  dims.push_back(columns);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape(dims)));
  if (out->num_elements() == 0) return OkStatus();
  VisitNarrow(out->dtype(), [&]<typename T>() {
    const Matrices<T> matrices = {rows, columns, depth};
    const T *x = a.data<T>(), *y = b.data<T>();
    T* z = out->data<T>();
    ForEachRow(bc, 0, NumRows(bc), [&](const int64_t* offsets, int64_t to, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        matrices.Run(s, x + (offsets[0] + i * bc.strides[0].back()) * rows * depth,
                     y + (offsets[1] + i * bc.strides[1].back()) * columns * depth,
                     z + (to + i) * rows * columns);
      }
    });
  });
  return OkStatus();
}

std::string DeclineMatmul(const Node& node) {
  std::string why = DeclineUnlessNarrow(node, 2);
  if (why.empty() && node.output_types[0] == Dtype::kUint8) why = "its output is uint8";
  return why;
}

constexpr Kernel kLiteMatmulTable[] = {
    {"tfl.batch_matmul", "", kAnyType, "lite:batch_matmul", RunMatmul, PrepareMatmul,
     DeclineMatmul},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteMatmulKernels = lite::kLiteMatmulTable;
}  // namespace smelt
