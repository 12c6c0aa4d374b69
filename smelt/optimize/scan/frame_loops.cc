#include <algorithm>
#include <map>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/copy_node.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/values.h"
#include "smelt/optimize/passes.h"
#include "smelt/optimize/scan/raised_loop.h"

namespace smelt {
namespace {

constexpr OpSet kArrayAccesses = {"TensorArrayReadV3", "TensorArrayWriteV3"};
constexpr OpSet kEnterOps = {"Enter", "RefEnter"};

using Port = std::pair<int, int>;
Port FramePort(Endpoint e) { return {e.node->id(), e.port}; }
Dtype FrameType(Endpoint e) { return BaseType(e.node->output_types[static_cast<size_t>(e.port)]); }

// The elements of a constant scalar or vector of integers; empty: it is none.
std::optional<IntVector> ConstantInts(Endpoint e) {
  const auto tensor = ConstantTensor(*BehindIdentities(e).node);
  auto ints = tensor ? IntVectorOf(*tensor) : std::nullopt;
  return ints && ints->complete() ? ints : std::nullopt;
}
bool IsConstantInt(Endpoint e, int64_t value) {
  const auto ints = ConstantInts(e);
  return ints && ints->scalar && ints->values[0] == value;
}
bool IsSameInt(Endpoint a, Endpoint b) {
  if (BehindIdentities(a) == BehindIdentities(b)) return true;
  const auto x = ConstantInts(a), y = ConstantInts(b);
  return x && y && x->scalar && *x == *y;
}

// A TensorArray: `made` is its TensorArrayV3.
struct FrameArray {
  Node* made = nullptr;
  Node* scatter = nullptr;    // what fills it before the loop; nullptr: nothing does
  Node* gather = nullptr;     // what reads all of it behind the loop
  std::vector<Node*> enters;  // of its handle
  std::vector<Node*> flows;   // Enters of its flow: of the one behind `scatter`, if there is one
  std::vector<Node*> sizes;   // nodes that read its size
  int num_reads = 0, num_writes = 0;  // nodes in the body
};

// One frame. What it adds to the graph is in loop().added at any time.
class FrameReader {
 public:
  FrameReader(Graph& graph, std::string name, std::vector<Node*> enters,
              const std::vector<Node*>& order)
      : graph_(graph), name_(std::move(name)), enters_(std::move(enters)), order_(order) {}

  RaisedLoop& loop() { return loop_; }
  const std::string& why() const { return why_; }
  Node* where() const { return enters_[0]; }
  // Of the frame.
  const absl::flat_hash_set<Node*>& nodes() const { return nodes_; }

  // Finds what there is, and changes nothing.
  bool Read() { return FindParts() && FindArrays() && FindNodes() && CheckNodes(); }

  // Adds the loop. False: it cannot be one.
  StatusOr<bool> Raise() {
    RETURN_IF_ERROR(AddLists());
    RETURN_IF_ERROR(AddLoop());
    loop_.cond = std::make_unique<Graph>(graph_.library());
    loop_.body = std::make_unique<Graph>(graph_.library());
    ASSIGN_OR_RETURN(const bool cond, CopyInto(*loop_.cond, {loop_cond_->input(0)}));
    if (!cond) return false;
    std::vector<Endpoint> results;
    for (const Variable& v : variables_) {
      results.push_back(v.next == nullptr ? Endpoint{v.enter, 0} : v.next->input(0));
    }
    ASSIGN_OR_RETURN(const bool body, CopyInto(*loop_.body, results));
    if (!body) return false;
    for (auto& [id, a] : arrays_) {
      if (a.num_reads > 0 && (a.num_writes > 0 || a.scatter == nullptr)) {
        return No(absl::StrCat("TensorArray '", a.made->name(), "' is read as it is written"));
      }
      if (a.num_reads > 1 && a.made->Bool("clear_after_read", true)) {
        return No(
            absl::StrCat("TensorArray '", a.made->name(), "' is cleared by its first reader"));
      }
    }
    RETURN_IF_ERROR(AddStacks());
    TakeNodes();
    return true;
  }

 private:
  // What goes around, or stays: an Enter without `merge`.
  struct Variable {
    Node* enter = nullptr;
    Node *merge = nullptr, *next = nullptr, *choice = nullptr, *exit = nullptr;
    FrameArray* array = nullptr;  // it is the flow of
    Endpoint from;                // what comes in
  };

  bool No(std::string why) {
    why_ = std::move(why);
    return false;
  }

  bool FindParts() {
    for (Node* enter : enters_) {
      if (!enter->Is("Enter")) return No("references go around in it");
      Variable v{.enter = enter};
      if (enter->Bool("is_constant")) {
        variables_.push_back(v);
        continue;
      }
      for (const Use& use : enter->uses()) {
        if (use.is_control()) continue;
        if (!use.node->Is("Merge") || v.merge != nullptr) {
          return No(absl::StrCat("'", enter->name(), "' enters more than one Merge"));
        }
        v.merge = use.node;
      }
      if (v.merge == nullptr || v.merge->num_inputs() != 2 || v.merge->NumUses(1) != 0) {
        return No(absl::StrCat("'", enter->name(), "' does not go around"));
      }
      for (const Endpoint& e : v.merge->inputs()) {
        if (e.node != enter) v.next = e.node;
      }
      if (v.next == nullptr || !v.next->Is("NextIteration") || v.next->uses().size() != 1) {
        return No(absl::StrCat("'", v.merge->name(), "' merges other values"));
      }
      if (!FindExit(&v)) return false;
      variables_.push_back(v);
    }
    if (loop_cond_ == nullptr) return No("it has no LoopCond");
    return true;
  }

  bool FindExit(Variable* v) {
    for (const Use& use : v->merge->uses()) {
      if (use.is_control() || !use.node->Is("Switch") || use.input != 0) continue;
      Node* cond = use.node->input(1).node;
      if (!cond->Is("LoopCond")) continue;
      if (v->choice != nullptr || (loop_cond_ != nullptr && loop_cond_ != cond)) {
        return No("it has several conditions");
      }
      v->choice = use.node;
      loop_cond_ = cond;
    }
    if (v->choice == nullptr) return true;
    for (const Use& use : v->choice->uses()) {
      if (use.port() != 0) continue;
      if (!use.node->Is("Exit") || v->exit != nullptr) {
        return No(absl::StrCat("'", use.node->name(), "' reads a variable as the loop ends"));
      }
      v->exit = use.node;
    }
    return true;
  }

  // ---- TensorArrays

  bool FindArrays() {
    for (const Variable& v : variables_) {
      const Endpoint from = BehindIdentities(v.enter->input(0));
      if (from.node->Is("TensorArrayV3") && from.port == 0)
        arrays_[from.node->id()].made = from.node;
    }
    for (auto& [id, a] : arrays_) {
      if (!ReadArray(a)) return false;
    }
    for (Variable& v : variables_) {
      for (auto& [id, a] : arrays_) {
        if (std::ranges::find(a.flows, v.enter) != a.flows.end()) v.array = &a;
      }
      if (v.array != nullptr && !CheckExit(v)) return false;
    }
    return true;
  }

  // Behind the loop all of an array is read, if anything.
  bool CheckExit(const Variable& v) {
    FrameArray& a = *v.array;
    if (v.exit != nullptr) {
      for (const Use& use : v.exit->uses()) {
        if (use.is_control() || use.node == a.gather || use.node->Is("TensorArraySizeV3")) continue;
        return No(absl::StrCat("'", use.node->name(), "' (", use.node->op(),
                               ") reads TensorArray '", a.made->name(), "' behind it"));
      }
    }
    if (a.gather == nullptr) return true;
    if (v.exit == nullptr || a.gather->input(2) != Endpoint{v.exit, 0} ||
        !IsRange(a.gather->input(1), a)) {
      return No(absl::StrCat("'", a.gather->name(), "' (", a.gather->op(),
                             ") is not known to read all elements"));
    }
    return true;
  }

  bool ReadArray(FrameArray& a) {
    const auto other = [&](const Node& n) {
      return No(absl::StrCat("'", n.name(), "' (", n.op(), ") reads TensorArray '", a.made->name(),
                             "', too"));
    };
    if (a.made->Bool("dynamic_size")) {
      return No(absl::StrCat("TensorArray '", a.made->name(), "' grows"));
    }
    for (const Use& use : a.made->uses()) {
      Node* n = use.node;
      if (use.is_control()) return other(*n);
      if (n->Is("Enter")) {
        if (std::ranges::find(enters_, n) == enters_.end()) return other(*n);
        if (use.port() == 0 && !n->Bool("is_constant")) return other(*n);
        (use.port() == 0 ? a.enters : a.flows).push_back(n);
      } else if (n->Is("TensorArrayScatterV3") && use.input != 1 && use.input != 2) {
        a.scatter = n;
      } else if (n->Is("TensorArrayGatherV3") && use.input == 0) {
        if (a.gather != nullptr) return other(*n);
        a.gather = n;
      } else if (n->Is("TensorArraySizeV3")) {
        if (std::ranges::find(a.sizes, n) == a.sizes.end()) a.sizes.push_back(n);
      } else {
        return other(*n);
      }
    }
    if (a.scatter == nullptr) return true;
    if (!a.flows.empty() || a.gather != nullptr) return other(*a.scatter);
    for (const Use& use : a.scatter->uses()) {
      if (std::ranges::find(enters_, use.node) != enters_.end() && !use.is_control()) {
        a.flows.push_back(use.node);
      } else if (!use.node->Is("TensorArraySizeV3")) {
        return other(*use.node);
      }
    }
    const Endpoint size = a.made->input(0), value = a.scatter->input(2);
    const bool checked = ConstantInts(size) && ShapeAttr(*a.made).known_rank();
    if (!IsRange(a.scatter->input(1), a) || (!checked && !IsRows(size, value))) {
      return No(absl::StrCat("TensorArray '", a.made->name(), "' is not known to be all of '",
                             value.node->name(), "'"));
    }
    return true;
  }

  // Are these the numbers of all elements, in order?
  bool IsRange(Endpoint indices, const FrameArray& a) const {
    const Endpoint size = a.made->input(0);
    const Node& n = *BehindIdentities(indices).node;
    if (n.Is("Range")) {
      const Endpoint limit = BehindIdentities(n.input(1));
      const bool its_size = limit.node->Is("TensorArraySizeV3") &&
                            BehindIdentities(limit.node->input(0)) == Endpoint{a.made, 0};
      return IsConstantInt(n.input(0), 0) && IsConstantInt(n.input(2), 1) &&
             (its_size || IsSameInt(n.input(1), size));
    }
    const auto ints = ConstantInts(indices);
    if (!ints || ints->scalar || !IsConstantInt(size, static_cast<int64_t>(ints->values.size()))) {
      return false;
    }
    for (size_t i = 0; i < ints->values.size(); ++i) {
      if (ints->values[i] != static_cast<int64_t>(i)) return false;
    }
    return true;
  }

  // Is it the first dimension of the value?
  static bool IsRows(Endpoint size, Endpoint value) {
    const Node& slice = *BehindIdentities(size).node;
    if (!slice.Is("StridedSlice") || slice.Int("shrink_axis_mask") != 1) return false;
    const auto begin = ConstantInts(slice.input(1));
    const Node& shape = *BehindIdentities(slice.input(0)).node;
    return begin && begin->values.size() == 1 && begin->values[0] == 0 && shape.Is("Shape") &&
           BehindIdentities(shape.input(0)) == BehindIdentities(value);
  }

  // ---- the frame's nodes

  // All that the Enters reach, up to the Exits.
  bool FindNodes() {
    std::vector<Node*> todo = enters_;
    nodes_.insert(todo.begin(), todo.end());
    while (!todo.empty()) {
      Node* n = todo.back();
      todo.pop_back();
      if (n->Is("Exit")) continue;
      for (const Use& use : n->uses()) {
        if (nodes_.insert(use.node).second) todo.push_back(use.node);
      }
    }
    return true;
  }

  // Each is one that the loop stands for, or computes something without an effect.
  bool CheckNodes() {
    absl::flat_hash_set<const Node*> parts = {loop_cond_};
    for (const Variable& v : variables_) {
      for (const Node* n : {v.enter, v.merge, v.next, v.choice, v.exit}) parts.insert(n);
    }
    for (Node* n : order_) {
      if (!nodes_.contains(n)) continue;
      const bool of_array = n->Is(kArrayAccesses);
      if (IsRoot(*n) || IsFed(*n) || n->Is("_Retval") || (HasEffect(*n) && !of_array)) {
        return No(absl::StrCat("'", n->name(), "' (", n->op(), ") in it has an effect"));
      }
      if (n->Is(kControlFlow) && !parts.contains(n)) {
        return No(absl::StrCat("'", n->name(), "' (", n->op(), ") in it is control flow, too"));
      }
    }
    return true;
  }

  // ---- building

  std::string Name(absl::string_view what) const { return absl::StrCat(name_, "/", what); }

  StatusOr<Endpoint> Add(absl::string_view what, absl::string_view op, std::vector<Endpoint> inputs,
                         AttrMap attrs) {
    ASSIGN_OR_RETURN(Node * n, graph_.Add(Name(what), op, inputs, std::move(attrs)));
    loop_.added.push_back(n);
    return Endpoint{n, 0};
  }
  // The shape of an array's elements, as ops of lists take it.
  static Tensor ElementShape(const PartialShape& shape) {
    IntVector dims{.scalar = !shape.known_rank(), .values = {-1}};
    if (shape.known_rank()) dims.values.clear();
    for (int i = 0; shape.known_rank() && i < shape.rank(); ++i) {
      dims.values.push_back(std::max<int64_t>(shape[i], -1));
    }
    return ToTensor(dims, Dtype::kInt32);
  }
  static PartialShape ShapeAttr(const Node& n) {
    const Attr* a = n.Find("element_shape");
    const auto* shape = a == nullptr ? nullptr : a->get<PartialShape>();
    return shape == nullptr ? PartialShape() : *shape;
  }
  StatusOr<Endpoint> AddShape(const Node& of) {
    Node* n = graph_.AddConst(Name("element_shape"), ElementShape(ShapeAttr(of)));
    loop_.added.push_back(n);
    return Endpoint{n, 0};
  }
  static AttrMap ListAttrs(const FrameArray& a, bool with_shape) {
    AttrMap attrs;
    attrs.Set("element_dtype", a.made->Type("dtype"));
    if (with_shape) attrs.Set("shape_type", Dtype::kInt32);
    return attrs;
  }

  Status AddLists() {
    for (Variable& v : variables_) {
      v.from = v.enter->input(0);
      if (v.array == nullptr) continue;
      FrameArray& a = *v.array;
      ASSIGN_OR_RETURN(const Endpoint shape, AddShape(*a.made));
      if (a.scatter == nullptr) {
        ASSIGN_OR_RETURN(v.from, Add("list", "TensorListReserve", {shape, a.made->input(0)},
                                     ListAttrs(a, true)));
        continue;
      }
      Endpoint value = a.scatter->input(2);
      const PartialShape row = ShapeAttr(*a.made);
      if (const auto size = ConstantInts(a.made->input(0)); size && row.known_rank()) {
        PartialShape rows = PartialShape::UnknownOfRank(0);
        rows.Add(size->values[0]);
        for (int i = 0; i < row.rank(); ++i) rows.Add(row[i]);
        AttrMap attrs;
        attrs.Set("T", FrameType(value));
        attrs.Set("shape", rows);
        ASSIGN_OR_RETURN(value, Add("rows", "EnsureShape", {value}, std::move(attrs)));
      }
      ASSIGN_OR_RETURN(v.from,
                       Add("list", "TensorListFromTensor", {value, shape}, ListAttrs(a, true)));
    }
    return OkStatus();
  }

  Status AddLoop() {
    std::vector<Endpoint> inputs;
    DtypeVector types;
    // Handles of arrays do not come in.
    std::erase_if(variables_, [&](const Variable& v) { return ArrayOf(v.enter) != nullptr; });
    std::vector<Node*> waits;
    for (const Variable& v : variables_) {
      inputs.push_back(v.from);
      types.push_back(FrameType(v.from));
      waits.insert(waits.end(), v.enter->control_inputs().begin(), v.enter->control_inputs().end());
    }
    AttrMap attrs;
    attrs.Set("T", types);
    attrs.Set("cond", FuncAttr());
    attrs.Set("body", FuncAttr());
    ASSIGN_OR_RETURN(const Endpoint loop,
                     Add("loop", "StatelessWhile", std::move(inputs), std::move(attrs)));
    loop_.node = loop.node;
    loop_.where = loop_cond_;
    loop_.node->device = loop_cond_->device;
    graph_.SetControlInputs(loop_.node, std::move(waits));
    return OkStatus();
  }

  // The array whose handle the Enter brings.
  FrameArray* ArrayOf(const Node* enter) {
    for (auto& [id, a] : arrays_) {
      if (std::ranges::find(a.enters, enter) != a.enters.end()) return &a;
    }
    return nullptr;
  }

  // What a value of the frame is in the graph of one turn; empty: not copied.
  using Copies = absl::flat_hash_map<Port, Endpoint>;

  StatusOr<bool> CopyInto(Graph& to, const std::vector<Endpoint>& results) {
    Copies copies;
    for (size_t i = 0; i < variables_.size(); ++i) {
      const Variable& v = variables_[i];
      AttrMap attrs;
      attrs.Set("T", FrameType(v.from));
      attrs.Set("index", static_cast<int64_t>(i));
      ASSIGN_OR_RETURN(Node * arg, to.Add(v.enter->name(), "_Arg", {}, std::move(attrs)));
      copies[{v.enter->id(), 0}] = {arg, 0};
      if (v.merge != nullptr) copies[{v.merge->id(), 0}] = {arg, 0};
      if (v.choice != nullptr) copies[{v.choice->id(), 1}] = {arg, 0};
    }
    absl::flat_hash_set<const Node*> needed;
    std::vector<Endpoint> todo(results.begin(), results.end());
    while (!todo.empty()) {
      const Endpoint e = todo.back();
      todo.pop_back();
      if (copies.contains(FramePort(e)) || ArrayOf(e.node) != nullptr) continue;
      if (!needed.insert(e.node).second) continue;
      todo.insert(todo.end(), e.node->inputs().begin(), e.node->inputs().end());
    }
    for (Node* n : order_) {
      if (!needed.contains(n)) continue;
      ASSIGN_OR_RETURN(const bool copied, CopyNode(to, n, copies));
      if (!copied) return false;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const auto it = copies.find(FramePort(results[i]));
      if (it == copies.end()) return No("a handle goes around in it");
      AttrMap attrs;
      attrs.Set("T", FrameType(it->second));
      attrs.Set("index", static_cast<int64_t>(i));
      RETURN_IF_ERROR(to.Add("_retval", "_Retval", {it->second}, std::move(attrs)).status());
    }
    return true;
  }

  StatusOr<bool> CopyNode(Graph& to, Node* n, Copies& copies) {
    const auto refuse = [&](absl::string_view why) {
      return No(absl::StrCat("'", n->name(), "' (", n->op(), ") ", why));
    };
    if (!nodes_.contains(n) && !n->Is("Const")) return refuse("stands outside of it");
    if (n->Is(kControlFlow)) return refuse("is control flow in a turn");
    if (n->Is(kArrayAccesses)) return CopyAccess(to, n, copies);
    std::vector<Endpoint> inputs;
    for (const Endpoint& e : n->inputs()) {
      const auto it = copies.find(FramePort(e));
      if (it == copies.end()) return refuse("does something else with a TensorArray");
      if (FrameType(it->second) != FrameType(e)) return refuse("reads the flow of a TensorArray");
      inputs.push_back(it->second);
    }
    ASSIGN_OR_RETURN(Node * copy, AddCopy(to, *n, n->name()));
    copy->EraseAttr("_class");
    to.SetInputs(copy, inputs);
    for (int p = 0; p < n->num_outputs(); ++p) copies[{n->id(), p}] = {copy, p};
    return true;
  }

  StatusOr<bool> CopyAccess(Graph& to, Node* n, Copies& copies) {
    const bool reads = n->Is("TensorArrayReadV3");
    FrameArray* a = ArrayOf(n->input(0).node);
    const auto index = copies.find(FramePort(n->input(1)));
    const auto list = copies.find(FramePort(n->input(reads ? 2 : 3)));
    if (a == nullptr || index == copies.end() || list == copies.end() ||
        FrameType(list->second) != Dtype::kVariant) {
      return No(absl::StrCat("'", n->name(), "' (", n->op(), ") is of no array that enters"));
    }
    const Node& arg = *list->second.node;
    const Variable* v =
        arg.Is("_Arg") ? &variables_[static_cast<size_t>(arg.Int("index"))] : nullptr;
    if (v == nullptr || v->array != a || index->second.node->Is("Const")) {
      return No(absl::StrCat("'", n->name(), "' (", n->op(), ") is not of the turn's element"));
    }
    ++(reads ? a->num_reads : a->num_writes);
    Endpoint last = {to.AddConst("element_shape", ElementShape(ShapeAttr(*a->made))), 0};
    if (!reads) {
      const auto value = copies.find(FramePort(n->input(2)));
      if (value == copies.end()) return No("a handle is written to an array");
      last = value->second;
    }
    ASSIGN_OR_RETURN(Node * access,
                     to.Add(n->name(), reads ? "TensorListGetItem" : "TensorListSetItem",
                            {list->second, index->second, last}, ListAttrs(*a, false)));
    copies[{n->id(), 0}] = {access, 0};
    return true;
  }

  Status AddStacks() {
    for (size_t i = 0; i < variables_.size(); ++i) {
      const Variable& v = variables_[i];
      if (v.exit == nullptr) continue;
      const Endpoint output = {loop_.node, static_cast<int>(i)};
      if (v.array == nullptr || v.array->gather == nullptr) {
        if (v.array == nullptr) loop_.outputs.push_back({{v.exit, 0}, output});
        continue;
      }
      const FrameArray& a = *v.array;
      ASSIGN_OR_RETURN(const Endpoint shape, AddShape(*a.gather));
      AttrMap attrs = ListAttrs(a, false);
      attrs.Set("num_elements", int64_t{-1});
      attrs.Set(kStackedBy, a.gather->name());
      attrs.Set(kArrayStacked, a.made->name());
      ASSIGN_OR_RETURN(const Endpoint all,
                       Add("stack", "TensorListStack", {output, shape}, std::move(attrs)));
      loop_.outputs.push_back({{a.gather, 0}, all});
    }
    for (const auto& [id, a] : arrays_) {
      for (Node* n : a.sizes) loop_.outputs.push_back({{n, 0}, a.made->input(0)});
    }
    return OkStatus();
  }

  void TakeNodes() {
    for (Node* n : order_) {
      if (nodes_.contains(n)) loop_.old.push_back(n);
    }
    for (const auto& [id, a] : arrays_) {
      loop_.old.push_back(a.made);
      for (Node* n : {a.scatter, a.gather}) {
        if (n != nullptr) loop_.old.push_back(n);
      }
      loop_.old.insert(loop_.old.end(), a.sizes.begin(), a.sizes.end());
    }
  }

  Graph& graph_;
  const std::string name_;
  const std::vector<Node*> enters_;
  const std::vector<Node*>& order_;
  RaisedLoop loop_;
  Node* loop_cond_ = nullptr;
  std::string why_;
  std::vector<Variable> variables_;
  std::map<int, FrameArray> arrays_;  // by the id of what made it
  absl::flat_hash_set<Node*> nodes_;
};

}  // namespace

StatusOr<std::vector<RaisedLoop>> RaiseFrames(Graph& graph, Node** where, std::string* why) {
  std::map<std::string, std::vector<Node*>> frames;
  for (Node* n : graph.Nodes()) {
    if (n->Is(kEnterOps)) frames[n->String("frame_name")].push_back(n);
  }
  if (frames.empty()) return std::vector<RaisedLoop>();
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  std::vector<FrameReader> readers;
  absl::flat_hash_set<const Node*> known;
  for (auto& [name, enters] : frames) {
    FrameReader& reader = readers.emplace_back(graph, name, enters, order);
    if (!reader.Read()) {
      *where = reader.where();
      *why = reader.why();
      return std::vector<RaisedLoop>();
    }
    known.insert(reader.nodes().begin(), reader.nodes().end());
  }
  for (Node* n : order) {
    if (!n->Is(kControlFlow) || known.contains(n)) continue;
    *where = n;
    *why = absl::StrCat("the graph has other control flow, too ('", n->name(), "')");
    return std::vector<RaisedLoop>();
  }
  std::vector<RaisedLoop> loops;
  bool raised = true;
  for (FrameReader& reader : readers) {
    ASSIGN_OR_RETURN(raised, reader.Raise());
    loops.push_back(std::move(reader.loop()));
    if (raised) continue;
    *where = reader.where();
    *why = reader.why();
    Undo(graph, loops);
    break;
  }
  return loops;
}

}  // namespace smelt
