// FractionalMaxPool, FractionalAvgPool and their gradients: pools over cells of two sizes, n and
// n + 1, in random order.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/random/random.h"
#include "smelt/tensor/visit_types.h"

namespace smelt {
namespace {

using Cells = std::vector<int64_t>;  // where each cell begins, and the end of the last

struct FractionalState final : KernelState {
  std::vector<float> ratio;
  bool pseudo_random = false, overlapping = false, deterministic = false;
  std::unique_ptr<KernelState> random;  // a SeededState
  absl::Mutex mutex;
  // What deterministic ops keep of their first run.
  Cells rows ABSL_GUARDED_BY(mutex), columns ABSL_GUARDED_BY(mutex);
};

template <bool kMax>
StatusOr<std::unique_ptr<KernelState>> PrepareFractional(const Node& node) {
  auto s = std::make_unique<FractionalState>();
  s->ratio = node.Get<std::vector<float>>("pooling_ratio", {});
  s->pseudo_random = node.Bool("pseudo_random");
  s->overlapping = node.Bool("overlapping");
  s->deterministic = node.Bool("deterministic");
  if (s->ratio.size() != 4) {
    return InvalidArgument("pooling_ratio field must specify 4 dimensions");
  }
  for (const float r : s->ratio) {
    if (!(r >= 1)) return InvalidArgument("pooling_ratio cannot be smaller than 1, got: ", r);
  }
  if (s->ratio[0] != 1 || s->ratio[3] != 1) {
    return Unimplemented("Fractional ", kMax ? "max" : "average",
                         " pooling is not yet supported on the batch nor channel dimension.");
  }
  if (!s->deterministic && (node.Int("seed") != 0 || node.Int("seed2") != 0)) {
    return InvalidArgument("Both seed and seed2 should be 0 if deterministic is false.");
  }
  ASSIGN_OR_RETURN(s->random, PrepareSeeded(node));
  return s;
}

// Cuts `in` into `out` cells of in / out or one more.
Cells CutCells(const Step& step, FractionalState& s, int64_t in, int64_t out) {
  auto& random = *static_cast<SeededState*>(s.random.get());
  Cells sizes(static_cast<size_t>(out), in / out);
  if (s.pseudo_random) {
    // Ends at alpha * (u + i) rounded up; u is kept from making the outer cells too large or small.
    PhiloxWords words(random.Reserve(step, 1));
    const uint32_t first = words(), second = words();
    const double alpha = static_cast<double>(in) / static_cast<double>(out);
    const auto k = static_cast<double>(in / out);
    const double most = std::min((k + 2) / alpha - 1, (static_cast<double>(in) + 1 - k) / alpha -
                                                          static_cast<double>(out - 1));
    const double u = PhiloxDouble(first, second) * most;
    int64_t begin = 1;
    for (int64_t i = 1; i <= out; ++i) {
      const int64_t end =
          i == out ? in + 1 : static_cast<int64_t>(std::ceil(alpha * (static_cast<double>(i) + u)));
      sizes[i - 1] = end - begin;
      begin = end;
    }
  } else {
    for (int64_t i = 0; i < in % out; ++i) ++sizes[i];
    PhiloxWords words(random.Reserve(step, static_cast<uint64_t>(out + 3) / 4));
    for (int64_t i = 0; i + 1 < out; ++i) {
      std::swap(sizes[i], sizes[i + words() % static_cast<uint32_t>(out - i)]);
    }
  }
  Cells cells{0};
  for (const int64_t size : sizes) cells.push_back(cells.back() + size);
  return cells;
}

struct CellRange {
  int64_t begin, end;  // exclusive
};
// Cell `i` of a dimension; overlapping ones share the pixel between them.
CellRange CellAt(const int64_t* cells, int64_t i, bool overlapping, int64_t size) {
  return {cells[i], std::min(cells[i + 1] + (overlapping ? 1 : 0), size)};
}

struct PoolDims {
  int64_t batch, in_h, in_w, out_h, out_w, depth;
};

// Calls fn(output index, input index, pixels of the cell) for every pixel of every cell. Indices
// are those of a pixel's first channel.
template <typename F>
void EachCellPixel(const PoolDims& d, const int64_t* rows, const int64_t* columns, bool overlapping,
                   F fn) {
  for (int64_t b = 0; b < d.batch; ++b) {
    for (int64_t y = 0; y < d.out_h; ++y) {
      const CellRange v = CellAt(rows, y, overlapping, d.in_h);
      for (int64_t x = 0; x < d.out_w; ++x) {
        const CellRange h = CellAt(columns, x, overlapping, d.in_w);
        const int64_t out = ((b * d.out_h + y) * d.out_w + x) * d.depth;
        const int64_t count = (v.end - v.begin) * (h.end - h.begin);
        for (int64_t i = v.begin; i < v.end; ++i) {
          for (int64_t j = h.begin; j < h.end; ++j) {
            fn(out, ((b * d.in_h + i) * d.in_w + j) * d.depth, count);
          }
        }
      }
    }
  }
}

template <typename T, bool kMax>
void PoolCells(const PoolDims& d, const Cells& rows, const Cells& columns, bool overlapping,
               const T* in, Tensor* out) {
  T* to = out->data<T>();
  std::fill_n(to, out->num_elements(), kMax ? std::numeric_limits<T>::lowest() : T(0));
  std::vector<int64_t> counts(static_cast<size_t>(out->num_elements()));
  EachCellPixel(d, rows.data(), columns.data(), overlapping,
                [&](int64_t o, int64_t i, int64_t count) {
                  for (int64_t c = 0; c < d.depth; ++c) {
                    if (kMax) {
                      to[o + c] = std::max(to[o + c], in[i + c]);
                    } else {
                      to[o + c] = AddValues(to[o + c], in[i + c]);
                      counts[o + c] = count;
                    }
                  }
                });
  for (int64_t i = 0; !kMax && i < out->num_elements(); ++i) {
    if (counts[i] > 0) to[i] = to[i] / static_cast<T>(counts[i]);
  }
}

// The types of these ops.
using PoolTypes = CppTypes<float, double, int32_t, int64_t>;

template <bool kMax>
Status RunFractional(OpContext& ctx) {
  auto& s = ctx.state<FractionalState>();
  const Tensor& in = ctx.input(0);
  if (in.rank() != 4) return InvalidArgument("tensor_in must be 4-dimensional");
  int64_t out_size[4];
  for (int i = 0; i < 4; ++i) {
    if (static_cast<float>(in.dim(i)) < s.ratio[i]) {
      return InvalidArgument("Pooling ratio is higher than input dimension size for dimension ", i,
                             ". Input dim size: ", in.dim(i), " pooling ratio: ", s.ratio[i]);
    }
    if (in.dim(i) > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("tensor_in is too large");
    }
    out_size[i] = static_cast<int64_t>(std::floor(static_cast<float>(in.dim(i)) / s.ratio[i]));
  }
  Cells rows, columns;
  {
    absl::MutexLock lock(&s.mutex);
    const bool kept = s.deterministic && !s.rows.empty() && s.rows.back() == in.dim(1) &&
                      s.columns.back() == in.dim(2);
    rows = kept ? s.rows : CutCells(ctx.step(), s, in.dim(1), out_size[1]);
    columns = kept ? s.columns : CutCells(ctx.step(), s, in.dim(2), out_size[2]);
    s.rows = rows;
    s.columns = columns;
  }
  const PoolDims d{in.dim(0), in.dim(1), in.dim(2), out_size[1], out_size[2], in.dim(3)};
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({d.batch, d.out_h, d.out_w, d.depth})));
  RETURN_IF_ERROR(SetInts(ctx, 1, rows));
  RETURN_IF_ERROR(SetInts(ctx, 2, columns));
  VisitOneOf(PoolTypes(), in.dtype(), [&]<typename T>() {
    PoolCells<T, kMax>(d, rows, columns, s.overlapping, in.data<T>(), out);
  });
  return OkStatus();
}

// What a gradient is told of the cells of one dimension: enough of them, none negative.
Status CheckCells(const Tensor& t, absl::string_view given, absl::string_view name, int64_t cells) {
  if (t.num_elements() < cells + 1) {
    return InvalidArgument(given, name, " must have at least ", cells + 1, " elements, but got ",
                           t.num_elements());
  }
  for (const int64_t v : t.flat<int64_t>()) {
    if (v >= 0 && v <= std::numeric_limits<int32_t>::max()) continue;
    // All of them, in columns of one width.
    size_t width = 0;
    std::string all;
    for (const int64_t x : t.flat<int64_t>()) width = std::max(width, absl::StrCat(x).size());
    for (const int64_t x : t.flat<int64_t>()) {
      const std::string text = absl::StrCat(x);
      absl::StrAppend(&all, " ", std::string(width - text.size(), ' '), text);
    }
    return InvalidArgument(name[0] == 'r' ? "Row" : "Column",
                           " sequence tensor values must not be negative, got", all);
  }
  return OkStatus();
}

template <typename T>
Status SpreadMaxima(const PoolDims& d, bool overlapping, const OpContext& ctx, Tensor* to) {
  const Tensor& out = ctx.input(1);
  const T* in = ctx.input(0).data<T>();
  std::vector<T> peaks(static_cast<size_t>(out.num_elements()), std::numeric_limits<T>::lowest());
  std::vector<int64_t> places(peaks.size(), -1);
  EachCellPixel(d, ctx.input(3).data<int64_t>(), ctx.input(4).data<int64_t>(), overlapping,
                [&](int64_t o, int64_t i, int64_t) {
                  for (int64_t c = 0; c < d.depth; ++c) {
                    if (places[o + c] >= 0 && !(peaks[o + c] < in[i + c])) continue;
                    peaks[o + c] = in[i + c];
                    places[o + c] = i + c;
                  }
                });
  const T* grad = ctx.input(2).data<T>();
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    if (places[i] < 0 || peaks[i] != out.data<T>()[i]) {
      return InvalidArgument("tensor_out_dup is not the same as tensor_out");
    }
  }
  for (int64_t i = 0; i < ctx.input(2).num_elements(); ++i) {
    T& v = to->data<T>()[places[i]];
    v = AddValues(v, grad[i]);
  }
  return OkStatus();
}

Status RunFractionalMaxGrad(OpContext& ctx) {
  constexpr absl::string_view kNames[] = {"orig_input", "orig_output", "out_backprop"};
  for (int i = 0; i < 3; ++i) {
    if (ctx.input(i).rank() != 4) {
      return InvalidArgument(kNames[i], " should be a tensor of rank 4, got ",
                             ctx.input(i).shape().ToString());
    }
  }
  const Tensor& in = ctx.input(0);
  const Tensor& out = ctx.input(1);
  constexpr absl::string_view kCells[] = {"row_pooling_sequence", "col_pooling_sequence"};
  for (int i = 0; i < 2; ++i) {
    const Tensor& cells = ctx.input(3 + i);
    if (cells.rank() != 1) {
      return InvalidArgument(kCells[i], " must be a vector, received shape ",
                             cells.shape().ToString());
    }
    if (cells.dim(0) != out.dim(1 + i) + 1 ||
        !CheckCells(cells, "", kCells[i], out.dim(1 + i)).ok()) {
      return InvalidArgument("tensor_out_dup is not the same as tensor_out");
    }
  }
  if (out.dim(0) != in.dim(0) || out.dim(3) != in.dim(3)) {
    return InvalidArgument("orig_output must have the batch size and depth of orig_input");
  }
  if (ctx.input(2).num_elements() > out.num_elements()) {
    return InvalidArgument("out_backprop must not be larger than orig_output");
  }
  const PoolDims d{in.dim(0), in.dim(1), in.dim(2), out.dim(1), out.dim(2), in.dim(3)};
  ASSIGN_OR_RETURN(Tensor * to, ctx.Allocate(0, in.shape()));
  std::memset(to->raw(), 0, to->bytes());
  Status status = OkStatus();
  VisitOneOf(PoolTypes(), in.dtype(), [&]<typename T>() {
    status = SpreadMaxima<T>(d, ctx.node().Bool("overlapping"), ctx, to);
  });
  return status;
}

Status RunFractionalAvgGrad(OpContext& ctx) {
  const Tensor& size = ctx.input(0);
  const Tensor& grad = ctx.input(1);
  if (size.rank() != 1 || size.num_elements() != 4) {
    return InvalidArgument("original input tensor shape must be1-dimensional and 4 elements");
  }
  if (grad.rank() != 4) return InvalidArgument("out_backprop must be 4-dimensional");
  for (int i = 0; i < 4; ++i) {
    if (grad.dim(i) <= 0) {
      return InvalidArgument("out_backprop must be positive for all dimension, got:", grad.dim(i));
    }
  }
  const std::string given =
      absl::StrCat("Given out_backprop shape ", grad.shape().ToString(), ", ");
  RETURN_IF_ERROR(CheckCells(ctx.input(2), given, "row_seq_tensor", grad.dim(1)));
  RETURN_IF_ERROR(CheckCells(ctx.input(3), given, "col_seq_tensor", grad.dim(2)));
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(IntsOf(size)));
  const int64_t out_depth = grad.dim(3), in_depth = shape[3];
  if (grad.dim(0) > shape[0] || out_depth > in_depth) {
    return InvalidArgument(given, "orig_input_tensor_shape is too small: ", shape.ToString());
  }
  ASSIGN_OR_RETURN(Tensor sums, Tensor::Zeros(Dtype::kDouble, shape, ctx.step().allocator));
  ASSIGN_OR_RETURN(Tensor * to, ctx.Allocate(0, shape));
  // Depth 1 makes EachCellPixel count pixels: the depths of gradient and result may differ.
  const PoolDims d{grad.dim(0), shape[1], shape[2], grad.dim(1), grad.dim(2), 1};
  VisitOneOf(PoolTypes(), grad.dtype(), [&]<typename T>() {
    EachCellPixel(d, ctx.input(2).data<int64_t>(), ctx.input(3).data<int64_t>(),
                  ctx.node().Bool("overlapping"), [&](int64_t o, int64_t i, int64_t count) {
                    for (int64_t c = 0; c < out_depth; ++c) {
                      sums.data<double>()[i * in_depth + c] +=
                          static_cast<double>(grad.data<T>()[o * out_depth + c]) /
                          static_cast<double>(count);
                    }
                  });
    for (int64_t i = 0; i < to->num_elements(); ++i) {
      to->data<T>()[i] = static_cast<T>(sums.data<double>()[i]);
    }
  });
  return OkStatus();
}

constexpr DtypeSet kFractionalTypes = kFloatTypes | kIndexTypes;

constexpr Kernel kFractionalTable[] = {
    {"FractionalMaxPool", "T", kFractionalTypes, "nn:fractional_pool", RunFractional<true>,
     PrepareFractional<true>},
    {"FractionalAvgPool", "T", kFractionalTypes, "nn:fractional_pool", RunFractional<false>,
     PrepareFractional<false>},
    {"FractionalMaxPoolGrad", "T", kFractionalTypes, "nn:fractional_pool", RunFractionalMaxGrad},
    {"FractionalAvgPoolGrad", "T", kFractionalTypes, "nn:fractional_pool", RunFractionalAvgGrad},
};

}  // namespace

extern constinit const std::span<const Kernel> kFractionalKernels = kFractionalTable;

}  // namespace smelt
