// Casts that change nothing, or more bytes than they need to, and what reads rows by their indices.
#include <algorithm>
#include <span>

#include "smelt/optimize/arithmetic/common.h"
#include "smelt/optimize/arithmetic/rules.h"

namespace smelt::arithmetic {
namespace {

// Bitcast(Bitcast(x)) -> Bitcast(x), and one to the same type -> x.
StatusOr<Rewritten> RemoveRedundantBitcast(Node& node, Rewriter& r) {
  const Endpoint x = node.input(0);
  const Dtype from = node.Type("T"), to = node.Type("type");
  if (from == to) {
    if (IsRoot(node)) return r.No("the bitcast must stay");
    if (GivesReference(x)) return r.No("the value is read by reference");
    return r.ReplaceBy(x);
  }
  Node* inner = Producer(x, "Bitcast");
  if (inner == nullptr) return r.No();
  if (IsRoot(*inner)) return r.No("the bitcast before it must stay");
  if (GivesReference(inner->input(0))) return r.No("the value is read by reference");
  const Dtype first = inner->Type("T");
  // Each change of the size adds a dimension or takes one.
  const size_t a = Tensor::ElementSize(first), b = Tensor::ElementSize(from),
               c = Tensor::ElementSize(to);
  if (a != b && b != c && a != c) return r.No("one bitcast would give another shape");
  RETURN_IF_ERROR(r.WaitAs(&node, *inner));
  r.graph().SetInput(&node, 0, inner->input(0));
  AttrMap attrs;
  attrs.Set("T", first);
  attrs.Set("type", to);
  RETURN_IF_ERROR(r.Become(&node, "Bitcast", std::move(attrs)));
  return r.InPlace();
}

// A cast to the same type -> its input.
StatusOr<Rewritten> RemoveRedundantCast(Node& node, Rewriter& r) {
  if (node.Type("SrcT") != node.Type("DstT")) return r.No();
  if (GivesReference(node.input(0))) return r.No("the value is read by reference");
  return r.ReplaceBy(node.input(0));
}

// Gives a number, or several bytes, for each number at its place, with one result.
constexpr OpSet kCastLike = {"Angle",    "Bucketize", "Cast",  "Dequantize", "Imag",
                             "IsFinite", "IsInf",     "IsNan", "Real"};
// Of zero they give zero, or false.
constexpr OpSet kKeepsZero = {"Angle", "Cast", "Imag", "IsInf", "IsNan", "Real"};

constexpr Dtype kPlain[] = {Dtype::kBool,   Dtype::kBfloat16,  Dtype::kHalf,      Dtype::kFloat,
                            Dtype::kDouble, Dtype::kComplex64, Dtype::kInt8,      Dtype::kInt16,
                            Dtype::kInt32,  Dtype::kInt64,     Dtype::kUint8,     Dtype::kUint16,
                            Dtype::kUint32, Dtype::kUint64,    Dtype::kComplex128};
constexpr Dtype kFloats[] = {Dtype::kBfloat16, Dtype::kHalf, Dtype::kFloat, Dtype::kDouble};
constexpr Dtype kReals[] = {Dtype::kBfloat16, Dtype::kHalf,   Dtype::kFloat,  Dtype::kDouble,
                            Dtype::kInt8,     Dtype::kInt16,  Dtype::kInt32,  Dtype::kInt64,
                            Dtype::kUint8,    Dtype::kUint16, Dtype::kUint32, Dtype::kUint64};
constexpr Dtype kReversedOnGpu[] = {
    Dtype::kBool,      Dtype::kBfloat16,   Dtype::kHalf, Dtype::kFloat, Dtype::kDouble,
    Dtype::kComplex64, Dtype::kComplex128, Dtype::kInt8, Dtype::kInt32, Dtype::kUint8};
constexpr Dtype kRolledOnGpu[] = {Dtype::kBfloat16, Dtype::kHalf,      Dtype::kFloat,
                                  Dtype::kDouble,   Dtype::kComplex64, Dtype::kComplex128,
                                  Dtype::kInt32,    Dtype::kInt64,     Dtype::kUint32};
constexpr Dtype kShortFloats[] = {Dtype::kBfloat16, Dtype::kHalf, Dtype::kFloat};
constexpr Dtype kSpacedOnGpu[] = {Dtype::kBfloat16, Dtype::kHalf, Dtype::kFloat, Dtype::kUint8};
constexpr Dtype kIndices[] = {Dtype::kInt32, Dtype::kInt64};

// Ops whose results are elements of the first input, or zeros that pad, and the types of which
// TensorFlow has a kernel that moves them.
struct Mover {
  OpName op;
  std::span<const Dtype> on_cpu, on_gpu;
  bool pads = false;
};
constexpr Mover kMovers[] = {
    {"Identity", kPlain, kPlain},
    {"Snapshot", kPlain, kPlain},
    {"StopGradient", kPlain, kPlain},
    {"PreventGradient", kPlain, kReals},
    {"DebugGradientIdentity", kPlain, kReals},
    {"Reshape", kPlain, kPlain},
    {"Squeeze", kPlain, kPlain},
    {"ExpandDims", kPlain, kPlain},
    {"Transpose", kPlain, kPlain},
    {"Reverse", kPlain, kReversedOnGpu},
    {"ReverseV2", kPlain, kReversedOnGpu},
    {"Roll", kPlain, kRolledOnGpu},
    {"DepthToSpace", kPlain, kShortFloats},
    {"SpaceToDepth", kPlain, kSpacedOnGpu},
    {"BatchToSpace", kReals, kFloats},
    {"BatchToSpaceND", kReals, kFloats},
    {"SpaceToBatch", kReals, kFloats, true},
    {"SpaceToBatchND", kReals, kFloats, true},
    {"InvertPermutation", kIndices, kIndices},
};
constexpr OpSet kMoves = [] {
  OpSet ops = {};
  for (const Mover& row : kMovers) ops.Add(row.op);
  return ops;
}();
constexpr OpSet kCastsAndMoves = [] {
  OpSet ops = kCastLike;
  for (const Mover& row : kMovers) ops.Add(row.op);
  return ops;
}();

bool HasPlainSize(Dtype t) { return std::ranges::find(kPlain, t) != std::end(kPlain); }

// move(cast(x)) -> cast(move(x)) and cast(move(x)) -> move(cast(x)), whichever moves fewer bytes.
StatusOr<Rewritten> ReorderCastLikeAndValuePreserving(Node& node, Rewriter& r) {
  const bool moves = node.Is(kMoves);
  Node* producer = Producer(node.input(0), moves ? kCastLike : kMoves);
  if (producer == nullptr) return r.No();
  const Node& cast = moves ? *producer : node;
  const Node& move = moves ? node : *producer;
  if (IsRoot(*producer)) return r.No("the node before it must stay");
  if (producer->device != node.device) return r.No("they are on different devices");
  const bool gpu = node.device.find("GPU") != std::string::npos;
  const bool cpu = r.OnCpu(node);
  if (!cpu && !gpu) return r.No("they are not known to run on a CPU or a GPU");
  if (GivesReference(producer->input(0))) return r.No("the value is read by reference");
  const Dtype from = cast.input_types[0], to = cast.output_types[0];
  if (!HasPlainSize(from) || !HasPlainSize(to)) return r.No("a type has no kernel that moves it");
  const size_t small = Tensor::ElementSize(moves ? from : to),
               large = Tensor::ElementSize(moves ? to : from);
  if (small >= large) return r.No("no fewer bytes would be moved");
  const auto* row = std::ranges::find(kMovers, move.op_name(), &Mover::op);
  const Dtype moved = moves ? from : to;
  const std::span<const Dtype> types = gpu ? row->on_gpu : row->on_cpu;
  if (std::ranges::find(types, moved) == types.end()) {
    return r.No("the move has no kernel for the smaller type");
  }
  if (row->pads && !cast.Is(kKeepsZero)) return r.No("what pads the result would not be the same");
  if (cast.Is("Dequantize") && cast.Int("axis", -1) != -1) {
    return r.No("each slice of the axis has a range of its own");
  }
  const std::string read = absl::StrCat(DtypeName(from), "_");
  const std::string given = absl::StrCat(DtypeName(to), "_");
  if (r.IsMade(node, read) || r.IsMade(*producer, given)) {
    return r.No("another reader of the node before it was rewritten");
  }
  const std::string first = r.Name(node, "", read), second = r.Name(*producer, "", given);
  const PartialShape before = r.shape(producer->input(0)), after = r.shape({&node, 0});
  // Each keeps its own further inputs and what it waited for.
  const auto add = [&](const Node& old, absl::string_view name, Endpoint input) -> StatusOr<Node*> {
    AttrMap attrs = old.attrs();
    attrs.Erase("_root");
    if (&old == &move) attrs.Set("T", moved);
    std::vector<Endpoint> inputs(old.inputs().begin(), old.inputs().end());
    inputs[0] = input;
    ASSIGN_OR_RETURN(Node * n, r.Add(name, old.op(), inputs, std::move(attrs), old));
    RETURN_IF_ERROR(r.WaitAs(n, old));
    return n;
  };
  ASSIGN_OR_RETURN(Node * inner, add(node, first, producer->input(0)));
  r.SetShape({inner, 0}, moves ? after : before);
  ASSIGN_OR_RETURN(Node * outer, add(*producer, second, {inner, 0}));
  r.SetShape({outer, 0}, after);
  return r.ReplaceBy({outer, 0});
}

constexpr OpSet kSparseSegments = {"SparseSegmentSum",   "SparseSegmentSumWithNumSegments",
                                   "SparseSegmentMean",  "SparseSegmentMeanWithNumSegments",
                                   "SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments"};

bool IsIndex(Dtype t) { return t == Dtype::kInt32 || t == Dtype::kInt64; }

// Makes the node read `from` as input i, whose type is the attribute.
Status ReadInstead(Node& node, int i, Endpoint from, absl::string_view attr, Rewriter& r) {
  r.graph().SetInput(&node, i, from);
  AttrMap attrs = node.attrs();
  attrs.Set(attr, from.node->output_types[static_cast<size_t>(from.port)]);
  return r.Become(&node, node.op(), std::move(attrs));
}

constexpr OpSet kGathers = {"Gather", "GatherV2", "ResourceGather"};
constexpr OpSet kUniques = {"Unique", "UniqueV2"};

// Is the input one constant zero, or a list of it?
bool IsZero(Endpoint e, Rewriter& r) { return r.Integers(e) == std::vector<int64_t>{0}; }

// sum(gather(params, unique(ids)), idx, segments) -> sum(params, ids, segments)
StatusOr<Rewritten> SimplifyEmbeddingLookup(Node& node, Rewriter& r) {
  if (IsRoot(node)) return r.No();
  Node* gather = Producer(node.input(0), kGathers);
  Node* unique = gather == nullptr ? nullptr : Producer(gather->input(1), kUniques);
  if (unique == nullptr) return r.No();
  if (IsRoot(*gather) || IsRoot(*unique)) return r.No("what is between must stay");
  if (gather->device != node.device || unique->device != node.device) {
    return r.No("they are on different devices");
  }
  if (!(node.input(1) == Endpoint{unique, 1}) || gather->input(1).port != 0) {
    return r.No("it does not read the places of the ids");
  }
  if (gather->Int("batch_dims") != 0 || (gather->Is("GatherV2") && !IsZero(gather->input(2), r)) ||
      (unique->Is("UniqueV2") && !IsZero(unique->input(1), r))) {
    return r.No("it gathers, or counts, along another axis");
  }
  const Endpoint ids = unique->input(0);
  if (!IsIndex(unique->Type("T"))) return r.No("the ids are no indices");
  if (GivesReference(ids) || GivesReference(gather->input(0))) {
    return r.No("the value is read by reference");
  }
  Endpoint params = gather->input(0);
  if (gather->Is("ResourceGather")) {
    AttrMap attrs;
    attrs.Set("dtype", gather->Type("dtype"));
    ASSIGN_OR_RETURN(Node * read, r.Add(r.Name(node, "", "ReadVar_"), "ReadVariableOp", {params},
                                        std::move(attrs), node));
    RETURN_IF_ERROR(r.WaitAs(read, *gather));
    RETURN_IF_ERROR(r.WaitAs(read, *unique));
    params = {read, 0};
  }
  RETURN_IF_ERROR(r.WaitAs(&node, *gather));
  RETURN_IF_ERROR(r.WaitAs(&node, *unique));
  r.graph().SetInput(&node, 0, params);
  RETURN_IF_ERROR(ReadInstead(node, 1, ids, "Tidx", r));
  return r.InPlace();
}

// Indices of int32 and int64 are taken as they are.
StatusOr<Rewritten> RemoveCastIntoSegmentReduction(Node& node, Rewriter& r) {
  if (IsRoot(node)) return r.No();
  constexpr absl::string_view kTypes[] = {"", "Tidx", "Tsegmentids"};
  bool done = false;
  for (const int i : {1, 2}) {
    Node* cast = Producer(node.input(i), "Cast");
    if (cast == nullptr) continue;
    if (!IsIndex(cast->Type("SrcT"))) {
      r.No("there are no kernels for indices of the type before the cast");
      continue;
    }
    if (GivesReference(cast->input(0))) continue;
    RETURN_IF_ERROR(r.WaitAs(&node, *cast));
    RETURN_IF_ERROR(ReadInstead(node, i, cast->input(0), kTypes[i], r));
    done = true;
  }
  return done ? r.InPlace() : r.No();
}

}  // namespace

const Rule kRemoveRedundantBitcast = {"RemoveRedundantBitcast",
                                      {"Bitcast"},
                                      RemoveRedundantBitcast,
                                      "bitcast(bitcast(x)) -> bitcast(x)"};
const Rule kRemoveRedundantCast = {
    "RemoveRedundantCast", {"Cast"}, RemoveRedundantCast, "a cast to the same type -> x"};
const Rule kReorderCastLikeAndValuePreserving = {
    "ReorderCastLikeAndValuePreserving", kCastsAndMoves, ReorderCastLikeAndValuePreserving,
    "transpose(cast(x)) -> cast(transpose(x)), and the other way"};
// Named as TensorFlow's stage is, for the names of new nodes.
const Rule kSimplifyEmbeddingLookup = {"SimplifyEmbeddingLookupStage", kSparseSegments,
                                       SimplifyEmbeddingLookup,
                                       "sum(gather(p, unique(ids))) -> sum(p, ids)"};
const Rule kRemoveCastIntoSegmentReduction = {"RemoveCastIntoSegmentReduction", kSparseSegments,
                                              RemoveCastIntoSegmentReduction,
                                              "sum(data, cast(indices)) -> sum(data, indices)"};

}  // namespace smelt::arithmetic
