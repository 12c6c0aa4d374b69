#include "smelt/optimize/scan/loop.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/values.h"
#include "smelt/optimize/scan/copy_value.h"

namespace smelt {
namespace {

using Kind = LoopVariable::Kind;

// The number that a constant scalar is.
std::optional<int64_t> ConstantInt(Endpoint e) {
  const auto tensor = ConstantTensor(*BehindIdentities(e).node);
  if (!tensor || tensor->rank() != 0) return std::nullopt;
  const auto value = IntVectorOf(*tensor);
  return value && value->complete() ? std::optional<int64_t>(value->values[0]) : std::nullopt;
}

class LoopReader {
 public:
  LoopReader(Graph& graph, Loop& loop, const Graph& cond, std::string* why)
      : graph_(graph), loop_(loop), cond_(cond), why_(why) {}

  StatusOr<bool> Read() {
    if (!FindEnds()) return false;
    for (int i = 0; i < Count(); ++i) {
      if (!Classify(i)) return false;
    }
    // Lists name counters, which are known by now.
    for (int i = 0; i < Count(); ++i) {
      if (InputType(i) == Dtype::kVariant && !ClassifyList(i)) return false;
    }
    if (!CheckNodes()) return false;
    return ReadCondition();
  }

 private:
  int Count() const { return loop_.node->num_inputs(); }
  LoopVariable& At(int i) { return loop_.variables[static_cast<size_t>(i)]; }
  Node* Arg(int i) const { return loop_.args[static_cast<size_t>(i)]; }
  Dtype InputType(int i) const { return loop_.node->input_types[static_cast<size_t>(i)]; }
  bool No(absl::string_view why) {
    *why_ = std::string(why);
    return false;
  }

  bool FindEnds() {
    const auto n = static_cast<size_t>(Count());
    loop_.args.resize(n);
    loop_.results.resize(n);
    loop_.variables.resize(n);
    for (Node* node : loop_.body->Nodes()) {
      if (!node->Is("_Arg") && !node->Is("_Retval")) continue;
      const auto index = static_cast<size_t>(node->Int("index", -1));
      if (index >= n) return No("its body has other arguments or results");
      (node->Is("_Arg") ? loop_.args : loop_.results)[index] = node;
    }
    for (size_t i = 0; i < n; ++i) {
      if (loop_.results[i] == nullptr) return No("its body returns less than it takes");
    }
    return true;
  }

  bool IsArgument(Endpoint e, int i) const {
    const Node* from = BehindIdentities(e).node;
    return from == Arg(i) && from != nullptr;
  }

  bool Classify(int i) {
    const Endpoint result = BehindIdentities(loop_.results[static_cast<size_t>(i)]->input(0));
    LoopVariable& v = At(i);
    const Dtype type = InputType(i);
    if (IsArgument(result, i)) {
      v.kind = Kind::kInvariant;
      return true;
    }
    if (type == Dtype::kVariant) return true;  // ClassifyList
    if (IsRef(type) || !IsPod(type)) {
      return No(absl::StrCat("variable ", i, " changes and is of type ", DtypeName(type)));
    }
    const Node& n = *result.node;
    if (IsIndexType(type) && (n.Is("AddV2") || n.Is("Add"))) {
      const auto start = ConstantInt(loop_.node->input(i));
      for (const int side : {0, 1}) {
        if (start && IsArgument(n.input(side), i) && ConstantInt(n.input(1 - side)) == 1) {
          v.kind = Kind::kCounter;
          v.start = *start;
          return true;
        }
      }
    }
    v.kind = Kind::kState;
    return true;
  }

  // Is it the number of the iteration?
  bool IsIterationNumber(Endpoint e) {
    const Node* from = BehindIdentities(e).node;
    for (int i = 0; i < Count(); ++i) {
      if (from == Arg(i)) return At(i).kind == Kind::kCounter && At(i).start == 0;
    }
    return false;
  }

  bool ClassifyList(int i) {
    LoopVariable& v = At(i);
    v.list = BehindIdentities(loop_.node->input(i));
    const Node* arg = Arg(i);
    if (v.kind == Kind::kInvariant) {
      v.kind = Kind::kRows;
      if (arg == nullptr) return true;
      for (const Use& use : arg->OrderedUses()) {
        Node* reader = use.node;
        if (reader->Is("_Retval")) continue;
        if (!reader->Is("TensorListGetItem") || use.input != 0 ||
            !IsIterationNumber(reader->input(1))) {
          return No(absl::StrCat("'", reader->name(), "' (", reader->op(), ") does more with list ",
                                 i, " than read the iteration's element"));
        }
        v.reads.push_back(reader);
      }
      if (!v.reads.empty() && !v.list.node->Is("TensorListFromTensor")) {
        return No(absl::StrCat("list ", i, " is made by ", v.list.node->op(), ", not of a tensor"));
      }
      return true;
    }
    Node* write = BehindIdentities(loop_.results[static_cast<size_t>(i)]->input(0)).node;
    if (!write->Is("TensorListSetItem") || !IsArgument(write->input(0), i) ||
        arg->NumUses(0) != 1 || write->NumUses(0) != 1) {
      return No(absl::StrCat("list ", i, " is not written once"));
    }
    v.grows = write->Bool("resize_if_index_out_of_bounds");
    if (!v.list.node->Is("TensorListReserve")) {
      return No(absl::StrCat("list ", i, " is made by ", v.list.node->op(), ", not reserved"));
    }
    if (!IsIterationNumber(write->input(1))) {
      v.last =
          !v.grows && ConstantInt(write->input(1)) == 0 && ConstantInt(v.list.node->input(1)) == 1;
      if (!v.last) {
        return No(absl::StrCat("list ", i, " is not written at the number of the iteration"));
      }
    }
    for (const Use& use : loop_.node->OrderedUses()) {
      if (use.is_control() || use.port() != i) continue;
      const Node& reader = *use.node;
      const int64_t wanted = reader.Int("num_elements", -1);
      if (!reader.Is("TensorListStack") ||
          (wanted != -1 && ConstantInt(v.list.node->input(1)) != wanted)) {
        return No(absl::StrCat("'", reader.name(), "' (", reader.op(), ") reads list ", i,
                               " otherwise than by stacking it"));
      }
    }
    v.kind = Kind::kArray;
    v.write = write;
    return true;
  }

  // A function, which attributes or its op name: what is copied out of a loop no inliner sees.
  bool Calls(const Node& n) const {
    bool calls = n.op_name().unknown() && graph_.library()->Find(n.op()) != nullptr;
    ForEachFunc(n.attrs(), [&](const FuncAttr&) { calls = true; });
    return calls;
  }

  bool CheckNodes() {
    for (const Node* n : loop_.body->Nodes()) {
      if (n->Is("_Arg") || n->Is("_Retval") || n->Is("NoOp")) continue;
      const auto number = [](Dtype t) { return !IsRef(t) && IsPod(t); };
      const bool of_list = IsListAccess(n) && number(n->Type("element_dtype"));
      const bool passes_on = n->Is("Identity");
      const bool reads = n->Is("ReadVariableOp") && IsInvariantArgument(n->input(0));
      if (of_list || passes_on || reads) continue;
      const bool numbers = std::ranges::all_of(n->input_types, number) &&
                           std::ranges::all_of(n->output_types, number);
      if (n->def() == nullptr || n->def()->stateful || !numbers || Calls(*n) ||
          n->Is(kControlFlow) || n->Is({"_Scan", "CheckNumerics"})) {
        return No(absl::StrCat("'", n->name(), "' (", n->op(), ") does more than compute numbers"));
      }
    }
    return true;
  }

  // One of those that ClassifyList found.
  bool IsListAccess(const Node* n) const {
    return std::ranges::any_of(loop_.variables, [&](const LoopVariable& v) {
      return v.write == n || std::ranges::find(v.reads, n) != v.reads.end();
    });
  }

  bool IsInvariantArgument(Endpoint e) {
    for (int i = 0; i < Count(); ++i) {
      if (IsArgument(e, i)) return At(i).kind == Kind::kInvariant;
    }
    return false;
  }

  StatusOr<bool> ReadCondition() {
    const Node* result = nullptr;
    for (const Node* n : cond_.Nodes()) {
      if (n->Is("_Retval")) {
        if (result != nullptr) return No("its condition has other results");
        result = n;
      } else if (!n->Is("_Arg") && HasEffect(*n)) {
        return No(absl::StrCat("'", n->name(), "' (", n->op(), ") of its condition has an effect"));
      }
    }
    if (result == nullptr) return No("its condition has no result");
    ASSIGN_OR_RETURN(const bool counts, ReadBounds(result->input(0)));
    if (counts) return true;
    // It may compare other numbers: they are computed with each iteration.
    const Endpoint value = BehindIdentities(result->input(0));
    const bool grows = std::ranges::any_of(loop_.variables, &LoopVariable::grows);
    if (grows || value.node->output_types[static_cast<size_t>(value.port)] != Dtype::kBool ||
        !IsComputed(value, false)) {
      return false;
    }
    loop_.bounds.clear();
    loop_.goes_on = value;
    ASSIGN_OR_RETURN(loop_.begins, Outside(value));
    return true;
  }

  // `result`: the condition's.
  StatusOr<bool> ReadBounds(Endpoint result) {
    std::vector<Endpoint> todo = {result};
    while (!todo.empty()) {
      const Endpoint e = BehindIdentities(todo.back());
      todo.pop_back();
      const Node& n = *e.node;
      if (n.Is("LogicalAnd")) {
        todo.insert(todo.end(), {n.input(1), n.input(0)});
        continue;
      }
      const bool less = n.Is("Less");
      if (!less && !n.Is("Greater")) {
        return No(
            absl::StrCat("'", n.name(), "' (", n.op(), ") of its condition compares otherwise"));
      }
      ASSIGN_OR_RETURN(const bool read, ReadBound(n.input(less ? 0 : 1), n.input(less ? 1 : 0)));
      if (!read) return false;
    }
    return true;
  }

  StatusOr<bool> ReadBound(Endpoint counter, Endpoint below) {
    const auto variable = [&](Endpoint e) {
      const Node& n = *BehindIdentities(e).node;
      const int64_t index = n.Is("_Arg") ? n.Int("index", -1) : -1;
      return index < Count() ? static_cast<int>(index) : -1;
    };
    const int c = variable(counter);
    if (c < 0 || At(c).kind != Kind::kCounter || At(c).start < 0) {
      return No("its condition compares what does not count up from a constant");
    }
    const int b = variable(below);
    Endpoint bound;
    if (b >= 0 && At(b).kind == Kind::kInvariant) {
      bound = BehindIdentities(loop_.node->input(b));
    } else if (b < 0 && IsComputed(below, true)) {
      ASSIGN_OR_RETURN(bound, Outside(BehindIdentities(below)));
    } else {
      return No("its condition has a bound that changes");
    }
    if (!loop_.bounds.empty() &&
        BaseType(bound.node->output_types[static_cast<size_t>(bound.port)]) !=
            InputType(loop_.bounds[0].counter)) {
      return No("its condition counts in several types");
    }
    const bool known = std::ranges::any_of(loop_.bounds, [&](const Loop::Bound& other) {
      return other.below == bound && At(other.counter).start == At(c).start;
    });
    if (!known) loop_.bounds.push_back({c, bound});
    return true;
  }

  // Is a value of the condition a number that is computed of variables that are numbers, or of
  // those alone that stay?
  bool IsComputed(Endpoint value, bool of_what_stays) {
    absl::flat_hash_set<const Node*> seen;
    std::vector<const Node*> todo = {value.node};
    while (!todo.empty()) {
      const Node& n = *todo.back();
      todo.pop_back();
      if (!seen.insert(&n).second) continue;
      if (n.Is("_Arg")) {
        const int64_t i = n.Int("index", -1);
        if (i < 0 || i >= Count() || !IsPod(InputType(static_cast<int>(i)))) return false;
        if (of_what_stays && At(static_cast<int>(i)).kind != Kind::kInvariant) return false;
        continue;
      }
      if (n.def() == nullptr || n.def()->stateful || Calls(n) || !n.control_inputs().empty() ||
          n.Is(kControlFlow) ||
          !std::ranges::all_of(n.output_types, [](Dtype t) { return !IsRef(t) && IsPod(t); })) {
        return false;
      }
      for (const Endpoint& e : n.inputs()) todo.push_back(e.node);
    }
    return true;
  }

  // Such a value in the caller's graph.
  StatusOr<Endpoint> Outside(Endpoint value) {
    const auto arg = [&](const Node& n) -> StatusOr<Endpoint> {
      return loop_.node->input(static_cast<int>(n.Int("index")));
    };
    const auto name = [&](const Node&) { return absl::StrCat(loop_.node->name(), "/bound"); };
    return CopyValue(graph_, cond_, value, arg, name, loop_.node->control_inputs());
  }

  Graph& graph_;
  Loop& loop_;
  const Graph& cond_;
  std::string* why_;
};

}  // namespace

StatusOr<std::unique_ptr<Loop>> ReadLoop(Graph& graph, Node* node, const Graph& cond,
                                         std::unique_ptr<Graph> body, std::string* why) {
  auto loop = std::make_unique<Loop>();
  loop->node = node;
  loop->cond = &cond;
  loop->body = std::move(body);
  ASSIGN_OR_RETURN(const bool read, LoopReader(graph, *loop, cond, why).Read());
  if (!read) return nullptr;
  return loop;
}

}  // namespace smelt
