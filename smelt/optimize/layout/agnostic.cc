// Ops that compute the same whatever the format, once what they state of dimensions is permuted.
#include <array>

#include "smelt/optimize/layout/rows.h"

namespace smelt::layout {
namespace {

// ---- elementwise

absl::string_view HasAxis(const Node& node, const Formats&, Rewriter&) {
  return node.Int("axis", -1) == -1 ? "" : "it treats one dimension by itself";
}

absl::string_view ChangesRank(const Node& node, const Formats& formats, Rewriter& r) {
  return r.shape(node.input(0)).rank() == formats.rank() ? "" : "its input has another rank";
}

absl::string_view CannotBroadcast(const Node& node, const Formats& formats, Rewriter& r) {
  const int a = r.shape(node.input(0)).rank(), b = r.shape(node.input(1)).rank();
  const int rank = formats.rank();
  const auto fits = [&](int whole, int other) {
    return whole == rank && (other == rank || other == 0 || other == 1);
  };
  return fits(a, b) || fits(b, a) ? "" : "an input is no tensor of that rank, vector or scalar";
}

absl::string_view CannotBroadcastThree(const Node& node, const Formats& formats, Rewriter& r) {
  for (const Endpoint& e : node.inputs()) {
    const int rank = r.shape(e).rank();
    if (rank != formats.rank() && rank != 0) return "an input is no tensor of that rank or scalar";
  }
  return "";
}

absl::string_view CannotSelect(const Node& node, const Formats& formats, Rewriter& r) {
  // A vector chooses along the first dimension, which is the same in all formats; SelectV2 would
  // take it for the last one.
  const int rank = r.shape(node.input(0)).rank();
  const bool chooses = rank == formats.rank() || rank == 0 || (rank == 1 && node.Is("Select"));
  if (!chooses) return "what chooses is no tensor of that rank, vector or scalar";
  if (node.Is("SelectV2")) return CannotBroadcastThree(node, formats, r);
  for (const int i : {1, 2}) {
    if (r.shape(node.input(i)).rank() != formats.rank()) return "an input has no known rank";
  }
  return "";
}

// ---- reductions

// The dimensions of the source format that `letters` name.
std::vector<int> Dims(const Formats& formats, absl::string_view letters) {
  std::vector<int> dims;
  for (const char letter : letters) dims.push_back(formats.Dim(letter));
  return dims;
}

// Are `axes` some of `dims`?
bool AreAmong(const std::vector<int64_t>& axes, const std::vector<int>& dims, int rank) {
  return std::ranges::all_of(axes, [&](int64_t axis) {
    return std::ranges::find(dims, axis < 0 ? axis + rank : axis) != dims.end();
  });
}

absl::string_view ReordersWhatIsLeft(const Node& node, const Formats& formats, Rewriter& r) {
  if (node.Bool("keep_dims")) return "";
  const TensorValue* stated = r.ConstantValue(node.input(1));
  if (stated == nullptr || stated->shape.rank() != 1) return "the dimensions are no constant list";
  const std::optional<std::vector<int64_t>> axes = r.Integers(node.input(1));
  if (!axes) return "the dimensions are no constant list";
  static constexpr absl::string_view kOfImages[] = {"NHWC", "HWC", "NHW", "HW", "C"};
  static constexpr absl::string_view kOfVolumes[] = {"NDHWC", "DHWC", "NDHW", "DHW", "C"};
  for (const absl::string_view letters : formats.rank() == 4 ? kOfImages : kOfVolumes) {
    if (axes->size() == letters.size() && AreAmong(*axes, Dims(formats, letters), formats.rank())) {
      return "";
    }
  }
  return "the dimensions that are left may change their order";
}

absl::string_view CannotSqueeze(const Node& node, const Formats& formats, Rewriter& r) {
  const PartialShape& shape = r.shape(node.input(0));
  if (shape[formats.Dim('H')] != 1 || shape[formats.Dim('W')] != 1) {
    return "height and width are not known to be one";
  }
  const std::vector<int64_t> axes = node.Ints("squeeze_dims");
  const int left = r.shape({const_cast<Node*>(&node), 0}).rank();
  const bool fits = (left == 2 && AreAmong(axes, Dims(formats, "HW"), formats.rank())) ||
                    (left == 1 && AreAmong(axes, Dims(formats, "NHW"), formats.rank()));
  return fits ? "" : "the dimensions that are left may change their order";
}

void PermuteSqueezed(Node& node, const Formats& formats) {
  std::vector<int64_t> axes;
  for (int64_t axis : node.Ints("squeeze_dims")) {
    if (axis < 0) axis += formats.rank();
    axes.push_back(formats.to_src[static_cast<size_t>(axis)]);
  }
  if (axes.empty()) return;
  std::ranges::sort(axes);
  node.AttrsToChange().Set("squeeze_dims", std::move(axes));
}

// ---- slices

constexpr absl::string_view kRangeMasks[] = {"begin_mask", "end_mask"};

absl::string_view CannotSlice(const Node& node, const Formats& formats, Rewriter& r) {
  for (const absl::string_view mask : {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    if (node.Int(mask) != 0) return "it adds or drops dimensions";
  }
  for (const absl::string_view mask : kRangeMasks) {
    const int64_t value = node.Int(mask);
    if (value < 0 || value >= int64_t{1} << formats.rank()) return "a mask names no dimension";
  }
  // Dimensions that are not named are taken whole.
  for (int i = 1; i <= 3; ++i) {
    const PartialShape& shape = r.shape(node.input(i));
    if (shape.rank() != 1 || shape[0] != formats.rank()) {
      return "it is not known to name all dimensions";
    }
  }
  return "";
}

void PermuteMasks(Node& node, const Formats& formats) {
  for (const absl::string_view mask : kRangeMasks) {
    const int64_t old = node.Int(mask);
    int64_t permuted = 0;
    for (int i = 0; i < formats.rank(); ++i) {
      permuted |= (old >> formats.to_dst[static_cast<size_t>(i)] & 1) << i;
    }
    node.AttrsToChange().Set(mask, permuted);
  }
}

constexpr LayoutRow kAgnosticRows[] = {
    {.name = "LayoutAgnostic",
     .ops = {"Abs",
             "Acos",
             "Acosh",
             "Angle",
             "Asin",
             "Asinh",
             "Atan",
             "Atanh",
             "Cast",
             "Ceil",
             "CheckNumerics",
             "ComplexAbs",
             "Conj",
             "Cos",
             "Cosh",
             "Digamma",
             "Elu",
             "Enter",
             "Erf",
             "Erfc",
             "Exit",
             "Exp",
             "Expm1",
             "FakeQuantWithMinMaxVars",
             "Floor",
             "FakeQuantWithMinMaxArgs",
             "GuaranteeConst",
             "Identity",
             "Imag",
             "Inv",
             "IsFinite",
             "IsInf",
             "IsNan",
             "LeakyRelu",
             "Lgamma",
             "Log",
             "Log1p",
             "LogicalNot",
             "Neg",
             "NextIteration",
             "OnesLike",
             "PreventGradient",
             "Real",
             "Reciprocal",
             "Relu",
             "Relu6",
             "Rint",
             "Round",
             "Rsqrt",
             "Selu",
             "Sigmoid",
             "Sign",
             "Sin",
             "Sinh",
             "Snapshot",
             "Softplus",
             "Sqrt",
             "Square",
             "StopGradient",
             "Tan",
             "Tanh",
             "ZerosLike"},
     .data = {0}},
    {.name = "LayoutAgnostic",
     .ops = {"QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4"},
     .data = {0},
     .declines = HasAxis},
    {.name = "LayoutAgnostic", .ops = {"Bitcast"}, .data = {0}, .declines = ChangesRank},
    {.name = "AddN", .ops = {"AddN"}, .data = Ports::All()},
    {.name = "BinaryOp",
     .ops = {"Add",
             "AddV2",
             "ApproximateEqual",
             "Atan2",
             "Complex",
             "Div",
             "Equal",
             "FloorDiv",
             "Greater",
             "GreaterEqual",
             "Igamma",
             "Igammac",
             "Less",
             "LessEqual",
             "LogicalAnd",
             "LogicalOr",
             "Maximum",
             "Minimum",
             "Mod",
             "Mul",
             "NotEqual",
             "Polygamma",
             "Pow",
             "RealDiv",
             "SquaredDifference",
             "Sub",
             "TruncateDiv",
             "TruncateMod",
             "Zeta"},
     .data = {0, 1},
     .by_rank = true,
     .declines = CannotBroadcast},
    {.name = "Concat", .ops = {"Concat"}, .data = Ports::AllButFirst(), .dims = {0}},
    {.name = "Concat", .ops = {"ConcatV2"}, .data = Ports::AllButLast(), .dims = Ports::Last()},
    {.name = "Fill", .ops = {"Fill"}, .ranks = kImages, .vectors = {0}, .per_dimension = 1},
    {.name = "IdentityN",
     .ops = {"IdentityN"},
     .data = Ports::All(),
     .results = Ports::All(),
     .each_by_itself = true},
    {.name = "Merge", .ops = {"Merge"}, .data = Ports::All()},
    {.name = "Pad",
     .ops = {"MirrorPad", "MirrorPadGrad", "Pad", "PadV2"},
     .ranks = kImages,
     .data = {0},
     .vectors = {1},
     .per_dimension = 2},
    {.name = "Reduce",
     .ops = {"All", "Any", "Max", "Mean", "Min", "Prod", "Sum"},
     .data = {0},
     .dims = {1},
     .rank_of_input = 0,
     .results_if = "keep_dims",
     .declines = ReordersWhatIsLeft},
    {.name = "ReverseV2", .ops = {"ReverseV2"}, .ranks = kImages, .data = {0}, .dims = {1}},
    {.name = "Select",
     .ops = {"Select", "SelectV2"},
     .ranks = kImages,
     .data = {0, 1, 2},
     .by_rank = true,
     .declines = CannotSelect},
    {.name = "Shape",
     .ops = {"Shape"},
     .data = {0},
     .results_form = Form::kVector,
     .rank_of_input = 0},
    {.name = "ShapeN",
     .ops = {"ShapeN"},
     .data = Ports::All(),
     .results = Ports::All(),
     .results_form = Form::kVector,
     .rank_of_input = 0,
     .each_by_itself = true},
    {.name = "Slice", .ops = {"Slice"}, .data = {0}, .vectors = {1, 2}, .per_dimension = 1},
    {.name = "Split", .ops = {"Split"}, .data = {1}, .dims = {0}, .results = Ports::All()},
    {.name = "SplitV", .ops = {"SplitV"}, .data = {0}, .dims = {2}, .results = Ports::All()},
    {.name = "Squeeze",
     .ops = {"Squeeze"},
     .ranks = kImages,
     .data = {0},
     .results = {},
     .rank_of_input = 0,
     .declines = CannotSqueeze,
     .change = PermuteSqueezed},
    {.name = "StridedSlice",
     .ops = {"StridedSlice"},
     .ranks = kImages,
     .data = {0},
     .vectors = {1, 2, 3},
     .per_dimension = 1,
     .declines = CannotSlice,
     .change = PermuteMasks},
    {.name = "Switch", .ops = {"Switch", "_SwitchN"}, .data = {0}, .results = Ports::All()},
    {.name = "TernaryOp",
     .ops = {"Betainc"},
     .data = {0, 1, 2},
     .by_rank = true,
     .declines = CannotBroadcastThree},
    {.name = "Tile",
     .ops = {"Tile"},
     .ranks = kImages,
     .data = {0},
     .vectors = {1},
     .per_dimension = 1},
    {.name = "UnaryGrad",
     .ops = {"EluGrad", "InvGrad", "LeakyReluGrad", "ReciprocalGrad", "Relu6Grad", "ReluGrad",
             "RsqrtGrad", "SeluGrad", "SigmoidGrad", "SoftplusGrad", "SoftsignGrad", "SqrtGrad",
             "TanhGrad"},
     .data = {0, 1}},
};

}  // namespace

std::span<const LayoutRow> AgnosticRows() { return kAgnosticRows; }

}  // namespace smelt::layout
