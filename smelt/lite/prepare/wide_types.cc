#include "smelt/lite/prepare/wide_types.h"

#include <limits>
#include <optional>

#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/evaluate.h"
#include "smelt/optimize/rewrite/number_tensors.h"

namespace smelt {
namespace {

// Ops whose operators have the same types.
struct TypeRow {
  DtypeSet takes;  // by their kernels in LiteRT, without scales
  OpSet ops;
};

constexpr DtypeSet kFloat = Types(Dtype::kFloat);
constexpr DtypeSet kNumber = Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64);
constexpr DtypeSet kMoved = Types(Dtype::kFloat, Dtype::kInt8, Dtype::kUint8, Dtype::kInt16,
                                  Dtype::kInt32, Dtype::kInt64, Dtype::kBool);
// What some operators move by its size alone.
constexpr DtypeSet kOfBytes = Types(Dtype::kHalf, Dtype::kUint32);
// Only what is computed of a float becomes one: an integer would lose digits.
constexpr DtypeSet kHalves = Types(Dtype::kHalf, Dtype::kBfloat16);

constexpr TypeRow kTypeRows[] = {
    {kNumber | Types(Dtype::kInt16), {"Add", "AddV2"}},
    {kNumber | Types(Dtype::kInt16, Dtype::kUint32), {"Mul"}},
    {kNumber,
     {"AddN", "Sub", "BiasAdd", "Neg", "ZerosLike", "OnesLike", "Cumsum", "Sum", "Prod", "Square",
      "SquaredDifference", "Sign", "Abs"}},
    {kNumber | Types(Dtype::kInt8, Dtype::kUint8, Dtype::kInt16), {"Max", "Min"}},
    {Types(Dtype::kFloat, Dtype::kInt32),
     {"Pow", "SegmentSum", "UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax",
      "UnsortedSegmentMin"}},
    {kNumber, {"Mod", "TruncateMod"}},
    {Types(Dtype::kInt32), {"TruncateDiv"}},
    {kNumber | Types(Dtype::kInt8, Dtype::kInt16), {"FloorMod", "FloorDiv"}},
    {kNumber | Types(Dtype::kInt16), {"Less", "LessEqual", "Greater", "GreaterEqual"}},
    {kNumber | Types(Dtype::kInt16, Dtype::kBool), {"Equal", "NotEqual"}},
    {kNumber | Types(Dtype::kInt8, Dtype::kUint8, Dtype::kInt16),
     {"Maximum", "Minimum", "Relu", "ClipByValue", "TopK", "TopKV2", "Unique"}},
    {Types(Dtype::kFloat, Dtype::kInt8, Dtype::kUint8, Dtype::kInt32, Dtype::kBool),
     {"ArgMax", "ArgMin"}},
    {kMoved,
     {"Gather", "GatherV2", "ReverseV2", "Roll", "MatrixBandPart", "MatrixDiagPart",
      "MatrixDiagPartV2", "MatrixDiagPartV3", "DiagPart", "DynamicStitch",
      "ParallelDynamicStitch"}},
    {kMoved & ~Types(Dtype::kInt8, Dtype::kBool), {"ReverseSequence"}},
    {kMoved | Types(Dtype::kString), {"GatherNd"}},
    {kMoved | Types(Dtype::kUint32), {"Concat", "ConcatV2"}},
    {kMoved | Types(Dtype::kUint32), {"Pack"}},
    {kMoved & ~Types(Dtype::kBool), {"Split", "SplitV"}},
    {kMoved, {"Unpack"}},
    {kMoved, {"Pad", "PadV2"}},
    {kMoved & ~Types(Dtype::kInt16), {"ScatterNd", "OneHot"}},
    {kMoved, {"SelectV2", "Select"}},
    {kMoved & ~Types(Dtype::kInt16), {"Tile"}},
    {kMoved & ~Types(Dtype::kBool),
     {"MirrorPad", "SpaceToBatchND", "BatchToSpaceND", "MatrixDiag", "MatrixDiagV2", "MatrixDiagV3",
      "MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"}},
    {kMoved & ~Types(Dtype::kBool, Dtype::kInt16), {"SpaceToDepth", "DepthToSpace"}},
    {(kMoved & ~Types(Dtype::kInt16)) | Types(Dtype::kUint32), {"Where"}},
    {kMoved | kOfBytes,
     {"Transpose", "Slice", "StridedSlice", "Reshape", "Squeeze", "ExpandDims", "BroadcastTo",
      "Shape", "Size", "Rank"}},
    {kNumber | Types(Dtype::kBool, Dtype::kInt8), {"XlaDynamicUpdateSlice"}},
};

// Of float alone.
constexpr OpSet kFloatOps = {"Acos",
                             "Acosh",
                             "Asin",
                             "Asinh",
                             "Atan",
                             "Atan2",
                             "Atanh",
                             "AvgPool",
                             "AvgPool3D",
                             "BatchMatMul",
                             "BatchMatMulV2",
                             "BatchMatMulV3",
                             "Ceil",
                             "Conv2D",
                             "Conv2DBackpropInput",
                             "Conv3D",
                             "Conv3DBackpropInputV2",
                             "Cos",
                             "Cosh",
                             "DepthwiseConv2dNative",
                             "Div",
                             "DivNoNan",
                             "Einsum",
                             "Elu",
                             "Erf",
                             "Erfc",
                             "EuclideanNorm",
                             "Exp",
                             "Expm1",
                             "Floor",
                             "FusedBatchNorm",
                             "FusedBatchNormV2",
                             "FusedBatchNormV3",
                             "Inv",
                             "IsFinite",
                             "IsInf",
                             "IsNan",
                             "L2Loss",
                             "LRN",
                             "LeakyRelu",
                             "Log",
                             "Log1p",
                             "LogSoftmax",
                             "MatMul",
                             "MaxPool",
                             "MaxPool3D",
                             "Mean",
                             "MulNoNan",
                             "RealDiv",
                             "Reciprocal",
                             "Relu6",
                             "ResizeBilinear",
                             "Rint",
                             "Round",
                             "Rsqrt",
                             "Selu",
                             "Sigmoid",
                             "Sin",
                             "Sinh",
                             "Softmax",
                             "Softplus",
                             "Softsign",
                             "Sqrt",
                             "Tan",
                             "Tanh",
                             "Xdivy",
                             "Xlog1py",
                             "Xlogy"};

// The type that all values of `type` have a place in, if the operator takes it.
std::optional<Dtype> WideType(Dtype type, DtypeSet takes) {
  Dtype wide = Dtype::kInt32;
  if (Has(kHalves, type)) {
    wide = Dtype::kFloat;
  } else if (type == Dtype::kUint32) {
    wide = Dtype::kInt64;
  } else if (type == Dtype::kBool) {
    wide = Has(takes, Dtype::kInt8) ? Dtype::kInt8 : Dtype::kUint8;
  } else if (!Has(Types(Dtype::kInt8, Dtype::kUint8, Dtype::kInt16, Dtype::kUint16), type)) {
    return std::nullopt;
  }
  return Has(takes, type) || !Has(takes, wide) ? std::nullopt : std::optional<Dtype>(wide);
}

// The numbers of a type that has no more than 32 bits.
double GreatestOf(Dtype type) {
  switch (type) {
    case Dtype::kInt8:
      return std::numeric_limits<int8_t>::max();
    case Dtype::kUint8:
      return std::numeric_limits<uint8_t>::max();
    case Dtype::kInt16:
      return std::numeric_limits<int16_t>::max();
    case Dtype::kUint16:
      return std::numeric_limits<uint16_t>::max();
    case Dtype::kHalf:
      return 65504;
    default:  // bfloat16
      return 0x1.fep127;
  }
}
double LeastOf(Dtype type) {
  if (Has(kHalves, type)) return -GreatestOf(type);
  return Has(Types(Dtype::kUint8, Dtype::kUint16), type) ? 0 : -GreatestOf(type) - 1;
}

// The places of the arguments whose type is that of `attr`.
std::vector<int> PlacesOf(const Node& n, const std::vector<ArgDef>& args, absl::string_view attr) {
  std::vector<int> out;
  int at = 0;
  for (const ArgDef& a : args) {
    if (!a.type_list_attr.empty()) return out;
    const int count = a.number_attr.empty() ? 1 : static_cast<int>(n.Int(a.number_attr));
    for (int i = 0; i < count; ++i, ++at) {
      if (a.type_attr == attr) out.push_back(at);
    }
  }
  return out;
}

class Widening {
 public:
  explicit Widening(Graph& graph) : graph_(graph) {}

  Status Visit(Node* n) {
    const DtypeSet* takes = Has(*n, kFloatOps) ? &kFloat : nullptr;
    for (const TypeRow& row : kTypeRows) {
      if (Has(*n, row.ops)) takes = &row.takes;
    }
    if (takes == nullptr || n->num_inputs() == 0) return OkStatus();
    // The type of what is computed is that of the first output, and of inputs.
    const std::vector<ArgDef>& args = n->def()->inputs;
    std::string attr = n->def()->outputs[0].type_attr;
    if (attr.empty() || PlacesOf(*n, args, attr).empty()) attr = args[0].type_attr;
    if (Has(*n, kOtherOutputs)) attr = args[0].type_attr;
    if (n->Is("ResizeBilinear")) return WidenInputs(n, "T", *takes).status();
    if (attr.empty()) return OkStatus();
    ASSIGN_OR_RETURN(const std::optional<Dtype> narrow, WidenInputs(n, attr, *takes));
    return narrow ? NarrowOutputs(n, attr, *narrow) : OkStatus();
  }

  // A cast of doubles, for which there are no operators, goes before what only moves them. True: it
  // did.
  StatusOr<bool> CastEarlier(Node* cast) {
    constexpr OpSet kMoves = {"GatherV2", "Gather",     "Slice",     "StridedSlice", "Reshape",
                              "Squeeze",  "ExpandDims", "Transpose", "Tile",         "BroadcastTo",
                              "Identity", "Pack",       "ConcatV2",  "ReverseV2",    "GatherNd"};
    if (!cast->Is("Cast") || cast->Type("SrcT") != Dtype::kDouble || cast->Bool("Truncate")) {
      return false;
    }
    Node* n = cast->input(0).node;
    const Dtype to = cast->Type("DstT");
    if (!Has(*n, kMoves)) return false;
    std::vector<Node*> casts;
    for (const Use& use : n->uses()) {
      if (use.is_control() || !use.node->Is("Cast") || use.node->Type("DstT") != to ||
          use.node->Bool("Truncate")) {
        return false;
      }
      casts.push_back(use.node);
    }
    const std::string attr = n->def()->outputs[0].type_attr;
    for (const int i : PlacesOf(*n, n->def()->inputs, attr)) {
      ASSIGN_OR_RETURN(const Endpoint e, Cast(n->input(i), Dtype::kDouble, to, n->name()));
      graph_.SetInput(n, i, e);
    }
    n->AttrsToChange().Set(attr, to);
    n->EraseAttr(kOutputShapes);
    RETURN_IF_ERROR(graph_.ResolveTypes(n));
    for (Node* old : casts) {
      graph_.ReplaceAllUses({old, 0}, {n, 0});
      graph_.ReplaceControlUses(old, n);
      graph_.Remove(old);
    }
    return true;
  }

 private:
  // Whose first output has a type of its own.
  static constexpr OpSet kOtherOutputs = {"ArgMax", "ArgMin", "Where"};
  static bool Has(const Node& n, const OpSet& ops) { return ops.Contains(n.op_name()); }

  StatusOr<Endpoint> Cast(Endpoint e, Dtype from, Dtype to, const std::string& name) {
    if (const auto value = ConstantTensor(*BehindIdentities(e).node)) {
      AttrMap attrs;
      attrs.Set("SrcT", from);
      attrs.Set("DstT", to);
      ASSIGN_OR_RETURN(const auto out, Evaluate("Cast", {*value}, std::move(attrs)));
      return Endpoint{graph_.AddConst(name + "/wide", out[0]), 0};
    }
    AttrMap attrs;
    attrs.Set("SrcT", from);
    attrs.Set("DstT", to);
    ASSIGN_OR_RETURN(Node * n, graph_.Add(name + "/cast", "Cast", {e}, std::move(attrs)));
    return Endpoint{n, 0};
  }

  // The type that it had; nothing: it stays.
  StatusOr<std::optional<Dtype>> WidenInputs(Node* n, const std::string& attr, DtypeSet takes) {
    const Dtype type = n->Type(attr);
    const std::optional<Dtype> wide = WideType(type, takes);
    if (!wide) return std::optional<Dtype>();
    for (const int i : PlacesOf(*n, n->def()->inputs, attr)) {
      ASSIGN_OR_RETURN(const Endpoint e, Cast(n->input(i), type, *wide, n->name()));
      graph_.SetInput(n, i, e);
    }
    n->AttrsToChange().Set(attr, *wide);
    n->EraseAttr(kOutputShapes);
    RETURN_IF_ERROR(graph_.ResolveTypes(n));
    return std::optional<Dtype>(type);
  }

  Status NarrowOutputs(Node* n, const std::string& attr, Dtype type) {
    for (const int i : PlacesOf(*n, n->def()->outputs, attr)) {
      const std::vector<Use> readers = n->OrderedUses();
      ASSIGN_OR_RETURN(const Endpoint held, Held({n, i}, n->Type(attr), type));
      ASSIGN_OR_RETURN(const Endpoint narrow, Cast(held, n->Type(attr), type, n->name()));
      for (const Use& use : readers) {
        if (!use.is_control() && use.port() == i) graph_.SetInput(use.node, use.input, narrow);
      }
    }
    return OkStatus();
  }

  // A segment of nothing has the least, or the greatest, number of the type.
  StatusOr<Endpoint> Held(Endpoint e, Dtype wide, Dtype narrow) {
    const bool most = e.node->Is("UnsortedSegmentMax");
    if (!most && !e.node->Is("UnsortedSegmentMin")) return e;
    ASSIGN_OR_RETURN(const Attr bound,
                     UniformTensor(wide, Shape(), most ? LeastOf(narrow) : GreatestOf(narrow)));
    AttrMap value;
    value.Set("dtype", wide);
    value.Set("value", bound);
    ASSIGN_OR_RETURN(Node * number,
                     graph_.Add(e.node->name() + "/bound", "Const", {}, std::move(value)));
    AttrMap attrs;
    attrs.Set("T", wide);
    ASSIGN_OR_RETURN(Node * n, graph_.Add(e.node->name() + "/held", most ? "Maximum" : "Minimum",
                                          {e, {number, 0}}, std::move(attrs)));
    return Endpoint{n, 0};
  }

  Graph& graph_;
};

}  // namespace

Status WidenTypes(Graph& graph) {
  Widening widening(graph);
  for (bool again = true; again;) {
    again = false;
    for (Node* n : graph.Nodes()) {
      ASSIGN_OR_RETURN(again, widening.CastEarlier(n));
      if (again) break;
    }
  }
  for (Node* n : graph.Nodes()) {
    if (n->def() != nullptr && !n->def()->outputs.empty()) {
      RETURN_IF_ERROR(widening.Visit(n));
    }
  }
  return OkStatus();
}

}  // namespace smelt
