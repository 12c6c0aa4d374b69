// Means and sums of quantized tensors.
#include <bit>

#include "absl/strings/str_cat.h"
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/lite/fixed_point.h"

namespace smelt::lite {
namespace {

struct ReduceState final : KernelState {
  int32_t zero_in = 0, zero_out = 0;
  float scale = 1;  // of the input over that of the output
  Factor factor;
  Range range;
  bool keep_dims = false;
};

StatusOr<std::unique_ptr<KernelState>> PrepareReduce(const Node& node) {
  auto s = std::make_unique<ReduceState>();
  const Affine in = InputAffine(node, 0), out = OutputAffine(node);
  s->zero_in = in.zero();
  s->zero_out = out.zero();
  s->scale = in.scale() / out.scale();
  s->factor = FactorOf(static_cast<double>(in.scale()) / static_cast<double>(out.scale()));
  s->range = RangeOf(node.output_types[0]);
  s->keep_dims = node.Bool("keep_dims");
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

template <bool kMean>
Status RunReduce(OpContext& ctx) {
  const auto& s = ctx.state<ReduceState>();
  const Tensor& in = ctx.input(0);
  std::vector<bool> reduced(static_cast<size_t>(in.rank()));
  for (int64_t axis : IntsOf(ctx.input(1))) {
    if (axis < 0) axis += in.rank();
    if (axis < 0 || axis >= in.rank()) return InvalidArgument("it reduces dimension ", axis);
    reduced[static_cast<size_t>(axis)] = true;
  }
  Dims shape;
  int64_t count = 1;
  for (int i = 0; i < in.rank(); ++i) {
    const bool gone = reduced[static_cast<size_t>(i)];
    if (gone) count *= in.dim(i);
    if (!gone || s.keep_dims) shape.push_back(gone ? 1 : in.dim(i));
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape(shape)));
  // Steps of the result where the input takes one: 0 where it is reduced.
  std::vector<int64_t> steps(static_cast<size_t>(in.rank()));
  int64_t step = 1;
  for (int i = in.rank() - 1; i >= 0; --i) {
    if (reduced[static_cast<size_t>(i)]) continue;
    steps[static_cast<size_t>(i)] = step;
    step *= in.dim(i);
  }
  std::vector<int64_t> sums(static_cast<size_t>(out->num_elements()));
  std::vector<int64_t> at(static_cast<size_t>(in.rank()));
  // Rows are the last dimension.
  const int64_t row = in.rank() > 0 ? in.dim(in.rank() - 1) : 1;
  const int64_t step_in_row = in.rank() > 0 ? steps.back() : 0;
  VisitNarrow(in.dtype(), [&]<typename T>() {
    const T* x = in.data<T>();
    int64_t place = 0;
    for (int64_t i = 0; i < in.num_elements(); i += row) {
      int64_t* to = sums.data() + place;
      if (step_in_row == 0) {
        for (int64_t c = 0; c < row; ++c) *to += x[i + c];
      } else {
        for (int64_t c = 0; c < row; ++c) to[c] += x[i + c];
      }
      for (int d = in.rank() - 2; d >= 0; --d) {
        const auto k = static_cast<size_t>(d);
        place += steps[k];
        if (++at[k] < in.dim(d)) break;
        place -= steps[k] * at[k];
        at[k] = 0;
      }
    }
    const Factor f = count > 0 ? OfMean(s.factor, count) : s.factor;
    // Sums are scaled as floats.
    const float bias = static_cast<float>(-s.zero_in) * s.scale * static_cast<float>(count);
    T* y = out->data<T>();
    for (size_t i = 0; i < sums.size(); ++i) {
      if (!kMean) {
        y[i] = static_cast<T>(
            Quantized(static_cast<float>(sums[i]) * s.scale + bias, 1, s.zero_out, s.range));
        continue;
      }
      const auto centered = static_cast<int32_t>(sums[i] - int64_t{s.zero_in} * count);
      y[i] = static_cast<T>(s.range.Clamp(Times(centered, f) + s.zero_out));
    }
  });
  return OkStatus();
}

std::string DeclineReduce(const Node& node) {
  if (node.num_inputs() != 2) return absl::StrCat("it has ", node.num_inputs(), " inputs");
  return DeclineUnlessNarrow(node, 1);
}

constexpr Kernel kLiteReduceTable[] = {
    {"tfl.mean", "", kAnyType, "lite:mean", RunReduce<true>, PrepareReduce, DeclineReduce},
    {"tfl.sum", "", kAnyType, "lite:sum", RunReduce<false>, PrepareReduce, DeclineReduce},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteReduceKernels = lite::kLiteReduceTable;
}  // namespace smelt
