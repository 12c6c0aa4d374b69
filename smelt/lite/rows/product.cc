// Products of matrices, and what is one.
#include <algorithm>

#include "smelt/graph/einsum_equation.h"
#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/rows/rows.h"

namespace smelt {
namespace {

bool IsIdentity(std::span<const int64_t> order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

StatusOr<Endpoint> Permuted(Endpoint e, const std::vector<int64_t>& order, Legalizer& l) {
  if (IsIdentity(order)) return e;
  if (const auto value = l.Constant(e)) {
    ASSIGN_OR_RETURN(const Tensor moved, Transposed(*value, order));
    return l.Const(moved);
  }
  const PartialShape from = l.shape(e);
  std::vector<int64_t> dims;
  for (const int64_t o : order) dims.push_back(from.known_rank() ? from[static_cast<int>(o)] : -1);
  return l.Add("tfl.transpose", {e, l.Ints(order)}, {}, {l.type(e), PartialShape::Of(dims)});
}

// At most one of the sizes is free.
StatusOr<Endpoint> Reshaped(Endpoint e, const std::vector<int64_t>& sizes, Legalizer& l) {
  std::vector<int64_t> given;
  for (const int64_t s : sizes) given.push_back(std::max<int64_t>(s, -1));
  if (std::ranges::count(given, -1) > 1) {
    return Unimplemented("more than one of its sizes is free");
  }
  const PartialShape to = PartialShape::Of(given);
  if (l.shape(e) == to) return e;
  if (const auto value = l.Constant(e)) return l.Const(value->WithShape(Shape(given)));
  return l.Add("tfl.reshape", {e, l.Ints(given)}, Options({{"new_shape", given}}), {l.type(e), to});
}

// `parts`: scalars that are computed; `sizes`: what is known of them.
StatusOr<Endpoint> ReshapedTo(Endpoint e, const std::vector<Endpoint>& parts,
                              const std::vector<int64_t>& sizes, Legalizer& l) {
  const auto count = static_cast<int64_t>(parts.size());
  ASSIGN_OR_RETURN(
      const Endpoint shape,
      l.Add("tfl.pack", parts, Options({{"values_count", count}, {"axis", int64_t{0}}}),
            {Dtype::kInt32, PartialShape::Of({count})}));
  return l.Add("tfl.reshape", {e, shape}, {}, {l.type(e), PartialShape::Of(sizes)});
}

// Operands may have types of their own, and the result one, too.
Status CheckFloats(const Node& n) {
  for (const Dtype t : {n.input_types[0], n.input_types[1], n.output_types[0]}) {
    if (t != Dtype::kFloat) return Unimplemented("its operator does not take ", DtypeName(t));
  }
  return OkStatus();
}

LiteEndpoints MatMul(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckFloats(n));
  Endpoint a = n.input(0), b = n.input(1);
  // This operator transposes what is computed itself.
  const bool as_it_is = n.Bool("transpose_b") && (l.Constant(a) || !n.Bool("transpose_a"));
  if (!l.Constant(b) && !as_it_is) {
    return One(l.Add("tfl.batch_matmul", {a, b},
                     Options({{"adj_x", n.Bool("transpose_a")}, {"adj_y", n.Bool("transpose_b")}}),
                     l.OutputOf(n)));
  }
  if (n.Bool("transpose_a")) {
    ASSIGN_OR_RETURN(a, Permuted(a, {1, 0}, l));
  }
  if (!n.Bool("transpose_b")) {
    ASSIGN_OR_RETURN(b, Permuted(b, {1, 0}, l));
  }
  return One(l.Add("tfl.fully_connected", {a, b, l.NoValue()}, {}, l.OutputOf(n)));
}

LiteEndpoints BatchMatMul(Node& n, Legalizer& l) {
  // Whose sums are int32: as they are, of numbers without scales. Keras' quantized layers.
  const bool whole = n.input_types[0] == Dtype::kInt8 && n.input_types[1] == Dtype::kInt8 &&
                     n.output_types[0] == Dtype::kInt32;
  if (!whole) RETURN_IF_ERROR(CheckFloats(n));
  const Endpoint x = n.input(0);
  Endpoint y = n.input(1);
  const int rank_x = l.rank(x), rank_y = l.rank(y);
  if (rank_x < 2 || rank_y < 2) return Unimplemented("the ranks of its inputs are not known");
  const bool adj_x = n.Bool("adj_x"), adj_y = n.Bool("adj_y");
  if (!whole && rank_y == 2 && !adj_x && l.Constant(y)) {
    if (!adj_y) {
      ASSIGN_OR_RETURN(y, Permuted(y, {1, 0}, l));
    }
    return One(l.Add("tfl.fully_connected", {x, y, l.NoValue()},
                     Options({{"keep_num_dims", rank_x > 2}}), l.OutputOf(n)));
  }
  return One(l.Add("tfl.batch_matmul", {x, y}, Options({{"adj_x", adj_x}, {"adj_y", adj_y}}),
                   l.OutputOf(n)));
}

// What an einsum of two operands means for each label.
struct Contraction {
  EinsumLabels batch, left, right, summed;
};

bool Has(const EinsumLabels& labels, int label) {
  return std::ranges::find(labels, label) != labels.end();
}
std::vector<int64_t> Places(const EinsumLabels& order, const EinsumLabels& of) {
  std::vector<int64_t> out;
  for (const int label : order) out.push_back(std::ranges::find(of, label) - of.begin());
  return out;
}

// The labels of each operand, ellipses spelled out.
StatusOr<std::vector<EinsumLabels>> SpelledOut(const EinsumEquation& e, const Node& n,
                                               const Legalizer& l, EinsumLabels* output) {
  int widest = 0;
  for (size_t i = 0; i < e.inputs.size(); ++i) {
    const int rank = l.rank(n.input(static_cast<int>(i)));
    if (rank < 0) return Unimplemented("the ranks of its inputs are not known");
    if (!Has(e.inputs[i], kEllipsis)) continue;
    widest = std::max(widest, rank + 1 - static_cast<int>(e.inputs[i].size()));
  }
  const auto spell = [&](const EinsumLabels& from, int dims) {
    EinsumLabels to;
    for (const int label : from) {
      if (label != kEllipsis) {
        to.push_back(label);
        continue;
      }
      for (int k = dims - 1; k >= 0; --k) to.push_back(kEllipsis + k);
    }
    return to;
  };
  std::vector<EinsumLabels> out;
  for (size_t i = 0; i < e.inputs.size(); ++i) {
    const int rank = l.rank(n.input(static_cast<int>(i)));
    out.push_back(spell(e.inputs[i], rank + 1 - static_cast<int>(e.inputs[i].size())));
  }
  *output = spell(e.output, widest);
  return out;
}

// What is in one operand alone, and not in the result, is summed before.
StatusOr<Endpoint> SummedAlone(Endpoint e, EinsumLabels& labels, const EinsumLabels& other,
                               const EinsumLabels& result, Legalizer& l) {
  std::vector<int64_t> axes, dims;
  EinsumLabels kept;
  const PartialShape shape = l.shape(e);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (!Has(other, labels[i]) && !Has(result, labels[i])) {
      axes.push_back(static_cast<int64_t>(i));
      continue;
    }
    kept.push_back(labels[i]);
    dims.push_back(std::max<int64_t>(shape[static_cast<int>(i)], -1));
  }
  if (axes.empty()) return e;
  labels = kept;
  return l.Add("tfl.sum", {e, l.Ints(axes)}, Options({{"keep_dims", false}}),
               {l.type(e), PartialShape::Of(dims)});
}

}  // namespace

LiteEndpoints Contracted(Node& n, Legalizer& l, const EinsumLabels& first,
                         const EinsumLabels& second, const EinsumLabels& result) {
  Contraction c;
  for (const EinsumLabels& labels : {first, second, result}) {
    for (const int label : labels) {
      if (std::ranges::count(labels, label) > 1) return Unimplemented("it takes a diagonal");
    }
  }
  EinsumLabels a = first, b = second;
  ASSIGN_OR_RETURN(const Endpoint left, SummedAlone(n.input(0), a, second, result, l));
  ASSIGN_OR_RETURN(const Endpoint right, SummedAlone(n.input(1), b, first, result, l));
  for (const int label : a) {
    const bool other = Has(b, label), out = Has(result, label);
    (!other ? c.left : out ? c.batch : c.summed).push_back(label);
  }
  for (const int label : b) {
    if (!Has(a, label)) c.right.push_back(label);
  }
  const PartialShape sa = l.shape(left), sb = l.shape(right);
  const auto size = [&](int label) -> int64_t {
    // One operand may leave free what the other knows.
    const auto at = std::ranges::find(a, label), in_b = std::ranges::find(b, label);
    const int64_t known = at == a.end() ? -1 : sa[static_cast<int>(at - a.begin())];
    return known >= 0 || in_b == b.end() ? known : sb[static_cast<int>(in_b - b.begin())];
  };
  for (const int label : a) {
    if (!Has(b, label)) continue;
    const int64_t one = sa[static_cast<int>(std::ranges::find(a, label) - a.begin())];
    const int64_t two = sb[static_cast<int>(std::ranges::find(b, label) - b.begin())];
    if (one >= 0 && two >= 0 && one != two) return Unimplemented("it broadcasts a dimension");
  }
  const auto sizes = [&](const EinsumLabels& labels) {
    std::vector<int64_t> out;
    for (const int label : labels) out.push_back(std::max<int64_t>(size(label), -1));
    return out;
  };
  const auto product = [&](const EinsumLabels& labels) -> int64_t {
    int64_t out = 1;
    for (const int label : labels) {
      if (size(label) < 0) return -1;
      out *= size(label);
    }
    return out;
  };
  const auto joined = [](std::initializer_list<const EinsumLabels*> parts) {
    EinsumLabels out;
    for (const auto* p : parts) out.insert(out.end(), p->begin(), p->end());
    return out;
  };
  // The size of a dimension when it runs.
  const auto computed = [&](int label) -> StatusOr<Endpoint> {
    const bool first_has = Has(a, label);
    const EinsumLabels& labels = first_has ? a : b;
    return SizeOf(first_has ? left : right, std::ranges::find(labels, label) - labels.begin(), l);
  };
  // One dimension for each group of labels that stand side by side.
  const auto grouped = [&](Endpoint e, const std::vector<EinsumLabels>& from,
                           const std::vector<EinsumLabels>& groups) -> StatusOr<Endpoint> {
    if (from == groups) return e;
    std::vector<int64_t> dims;
    for (const EinsumLabels& g : groups) dims.push_back(product(g));
    if (std::ranges::count_if(dims, [](int64_t d) { return d < 0; }) < 2) {
      return Reshaped(e, dims, l);
    }
    std::vector<int64_t> number_of;  // of each dimension: its group's
    EinsumLabels in_order;
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const int label : groups[g]) {
        number_of.push_back(static_cast<int64_t>(g));
        in_order.push_back(label);
      }
    }
    if (groups.size() < from.size() && number_of.size() == from.size() &&
        std::ranges::equal(from, in_order, [](const EinsumLabels& one, int label) {
          return one.size() == 1 && one[0] == label;
        })) {
      // What stands side by side is multiplied, of all groups at once.
      const auto count = static_cast<int64_t>(groups.size());
      ASSIGN_OR_RETURN(const Endpoint whole, l.ShapeOf(e));
      ASSIGN_OR_RETURN(const Endpoint shape,
                       l.Add("tfl.unsorted_segment_prod", {whole, l.Ints(number_of), l.Int(count)},
                             {}, {Dtype::kInt32, PartialShape::Of({count})}));
      return l.Add("tfl.reshape", {e, shape}, {}, {l.type(e), PartialShape::Of(dims)});
    }
    std::vector<Endpoint> parts;
    const auto rest = std::ranges::find_if(dims, [](int64_t d) { return d < 0; });
    for (const EinsumLabels& g : groups) {
      // One of them is what the others leave.
      if (static_cast<ptrdiff_t>(parts.size()) == rest - dims.begin()) {
        parts.push_back(l.Int(-1));
        continue;
      }
      // Sizes that are known are one factor.
      int64_t number = 1;
      std::optional<Endpoint> whole;
      for (const int label : g) {
        if (size(label) >= 0) {
          number *= size(label);
          continue;
        }
        ASSIGN_OR_RETURN(const Endpoint one, computed(label));
        if (!whole) {
          whole = one;
          continue;
        }
        ASSIGN_OR_RETURN(
            whole, l.Add("tfl.mul", {*whole, one}, {}, {Dtype::kInt32, PartialShape::Of({})}));
      }
      if (whole && number != 1) {
        ASSIGN_OR_RETURN(whole, l.Add("tfl.mul", {*whole, l.Int(number)}, {},
                                      {Dtype::kInt32, PartialShape::Of({})}));
      }
      parts.push_back(whole ? *whole : l.Int(number));
    }
    return ReshapedTo(e, parts, dims, l);
  };
  const auto each = [](const EinsumLabels& labels) {
    std::vector<EinsumLabels> out;
    for (const int label : labels) out.push_back({label});
    return out;
  };
  const EinsumLabels made = joined({&c.batch, &c.left, &c.right});
  Endpoint out;
  std::vector<EinsumLabels> flat;  // what the dimensions of the product are
  if (c.batch.empty() && l.Constant(right)) {
    // Rows times a matrix.
    ASSIGN_OR_RETURN(Endpoint rows, Permuted(left, Places(joined({&c.left, &c.summed}), a), l));
    flat = each(c.left);
    flat.push_back(c.summed);
    ASSIGN_OR_RETURN(rows, grouped(rows, each(joined({&c.left, &c.summed})), flat));
    ASSIGN_OR_RETURN(Endpoint weights,
                     Permuted(right, Places(joined({&c.right, &c.summed}), b), l));
    ASSIGN_OR_RETURN(weights, Reshaped(weights, {product(c.right), product(c.summed)}, l));
    flat.back() = c.right;
    std::vector<int64_t> dims = sizes(c.left);
    dims.push_back(product(c.right));
    ASSIGN_OR_RETURN(out, l.Add("tfl.fully_connected", {rows, weights, l.NoValue()},
                                Options({{"keep_num_dims", dims.size() != 2}}),
                                {Dtype::kFloat, PartialShape::Of(dims)}));
  } else {
    // Without a batch, dimensions of the first operand alone are one: the second broadcasts.
    const bool apart = c.batch.empty() && !c.left.empty() && c.left.size() <= 4;
    const auto side = [&](Endpoint from, const EinsumLabels& labels, const EinsumLabels& first,
                          const EinsumLabels& second, bool split) -> StatusOr<Endpoint> {
      const EinsumLabels order = joined({&c.batch, &first, &second});
      ASSIGN_OR_RETURN(const Endpoint moved, Permuted(from, Places(order, labels), l));
      std::vector<EinsumLabels> groups = each(split ? first : c.batch);
      if (!split) groups.push_back(first);
      groups.push_back(second);
      return grouped(moved, each(order), groups);
    };
    ASSIGN_OR_RETURN(const Endpoint x, side(left, a, c.left, c.summed, apart));
    // The operator transposes by itself, where that saves a transposition.
    const bool transposed = IsIdentity(Places(joined({&c.batch, &c.right, &c.summed}), b));
    ASSIGN_OR_RETURN(const Endpoint y, transposed ? side(right, b, c.right, c.summed, false)
                                                  : side(right, b, c.summed, c.right, false));
    flat = each(apart ? c.left : c.batch);
    std::vector<int64_t> dims = sizes(apart ? c.left : c.batch);
    if (!apart) {
      flat.push_back(c.left);
      dims.push_back(product(c.left));
    }
    flat.push_back(c.right);
    dims.push_back(product(c.right));
    ASSIGN_OR_RETURN(out, l.Add("tfl.batch_matmul", {x, y}, Options({{"adj_y", transposed}}),
                                {Dtype::kFloat, PartialShape::Of(dims)}));
  }
  ASSIGN_OR_RETURN(out, grouped(out, flat, each(made)));
  ASSIGN_OR_RETURN(out, Permuted(out, Places(result, made), l));
  return std::vector<Endpoint>{out};
}

namespace {

// An equation says how many dimensions its operands have.
Status StateRanks(const EinsumEquation& e, Node& n, Legalizer& l) {
  for (size_t i = 0; i < e.inputs.size(); ++i) {
    const Endpoint in = n.input(static_cast<int>(i));
    if (l.rank(in) >= 0 || Has(e.inputs[i], kEllipsis)) continue;
    const auto rank = static_cast<int64_t>(e.inputs[i].size());
    ASSIGN_OR_RETURN(const Endpoint shape,
                     l.Add("tfl.shape", {in}, Options({{"out_type", Dtype::kInt32}}),
                           {Dtype::kInt32, PartialShape::Of({rank})}));
    const std::vector<int64_t> free(static_cast<size_t>(rank), -1);
    ASSIGN_OR_RETURN(const Endpoint same,
                     l.Add("tfl.reshape", {in, shape}, {}, {l.type(in), PartialShape::Of(free)}));
    l.graph().SetInput(&n, static_cast<int>(i), same);
  }
  return OkStatus();
}

LiteEndpoints Einsum(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  ASSIGN_OR_RETURN(const EinsumEquation e, ParseEinsum(n.String("equation")));
  RETURN_IF_ERROR(StateRanks(e, n, l));
  if (n.num_inputs() > 2) return Unimplemented("it is of more than two operands");
  EinsumLabels result;
  ASSIGN_OR_RETURN(std::vector<EinsumLabels> in, SpelledOut(e, n, l, &result));
  if (n.num_inputs() == 2) return Contracted(n, l, in[0], in[1], result);
  for (const EinsumLabels& labels : {in[0], result}) {
    for (const int label : labels) {
      if (std::ranges::count(labels, label) > 1) return Unimplemented("it takes a diagonal");
    }
  }
  ASSIGN_OR_RETURN(const Endpoint summed, SummedAlone(n.input(0), in[0], {}, result, l));
  return One(Permuted(summed, Places(result, in[0]), l));
}

constexpr ExportRow kProductRows[] = {
    {"MatMul", MatMul},
    {"SparseMatMul", MatMul},
    {"BatchMatMul", BatchMatMul},
    {"BatchMatMulV2", BatchMatMul},
    {"BatchMatMulV3", BatchMatMul},
    {"Einsum", Einsum},
};

}  // namespace

std::span<const ExportRow> ProductExport() { return kProductRows; }

}  // namespace smelt
