// ExtractImagePatches, ExtractVolumePatches: sliding windows laid out in the last dimension.
#include <algorithm>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/copy.h"

namespace smelt {
namespace {

struct PatchesState final : KernelState {
  int spatial = 2;
  Dims size, stride, rate;
  bool same = false;
};

StatusOr<std::unique_ptr<KernelState>> PreparePatches(const Node& node) {
  auto state = std::make_unique<PatchesState>();
  state->spatial = node.Is("ExtractVolumePatches") ? 3 : 2;
  auto read = [&](absl::string_view attr, Dims* out) -> Status {
    const std::vector<int64_t> v = node.Ints(attr);
    const auto n = static_cast<size_t>(state->spatial);
    if (v.empty() && attr == "rates") {
      out->assign(n, 1);  // ExtractVolumePatches has no attribute rates
      return OkStatus();
    }
    if (v.size() != n + 2) {
      return InvalidArgument(attr, " attribute expects to contain ", n + 2,
                             " values, but got: ", v.size());
    }
    if (v.front() != 1 || v.back() != 1) {
      return Unimplemented("Only support ", attr, " across space.");
    }
    for (size_t i = 1; i <= n; ++i) {
      if (v[i] < 1 || v[i] > (int64_t{1} << 31)) {
        return OutOfRange(attr, " is out of range.");
      }
      out->push_back(v[i]);
    }
    return OkStatus();
  };
  RETURN_IF_ERROR(read("ksizes", &state->size));
  RETURN_IF_ERROR(read("strides", &state->stride));
  RETURN_IF_ERROR(read("rates", &state->rate));
  const std::string padding = node.String("padding");
  if (padding != "SAME" && padding != "VALID") {
    return InvalidArgument("padding must be SAME or VALID, is ", padding);
  }
  state->same = padding == "SAME";
  return state;
}

Status RunPatches(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const PatchesState& s = ctx.state<PatchesState>();
  const int m = s.spatial;
  if (input.rank() != m + 2) {
    return InvalidArgument("input must be ", m + 2, "-dimensional", input.shape().ToString());
  }
  Dims before(m), count(m);
  Dims dims{input.dim(0)};
  int64_t depth = input.dim(m + 1);
  for (int d = 0; d < m; ++d) {
    const int64_t in = input.dim(d + 1), stride = s.stride[d];
    const int64_t window = (s.size[d] - 1) * s.rate[d] + 1;  // both are below 2**31
    if (s.same) {
      count[d] = (in + stride - 1) / stride;
      const int64_t beside = (count[d] - 1) * stride + window - in;
      // Windows with gaps between them: in a volume TensorFlow skips half of the last gap in front.
      before[d] = (m == 3 ? beside : std::max<int64_t>(0, beside)) / 2;
    } else {
      // A window larger than the image gives no patches, and an error only if larger by over a
      // stride.
      count[d] = in < window ? 0 : (in - window) / stride + 1;
      if (in + stride < window) {
        return InvalidArgument(
            "Computed output size would be negative: ", (in - window + stride) / stride,
            " [input_size: ", in, ", effective_filter_size: ", window, ", stride: ", stride, "]");
      }
      before[d] = 0;
    }
    dims.push_back(count[d]);
    if (__builtin_mul_overflow(depth, s.size[d], &depth)) {
      return InvalidArgument("The patches would have too many elements");
    }
  }
  dims.push_back(depth);
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  const Dtype dtype = input.dtype();
  ClearRun(dtype, out->raw(), out->num_elements());
  if (input.num_elements() == 0) return OkStatus();
  const Dims from = Strides(input.shape());
  const Dims to = Strides(shape);
  const int64_t channels = input.dim(m + 1);
  const int64_t cells = depth / channels;
  // One strided copy for each cell of the window, over all patches in which it lies in the image.
  for (int64_t cell = 0; cell < cells; ++cell) {
    CopyDims loops{{input.dim(0), to[0], from[0]}};
    int64_t rest = cell, to_at = cell * channels, from_at = 0;
    Dims at(m);
    for (int d = m; d-- > 0;) {
      at[d] = rest % s.size[d] * s.rate[d] - before[d];
      rest /= s.size[d];
    }
    bool any = true;
    for (int d = 0; d < m && any; ++d) {
      const int64_t in = input.dim(d + 1), stride = s.stride[d];
      const int64_t first = at[d] >= 0 ? 0 : (-at[d] + stride - 1) / stride;
      const int64_t end = at[d] >= in ? 0 : std::min(count[d], (in - at[d] + stride - 1) / stride);
      any = first < end;
      loops.push_back({end - first, to[d + 1], stride * from[d + 1]});
      to_at += first * to[d + 1];
      from_at += (at[d] + first * stride) * from[d + 1];
    }
    if (!any) continue;
    loops.push_back({channels, 1, 1});
    CopyStrided(dtype, At(dtype, out->raw(), to_at), At(dtype, input.raw(), from_at), loops);
  }
  return OkStatus();
}

constexpr Kernel kPatchesTable[] = {
    {"ExtractImagePatches", "", kAnyType, "movement:patches", RunPatches, PreparePatches},
    {"ExtractVolumePatches", "", kAnyType, "movement:patches", RunPatches, PreparePatches},
};

}  // namespace

extern constinit const std::span<const Kernel> kPatchesKernels = kPatchesTable;

}  // namespace smelt
