// Reshapes: those that change nothing or undo each other, and those that an operator does itself.
#include <algorithm>

#include "smelt/lite/common/kernel_ranks.h"
#include "smelt/lite/fuse/fusion.h"

namespace smelt {
namespace {

// The elements stay, in their order.
constexpr OpSet kReshapes = {"tfl.reshape", "tfl.squeeze", "tfl.expand_dims"};
StatusOr<bool> RemoveReshape(Node& n, Fuser& f) {
  const Endpoint x = n.input(0);
  const PartialShape to = Fuser::shape({&n, 0});
  if (SameWhenEqualElements(Fuser::shape(x), to)) {
    f.Replace(&n, x);
    return true;
  }
  if (!x.node->Is(kReshapes)) return false;
  const Endpoint first = x.node->input(0);
  if (SameWhenEqualElements(Fuser::shape(first), to)) {
    f.Replace(&n, first);
    return true;
  }
  // One reshape to where both lead, if that can be said in one.
  if (!n.Is("tfl.reshape") || !Fuser::Constant(n.input(1))) return f.ReplaceByReshape(&n, first);
  AttrMap options;
  if (const Attr* given = n.attrs().Find("new_shape")) options.Set("new_shape", *given);
  ASSIGN_OR_RETURN(const Endpoint by,
                   f.Add("tfl.reshape", {first, n.input(1)}, std::move(options), n));
  f.Replace(&n, by);
  return true;
}

// ---- past operators of one element at a time

constexpr OpSet kMoves = Union({kLiteUnary, kLiteBinary});

// The shape in which a constant operand means before the reshape what it means behind: a number, or
// one for each index of a last dimension that stays, or that the reshape makes several of.
std::optional<Shape> ConstantBefore(const Tensor& value, const PartialShape& from,
                                    const PartialShape& to) {
  const int64_t count = value.num_elements();
  if (count == 1) {
    if (value.rank() > std::min(from.rank(), to.rank())) return std::nullopt;
    return value.shape();
  }
  if (from[from.rank() - 1] != count || value.rank() > to.rank()) return std::nullopt;
  // The last sizes of the result, with none that the constant is broadcast along.
  int64_t covered = 1;
  for (int d = 1; covered < count && d <= value.rank(); ++d) {
    const int64_t size = value.dim(value.rank() - d);
    if (size != to[to.rank() - d]) return std::nullopt;
    covered *= size;
  }
  return Shape({count});
}

// Do both drop, or add, the same dimensions of one?
bool SameOnes(const Node& a, const Node& b) {
  if (a.Is("tfl.squeeze")) {
    return b.Is("tfl.squeeze") && a.Ints("squeeze_dims") == b.Ints("squeeze_dims") &&
           !a.Ints("squeeze_dims").empty();
  }
  if (!a.Is("tfl.expand_dims") || !b.Is("tfl.expand_dims")) return false;
  const auto one = IntsOf(a.input(1)), two = IntsOf(b.input(1));
  return one && two && *one == *two;
}

// The reshape that each tensor which the operator reads, but constants, comes out of; nullptr where
// there is none, or the operator could not read them as they were.
const Node* ReshapeRead(const Node& n) {
  if (!n.Is(kMoves)) return nullptr;
  const Node* reshape = nullptr;
  const int tensors = n.Is(kLiteBinary) ? 2 : 1;
  for (int i = 0; i < tensors; ++i) {
    const Node* read = n.input(i).node;
    if (!read->Is(kReshapes)) continue;
    const PartialShape from = Fuser::shape(read->input(0)), to = Fuser::shape(n.input(i));
    if (from.rank() < 1 || to.rank() < 1) return nullptr;
    if (reshape != nullptr &&
        (!(Fuser::shape(reshape->input(0)) == from) ||
         (!SameWhenEqualElements(from, from) && !SameOnes(*reshape, *read)))) {
      return nullptr;
    }
    if (reshape == nullptr) reshape = read;
  }
  if (reshape == nullptr) return nullptr;
  const PartialShape from = Fuser::shape(reshape->input(0));
  const PartialShape to = Fuser::shape({const_cast<Node*>(&n), 0});
  const KernelRanks& ranks = KernelRanksOf(n.op_name());
  const bool spreads =
      tensors == 2 && (n.input(0).node->Is("Const") || n.input(1).node->Is("Const"));
  if (from.rank() > std::max(spreads ? ranks.broadcast : ranks.most, to.rank())) return nullptr;
  for (int i = 0; i < tensors; ++i) {
    const Endpoint e = n.input(i);
    if (e.node->Is(kReshapes)) {
      if (!(Fuser::shape(e) == to)) return nullptr;
      continue;
    }
    const auto value = Fuser::Constant(e);
    if (!value || !ConstantBefore(*value, from, to)) return nullptr;
  }
  return reshape;
}

// op(reshape(x)) -> reshape(op(x)): to where reshapes meet, and operators that are one.
StatusOr<bool> MoveReshape(Node& n, Fuser& f) {
  const Node* reshape = ReshapeRead(n);
  if (reshape == nullptr) return false;
  AttrMap options = OptionsOf(n);
  const PartialShape from = Fuser::shape(reshape->input(0));
  const PartialShape to = Fuser::shape({&n, 0});
  std::vector<Endpoint> inputs;
  for (const Endpoint& e : n.inputs()) {
    if (!e.node->Is(kReshapes)) {
      const auto value = Fuser::Constant(e);
      const auto shape = value ? ConstantBefore(*value, from, to) : std::nullopt;
      inputs.push_back(shape && !(*shape == value->shape()) ? f.Const(value->WithShape(*shape), n)
                                                            : e);
      continue;
    }
    const bool needed = std::ranges::any_of(e.node->uses(), [](const Use& use) {
      return use.is_control() || (!use.node->Is(kReshapes) && ReshapeRead(*use.node) == nullptr);
    });
    if (needed) return f.Declined(n, absl::StrCat("others need '", e.node->name(), "'"));
    inputs.push_back(e.node->input(0));
  }
  ASSIGN_OR_RETURN(const Endpoint moved, f.AddShaped(n.op_name(), inputs, std::move(options),
                                                     n.output_types[0], from, n));
  std::vector<Endpoint> around(reshape->inputs().begin(), reshape->inputs().end());
  around[0] = moved;
  ASSIGN_OR_RETURN(const Endpoint by, f.Add(reshape->op_name(), around, OptionsOf(*reshape), n));
  f.Replace(&n, by);
  return true;
}

// An operand that broadcasting would give the dimensions of one which the reshape puts in front.
constexpr OpSet kBroadcasting = {"tfl.add",     "tfl.sub",     "tfl.mul",
                                 "tfl.div",     "tfl.maximum", "tfl.minimum",
                                 "tfl.greater", "tfl.less",    "tfl.squared_difference"};
// How many dimensions its kernels broadcast, or those of what stands for it then (lite/fit).
int MostToBroadcast(const Node& n) {
  const bool by_difference =
      n.Is("tfl.squared_difference") && Fuser::type(n.input(0)) == Dtype::kFloat;
  return KernelRanksOf(by_difference ? OpName("tfl.sub") : n.op_name()).broadcast;
}
// Does the reshape that makes `to` of x put dimensions of one in front, and no more?
bool PutsOnesInFront(const PartialShape& x, const PartialShape& to) {
  if (!x.known_rank() || !to.known_rank() || x.rank() >= to.rank()) return false;
  for (int d = 0; d < to.rank(); ++d) {
    const int from = d - to.rank() + x.rank();
    if (from < 0 ? to[d] != 1 : to[d] != x[from] || to[d] <= 0) return false;
  }
  return true;
}
StatusOr<bool> RemoveReshapeOfOperand(Node& n, Fuser& f) {
  for (const int i : {0, 1}) {
    const Endpoint e = n.input(i);
    if (!e.node->Is(kReshapes)) continue;
    const PartialShape x = Fuser::shape(e.node->input(0)), to = Fuser::shape(e);
    const PartialShape other = Fuser::shape(n.input(1 - i));
    if (to.rank() > other.rank() || !PutsOnesInFront(x, to)) continue;
    if (const int most = MostToBroadcast(n); other.rank() > most) {
      f.Declined(n, absl::StrCat("kernels broadcast no more than ", most, " dimensions"));
      continue;
    }
    f.SetInput(&n, i, e.node->input(0));
    return true;
  }
  return false;
}

// Its operand may have fewer dimensions than its result.
StatusOr<bool> RemoveReshapeBeforeBroadcast(Node& n, Fuser& f) {
  const Endpoint e = n.input(0);
  if (!e.node->Is(kReshapes)) return false;
  if (!PutsOnesInFront(Fuser::shape(e.node->input(0)), Fuser::shape(e))) return false;
  f.SetInput(&n, 0, e.node->input(0));
  return true;
}

bool OnlyProductsRead(Endpoint e) {
  return std::ranges::all_of(e.node->uses(), [&](const Use& use) {
    return use.is_control() ||
           (use.port() == e.port && use.input == 0 && use.node->Is("tfl.fully_connected"));
  });
}

// fully_connected takes rows of any dimensions. All that read them change, or none does.
StatusOr<bool> RemoveReshapeBeforeProduct(Node& n, Fuser& f) {
  const Endpoint e = n.input(0);
  if (!e.node->Is(kReshapes)) return false;
  const PartialShape x = Fuser::shape(e.node->input(0)), rows = Fuser::shape(e);
  if (!x.known_rank() || x.rank() < 2 || x[x.rank() - 1] < 0 || rows.rank() != 2) return false;
  if (x[x.rank() - 1] != rows[1]) return f.Declined(n, "its rows are not those before the reshape");
  if (!OnlyProductsRead(e)) return f.Declined(n, "others read the reshape before it");
  for (const Use& use : e.node->OrderedUses()) {
    if (use.is_control()) continue;
    // Of rows and columns alone the result is the same with and without.
    use.node->AttrsToChange().Set("keep_num_dims", false);
    f.SetInput(use.node, 0, e.node->input(0));
  }
  return true;
}

StatusOr<bool> FuseReshapeIntoProduct(Node& n, Fuser& f) {
  const Endpoint e = n.input(0);
  Node& product = *e.node;
  if (!product.Is("tfl.fully_connected") || product.Bool("keep_num_dims")) return false;
  const PartialShape x = Fuser::shape(product.input(0)), to = Fuser::shape({&n, 0});
  const PartialShape units = Fuser::shape(product.input(1));
  if (x.rank() < 3 || units.rank() != 2) return false;
  std::vector<int64_t> dims;
  for (int i = 0; i + 1 < x.rank(); ++i) dims.push_back(x[i]);
  dims.push_back(units[0]);
  if (!SameWhenEqualElements(PartialShape::Of(dims), to)) return false;
  if (!Fuser::ReadOnce(e)) return f.Declined(n, "others read what it follows");
  AttrMap options;
  for (const absl::string_view name : {"fused_activation_function", "asymmetric_quantize_inputs"}) {
    if (const Attr* a = product.attrs().Find(name)) options.Set(name, *a);
  }
  options.Set("keep_num_dims", true);
  const std::vector<Endpoint> inputs(product.inputs().begin(), product.inputs().end());
  ASSIGN_OR_RETURN(const Endpoint by, f.Add("tfl.fully_connected", inputs, std::move(options), n));
  f.Replace(&n, by);
  return true;
}

constexpr Fusion kReshapeFusions[] = {
    {"RemoveReshape", kReshapes, RemoveReshape,
     "reshape(reshape(x)) -> reshape(x); reshape(x) to the shape that it has -> x"},
    {"MoveReshape", kMoves, MoveReshape,
     "relu(reshape(x)) -> reshape(relu(x)), to where reshapes meet"},
    {"RemoveReshapeOfOperand", kBroadcasting, RemoveReshapeOfOperand,
     "add(reshape(x), y) -> add(x, y), where the reshape puts dimensions of one in front"},
    {"RemoveReshapeBeforeBroadcast",
     {"tfl.broadcast_to"},
     RemoveReshapeBeforeBroadcast,
     "broadcast_to(reshape(x)) -> broadcast_to(x), past dimensions of one in front"},
    {"RemoveReshapeBeforeProduct",
     {"tfl.fully_connected"},
     RemoveReshapeBeforeProduct,
     "fully_connected(reshape(x)) -> fully_connected(x)"},
    {"FuseReshapeIntoProduct", kReshapes, FuseReshapeIntoProduct,
     "reshape(fully_connected(x)) -> fully_connected(x) with keep_num_dims"},
};

}  // namespace

std::span<const Fusion> ReshapeFusions() { return kReshapeFusions; }

}  // namespace smelt
