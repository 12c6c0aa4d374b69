// BATCH_MATMUL of quantized tensors, whose matrices broadcast, and of float ones by int8 matrices.
#include "absl/strings/str_cat.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/common/small_cache.h"
#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/lite/fixed_point.h"
#include "smelt/kernels/lite/int8_layer.h"
#include "smelt/kernels/lite/int8_matmul.h"

namespace smelt::lite {
namespace {

// The products of two operands, matrix by matrix.
struct MatmulShape {
  int64_t rows = 0, depth = 0, columns = 0;
  Broadcast batches;
  Shape output;
};

Shape WithoutMatrix(const Shape& shape) {
  Dims dims;
  for (int i = 0; i + 2 < shape.rank(); ++i) dims.push_back(shape[i]);
  return Shape(dims);
}

StatusOr<MatmulShape> MatmulShapeOf(const Shape& a, const Shape& b, bool transpose_a,
                                    bool transpose_b) {
  if (a.rank() < 2 || b.rank() < 2) {
    return InvalidArgument("a matrix of shape ", (a.rank() < 2 ? a : b).ToString());
  }
  MatmulShape m;
  m.rows = a[a.rank() - (transpose_a ? 1 : 2)];
  m.depth = a[a.rank() - (transpose_a ? 2 : 1)];
  m.columns = b[b.rank() - (transpose_b ? 2 : 1)];
  if (b[b.rank() - (transpose_b ? 1 : 2)] != m.depth) {
    return InvalidArgument("products of ", a.ToString(), " and ", b.ToString());
  }
  const Shape batches_a = WithoutMatrix(a), batches_b = WithoutMatrix(b);
  const Shape* shapes[] = {&batches_a, &batches_b};
  if (!MakeBroadcast(shapes, &m.batches)) return IncompatibleShapes(a, b);
  Dims dims(m.batches.shape.dims().begin(), m.batches.shape.dims().end());
  dims.push_back(m.rows);
  dims.push_back(m.columns);
  m.output = Shape(dims);
  return m;
}

// fn(i, j, k): matrix k of the result is that of matrices i and j.
template <typename F>
void ForMatrices(const Broadcast& bc, F fn) {
  ForEachRow(bc, 0, NumRows(bc), [&](const int64_t* offsets, int64_t to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      fn(offsets[0] + i * bc.strides[0].back(), offsets[1] + i * bc.strides[1].back(), to + i);
    }
  });
}

struct MatmulState final : KernelState {
  Affine a, b, out;
  Factor factor;
  // Of int8 by a second operand about 0, which XNNPACK runs: in the place of the factor.
  bool in_float = false;
  float scale = 0;
  FloatSteps float_steps;
  Range range;
  bool loops = false;  // of int8, with zero points of that type
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
  s->in_float = node.output_types[0] == Dtype::kInt8 && s->b.zero() == 0;
  s->scale = s->a.scale() * s->b.scale() / s->out.scale();
  s->float_steps = FloatSteps(s->range, s->out.zero());
  const auto fits = [&](int32_t zero) { return s->range.Clamp(zero) == zero; };
  s->loops = node.output_types[0] == Dtype::kInt8 && fits(s->a.zero()) && fits(s->b.zero()) &&
             fits(s->out.zero());
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

template <typename T, typename U>
struct Matrices {
  int64_t rows, columns, depth;

  void Run(const MatmulState& s, const T* a, const U* b, T* y) const {
    std::vector<int32_t> left(static_cast<size_t>(rows * depth));
    std::vector<int32_t> right(static_cast<size_t>(columns * depth));
    FillRows(a, rows, depth, !s.transpose_a, s.a.zero(), left.data());
    FillRows(b, columns, depth, s.transpose_b, s.b.zero(), right.data());
    const int64_t grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(1, columns * depth));
    ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          const int32_t *p = left.data() + r * depth, *q = right.data() + c * depth;
          y[r * columns + c] = static_cast<T>(Scaled(p, q, s));
        }
      }
    });
  }

 private:
  int32_t Scaled(const int32_t* p, const int32_t* q, const MatmulState& s) const {
    if constexpr (std::is_same_v<T, int16_t>) {
      int64_t sum = 0;
      for (int64_t i = 0; i < depth; ++i) sum += int64_t{p[i]} * q[i];
      return s.range.Clamp(Times(sum, s.factor), s.out.zero());
    } else {
      uint32_t sum = 0;  // wraps around
      for (int64_t i = 0; i < depth; ++i) sum += static_cast<uint32_t>(p[i] * q[i]);
      const auto whole = static_cast<int32_t>(sum);
      if (s.in_float) return s.float_steps(whole, s.scale);
      return s.range.Clamp(Times(whole, s.factor), s.out.zero());
    }
  }
};

void RunInt8(const MatmulState& s, const MatmulShape& m, const int8_t* a, const int8_t* b,
             int8_t* y) {
  Int8MatmulNumbers numbers;
  numbers.zero_a = s.a.zero(), numbers.zero_b = s.b.zero(), numbers.zero_out = s.out.zero();
  numbers.range = s.range;
  numbers.in_float = s.in_float;
  numbers.scale = s.scale;
  numbers.factor = s.factor;
  std::vector<Int8Matmul::Operands> products;
  ForMatrices(m.batches, [&](int64_t i, int64_t j, int64_t k) {
    products.push_back(
        {a + i * m.rows * m.depth, b + j * m.columns * m.depth, y + k * m.rows * m.columns});
  });
  const Int8Matmul matmul(m.rows, m.depth, m.columns, s.transpose_a, s.transpose_b, numbers);
  matmul.Run(std::ssize(products), [&](int64_t i) { return products[static_cast<size_t>(i)]; });
}

Status RunMatmul(OpContext& ctx) {
  const auto& s = ctx.state<MatmulState>();
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  ASSIGN_OR_RETURN(const MatmulShape m,
                   MatmulShapeOf(a.shape(), b.shape(), s.transpose_a, s.transpose_b));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, m.output));
  if (out->num_elements() == 0) return OkStatus();
  const auto run = [&]<typename T, typename U>() {
    const Matrices<T, U> matrices = {m.rows, m.columns, m.depth};
    ForMatrices(m.batches, [&](int64_t i, int64_t j, int64_t k) {
      matrices.Run(s, a.data<T>() + i * m.rows * m.depth, b.data<U>() + j * m.columns * m.depth,
                   out->data<T>() + k * m.rows * m.columns);
    });
  };
  if (s.loops && m.depth > 0) {
    RunInt8(s, m, a.data<int8_t>(), b.data<int8_t>(), out->data<int8_t>());
  } else if (out->dtype() == Dtype::kInt16 && b.dtype() == Dtype::kInt8) {
    run.template operator()<int16_t, int8_t>();
  } else {
    VisitNarrow(out->dtype(), [&]<typename T>() { run.template operator()<T, T>(); });
  }
  return OkStatus();
}

std::string DeclineMatmul(const Node& node) {
  const bool mixed = node.num_inputs() > 1 && node.output_types[0] == Dtype::kInt16 &&
                     node.input_types[1] == Dtype::kInt8;
  std::string why = DeclineUnlessNarrow(node, mixed ? 1 : 2);
  if (why.empty() && mixed && InputAffine(node, 1).scales.size() != 1) {
    why = "input 1 has not one scale";
  }
  if (why.empty() && node.output_types[0] == Dtype::kUint8) why = "its output is uint8";
  return why;
}

// ---- float rows by int8 matrices: each row is quantized on the way, as XNNPACK does

// Transposes `count` matrices [rows, columns].
template <typename T>
std::vector<T> TransposedMatrices(const T* x, int64_t count, int64_t rows, int64_t columns) {
  std::vector<T> out(static_cast<size_t>(count * rows * columns));
  T* to = out.data();
  for (int64_t m = 0; m < count; ++m, x += rows * columns) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) *to++ = x[r * columns + c];
    }
  }
  return out;
}

struct HybridMatmulState final : KernelState {
  std::vector<float> scales;
  bool transpose_a = false, transpose_b = false;

  // The last matrices that ran; their tensor keeps the address that tells them apart.
  struct Made {
    Tensor weights;
    int64_t rows = 0;
    std::vector<std::shared_ptr<const Int8Layer>> layers;  // by matrix
  };
  SmallCache<Made, 2, 2> made;

  StatusOr<Made> Make(const Tensor& weights, const MatmulShape& m) const {
    nn::Int8Window shape;
    shape.depth = m.depth;
    shape.units = m.columns;
    shape.in_w = shape.out_w = m.rows;
    HybridNumbers numbers;
    numbers.by_row = true;
    numbers.scales = scales;
    numbers.low = RealRange().low;
    numbers.high = RealRange().high;
    const int64_t size = m.depth * m.columns, count = weights.num_elements() / size;
    const int8_t* w = weights.data<int8_t>();
    std::vector<int8_t> turned;
    if (!transpose_b) {
      turned = TransposedMatrices(w, count, m.depth, m.columns);
      w = turned.data();
    }
    Made out = {weights, m.rows, {}};
    for (int64_t i = 0; i < count; ++i) {
      out.layers.push_back(std::make_shared<const Int8Layer>(shape, numbers, w + i * size));
    }
    return out;
  }
};

StatusOr<std::unique_ptr<KernelState>> PrepareHybridMatmul(const Node& node) {
  auto s = std::make_unique<HybridMatmulState>();
  s->scales = InputAffine(node, 1).scales;
  s->transpose_a = node.Bool("adj_x");
  s->transpose_b = node.Bool("adj_y");
  return s;
}

Status RunHybridMatmul(OpContext& ctx) {
  auto& s = ctx.state<HybridMatmulState>();
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  ASSIGN_OR_RETURN(const MatmulShape m,
                   MatmulShapeOf(a.shape(), b.shape(), s.transpose_a, s.transpose_b));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, m.output));
  if (out->num_elements() == 0) return OkStatus();
  float* y = out->data<float>();
  if (m.depth == 0) {
    std::fill_n(y, out->num_elements(), 0.0f);
    return OkStatus();
  }
  const HybridMatmulState::Made* by = nullptr;
  std::optional<HybridMatmulState::Made> anew;
  std::shared_ptr<const HybridMatmulState::Made> kept;
  // Matrices that are computed anew may lie where others did.
  if (ctx.node().input(1).node->Is("Const")) {
    const auto same = [&](const HybridMatmulState::Made& made) {
      return made.weights.raw() == b.raw() && made.weights.shape() == b.shape() &&
             made.rows == m.rows;
    };
    ASSIGN_OR_RETURN(kept, s.made.FindOrMake(same, [&] { return s.Make(b, m); }));
    by = kept.get();
  } else {
    ASSIGN_OR_RETURN(anew, s.Make(b, m));
    by = &*anew;
  }
  const float* x = a.data<float>();
  std::vector<float> turned;
  if (s.transpose_a) {
    const int64_t count = a.num_elements() / (m.rows * m.depth);
    turned = TransposedMatrices(x, count, m.depth, m.rows);
    x = turned.data();
  }
  const auto bytes = static_cast<int64_t>(by->layers[0]->scratch_bytes());
  ASSIGN_OR_RETURN(Tensor scratch, ctx.Temp(Dtype::kInt8, Shape({bytes})));
  ForMatrices(m.batches, [&](int64_t i, int64_t j, int64_t k) {
    by->layers[static_cast<size_t>(j)]->Run(x + i * m.rows * m.depth, y + k * m.rows * m.columns,
                                            scratch.data<int8_t>());
  });
  return OkStatus();
}

std::string DeclineHybridMatmul(const Node& node) {
  if (node.num_inputs() < 2) return "an input is missing";
  if (node.output_types[0] != Dtype::kFloat || node.input_types[0] != Dtype::kFloat) {
    return "its first input and its output are not float";
  }
  if (node.input_types[1] != Dtype::kInt8) return "its second input is not int8";
  const Affine w = InputAffine(node, 1);
  if (w.block != 0 || w.scales.size() != 1 || w.zeros != std::vector<int64_t>{0}) {
    return "its second input has not one scale about 0";
  }
  // XNNPACK takes constant matrices alone. TensorFlow Lite's own kernel then knows steps about 0.
  if (!node.input(1).node->Is("Const") && !node.Bool("asymmetric_quantize_inputs")) {
    return "its second input is not constant and asymmetric_quantize_inputs is false";
  }
  return "";
}

constexpr Kernel kLiteMatmulTable[] = {
    {"tfl.batch_matmul", "", kAnyType, "lite:batch_matmul", RunMatmul, PrepareMatmul,
     DeclineMatmul},
    {"tfl.batch_matmul", "", kAnyType, "lite:hybrid_batch_matmul", RunHybridMatmul,
     PrepareHybridMatmul, DeclineHybridMatmul},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteMatmulKernels = lite::kLiteMatmulTable;
}  // namespace smelt
