// What moves numbers: the gradient moves them back.
#include "smelt/optimize/gradients/rows.h"

namespace smelt::gradients {
namespace {

constexpr Form kMoved = {"x p dy", "dx dp", "", "dp = ZerosLike(p)\n"};
constexpr Form kFill = {"p x dy", "dp dx", "dp = ZerosLike(p)\n"};
constexpr Form kPack = {"x* dy", "dx*"};
constexpr Form kUnpack = {"x dy*", "dx"};
constexpr Form kConcat = {"dim x* dy", "d_dim dx*", "d_dim = ZerosLike(dim)\n"};
constexpr Form kConcatV2 = {"x* dim dy", "dx* d_dim", "d_dim = ZerosLike(dim)\n"};
constexpr Form kSplit = {"dim x dy*", "d_dim dx", "d_dim = ZerosLike(dim)\n"};
constexpr Form kSplitV = {"x sizes dim dy*", "dx d_sizes d_dim",
                          "d_sizes = ZerosLike(sizes)\nd_dim = ZerosLike(dim)\n"};
constexpr Form kLists = {"x* dy*", "dx*"};
constexpr Form kSlice = {"x begin size dy", "dx begin_grad size_grad"};
constexpr Form kStridedSlice = {"x begin end stride dy", "dx begin_grad end_grad stride_grad"};
constexpr Form kStridedSliceGrad = {"shape begin end stride dy grad",
                                    "shape_grad begin_grad end_grad stride_grad dy_grad"};

constexpr absl::string_view kReshape = "x_shape = Shape(x)\ndx = Reshape(dy, x_shape)\n";
constexpr absl::string_view kPassOn = "dx = Identity(dy)\n";

// Each part is cut out of the gradient of the whole.
StatusOr<std::string> Concat(const Node& n) {
  const int64_t count = n.Int("N");
  const bool wide = n.Type("Tidx", Dtype::kInt32) == Dtype::kInt64;
  std::string text = absl::StrCat("shapes = ShapeN(x*)\n",
                                  wide ? "at = Cast(dim) {DstT=int32}\n" : "at = Identity(dim)\n",
                                  "offset = ConcatOffset(at");
  for (int64_t i = 0; i < count; ++i) absl::StrAppend(&text, ", shapes:", i);
  absl::StrAppend(&text, ")\n");
  std::string parts;
  for (int64_t i = 0; i < count; ++i) {
    absl::StrAppend(&text, "dx_", i, " = Slice(dy, offset:", i, ", shapes:", i, ")\n");
    absl::StrAppend(&parts, i == 0 ? "" : ", ", "dx_", i);
  }
  return absl::StrCat(text, "dx = IdentityN(", parts, ")\n");
}

// A single part is the whole.
StatusOr<std::string> Split(const Node& n) {
  return std::string(n.Int("num_split") == 1 ? "dx = Identity(dy*)\n" : "dx = Concat(dim, dy*)\n");
}

constexpr Row kAllArrayRows[] = {
    {"Reshape", &kMoved, kReshape},
    {"ExpandDims", &kMoved, kReshape},
    {"Squeeze", &kUnary, kReshape},
    {"Identity", &kUnary, kPassOn},
    {"ReadVariableOp", &kUnary, kPassOn},
    {"Pack", &kPack, "dx = Unpack(dy) {num=$N, axis=$axis}\n"},
    {"Unpack", &kUnpack, "dx = Pack(dy*) {axis=$axis}\n"},
    {"Concat", &kConcat, "", Concat},
    {"ConcatV2", &kConcatV2, "", Concat},
    {"Split", &kSplit, "", Split},
    {"SplitV", &kSplitV, "", Split},
    {"_ArrayToList", &kLists, "dx = IdentityN(dy*)\n"},
    {"_ListToArray", &kLists, "dx = IdentityN(dy*)\n"},
    {"Fill", &kFill, R"(
zero = Const {value=int32[]{0}}
rank = Rank(dy)
one = Const {value=int32[]{1}}
r = Range(zero, rank, one)
dx = Sum(dy, r)
)"},
    {"Transpose", &kMoved, "q = InvertPermutation(p)\ndx = Transpose(dy, q)\n"},
    {"ConjugateTranspose", &kMoved, "q = InvertPermutation(p)\ndx = ConjugateTranspose(dy, q)\n"},
    {"Reverse", &kMoved, "dx = Reverse(dy, p)\n"},
    {"ReverseV2", &kMoved, "dx = ReverseV2(dy, p)\n"},
    {"BroadcastTo", &kMoved, R"(
sx = Shape(x)
sy = Shape(dy)
rx = BroadcastGradientArgs(sx, sy)
sum_gx = Sum(dy, rx)
dx = Reshape(sum_gx, sx)
)"},
    {"GatherNd", &kMoved, R"(
x_shape = Shape(x) {out_type=$Tindices}
dx = ScatterNd(p, dy, x_shape)
)"},
    // The size may be stated as -1, the rest: what there is of the gradient says.
    {"Slice", &kSlice, R"(
one = Const {value=int32[]{1}}
b1 = ExpandDims(begin, one)
xs = Shape(x) {out_type=$Index}
ys = Shape(dy) {out_type=$Index}
xs_b = Sub(xs, begin)
xs_b_s = Sub(xs_b, ys)
a1 = ExpandDims(xs_b_s, one)
paddings = Concat(one, b1, a1)
dx = Pad(dy, paddings)
begin_grad = ZerosLike(begin)
size_grad = ZerosLike(size)
)"},
    {"StridedSlice", &kStridedSlice, R"(
xs = Shape(x) {out_type=$Index}
dx = StridedSliceGrad(xs, begin, end, stride, dy) {begin_mask=$begin_mask, end_mask=$end_mask, ellipsis_mask=$ellipsis_mask, new_axis_mask=$new_axis_mask, shrink_axis_mask=$shrink_axis_mask}
begin_grad = ZerosLike(begin)
end_grad = ZerosLike(end)
stride_grad = ZerosLike(stride)
)"},
    {"StridedSliceGrad", &kStridedSliceGrad, R"(
shape_grad = ZerosLike(shape)
begin_grad = ZerosLike(begin)
end_grad = ZerosLike(end)
stride_grad = ZerosLike(stride)
dy_grad = StridedSlice(grad, begin, end, stride) {begin_mask=$begin_mask, end_mask=$end_mask, ellipsis_mask=$ellipsis_mask, new_axis_mask=$new_axis_mask, shrink_axis_mask=$shrink_axis_mask}
)"},
};

}  // namespace

const std::span<const Row> kArrayRows = kAllArrayRows;

}  // namespace smelt::gradients
