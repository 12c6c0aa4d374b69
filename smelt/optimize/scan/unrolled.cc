// A loop that was unrolled, found by what it computes: Keras' unroll=True, static_rnn of version 1.
#include <algorithm>
#include <map>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/copy_node.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/optimize/passes.h"
#include "smelt/optimize/scan/raised_loop.h"
#include "smelt/optimize/scan/turns.h"

namespace smelt {
namespace {

Dtype UnrolledType(Endpoint e) {
  return BaseType(e.node->output_types[static_cast<size_t>(e.port)]);
}

// The loop that turns come to.
class TurnRoller {
 public:
  TurnRoller(Graph& graph, const Turns& turns) : graph_(graph), t_(turns) {}

  StatusOr<RaisedLoop> Raise() {
    RETURN_IF_ERROR(AddLoop());
    RETURN_IF_ERROR(AddOutputs());
    for (int t = t_.first; t <= t_.last; ++t) {
      for (Node* n : t_.nodes) {
        if (const Endpoint same = t_.InTurn({n, 0}, t); same.node != nullptr) {
          loop_.old.push_back(same.node);
        }
      }
    }
    return std::move(loop_);
  }

 private:
  std::string Name(absl::string_view what) const {
    return absl::StrCat(t_.sources[0]->name(), "/rolled/", what);
  }
  StatusOr<Endpoint> Add(absl::string_view what, absl::string_view op,
                         const std::vector<Endpoint>& inputs, AttrMap attrs) {
    ASSIGN_OR_RETURN(Node * n, graph_.Add(Name(what), op, inputs, std::move(attrs)));
    loop_.added.push_back(n);
    return Endpoint{n, 0};
  }
  Endpoint AddConst(absl::string_view what, const Tensor& value) {
    loop_.added.push_back(graph_.AddConst(Name(what), value));
    return {loop_.added.back(), 0};
  }
  static AttrMap OneType(absl::string_view name, Dtype t) {
    AttrMap attrs;
    attrs.Set(name, t);
    return attrs;
  }
  static AttrMap ListAttrs(Dtype t) {
    AttrMap attrs = OneType("element_dtype", t);
    attrs.Set("shape_type", Dtype::kInt32);
    return attrs;
  }

  // The slices that the turns read, as one tensor.
  StatusOr<Endpoint> AddRows(Node* source) {
    if (source->Int("axis") == 0 && !t_.backwards && t_.length() == t_.turns)
      return source->input(0);
    std::vector<Endpoint> slices;
    for (int t = t_.first; t <= t_.last; ++t) slices.push_back(t_.SliceOf(source, t));
    AttrMap attrs = OneType("T", source->output_types[0]);
    attrs.Set("N", static_cast<int64_t>(slices.size()));
    attrs.Set("axis", int64_t{0});
    return Add("rows", "Pack", slices, std::move(attrs));
  }

  // The size of a slice's last dimension, where the turn puts it beside a value of known size in
  // front of a matrix; -1: it does not.
  int64_t WidthOf(const Node* source, const ShapeTable& shapes) const {
    for (const Node* n : t_.nodes) {
      if (!n->Is("MatMul") || n->Bool("transpose_a") || n->Bool("transpose_b")) continue;
      const Node& parts = *n->input(0).node;
      const TensorValue* weights = StatedConstant(*n->input(1).node);
      if (!parts.Is("ConcatV2") || parts.num_inputs() != 3 || weights == nullptr ||
          weights->shape.rank() != 2) {
        continue;
      }
      for (const int side : {0, 1}) {
        const Endpoint other = parts.input(1 - side);
        const auto state = std::ranges::find(t_.taken, other);
        // At least two turns follow each other, which give what they take.
        const PartialShape& shape = shapes.of(
            state == t_.taken.end() ? other
                                    : t_.made[static_cast<size_t>(state - t_.taken.begin())]);
        if (parts.input(side).node == source && shape.known_rank() && shape.rank() == 2 &&
            shape[1] >= 0 && weights->shape[0] >= shape[1]) {
          return weights->shape[0] - shape[1];
        }
      }
    }
    return -1;
  }

  Status AddLoop() {
    ASSIGN_OR_RETURN(const ShapeTable shapes, InferShapes(graph_, {}));
    loop_.where = t_.nodes[0];
    loop_.cond = std::make_unique<Graph>(graph_.library());
    loop_.body = std::make_unique<Graph>(graph_.library());
    const Endpoint zero = AddConst("zero", Tensor::Scalar<int32_t>(0));
    any_ = AddConst("element_shape", Tensor::Scalar<int32_t>(-1));
    const Endpoint count = AddConst("count", Tensor::Scalar<int32_t>(t_.length()));
    ASSIGN_OR_RETURN(const Endpoint i, AddVariable(zero));
    Node* one = loop_.body->AddConst("one", Tensor::Scalar<int32_t>(1));
    ASSIGN_OR_RETURN(Node * next,
                     loop_.body->Add("next", "AddV2", {i, {one, 0}}, OneType("T", Dtype::kInt32)));
    results_[0] = {next, 0};
    for (Node* source : t_.sources) {
      const bool read = std::ranges::any_of(t_.nodes, [&](const Node* n) {
        return std::ranges::any_of(n->inputs(), [&](Endpoint e) { return e.node == source; });
      });
      if (!read) continue;
      const Dtype type = source->output_types[0];
      Endpoint shape = any_;
      if (const int64_t width = WidthOf(source, shapes); width >= 0) {
        shape =
            AddConst("element_shape", Tensor::Vector<int32_t>({-1, static_cast<int32_t>(width)}));
      }
      ASSIGN_OR_RETURN(const Endpoint rows, AddRows(source));
      ASSIGN_OR_RETURN(const Endpoint list,
                       Add("list", "TensorListFromTensor", {rows, shape}, ListAttrs(type)));
      ASSIGN_OR_RETURN(const Endpoint arg, AddVariable(list));
      Node* of = loop_.body->AddConst("element_shape", Tensor::Scalar<int32_t>(-1));
      ASSIGN_OR_RETURN(Node * row, loop_.body->Add("row", "TensorListGetItem", {arg, i, {of, 0}},
                                                   OneType("element_dtype", type)));
      copied_[{source->id(), t_.SliceOf(source, kReadTurn).port}] = {row, 0};
    }
    first_state_ = results_.size();
    for (size_t k = 0; k < t_.made.size(); ++k) {
      ASSIGN_OR_RETURN(copied_[KeyOf(t_.taken[k])], AddVariable(t_.start[k]));
    }
    RETURN_IF_ERROR(CopyTurn());
    for (size_t k = 0; k < t_.made.size(); ++k)
      results_[first_state_ + k] = copied_[KeyOf(t_.made[k])];
    first_array_ = results_.size();
    for (const Endpoint& e : t_.arrays) {
      const Dtype type = UnrolledType(e);
      ASSIGN_OR_RETURN(const Endpoint list,
                       Add("list", "TensorListReserve", {any_, count}, ListAttrs(type)));
      ASSIGN_OR_RETURN(const Endpoint arg, AddVariable(list));
      ASSIGN_OR_RETURN(Node * write,
                       loop_.body->Add("write", "TensorListSetItem", {arg, i, copied_[KeyOf(e)]},
                                       OneType("element_dtype", type)));
      results_.back() = {write, 0};
    }
    return Close(count);
  }

  static std::pair<int, int> KeyOf(Endpoint e) { return {e.node->id(), e.port}; }

  // A variable of the loop that is `from` at first; stays what it is until its result is set.
  StatusOr<Endpoint> AddVariable(Endpoint from) {
    AttrMap attrs = OneType("T", UnrolledType(from));
    attrs.Set("index", static_cast<int64_t>(inputs_.size()));
    ASSIGN_OR_RETURN(Node * arg, loop_.body->Add(from.node->name(), "_Arg", {}, std::move(attrs)));
    inputs_.push_back(from);
    results_.push_back({arg, 0});
    return Endpoint{arg, 0};
  }

  Status CopyTurn() {
    for (Node* n : t_.nodes) {
      std::vector<Endpoint> inputs;
      for (const Endpoint& e : n->inputs()) {
        auto it = copied_.find(KeyOf(e));
        if (it == copied_.end()) {
          Endpoint from;
          if (e.node->Is("Const")) {
            ASSIGN_OR_RETURN(from.node, AddCopy(*loop_.body, *e.node, e.node->name()));
          } else {
            ASSIGN_OR_RETURN(from, AddVariable(e));
          }
          it = copied_.emplace(KeyOf(e), from).first;
        }
        inputs.push_back(it->second);
      }
      ASSIGN_OR_RETURN(Node * copy, AddCopy(*loop_.body, *n, n->name()));
      copy->EraseAttr("_class");
      loop_.body->SetInputs(copy, inputs);
      for (int p = 0; p < n->num_outputs(); ++p) copied_[{n->id(), p}] = {copy, p};
    }
    return OkStatus();
  }

  // The condition, the results and the loop itself.
  Status Close(Endpoint count) {
    DtypeVector types;
    for (size_t k = 0; k < inputs_.size(); ++k) {
      types.push_back(UnrolledType(inputs_[k]));
      AttrMap attrs = OneType("T", types.back());
      attrs.Set("index", static_cast<int64_t>(k));
      RETURN_IF_ERROR(loop_.body->Add("_retval", "_Retval", {results_[k]}, attrs).status());
      if (k > 0) continue;
      Graph& cond = *loop_.cond;
      ASSIGN_OR_RETURN(Node * i, cond.Add("i", "_Arg", {}, attrs));
      ASSIGN_OR_RETURN(Node * below, AddCopy(cond, *count.node, "below"));
      ASSIGN_OR_RETURN(Node * less,
                       cond.Add("less", "Less", {{i, 0}, {below, 0}}, OneType("T", Dtype::kInt32)));
      AttrMap result = OneType("T", Dtype::kBool);
      result.Set("index", int64_t{0});
      RETURN_IF_ERROR(cond.Add("_retval", "_Retval", {{less, 0}}, std::move(result)).status());
    }
    AttrMap attrs;
    attrs.Set("T", types);
    attrs.Set("cond", FuncAttr());
    attrs.Set("body", FuncAttr());
    ASSIGN_OR_RETURN(const Endpoint loop, Add("loop", "StatelessWhile", inputs_, std::move(attrs)));
    loop_.node = loop.node;
    loop_.node->device = t_.nodes[0]->device;
    return OkStatus();
  }

  Status AddOutputs() {
    for (size_t k = 0; k < t_.made.size(); ++k) {
      if (t_.ends[k].node == nullptr) continue;
      if (std::ranges::find(t_.arrays, t_.made[k]) != t_.arrays.end()) continue;
      loop_.outputs.push_back({t_.ends[k], {loop_.node, static_cast<int>(first_state_ + k)}});
    }
    for (size_t k = 0; k < t_.arrays.size(); ++k) {
      const Dtype type = UnrolledType(t_.arrays[k]);
      AttrMap attrs = OneType("element_dtype", type);
      attrs.Set("num_elements", int64_t{-1});
      const Endpoint list = {loop_.node, static_cast<int>(first_array_ + k)};
      ASSIGN_OR_RETURN(const Endpoint all,
                       Add("stack", "TensorListStack", {list, any_}, std::move(attrs)));
      AttrMap unpack = OneType("T", type);
      unpack.Set("num", static_cast<int64_t>(t_.length()));
      unpack.Set("axis", int64_t{0});
      ASSIGN_OR_RETURN(const Endpoint rows, Add("unpack", "Unpack", {all}, std::move(unpack)));
      std::vector<Endpoint> values;
      for (int t = t_.first; t <= t_.last; ++t) values.push_back(t_.InTurn(t_.arrays[k], t));
      for (const Use& use : values[0].node->OrderedUses()) {
        if (use.is_control() || !use.node->Is("Pack") || use.node->Int("axis") != 0) continue;
        if (!std::ranges::equal(use.node->inputs(), values)) continue;
        loop_.outputs.push_back({{use.node, 0}, all});
      }
      for (int t = t_.first; t <= t_.last; ++t) {
        const Endpoint value = values[static_cast<size_t>(t - t_.first)];
        if (value.node != nullptr) loop_.outputs.push_back({value, {rows.node, t - t_.first}});
      }
    }
    return OkStatus();
  }

  Graph& graph_;
  const Turns& t_;
  RaisedLoop loop_;
  std::vector<Endpoint> inputs_, results_;  // of the loop, of its body
  size_t first_state_ = 0, first_array_ = 0;
  absl::flat_hash_map<std::pair<int, int>, Endpoint> copied_;  // of turn kReadTurn, into the body
  Endpoint any_;
};

}  // namespace

StatusOr<RaisedLoop> RollUp(Graph& graph, Node** where, std::string* why) {
  const auto is_source = [](const Node& n) {
    return n.Is("Unpack") && n.num_outputs() >= kLeastTurns && !IsFed(n);
  };
  if (std::ranges::none_of(graph.Nodes(), [&](const Node* n) { return is_source(*n); })) {
    return RaisedLoop();
  }
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  // By number of slices, then by how many such sources stand behind each other: the slices of one
  // may be made by turns that read another's.
  std::map<std::pair<int, int>, std::vector<Node*>> sources;
  std::vector<int> depth(static_cast<size_t>(graph.max_id()), 0);
  for (Node* n : order) {
    int& own = depth[static_cast<size_t>(n->id())];
    for (const Endpoint& e : n->inputs()) {
      own = std::max(own, depth[static_cast<size_t>(e.node->id())]);
    }
    if (is_source(*n)) sources[{n->num_outputs(), own++}].push_back(n);
  }
  std::optional<Turns> longest;
  std::vector<Node*> so_far;
  int turns = 0;
  for (const auto& [key, of_depth] : sources) {
    if (key.first != turns) so_far.clear();
    turns = key.first;
    so_far.insert(so_far.end(), of_depth.begin(), of_depth.end());
    for (const bool backwards : {false, true}) {
      Turns found{.sources = so_far, .backwards = backwards};
      std::string no;
      if (!FindTurns(graph, order, found, &no)) {
        if (*where == nullptr && !backwards) {
          *where = so_far[0];
          *why = no;
        }
        continue;
      }
      if (!longest || found.length() > longest->length()) longest = std::move(found);
    }
  }
  if (!longest) return RaisedLoop();
  return TurnRoller(graph, *longest).Raise();
}

}  // namespace smelt
