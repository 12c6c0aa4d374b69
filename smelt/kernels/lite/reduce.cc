// Means, sums and products of quantized tensors.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/isa/exact_int8.h"
#include "smelt/kernels/lite/fixed_point.h"

namespace smelt::lite {
namespace {

struct ReduceState final : KernelState {
  int32_t zero_in = 0, zero_out = 0;
  float scale = 1;  // of the input over that of the output
  double scale_in = 1, scale_out = 1;
  Factor factor;
  Range range;
  bool keep_dims = false;
  bool in_float = false;  // of 8 bits, whose means and sums XNNPACK makes
};

// XNNPACK's result of a sum of `count` numbers: a product and a sum that holds the zero points,
// each rounded, halves to the even number.
int32_t InFloat(const ReduceState& s, int64_t sum, int64_t count, float scale) {
  const float product = static_cast<float>(sum) * scale;
  const float zeros = static_cast<float>(s.zero_in * count) * scale;
  const float at = product + (static_cast<float>(s.zero_out) - zeros);
  return static_cast<int32_t>(std::nearbyint(
      std::clamp(at, static_cast<float>(s.range.low), static_cast<float>(s.range.high))));
}

StatusOr<std::unique_ptr<KernelState>> PrepareReduce(const Node& node) {
  auto s = std::make_unique<ReduceState>();
  const Affine in = InputAffine(node, 0), out = OutputAffine(node);
  s->zero_in = in.zero();
  s->zero_out = out.zero();
  s->scale = in.scale() / out.scale();
  s->scale_in = static_cast<double>(in.scale());
  s->scale_out = static_cast<double>(out.scale());
  s->factor = FactorOf(s->scale_in / s->scale_out);
  s->range = RangeOf(node.output_types[0]);
  s->keep_dims = node.Bool("keep_dims");
  s->in_float = node.output_types[0] != Dtype::kInt16 && node.input(1).node->Is("Const");
  return s;
}

// The factor of a sum of `count` numbers that makes a mean of it: as many bits as the division may
// keep go before it.
Factor OfMean(const Factor& f, int64_t count) {
  int shift = 63 - std::countl_zero(static_cast<uint64_t>(count));
  shift = std::min({shift, 32, 31 + f.shift});
  if (shift < 0) return {};
  return {static_cast<int32_t>((int64_t{f.fraction} << shift) / count), f.shift - shift};
}

// Which elements of the result those of the input go to.
struct Reduction {
  Shape shape;                 // of the result
  int64_t count = 1;           // elements of the input for each of the result
  std::vector<int64_t> steps;  // in the result, of a step in the input; 0 where it is reduced

  static StatusOr<Reduction> Of(const OpContext& ctx, bool keep_dims) {
    const Tensor& in = ctx.input(0);
    const bool empty = in.num_elements() == 0;
    std::vector<bool> reduced(static_cast<size_t>(in.rank()));
    for (int64_t axis : IntsOf(ctx.input(1))) {
      if (axis < 0) axis += in.rank();
      if (axis < 0 || axis >= in.rank()) return InvalidArgument("it reduces dimension ", axis);
      reduced[static_cast<size_t>(axis)] = true;
    }
    Reduction out;
    Dims shape;
    for (int i = 0; i < in.rank(); ++i) {
      const bool gone = reduced[static_cast<size_t>(i)];
      if (gone && !empty) out.count *= in.dim(i);
      if (!gone || keep_dims) shape.push_back(gone ? 1 : in.dim(i));
    }
    ASSIGN_OR_RETURN(out.shape, Shape::Make(shape));
    out.steps.resize(static_cast<size_t>(in.rank()));
    if (empty) {
      // Other sizes may multiply beyond all integers.
      out.count = 0;
      return out;
    }
    int64_t step = 1;
    for (int i = in.rank() - 1; i >= 0; --i) {
      if (reduced[static_cast<size_t>(i)]) continue;
      out.steps[static_cast<size_t>(i)] = step;
      step *= in.dim(i);
    }
    return out;
  }

  // row(begin in the input, place in the result, length) of each row, which is a last dimension; in
  // the result it advances by step_in_row().
  template <typename F>
  void ForEachRow(const Shape& in, F row) const {
    const int64_t length = in.rank() > 0 ? in[in.rank() - 1] : 1;
    std::vector<int64_t> at(static_cast<size_t>(in.rank()));
    int64_t place = 0;
    for (int64_t i = 0; i < in.num_elements(); i += length) {
      row(i, place, length);
      for (int d = in.rank() - 2; d >= 0; --d) {
        const auto k = static_cast<size_t>(d);
        place += steps[k];
        if (++at[k] < in[d]) break;
        place -= steps[k] * at[k];
        at[k] = 0;
      }
    }
  }
  int64_t step_in_row() const { return steps.empty() ? 0 : steps.back(); }
};

template <bool kMean>
Status RunReduce(OpContext& ctx) {
  const auto& s = ctx.state<ReduceState>();
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(const Reduction reduction, Reduction::Of(ctx, s.keep_dims));
  const int64_t count = reduction.count;
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, reduction.shape));
  std::vector<int64_t> sums(static_cast<size_t>(out->num_elements()));
  // So few int8 numbers fit sums of 32 bits, which have loops of their own.
  std::vector<int32_t> narrow;
  if (in.dtype() == Dtype::kInt8 && reduction.step_in_row() != 0 && count <= 1 << 24) {
    narrow.resize(sums.size());
  }
  VisitNarrow(in.dtype(), [&]<typename T>() {
    const T* x = in.data<T>();
    reduction.ForEachRow(in.shape(), [&](int64_t i, int64_t place, int64_t n) {
      int64_t* to = sums.data() + place;
      if (reduction.step_in_row() == 0) {
        for (int64_t c = 0; c < n; ++c) *to += x[i + c];
      } else if (!narrow.empty()) {
        if constexpr (std::is_same_v<T, int8_t>) {
          IsaExactInt8().accumulate(x + i, narrow.data() + place, n);
        }
      } else {
        for (int64_t c = 0; c < n; ++c) to[c] += x[i + c];
      }
    });
    std::ranges::copy(narrow, sums.begin());
    const Factor f = count > 0 ? OfMean(s.factor, count) : s.factor;
    // Sums are scaled as floats.
    const float bias = static_cast<float>(-s.zero_in) * s.scale * static_cast<float>(count);
    T* y = out->data<T>();
    const float scale = kMean ? s.scale * (1.0f / static_cast<float>(count)) : s.scale;
    for (size_t i = 0; i < sums.size(); ++i) {
      if (s.in_float && count > 0) {
        y[i] = static_cast<T>(InFloat(s, sums[i], count, scale));
        continue;
      }
      if (!kMean) {
        y[i] = static_cast<T>(
            Quantized(static_cast<float>(sums[i]) * s.scale + bias, 1, s.zero_out, s.range));
        continue;
      }
      const auto centered = static_cast<int32_t>(sums[i] - int64_t{s.zero_in} * count);
      y[i] = static_cast<T>(s.range.Clamp(Times(centered, f), s.zero_out));
    }
  });
  return OkStatus();
}

// Each factor takes the n-th root of the output's scale with it, so that products stay small.
Status RunProduct(OpContext& ctx) {
  const auto& s = ctx.state<ReduceState>();
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(const Reduction reduction, Reduction::Of(ctx, s.keep_dims));
  if (in.num_elements() == 0) return InvalidArgument("a product of nothing");
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, reduction.shape));
  // As LiteRT's kernel, which copies what needs no product.
  if (reduction.count == 1) {
    std::memcpy(out->raw(), in.raw(), in.bytes());
    return OkStatus();
  }
  const double root = std::pow(s.scale_out, 1.0 / static_cast<double>(reduction.count));
  const Factor f = FactorOf(s.scale_in / root);
  std::vector<int32_t> products(static_cast<size_t>(out->num_elements()));
  std::vector<bool> begun(products.size());
  VisitNarrow(in.dtype(), [&]<typename T>() {
    const T* x = in.data<T>();
    reduction.ForEachRow(in.shape(), [&](int64_t i, int64_t place, int64_t n) {
      for (int64_t c = 0; c < n; ++c) {
        const auto to = static_cast<size_t>(place + c * reduction.step_in_row());
        const int32_t value = int32_t{x[i + c]} - s.zero_in;
        products[to] = begun[to] ? Times(int64_t{products[to]} * value, f) : value;
        begun[to] = true;
      }
    });
    T* y = out->data<T>();
    for (size_t i = 0; i < products.size(); ++i) {
      const int64_t steps = int64_t{Times(int64_t{products[i]}, f)} + s.zero_out;
      y[i] = static_cast<T>(std::clamp<int64_t>(steps, s.range.low, s.range.high));
    }
  });
  return OkStatus();
}

std::string DeclineReduce(const Node& node) {
  if (node.num_inputs() != 2) return absl::StrCat("it has ", node.num_inputs(), " inputs");
  return DeclineUnlessNarrow(node, 1);
}

std::string DeclineProduct(const Node& node) {
  std::string why = DeclineReduce(node);
  if (why.empty() && node.output_types[0] == Dtype::kUint8) why = "its output is uint8";
  return why;
}

constexpr Kernel kLiteReduceTable[] = {
    {"tfl.mean", "", kAnyType, "lite:mean", RunReduce<true>, PrepareReduce, DeclineReduce},
    {"tfl.sum", "", kAnyType, "lite:sum", RunReduce<false>, PrepareReduce, DeclineReduce},
    {"tfl.reduce_prod", "", kAnyType, "lite:product", RunProduct, PrepareReduce, DeclineProduct},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteReduceKernels = lite::kLiteReduceTable;
}  // namespace smelt
