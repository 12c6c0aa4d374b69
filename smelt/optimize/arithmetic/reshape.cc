// Reshapes that say the same as one, or nothing, and tensors that are repeated.
#include <limits>
#include <numeric>

#include "smelt/optimize/arithmetic/common.h"
#include "smelt/optimize/arithmetic/rules.h"
#include "smelt/optimize/rewrite/number_tensors.h"

namespace smelt::arithmetic {
namespace {

using Ints = std::vector<int32_t>;

// Computes each element from the one element at its place, whatever the shape.
constexpr OpSet kUnary = {"Abs",
                          "Acos",
                          "Acosh",
                          "Asin",
                          "Asinh",
                          "Atan",
                          "Atanh",
                          "Ceil",
                          "CheckNumerics",
                          "ComplexAbs",
                          "Conj",
                          "Cos",
                          "Cosh",
                          "DebugGradientIdentity",
                          "Digamma",
                          "Elu",
                          "Erf",
                          "Erfc",
                          "Exp",
                          "Expm1",
                          "Floor",
                          "Identity",
                          "Inv",
                          "Invert",
                          "IsFinite",
                          "IsInf",
                          "IsNan",
                          "Lgamma",
                          "Log",
                          "Log1p",
                          "LogicalNot",
                          "Neg",
                          "PreventGradient",
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
                          "Softsign",
                          "Sqrt",
                          "Square",
                          "StopGradient",
                          "Tan",
                          "Tanh"};

// Does the kernel of Tile take the type, on whatever device the node runs on?
bool TileTakes(Dtype t, const Node& like) {
  switch (t) {
    case Dtype::kBool:
    case Dtype::kBfloat16:
    case Dtype::kHalf:
    case Dtype::kFloat:
    case Dtype::kDouble:
    case Dtype::kComplex64:
    case Dtype::kComplex128:
    case Dtype::kInt16:
    case Dtype::kInt32:
    case Dtype::kInt64:
      return true;
    case Dtype::kInt8:
    case Dtype::kUint8:
    case Dtype::kString:
      return like.device.find("GPU") == std::string::npos;
    default:
      return false;
  }
}

StatusOr<Node*> AddTile(absl::string_view name, Endpoint x, Node* multiples, const Node& like,
                        Rewriter& r) {
  AttrMap attrs;
  attrs.Set("T", x.node->output_types[static_cast<size_t>(x.port)]);
  attrs.Set("Tmultiples", Dtype::kInt32);
  return r.Add(name, "Tile", {x, {multiples, 0}}, std::move(attrs), like);
}

StatusOr<Node*> AddReshape(absl::string_view name, Endpoint x, Node* shape, const Node& like,
                           Rewriter& r) {
  AttrMap attrs;
  attrs.Set("T", x.node->output_types[static_cast<size_t>(x.port)]);
  attrs.Set("Tshape", Dtype::kInt32);
  return r.Add(name, "Reshape", {x, {shape, 0}}, std::move(attrs), like);
}

bool ReadsOneValue(const Node& pack) {
  for (const Endpoint& e : pack.inputs()) {
    if (!(e == pack.input(0))) return false;
  }
  return true;
}

// What packs of one value, the innermost last, make of a shape: how often each dimension is
// repeated, and the sizes in the end. Nothing where a pack adds a dimension behind the last one,
// or sizes are too large for int32.
struct Repeated {
  Ints multiples, sizes;
};
std::optional<Repeated> RepeatByPacks(const std::vector<Node*>& packs, const Shape& shape) {
  Repeated out;
  out.multiples.assign(static_cast<size_t>(shape.rank()), 1);
  for (const int64_t d : shape.dims()) {
    if (d > std::numeric_limits<int32_t>::max()) return std::nullopt;
    out.sizes.push_back(static_cast<int32_t>(d));
  }
  // The dimension of the value that a dimension of the result comes from.
  std::vector<size_t> from(out.multiples.size());
  std::iota(from.begin(), from.end(), size_t{0});
  for (auto it = packs.rbegin(); it != packs.rend(); ++it) {
    int64_t axis = (*it)->Int("axis");
    if (axis < 0) axis += static_cast<int64_t>(from.size()) + 1;
    if (axis < 0 || axis >= static_cast<int64_t>(from.size())) return std::nullopt;
    const size_t source = from[static_cast<size_t>(axis)];
    const int64_t multiple = int64_t{out.multiples[source]} * (*it)->num_inputs();
    if (multiple > std::numeric_limits<int32_t>::max()) return std::nullopt;
    out.multiples[source] = static_cast<int32_t>(multiple);
    from.insert(from.begin() + axis, source);
    out.sizes.insert(out.sizes.begin() + axis, (*it)->num_inputs());
  }
  return out;
}

// pack(x, x) -> reshape(tile(x)), also of packs in packs.
StatusOr<Rewritten> ReplacePackWithTileReshape(Node& node, Rewriter& r) {
  std::vector<Node*> packs;
  Node* now = &node;
  while (now->Is("Pack") && now->num_inputs() > 1 && !IsRoot(*now) && ReadsOneValue(*now)) {
    packs.push_back(now);
    now = now->input(0).node;
  }
  if (packs.empty()) return r.No();
  const Endpoint x = packs.back()->input(0);
  const PartialShape shape = r.shape(x);
  if (!TrustsShape(x, r)) return r.No("a request may give another shape than its placeholder says");
  if (!shape.fully_known()) return r.No("the shape of what is packed is not known");
  if (!TileTakes(node.Type("T"), node)) return r.No("Tile has no kernel for the type");
  const std::optional<Repeated> repeated = RepeatByPacks(packs, shape.ToShape());
  if (!repeated) return r.No("it packs along a new last dimension, or more than int32 can count");
  const std::string names[] = {r.Name(node, "", "Multiples_"), r.Name(node, "", "Tile_"),
                               r.Name(node, "", "Shape_"), r.Name(node, "", "Reshape_")};
  ASSIGN_OR_RETURN(
      Node * multiples,
      AddConstBeside(names[0], Tensor::Vector<int32_t>(repeated->multiples), node, x, r));
  ASSIGN_OR_RETURN(Node * tile, AddTile(names[1], x, multiples, node, r));
  for (const Node* pack : packs) RETURN_IF_ERROR(r.WaitAs(tile, *pack));
  PartialShape tiled = shape;
  for (int i = 0; i < shape.rank(); ++i) {
    tiled.Set(i, shape[i] * repeated->multiples[static_cast<size_t>(i)]);
  }
  r.SetShape({tile, 0}, tiled);
  ASSIGN_OR_RETURN(Node * sizes,
                   AddConstBeside(names[2], Tensor::Vector<int32_t>(repeated->sizes), node, x, r));
  ASSIGN_OR_RETURN(Node * reshape, AddReshape(names[3], {tile, 0}, sizes, node, r));
  const std::vector<int64_t> dims(repeated->sizes.begin(), repeated->sizes.end());
  r.SetShape({reshape, 0}, PartialShape::Of(dims));
  return r.ReplaceBy({reshape, 0});
}

// How often each dimension of `x` is repeated by a product with ones of shape `ones`; empty where
// none is, or the product is of another rank or none.
Ints RepeatByOnes(const PartialShape& x, const PartialShape& ones) {
  if (!x.fully_known() || !ones.fully_known() || x.rank() != ones.rank()) return {};
  Ints multiples;
  bool repeats = false;
  for (int i = 0; i < x.rank(); ++i) {
    if (x[i] != ones[i] && x[i] != 1 && ones[i] != 1) return {};
    const int64_t m = x[i] == 1 ? ones[i] : 1;
    if (m > std::numeric_limits<int32_t>::max()) return {};
    repeats |= m != 1;
    multiples.push_back(static_cast<int32_t>(m));
  }
  return repeats ? multiples : Ints();
}

// x * ones -> tile(x) where the ones only repeat x.
StatusOr<Rewritten> ReplaceMulWithBroadcastByTile(Node& node, Rewriter& r) {
  if (IsRoot(node)) return r.No();
  for (const int i : {1, 0}) {
    const Endpoint ones = node.input(i), x = node.input(1 - i);
    const TensorValue* value = r.ConstantValue(ones);
    if (value == nullptr || UniformValue(*value) != std::optional<double>(1)) continue;
    if (r.ConstantValue(x) != nullptr) return r.No("both factors are constants");
    if (IsRoot(*ones.node) || IsRoot(*x.node)) return r.No("a factor must stay");
    const Dtype t = node.Type("T");
    if (IsComplex(t)) return r.No("a complex product may make NaN of infinities");
    if (!TileTakes(t, node)) return r.No("Tile has no kernel for the type");
    const Ints by = RepeatByOnes(r.shape(x), value->shape);
    if (by.empty()) return r.No("the ones are not known to repeat what they are multiplied with");
    const std::string name = r.Name(node, "", "Tile_");
    Node* multiples = r.AddConst(r.Name(node, "", "Const_"), Tensor::Vector<int32_t>(by), node);
    RETURN_IF_ERROR(r.WaitAs(multiples, *ones.node));
    ASSIGN_OR_RETURN(Node * tile, AddTile(name, x, multiples, node, r));
    RETURN_IF_ERROR(r.WaitAs(tile, node));
    r.CopyShape({&node, 0}, {tile, 0});
    return r.ReplaceBy({tile, 0});
  }
  return r.No();
}

// Six values of a constant vector of int32; nothing otherwise.
std::optional<Ints> SixSizes(Endpoint e, Rewriter& r) {
  if (e.node->output_types[static_cast<size_t>(e.port)] != Dtype::kInt32) return std::nullopt;
  const std::optional<std::vector<int64_t>> values = r.Integers(e);
  if (!values || values->size() != 6) return std::nullopt;
  return Ints(values->begin(), values->end());
}

// reshape(tile(reshape(x, [a, b, 1, c, 1, d]), [k, l, m, 1, n, 1])), as libraries repeat pixels ->
// the same with the two dimensions of one left out.
StatusOr<Rewritten> ReduceUpsamplingDims(Node& node, Rewriter& r) {
  if (IsRoot(node)) return r.No();
  Node* tile = Producer(node.input(0), "Tile");
  Node* reshape = tile == nullptr ? nullptr : Producer(tile->input(0), "Reshape");
  if (reshape == nullptr) return r.No();
  if (NumDataUses(*tile) != 1) return r.No("others read the repeated tensor");
  if (IsRoot(*tile) || IsRoot(*reshape)) return r.No("what is between must stay");
  const std::optional<Ints> m = SixSizes(tile->input(1), r), s = SixSizes(reshape->input(1), r);
  if (!m || !s) return r.No("its shapes are not six constants of int32");
  if ((*m)[3] != 1 || (*m)[5] != 1 || (*s)[2] != 1 || (*s)[4] != 1) {
    return r.No("no two dimensions are there for repetitions alone");
  }
  const std::string names[] = {r.Name(node, "", "Multiples_"), r.Name(node, "", "Tile_"),
                               r.Name(node, "", "Shape_"), r.Name(node, "", "Reshape_")};
  Node* multiples =
      r.AddConst(names[0], Tensor::Vector<int32_t>({(*m)[0], (*m)[1], (*m)[2], (*m)[4]}), *tile);
  RETURN_IF_ERROR(r.WaitAs(multiples, *tile->input(1).node));
  Node* shape =
      r.AddConst(names[2], Tensor::Vector<int32_t>({(*s)[0], (*s)[1], (*s)[3], (*s)[5]}), *reshape);
  RETURN_IF_ERROR(r.WaitAs(shape, *reshape->input(1).node));
  ASSIGN_OR_RETURN(Node * flat, AddReshape(names[3], reshape->input(0), shape, *reshape, r));
  RETURN_IF_ERROR(r.WaitAs(flat, *reshape));
  ASSIGN_OR_RETURN(Node * repeated, AddTile(names[1], {flat, 0}, multiples, *tile, r));
  RETURN_IF_ERROR(r.WaitAs(repeated, *tile));
  r.graph().SetInput(&node, 0, {repeated, 0});
  return r.InPlace();
}

// Is a constant shape of one -1 the one that `x` has, whatever the size there?
bool LeavesOneSize(const PartialShape& x, const std::optional<std::vector<int64_t>>& sizes) {
  if (!sizes || !x.known_rank() || static_cast<int>(sizes->size()) != x.rank()) return false;
  int open = 0;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t size = (*sizes)[static_cast<size_t>(i)];
    if (size == -1) {
      ++open;
    } else if (size <= 0 || size != x[i]) {
      return false;
    }
  }
  return open == 1;
}

// Is the result of the node's shape the input's, whatever a request gives?
bool KeepsShape(Node& node, Rewriter& r) {
  const Endpoint x = node.input(0);
  if (!TrustsShape(x, r)) {
    r.No("a request may give another shape than its placeholder says");
    return false;
  }
  const PartialShape before = r.shape(x);
  return SameSymbolicShape(before, r.shape({&node, 0})) ||
         (node.Is("Reshape") && LeavesOneSize(before, r.Integers(node.input(1))));
}

// Adds the sizes that are written among those of `shape`; returns whether these are all.
bool CollectSizes(Endpoint shape, Rewriter& r, std::vector<int64_t>* sizes) {
  if (const auto known = r.Integers(shape)) {
    sizes->insert(sizes->end(), known->begin(), known->end());
    return true;
  }
  const Node& node = *shape.node;
  const bool concat = node.Is("ConcatV2");
  if (!concat && !node.Is("Pack")) return false;
  bool all = true;
  for (int i = 0; i < node.num_inputs() - (concat ? 1 : 0); ++i) {
    all = CollectSizes(node.input(i), r, sizes) && all;
  }
  return all;
}

// What -1 stands for beside a size of zero follows from the other sizes of an empty input: the same
// elements in another shape say something else.
bool HearsShapeOfEmpty(const PartialShape& x, Endpoint shape, Rewriter& r) {
  if (x.fully_known() && x.ToShape().num_elements() != 0) return false;
  std::vector<int64_t> sizes;
  const bool all = CollectSizes(shape, r, &sizes);
  return std::ranges::count(sizes, -1) > 0 && (!all || std::ranges::count(sizes, 0) > 0);
}

// reshape(x) -> x where shapes are the same, and reshape(f(reshape(x))) -> reshape(f(x)).
StatusOr<Rewritten> RemoveRedundantReshape(Node& node, Rewriter& r) {
  const Endpoint x = node.input(0);
  if (!IsRoot(node) && KeepsShape(node, r)) {
    if (HasControlInputs(node)) {
      r.No("it keeps an order");
    } else if (GivesReference(x)) {
      return r.No("the value is read by reference");
    } else {
      ASSIGN_OR_RETURN(const bool drop, MayDrop(node, node.input(1), x, r));
      if (drop) return r.ReplaceBy(x);
      r.No("its shape may never come");
    }
  }
  if (!node.Is("Reshape")) return r.No();
  Node* tail = TailOfChain(node, kUnary);
  Node* inner = Producer(tail->input(0), "Reshape");
  if (inner == nullptr) return r.No();
  if (IsRoot(*inner)) return r.No("the reshape before it must stay");
  if (NumDataUses(*inner) != 1) return r.No("others read the reshape before it");
  const Endpoint from = inner->input(0);
  if (HearsShapeOfEmpty(r.shape(from), node.input(1), r)) {
    return r.No("of an empty tensor, -1 would stand for another size");
  }
  if (GivesReference(from)) return r.No("the value is read by reference");
  ASSIGN_OR_RETURN(const bool drop, MayDrop(*tail, inner->input(1), from, r));
  if (!drop) return r.No("the shape before it may never come");
  RETURN_IF_ERROR(r.WaitAs(tail, *inner));
  r.graph().SetInput(tail, 0, from);
  for (Node* n = &node; n != tail;) {
    n = n->input(0).node;
    r.CopyShape(from, {n, 0});
  }
  r.Visit(tail);
  r.Visit(&node);
  return r.InPlace();
}

}  // namespace

const Rule kReplacePackWithTileReshape = {"ReplacePackWithTileReshape",
                                          {"Pack"},
                                          ReplacePackWithTileReshape,
                                          "pack(x, x) -> reshape(tile(x))"};
const Rule kReplaceMulWithBroadcastByTile = {
    "ReplaceMulWithBroadcastByTile", {"Mul"}, ReplaceMulWithBroadcastByTile, "x * ones -> tile(x)"};
const Rule kReduceUpsamplingDims = {"ReduceUpsamplingDims",
                                    {"Reshape"},
                                    ReduceUpsamplingDims,
                                    "a tile of six dimensions that needs four"};
const Rule kRemoveRedundantReshapeOrBroadcastTo = {"RemoveRedundantReshapeOrBroadcastTo",
                                                   {"Reshape", "BroadcastTo"},
                                                   RemoveRedundantReshape,
                                                   "reshape(reshape(x)) -> reshape(x)"};

}  // namespace smelt::arithmetic
