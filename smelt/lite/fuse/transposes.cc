// Transposes: those that undo each other, and their way past other operators to where they do.
#include <algorithm>

#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/fuse/fusion.h"

namespace smelt {
namespace {

using Order = std::vector<int64_t>;

// What a transpose by a constant does: dimension i of its result is order[i] of its input.
std::optional<Order> OrderOf(const Node& n) {
  if (!n.Is("tfl.transpose")) return std::nullopt;
  std::optional<Order> order = IntsOf(n.input(1));
  if (!order) return std::nullopt;
  // A permutation, or nothing that a transpose can do.
  Order sorted = *order;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return std::nullopt;
  }
  return order;
}

bool IsIdentity(const Order& order) { return std::ranges::is_sorted(order); }

PartialShape Permuted(const PartialShape& s, const Order& order) {
  if (s.rank() != static_cast<int>(order.size())) return {};
  std::vector<int64_t> dims;
  for (const int64_t o : order) dims.push_back(s[static_cast<int>(o)]);
  return PartialShape::Of(dims);
}

Order Inverse(const Order& order) {
  Order out(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    out[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return out;
}

StatusOr<bool> RemoveTranspose(Node& n, Fuser& f) {
  const auto outer = OrderOf(n);
  if (!outer) return false;
  if (IsIdentity(*outer)) {
    f.Replace(&n, n.input(0));
    return true;
  }
  const Node& before = *n.input(0).node;
  const auto inner = OrderOf(before);
  if (!inner || inner->size() != outer->size()) return false;
  Order both;
  for (const int64_t o : *outer) both.push_back((*inner)[static_cast<size_t>(o)]);
  if (IsIdentity(both)) {
    f.Replace(&n, before.input(0));
    return true;
  }
  ASSIGN_OR_RETURN(const Endpoint by,
                   f.Add("tfl.transpose", {before.input(0), IntsConst(both, n, f)}, {}, n));
  f.Replace(&n, by);
  return true;
}

// ---- past operators

constexpr OpSet kPads = {"tfl.pad", "tfl.padv2", "tfl.mirror_pad"};

constexpr OpSet kMovers =
    Union({kLiteUnary, kLiteBinary, kLiteReductions, kPads, {"tfl.concatenation"}});

// How many of the inputs, from the first, are tensors that are transposed alike.
int Tensors(const Node& n) {
  if (n.Is(kLiteBinary)) return 2;
  if (n.Is("tfl.concatenation")) return n.num_inputs();
  return 1;
}

// The order in which every tensor that the operator reads, but constants, is transposed; nothing
// where the operator could not read them as they were.
std::optional<Order> OrderRead(const Node& n) {
  if (!n.Is(kMovers)) return std::nullopt;
  std::optional<Order> order;
  for (int i = 0; i < Tensors(n); ++i) {
    const auto one = OrderOf(*n.input(i).node);
    if (!one) continue;
    if (order && *order != *one) return std::nullopt;
    order = one;
  }
  if (!order) return std::nullopt;
  const int rank = static_cast<int>(order->size());
  for (int i = 0; i < Tensors(n); ++i) {
    const Endpoint e = n.input(i);
    if (OrderOf(*e.node)) continue;
    const auto value = Fuser::Constant(e);
    if (!value || value->rank() > rank) return std::nullopt;
  }
  for (int i = Tensors(n); i < n.num_inputs(); ++i) {
    if (!Fuser::Constant(n.input(i))) return std::nullopt;
  }
  return order;
}

// Would all who read the transpose rather read what it transposes?
bool NobodyNeeds(const Node& transpose, const Order& order) {
  return std::ranges::all_of(transpose.uses(), [&](const Use& use) {
    if (use.is_control()) return false;
    if (const auto other = OrderOf(*use.node)) return *other == Inverse(order);
    const auto read = OrderRead(*use.node);
    return read && *read == order;
  });
}

// A constant operand as it is before the transpose: of as many dimensions, in their order.
StatusOr<Endpoint> OperandBefore(const Tensor& value, const Order& order, const Node& n, Fuser& f) {
  if (value.num_elements() == 1 && value.rank() == 0) return f.Const(value, n);
  std::vector<int64_t> sizes(order.size() - static_cast<size_t>(value.rank()), 1);
  for (int i = 0; i < value.rank(); ++i) sizes.push_back(value.dim(i));
  ASSIGN_OR_RETURN(const Tensor moved, Transposed(value.WithShape(Shape(sizes)), Inverse(order)));
  return f.Const(moved, n);
}

// Axes of the result as axes of what is transposed; nothing where one is out of range.
std::optional<std::vector<int64_t>> AxesBefore(const std::vector<int64_t>& axes,
                                               const Order& order) {
  const auto rank = static_cast<int64_t>(order.size());
  std::vector<int64_t> out;
  for (const int64_t a : axes) {
    const int64_t at = a < 0 ? a + rank : a;
    if (at < 0 || at >= rank) return std::nullopt;
    out.push_back(order[static_cast<size_t>(at)]);
  }
  return out;
}

// The axes that a reduction keeps have their order; without keep_dims its result is transposed no
// more, or by what is left.
StatusOr<bool> PastReduction(Node& n, const Order& order, Fuser& f) {
  const auto axes = IntsOf(n.input(1));
  const auto before = axes ? AxesBefore(*axes, order) : std::nullopt;
  if (!before) return false;
  AttrMap options = OptionsOf(n);
  const Endpoint x = n.input(0).node->input(0);
  const Endpoint at = IntsConst(*before, n, f);
  Order left;  // of the dimensions that stay
  if (n.Bool("keep_dims")) {
    left = order;
  } else {
    std::vector<int64_t> kept;
    for (const int64_t o : order) {
      if (std::ranges::find(*before, o) == before->end()) kept.push_back(o);
    }
    for (const int64_t o : kept) {
      left.push_back(std::ranges::count_if(kept, [&](int64_t k) { return k < o; }));
    }
  }
  if (IsIdentity(left)) {
    ASSIGN_OR_RETURN(const Endpoint by, f.Add(n.op_name(), {x, at}, std::move(options), n));
    f.Replace(&n, by);
    return true;
  }
  const PartialShape shape = Permuted(Fuser::shape({&n, 0}), Inverse(left));
  ASSIGN_OR_RETURN(const Endpoint reduced, f.AddShaped(n.op_name(), {x, at}, std::move(options),
                                                       n.output_types[0], shape, n));
  ASSIGN_OR_RETURN(const Endpoint by,
                   f.Add("tfl.transpose", {reduced, IntsConst(left, n, f)}, {}, n));
  f.Replace(&n, by);
  return true;
}

// op(transpose(x)) -> transpose(op(x)), until the transpose meets another one.
StatusOr<bool> MoveTranspose(Node& n, Fuser& f) {
  const auto order = OrderRead(n);
  if (!order || IsIdentity(*order)) return false;
  for (int i = 0; i < Tensors(n); ++i) {
    const Node& read = *n.input(i).node;
    if (read.Is("tfl.transpose") && !NobodyNeeds(read, *order)) {
      return f.Declined(n, absl::StrCat("others need '", read.name(), "' transposed"));
    }
  }
  if (n.Is(kLiteReductions)) return PastReduction(n, *order, f);
  // Broadcasting may have added dimensions.
  const PartialShape to = Fuser::shape({&n, 0});
  if (to.rank() != static_cast<int>(order->size())) return false;
  AttrMap options = OptionsOf(n);
  if (n.Is("tfl.concatenation")) {
    const auto axis = AxesBefore({n.Int("axis")}, *order);
    if (!axis) return false;
    options.Set("axis", (*axis)[0]);
  }
  std::vector<Endpoint> inputs;
  for (int i = 0; i < n.num_inputs(); ++i) {
    const Endpoint e = n.input(i);
    if (i >= Tensors(n)) {
      inputs.push_back(e);
    } else if (e.node->Is("tfl.transpose")) {
      inputs.push_back(e.node->input(0));
    } else {
      ASSIGN_OR_RETURN(const Endpoint moved, OperandBefore(*Fuser::Constant(e), *order, n, f));
      inputs.push_back(moved);
    }
  }
  if (n.Is(kPads)) {
    // A row for each dimension.
    const auto rows = Fuser::Constant(n.input(1));
    if (rows->rank() != 2 || rows->dim(0) != static_cast<int64_t>(order->size())) return false;
    ASSIGN_OR_RETURN(Tensor moved, Tensor::Make(rows->dtype(), rows->shape()));
    const Order inverse = Inverse(*order);
    const size_t row = rows->bytes() / inverse.size();
    const auto* from = static_cast<const char*>(rows->raw());
    for (size_t i = 0; i < inverse.size(); ++i) {
      std::copy_n(from + static_cast<size_t>(inverse[i]) * row, row,
                  static_cast<char*>(moved.raw()) + i * row);
    }
    inputs[1] = f.Const(moved, n);
  }
  ASSIGN_OR_RETURN(const Endpoint moved,
                   f.AddShaped(n.op_name(), inputs, std::move(options), n.output_types[0],
                               Permuted(to, Inverse(*order)), n));
  ASSIGN_OR_RETURN(const Endpoint by,
                   f.Add("tfl.transpose", {moved, IntsConst(*order, n, f)}, {}, n));
  f.Replace(&n, by);
  return true;
}

// batch_matmul transposes its operands itself.
StatusOr<bool> FuseTransposeIntoBatchMatmul(Node& n, Fuser& f) {
  for (const int i : {0, 1}) {
    const Endpoint e = n.input(i);
    const auto order = OrderOf(*e.node);
    if (!order || order->size() < 2) continue;
    Order swapped = *order;
    std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
    if (!IsIdentity(swapped)) {
      f.Declined(n, absl::StrCat("'", e.node->name(), "' moves more than the last two dimensions"));
      continue;
    }
    if (!Fuser::ReadOnce(e)) {
      f.Declined(n, absl::StrCat("others read '", e.node->name(), "'"));
      continue;
    }
    const absl::string_view option = i == 0 ? "adj_x" : "adj_y";
    n.AttrsToChange().Set(option, !n.Bool(option));
    f.SetInput(&n, i, e.node->input(0));
    return true;
  }
  return false;
}

// A transpose that moves only dimensions of one element.
StatusOr<bool> FuseTransposeIntoReshape(Node& n, Fuser& f) {
  const auto order = OrderOf(n);
  const PartialShape x = Fuser::shape(n.input(0)), to = Fuser::shape({&n, 0});
  if (!order || x.rank() != static_cast<int>(order->size()) || !to.known_rank()) return false;
  Order moved;  // of what is more than one
  for (const int64_t o : *order) {
    if (x[static_cast<int>(o)] != 1) moved.push_back(o);
  }
  if (!IsIdentity(moved)) return false;
  // Beside another one in the same order it goes with that.
  const bool beside = std::ranges::any_of(n.uses(), [&](const Use& use) {
    return !use.is_control() && use.node->Is(kLiteBinary) &&
           OrderOf(*use.node->input(1 - use.input).node) == order;
  });
  if (beside) return false;
  return f.ReplaceByReshape(&n, n.input(0));
}

// A reshape behind a transpose that moves only dimensions of one element.
StatusOr<bool> FuseReshapeIntoTranspose(Node& n, Fuser& f) {
  const Endpoint e = n.input(0);
  const auto order = OrderOf(*e.node);
  const PartialShape from = Fuser::shape(e), to = Fuser::shape({&n, 0});
  if (!order || !from.known_rank() || from.rank() != to.rank() ||
      from.rank() != static_cast<int>(order->size())) {
    return false;
  }
  // A free size is the same in both where there is one.
  const auto is_free = [](int64_t d) { return d < 0; };
  if (std::ranges::count_if(from.dims(), is_free) > 1) return false;
  Order ones, others, moved;  // dimensions of the transpose's input
  for (size_t i = 0; i < order->size(); ++i) {
    (from[static_cast<int>(i)] == 1 ? ones : others).push_back((*order)[i]);
  }
  const PartialShape x = Fuser::shape(e.node->input(0));
  auto one = ones.begin(), other = others.begin();
  for (const int64_t d : to.dims()) {
    auto& next = d == 1 ? one : other;
    if (next == (d == 1 ? ones : others).end()) return false;
    if (d != 1 && x[static_cast<int>(*next)] != d) return false;
    moved.push_back(*next++);
  }
  if (moved == *order) return false;
  if (!Fuser::ReadOnce(e)) return f.Declined(n, "others read what it follows");
  ASSIGN_OR_RETURN(const Endpoint by,
                   f.Add("tfl.transpose", {e.node->input(0), IntsConst(moved, n, f)}, {}, n));
  f.Replace(&n, by);
  return true;
}

// (c * x^T)^T is x * c^T, and a product transposes its weights.
StatusOr<bool> FuseTransposeIntoProduct(Node& n, Fuser& f) {
  const auto order = OrderOf(n);
  const Endpoint e = n.input(0);
  if (!order || *order != Order{1, 0} || !e.node->Is("tfl.fully_connected")) return false;
  const Node& product = *e.node;
  const auto rows = Fuser::Constant(product.input(0));
  if (!rows) return false;
  if (rows->rank() != 2 || Fuser::shape(product.input(1)).rank() != 2) return false;
  if (product.num_inputs() > 2 && !product.input(2).node->Is("tfl.no_value")) {
    return f.Declined(n, "the product has a bias");
  }
  if (!Fuser::ReadOnce(e)) return f.Declined(n, "others read what it follows");
  std::vector<Endpoint> inputs(product.inputs().begin(), product.inputs().end());
  std::swap(inputs[0], inputs[1]);
  ASSIGN_OR_RETURN(const Endpoint by, f.Add("tfl.fully_connected", inputs, OptionsOf(product), n));
  f.Replace(&n, by);
  return true;
}

constexpr Fusion kTransposeFusions[] = {
    {"RemoveTranspose",
     {"tfl.transpose"},
     RemoveTranspose,
     "transpose(transpose(x)) -> transpose(x), or x"},
    {"FuseTransposeIntoBatchMatmul",
     {"tfl.batch_matmul"},
     FuseTransposeIntoBatchMatmul,
     "batch_matmul(x, transpose(y)) -> batch_matmul(x, y) with adj_y"},
    {"MoveTranspose", kMovers, MoveTranspose,
     "relu(transpose(x)) -> transpose(relu(x)), until transposes meet"},
    {"FuseTransposeIntoProduct",
     {"tfl.transpose"},
     FuseTransposeIntoProduct,
     "transpose(fully_connected(c, x)) -> fully_connected(x, c)"},
    {"FuseTransposeIntoReshape",
     {"tfl.transpose"},
     FuseTransposeIntoReshape,
     "transpose(x) of dimensions of one -> reshape(x)"},
    {"FuseReshapeIntoTranspose",
     {"tfl.reshape"},
     FuseReshapeIntoTranspose,
     "reshape(transpose(x)) that moves dimensions of one -> transpose(x)"},
};

}  // namespace

std::span<const Fusion> TransposeFusions() { return kTransposeFusions; }

}  // namespace smelt
