#include "smelt/optimize/scan/hoist.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/copy_node.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/values.h"

namespace smelt {
namespace {

using Port = std::pair<int, int>;
Port PortOf(Endpoint e) { return {e.node->id(), e.port}; }
Dtype TypeOf(Endpoint e) { return e.node->output_types[static_cast<size_t>(e.port)]; }

constexpr OpSet kSums = {"AddV2", "Add"};

class Hoister {
 public:
  explicit Hoister(ScanParts& parts) : p_(parts) {
    for (const ScanInput& in : p_.rows) {
      const PartialShape shape = ShapeOf(in.from);
      rows_[{in.arg->id(), 0}] = {in.from, shape.known_rank() ? shape.rank() - 1 : -1};
    }
    for (const ScanInput& in : p_.rest) fixed_[{in.arg->id(), 0}] = in.from;
  }

  Status Run() {
    RETURN_IF_ERROR(SplitProducts());
    RETURN_IF_ERROR(MoveBiases());
    ASSIGN_OR_RETURN(const std::vector<Node*> order, p_.body.TopologicalOrder());
    for (Node* n : order) RETURN_IF_ERROR(Visit(n));
    return ReadFromOutside(order);
  }

 private:
  // For all iterations at once.
  struct Rows {
    Endpoint from;
    int rank;  // of one row; -1: not known
  };

  const Rows* RowsOf(Endpoint e) const {
    const auto it = rows_.find(PortOf(e));
    return it == rows_.end() ? nullptr : &it->second;
  }
  bool IsFixed(Endpoint e) const { return e.node->Is("Const") || fixed_.contains(PortOf(e)); }
  // A fixed value as the caller has it.
  StatusOr<Endpoint> Fixed(Endpoint e) {
    const auto it = fixed_.find(PortOf(e));
    if (it != fixed_.end()) return it->second;
    ASSIGN_OR_RETURN(Node * copy, AddCopy(p_.caller, *e.node, Name(*e.node)));
    return fixed_[PortOf(e)] = Endpoint{copy, 0};
  }
  std::string Name(const Node& n) const { return absl::StrCat(p_.name, "/", n.name()); }

  // What is known of a value's shape without inference: what an EnsureShape says.
  static PartialShape ShapeOf(Endpoint e) {
    const Attr* shape = e.node->Is("EnsureShape") ? e.node->Find("shape") : nullptr;
    const auto* known = shape == nullptr ? nullptr : shape->get<PartialShape>();
    return known == nullptr ? PartialShape() : *known;
  }
  // Of a row, the size of its last dimension; -1: not known.
  int64_t WidthOf(Endpoint row) const {
    const Rows* x = RowsOf(row);
    const PartialShape shape = x == nullptr ? PartialShape() : ShapeOf(x->from);
    return shape.known_rank() && shape.rank() == 3 ? std::max<int64_t>(shape[2], -1) : -1;
  }

  // The product of rows and states side by side with a constant matrix is the sum of theirs with
  // parts of it, of which those of rows may be moved out: cells of version 1 have one matrix.
  Status SplitProducts() {
    for (Node* n : p_.body.Nodes()) {
      if (!n->Is("MatMul") || n->Bool("transpose_a") || n->Bool("transpose_b")) continue;
      const Node& parts = *n->input(0).node;
      const auto weights = ConstantTensor(*n->input(1).node);
      if (!parts.Is("ConcatV2") || parts.num_inputs() != 3 || parts.uses().size() != 1 ||
          !weights || weights->rank() != 2) {
        continue;
      }
      const auto axis = ConstantTensor(*parts.input(2).node);
      const auto along = axis ? IntVectorOf(*axis) : std::nullopt;
      if (!along || !along->complete() || (along->values[0] != 1 && along->values[0] != -1))
        continue;
      const int64_t left = WidthOf(parts.input(0)), right = WidthOf(parts.input(1));
      const int64_t rows = weights->dim(0), at = left >= 0 ? left : rows - right;
      if ((left < 0) == (right < 0) || at < 0 || at > rows) continue;
      Endpoint product[2];
      for (const int side : {0, 1}) {
        const Tensor part = side == 0 ? weights->Rows(0, at) : weights->Rows(at, rows);
        Node* w = p_.body.AddConst(n->input(1).node->name(), part);
        ASSIGN_OR_RETURN(product[side].node,
                         p_.body.Add(n->name(), "MatMul", {parts.input(side), {w, 0}}, n->attrs()));
        product[side].node->EraseAttr("_class");
      }
      AttrMap attrs;
      attrs.Set("T", TypeOf({n, 0}));
      ASSIGN_OR_RETURN(Node * sum,
                       p_.body.Add(n->name(), "AddV2", {product[0], product[1]}, attrs));
      p_.body.ReplaceAllUses({n, 0}, {sum, 0});
      p_.body.ReplaceControlUses(n, sum);
      p_.body.Remove(n);
    }
    return OkStatus();
  }

  // A bias that is added to the sum of a row's product and something else is added to the product:
  // both may be moved out then.
  Status MoveBiases() {
    for (Node* n : p_.body.Nodes()) {
      const bool bias_add = n->Is("BiasAdd") && n->String("data_format", "NHWC") == "NHWC";
      if (!bias_add && !n->Is(kSums)) continue;
      for (const int side : {0, 1}) {
        if (bias_add && side == 1) continue;
        Node* sum = n->input(side).node;
        const Endpoint bias = n->input(1 - side);
        if (!sum->Is(kSums) || sum->uses().size() != 1 || !IsFixed(bias)) continue;
        const auto product = std::ranges::find_if(
            sum->inputs(), [&](Endpoint e) { return IsProductOfWidth(e, bias); });
        if (product == sum->inputs().end()) continue;
        const int i = static_cast<int>(product - sum->inputs().begin());
        const Endpoint row = *product;
        p_.body.ReplaceAllUses({n, 0}, {sum, 0});
        p_.body.ReplaceControlUses(n, sum);
        p_.body.SetInput(n, side, row);
        p_.body.SetInput(sum, i, {n, 0});
        break;
      }
    }
    return OkStatus();
  }

  // Is it a product of a row and a constant matrix with as many columns as the bias has elements?
  bool IsProductOfWidth(Endpoint e, Endpoint bias) const {
    const Node& n = *e.node;
    if (!n.Is("MatMul") || n.uses().size() != 1 || RowsOf(n.input(0)) == nullptr) return false;
    const TensorValue* weights = StatedConstant(*n.input(1).node);
    const TensorValue* vector = StatedConstant(*bias.node);
    if (weights == nullptr || vector == nullptr) return false;
    const PartialShape& w = weights->shape;
    const PartialShape& b = vector->shape;
    return w.rank() == 2 && b.rank() == 1 && b[0] == w[n.Bool("transpose_b") ? 0 : 1];
  }

  Status Visit(Node* n) {
    if (n->num_outputs() == 0 || n->Is("_Arg") || n->Is("Const")) return OkStatus();
    if (std::ranges::all_of(n->inputs(), [&](Endpoint e) { return IsFixed(e); })) {
      std::vector<Endpoint> inputs;
      for (const Endpoint& e : n->inputs()) {
        ASSIGN_OR_RETURN(inputs.emplace_back(), Fixed(e));
      }
      ASSIGN_OR_RETURN(Node * copy, Copy(*n, inputs));
      for (int p = 0; p < n->num_outputs(); ++p) fixed_[{n->id(), p}] = {copy, p};
      return OkStatus();
    }
    if (n->Is("MatMul")) return VisitProduct(n);
    if (n->Is("BiasAdd")) return VisitBias(n);
    if (n->Is("Split")) return VisitSplit(n);
    if (n->Is(kElementwiseOps) && n->num_outputs() == 1) return VisitElementwise(n);
    return OkStatus();
  }

  StatusOr<Node*> Copy(const Node& n, std::span<const Endpoint> inputs) {
    ASSIGN_OR_RETURN(Node * copy, AddCopy(p_.caller, n, Name(n)));
    p_.caller.SetInputs(copy, inputs);
    copy->EraseAttr("_output_shapes");
    copy->EraseAttr("_class");
    p_.caller.SetControlInputs(copy, p_.waits);
    return copy;
  }
  void SetRows(const Node& n, int port, Endpoint from, int rank) {
    rows_[{n.id(), port}] = {from, rank};
  }

  Status VisitProduct(Node* n) {
    const Rows* x = RowsOf(n->input(0));
    if (x == nullptr || !IsFixed(n->input(1)) || n->Bool("transpose_a")) return OkStatus();
    const Endpoint from = x->from;
    ASSIGN_OR_RETURN(const Endpoint w, Fixed(n->input(1)));
    AttrMap attrs;
    attrs.Set("T", TypeOf(from));
    attrs.Set("adj_x", false);
    attrs.Set("adj_y", n->Bool("transpose_b"));
    ASSIGN_OR_RETURN(Node * all,
                     p_.caller.Add(Name(*n), "BatchMatMulV2", {from, w}, std::move(attrs)));
    p_.caller.SetControlInputs(all, p_.waits);
    SetRows(*n, 0, {all, 0}, 2);
    return OkStatus();
  }

  Status VisitBias(Node* n) {
    const Rows* x = RowsOf(n->input(0));
    if (x == nullptr || x->rank < 2 || !IsFixed(n->input(1)) ||
        n->String("data_format", "NHWC") != "NHWC") {
      return OkStatus();
    }
    const Rows rows = *x;
    ASSIGN_OR_RETURN(const Endpoint bias, Fixed(n->input(1)));
    ASSIGN_OR_RETURN(Node * all, Copy(*n, std::vector<Endpoint>{rows.from, bias}));
    SetRows(*n, 0, {all, 0}, rows.rank);
    return OkStatus();
  }

  Status VisitSplit(Node* n) {
    const Rows* x = RowsOf(n->input(1));
    const auto axis = ConstantTensor(*n->input(0).node);
    if (x == nullptr || x->rank < 0 || !axis || axis->rank() != 0) return OkStatus();
    const int32_t at = axis->data<int32_t>()[0];
    if (at < -x->rank || at >= x->rank) return OkStatus();
    const Rows rows = *x;
    Node* dim = p_.caller.AddConst(absl::StrCat(Name(*n), "/axis"),
                                   Tensor::Scalar<int32_t>(at < 0 ? at : at + 1));
    ASSIGN_OR_RETURN(Node * all, Copy(*n, std::vector<Endpoint>{{dim, 0}, rows.from}));
    for (int p = 0; p < n->num_outputs(); ++p) SetRows(*n, p, {all, p}, rows.rank);
    return OkStatus();
  }

  // Operands of all rows broadcast against each other as those of one row do where their ranks are
  // equal, or the other is a constant of no higher rank.
  Status VisitElementwise(Node* n) {
    int rank = -1;
    for (const Endpoint& e : n->inputs()) {
      const Rows* x = RowsOf(e);
      if (x == nullptr) continue;
      if (x->rank < 0 || (rank >= 0 && x->rank != rank)) return OkStatus();
      rank = x->rank;
    }
    if (rank < 0) return OkStatus();
    std::vector<Endpoint> inputs;
    for (const Endpoint& e : n->inputs()) {
      if (const Rows* x = RowsOf(e)) {
        inputs.push_back(x->from);
        continue;
      }
      const TensorValue* value = StatedConstant(*e.node);
      if (value == nullptr || !value->shape.known_rank() || value->shape.rank() > rank) {
        return OkStatus();
      }
      ASSIGN_OR_RETURN(inputs.emplace_back(), Fixed(e));
    }
    ASSIGN_OR_RETURN(Node * all, Copy(*n, inputs));
    SetRows(*n, 0, {all, 0}, rank);
    return OkStatus();
  }

  // What stays reads what was moved as arguments.
  Status ReadFromOutside(const std::vector<Node*>& order) {
    for (Node* n : order) {
      if (n->Is("_Arg") || n->Is("Const")) continue;
      for (int p = 0; p < n->num_outputs(); ++p) {
        const auto row = rows_.find({n->id(), p});
        const auto fixed = fixed_.find({n->id(), p});
        const bool moved = row != rows_.end() || fixed != fixed_.end();
        if (!moved || n->NumUses(p) == 0) continue;
        const bool stays = std::ranges::any_of(n->uses(), [&](const Use& use) {
          return !use.is_control() && use.port() == p && !Moved(*use.node);
        });
        if (!stays) continue;
        const Endpoint from = row != rows_.end() ? row->second.from : fixed->second;
        ASSIGN_OR_RETURN(Node * arg, AddScanArg(p_.body, from));
        p_.body.ReplaceAllUses({n, p}, {arg, 0});
        (row != rows_.end() ? p_.rows : p_.rest).push_back({arg, from});
      }
    }
    return OkStatus();
  }

  bool Moved(const Node& n) const {
    return n.num_outputs() > 0 && (rows_.contains({n.id(), 0}) || fixed_.contains({n.id(), 0}));
  }

  ScanParts& p_;
  absl::flat_hash_map<Port, Rows> rows_;       // by what the body has for one iteration
  absl::flat_hash_map<Port, Endpoint> fixed_;  // the caller's, by what the body has
};

}  // namespace

StatusOr<Node*> AddScanArg(Graph& body, Endpoint from) {
  AttrMap attrs;
  attrs.Set("T", BaseType(TypeOf(from)));
  attrs.Set("index", int64_t{0});
  return body.Add("_scan_arg", "_Arg", {}, std::move(attrs));
}

Status Hoist(ScanParts& parts) { return Hoister(parts).Run(); }

}  // namespace smelt
