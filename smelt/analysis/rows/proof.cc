#include "smelt/analysis/rows/proof.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "smelt/analysis/rows/rules.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/function_ops.h"
#include "smelt/graph/op_facts.h"

namespace smelt {
namespace {

constexpr int kMaxRowDepth = 48;
// Each round either changes a state for good or is the last.
constexpr int kMaxRowRounds = 64;

// Stateful by definition, but every request gets the same of it, and nothing stays behind.
constexpr OpSet kSameForAll = {"Assert",
                               "CheckNumerics",
                               "NoOp",
                               "_Retval",
                               "Print",
                               "PrintV2",
                               "TPUReplicateMetadata",
                               "TPUCompilationResult",
                               "TPUOrdinalSelector",
                               "TPURoundRobin",
                               "VarHandleOp",
                               "Placeholder"};

bool EntersFunction(const Graph& graph, const Node& n) {
  return IsPartitionedCall(n) || n.Is("TPUPartitionedCall") || IsLoop(n) || IsBranch(n) ||
         graph.library()->Find(n.op()) != nullptr;
}

// A graph on the way through the calls.
struct Frame {
  const Graph& graph;
  const Frame* caller = nullptr;
  std::string function;
  RowShapes shapes;
  std::set<int>* places = nullptr;  // of a loop's body: arguments that number rows
  int depth = 0;
  absl::flat_hash_map<std::pair<const Node*, int>, RowState> states = {};
};

class RowWalk {
 public:
  explicit RowWalk(const RowQuestion& q) : q_(q) {}

  RowAnswer Run() {
    std::vector<PartialShape> few = q_.shapes, many = q_.shapes;
    for (size_t i = 0; i < q_.rows.size(); ++i) {
      if (!q_.rows[i]) continue;
      if (few[i].rank() < 1) continue;  // a rank that is not known
      few[i].Set(0, q_.few);
      many[i].Set(0, q_.many);
    }
    auto a = InferCalledShapes(*q_.graph, XlaShapeRules(), few),
         b = InferCalledShapes(*q_.graph, XlaShapeRules(), many);
    if (!a.ok() || !b.ok()) {
      const Status& s = a.ok() ? b.status() : a.status();
      return Refused(absl::StrCat("its shapes do not follow the number of rows: ", s.message()));
    }
    few_ = *std::move(a);
    many_ = *std::move(b);
    if (q_.effects_refused) {
      absl::flat_hash_set<std::string> seen;
      FindEffects(*q_.graph, q_.function, &seen);
      if (!answer_.proved()) return std::move(answer_);
    }
    Frame top{*q_.graph, nullptr, q_.function, {&few_.graph, &many_.graph, q_.few, q_.many}};
    std::vector<RowState> args;
    for (bool rows : q_.rows) args.push_back(rows ? RowState::Rows(0) : RowState());
    answer_.results = Walk(top, q_.args, args, q_.results);
    return std::move(answer_);
  }

 private:
  RowAnswer Refused(std::string why) {
    answer_.why_not = std::move(why);
    return std::move(answer_);
  }

  void Fail(const Frame& frame, const Node& n, absl::string_view what) {
    if (!answer_.proved()) return;
    std::string where;
    for (const Frame* f = &frame; f != nullptr; f = f->caller) {
      if (!f->function.empty()) {
        absl::StrAppend(&where, where.empty() ? " in function '" : ", called by '", f->function,
                        "'");
      }
    }
    answer_.why_not = absl::StrCat("node '", n.name(), "' (", n.op(), ")", where, " ", what);
  }

  // Ops that leave something behind, wherever they run.
  void FindEffects(const Graph& graph, const std::string& function,
                   absl::flat_hash_set<std::string>* seen) {
    for (const Node* n : graph.Nodes()) {
      if (!answer_.proved()) return;
      if (n->def() == nullptr || n->Is(kSameForAll) || n->Is(kReadsState) || n->Is(kDrawsNumbers)) {
        continue;  // what no result needs may draw numbers
      }
      const bool enters = EntersFunction(graph, *n);
      if (n->def()->stateful && !enters) {
        const Frame here{graph, nullptr, function, {}};
        return Fail(here, *n, "changes or keeps state, which requests of one batch would share");
      }
      ForEachCallee(*graph.library(), *n, [&](absl::string_view name) {
        const Function* f = graph.library()->Find(name);
        if (f != nullptr && f->body != nullptr && seen->emplace(name).second) {
          FindEffects(*f->body, f->name(), seen);
        }
      });
    }
  }

  // Nodes that results need, in order.
  static std::vector<const Node*> Needed(const Graph& graph, const std::vector<Endpoint>& results) {
    absl::flat_hash_set<const Node*> needed;
    std::vector<const Node*> stack;
    const auto add = [&](const Node* n) {
      if (needed.insert(n).second) stack.push_back(n);
    };
    for (const Endpoint& e : results) add(e.node);
    while (!stack.empty()) {
      const Node* n = stack.back();
      stack.pop_back();
      for (const Endpoint& e : n->inputs()) add(e.node);
    }
    std::vector<const Node*> out;
    const auto order = graph.TopologicalOrder();
    if (!order.ok()) return out;
    for (const Node* n : *order) {
      if (needed.contains(n)) out.push_back(n);
    }
    return out;
  }

  std::vector<RowState> Walk(Frame& frame, const std::vector<Endpoint>& args,
                             const std::vector<RowState>& given,
                             const std::vector<Endpoint>& results) {
    for (size_t i = 0; i < args.size() && i < given.size(); ++i) {
      frame.states[{args[i].node, args[i].port}] = given[i];
    }
    for (const Node* n : Needed(frame.graph, results)) {
      if (!n->Is("_Arg")) Visit(frame, *n);
      if (!answer_.proved()) return {};
    }
    std::vector<RowState> out;
    for (const Endpoint& e : results) out.push_back(frame.states[{e.node, e.port}]);
    return out;
  }

  void Visit(Frame& frame, const Node& n) {
    std::vector<RowState> in;
    bool whole = true;
    for (const Endpoint& e : n.inputs()) {
      in.push_back(frame.states[{e.node, e.port}]);
      whole = whole && in.back().kind == RowKind::kWhole;
    }
    if (n.def() == nullptr) return Fail(frame, n, "is an op that nobody defines");
    if (n.Is(kDrawsNumbers)) return FailNumbers(frame, n);
    if (n.Is(kControlFlow) && !n.Is("Switch") && !n.Is("Merge")) {
      return Fail(frame, n, "is a loop of TensorFlow 1, through which rows are not followed");
    }
    RowNode node(n, std::move(in), frame.shapes);
    if (n.Is(kIdentityOps)) {
      for (int i = 0; i < n.num_inputs() && i < n.num_outputs(); ++i) node.Set(i, node.in(i));
      return Keep(frame, node);
    }
    const RowRule* rule = FindRowRule(n);
    const bool makes_list = n.Is("EmptyTensorList") || n.Is("TensorListReserve");
    if (whole && !makes_list) {
      // What it calls is not entered: nothing there has to do with rows but the random numbers.
      if (FindNumbers(frame.graph, n)) return FailNumbers(frame, n);
      return Keep(frame, node);
    }
    if (n.Is("Rank")) return Keep(frame, node);
    const bool item = n.Is("TensorListGetItem") || n.Is("TensorListSetItem");
    if (item && IsOfRows(node) && node.in(1).kind != RowKind::kPlace) {
      if (AskForPlace(frame, n)) return;
    }
    const bool at_place = item && node.in(1).kind == RowKind::kPlace;
    if (node.Has(RowKind::kOneRow) && !at_place) return VisitOneRow(frame, node);
    if (node.Has(RowKind::kPlace) && !at_place) {
      std::vector<RowState> sizes;
      for (int i = 0; i < n.num_inputs(); ++i) {
        sizes.push_back(node.in(i).kind == RowKind::kPlace ? RowState::Sizes({-1}) : node.in(i));
      }
      RowNode as_sizes(n, std::move(sizes), frame.shapes);
      return VisitOp(frame, as_sizes, rule);
    }
    VisitOp(frame, node, rule);
  }

  void VisitOp(Frame& frame, RowNode& node, const RowRule* rule) {
    const Node& n = node.node();
    if (EntersFunction(frame.graph, n)) return VisitCall(frame, node);
    if (n.Is("Switch") || n.Is("Merge")) return VisitSwitch(frame, node);
    const bool only_sizes = std::ranges::all_of(Inputs(node), [](const RowState& s) {
      return s.kind == RowKind::kWhole || s.kind == RowKind::kSizes;
    });
    if (only_sizes && (rule == nullptr || !rule->sizes_too) &&
        !(n.Is("EmptyTensorList") || n.Is("TensorListReserve"))) {
      FollowSizes(node);
      return Keep(frame, node);
    }
    if (rule == nullptr) return Fail(frame, n, "is not known to treat rows by themselves");
    if (const std::string why = rule->apply(node); !why.empty()) return Fail(frame, n, why);
    if (frame.caller == nullptr && node.Has(RowKind::kRows)) Count(n);
    Keep(frame, node);
  }

  static std::vector<RowState> Inputs(const RowNode& node) {
    std::vector<RowState> out;
    for (int i = 0; i < node.inputs(); ++i) out.push_back(node.in(i));
    return out;
  }

  // A state is only kept where the shapes, as far as they are known, say the same.
  void Keep(Frame& frame, const RowNode& node) {
    const Node& n = node.node();
    for (int port = 0; port < n.num_outputs(); ++port) {
      const RowState& s = node.out()[port];
      if (s.kind == RowKind::kRows && !Agrees(node, node.output(port), s)) {
        return Fail(frame, n, "has a shape that does not follow the number of rows");
      }
      frame.states[{&n, port}] = s;
    }
  }
  static bool Agrees(const RowNode& node, Endpoint e, const RowState& s) {
    const int rank = node.rank(e);
    if (rank < 0) return true;
    if (s.axis >= rank) return false;
    const int64_t each = node.PerRow(e, s.axis);
    return node.Dim(e, s.axis) < 0 && (each == 0 || each == s.outer * s.inner);
  }

  // ---- random numbers

  void FailNumbers(const Frame& frame, const Node& n) {
    Fail(frame, n, "draws random numbers, which requests of one batch would share");
  }
  // Does any function that the node calls draw some?
  bool FindNumbers(const Graph& graph, const Node& n) {
    bool found = false;
    ForEachCallee(*graph.library(), n, [&](absl::string_view name) {
      const Function* f = graph.library()->Find(name);
      if (f == nullptr || f->body == nullptr || !draws_.try_emplace(name, false).second) {
        found = found || draws_[name];
        return;
      }
      bool inside = false;
      for (const Node* each : f->body->Nodes()) {
        inside = inside || each->Is(kDrawsNumbers) || FindNumbers(*f->body, *each);
      }
      draws_[name] = inside;
      found = found || inside;
    });
    return found;
  }

  // ---- loops over rows

  static bool IsOfRows(const RowNode& node) {
    return node.in(0).kind == RowKind::kRowList ||
           (node.inputs() > 2 && node.in(2).kind == RowKind::kOneRow &&
            node.in(0).kind == RowKind::kEmptyList);
  }
  // Marks the loop's argument that chooses the item as the place of a row; the loop is then walked
  // anew. False where it is none, or is marked.
  static bool AskForPlace(Frame& frame, const Node& n) {
    const Endpoint index = BehindIdentities(n.inputs()[1]);
    if (frame.places == nullptr || !index.node->Is("_Arg")) return false;
    return frame.places->insert(static_cast<int>(index.node->Int("index"))).second;
  }
  void VisitOneRow(Frame& frame, RowNode& node) {
    int place = -1;
    for (const RowState& s : Inputs(node)) {
      if (s.kind == RowKind::kOneRow) {
        if (place >= 0 && s.axis != place) {
          return Fail(frame, node.node(), "computes with rows of different places");
        }
        place = s.axis;
        continue;
      }
      if (s.kind == RowKind::kWhole || s.kind == RowKind::kEmptyList) {
        continue;
      }
      return Fail(frame, node.node(), absl::StrCat("computes with one row and ", RowStateText(s)));
    }
    if (FindNumbers(frame.graph, node.node())) return FailNumbers(frame, node.node());
    node.SetAll({RowKind::kOneRow, place, 1, 1, {}});
    Keep(frame, node);
  }

  // ---- calls

  void VisitSwitch(Frame& frame, RowNode& node) {
    const Node& n = node.node();
    if (n.Is("Switch")) {
      if (!node.whole(1)) return Fail(frame, n, "chooses what runs by rows or their number");
      node.SetAll(node.in(0));
      return Keep(frame, node);
    }
    RowState all = node.in(0);
    for (int i = 1; i < node.inputs(); ++i) {
      if (!JoinRowStates(all, node.in(i), &all)) {
        return Fail(frame, n, "takes rows from one side and others from the other");
      }
    }
    node.Set(0, all);
    Keep(frame, node);
  }

  void VisitCall(Frame& frame, RowNode& node) {
    const Node& n = node.node();
    if (frame.depth >= kMaxRowDepth) return Fail(frame, n, "is nested too deep");
    if (IsLoop(n)) return VisitLoop(frame, node);
    if (IsBranch(n)) return VisitBranch(frame, node);
    const FuncAttr* f = n.Func("f");
    const bool named = IsPartitionedCall(n) || n.Is("TPUPartitionedCall");
    std::vector<RowState> args = Inputs(node);
    if (n.Is("TPUPartitionedCall") && !args.empty()) args.pop_back();  // the core to run on
    const std::string name = named ? (f != nullptr ? f->name : "") : std::string(n.op());
    std::vector<RowState> results = Call(frame, n, name, args, nullptr);
    SetResults(frame, node, results);
  }

  void SetResults(Frame& frame, RowNode& node, const std::vector<RowState>& results) {
    if (!answer_.proved()) return;
    for (int i = 0; i < node.node().num_outputs() && i < std::ssize(results); ++i) {
      node.Set(i, results[i]);
    }
    Keep(frame, node);
  }

  std::vector<RowState> Call(Frame& frame, const Node& n, const std::string& name,
                             const std::vector<RowState>& args, std::set<int>* places) {
    const Function* f = frame.graph.library()->Find(name);
    if (f == nullptr || f->body == nullptr) {
      Fail(frame, n, absl::StrCat("calls function '", name, "', which is not there"));
      return {};
    }
    static const auto* unknown = new ShapeTable;
    const auto table = [&](const ModelShapes& shapes) {
      auto it = shapes.functions.find(name);
      return it == shapes.functions.end() ? unknown : &it->second;
    };
    Frame inner{*f->body, &frame,         name, {table(few_), table(many_), q_.few, q_.many},
                places,   frame.depth + 1};
    return Walk(inner, f->FlatArguments(), args, f->FlatResults());
  }

  void VisitBranch(Frame& frame, RowNode& node) {
    const Node& n = node.node();
    if (!node.whole(0) && !node.sizes(0)) {
      return Fail(frame, n, "chooses by rows what runs for all of them");
    }
    std::vector<FuncAttr> branches = n.Get<std::vector<FuncAttr>>("branches", {});
    for (absl::string_view name : {"then_branch", "else_branch"}) {
      if (const FuncAttr* f = n.Func(name)) branches.push_back(*f);
    }
    std::vector<RowState> args = Inputs(node), results;
    args.erase(args.begin());
    for (size_t b = 0; b < branches.size(); ++b) {
      const std::vector<RowState> mine = Call(frame, n, branches[b].name, args, nullptr);
      if (!answer_.proved()) return;
      if (b == 0) results = mine;
      for (size_t i = 0; i < results.size() && i < mine.size(); ++i) {
        if (!JoinRowStates(results[i], mine[i], &results[i])) {
          return Fail(frame, n, "gives rows in one branch and others in the other");
        }
      }
    }
    for (RowState& s : results) {
      if (node.whole(0)) break;
      if (s.kind != RowKind::kWhole && s.kind != RowKind::kSizes) {
        return Fail(frame, n, "chooses by the number of rows what runs");
      }
      s = RowState::Sizes();
    }
    SetResults(frame, node, results);
  }

  // States that hold before and after every round.
  void VisitLoop(Frame& frame, RowNode& node) {
    const Node& n = node.node();
    const FuncAttr *body = n.Func("body"), *cond = n.Func("cond");
    const Function* f = body == nullptr ? nullptr : frame.graph.library()->Find(body->name);
    if (f == nullptr || f->body == nullptr || cond == nullptr) {
      return Fail(frame, n, "has no body or condition");
    }
    const std::vector<Endpoint> arguments = f->FlatArguments(), ends = f->FlatResults();
    std::vector<RowState> states = Inputs(node);
    std::set<int> places;
    std::set<int> counts;  // arguments that depend on the number of rounds, which rows give
    for (int round = 0; round < kMaxRowRounds; ++round) {
      for (int i : places) {
        if (states[i].kind != RowKind::kWhole && states[i].kind != RowKind::kSizes &&
            states[i].kind != RowKind::kPlace) {
          return Fail(frame, n, "begins at a row that depends on rows");
        }
        states[i] = {RowKind::kPlace, i, 1, 1, {}};
      }
      const size_t known_places = places.size();
      std::vector<RowState> next = Call(frame, n, body->name, states, &places);
      if (places.size() != known_places) {
        answer_.why_not.clear();
        continue;
      }
      if (!answer_.proved()) return;
      bool settled = true;
      for (size_t i = 0; i < states.size() && i < next.size(); ++i) {
        if (arguments[i] == ends[i]) continue;
        if (states[i].kind == RowKind::kPlace) {
          const RowKind after = next[i].kind;
          if (after == RowKind::kWhole || after == RowKind::kSizes || after == RowKind::kPlace) {
            continue;
          }
          return Fail(frame, n, "goes on to a row that depends on rows");
        }
        RowState joined;
        if (!JoinRowStates(states[i], next[i], &joined)) {
          return Fail(
              frame, n,
              absl::StrCat("carries ", RowStateText(states[i]), " into its body and gets ",
                           RowStateText(next[i]), " back for '", arguments[i].node->name(), "'"));
        }
        settled = settled && joined == states[i];
        states[i] = joined;
      }
      if (!settled) continue;
      const std::vector<RowState> decides = Call(frame, n, cond->name, states, nullptr);
      if (!answer_.proved()) return;
      if (decides.empty() || decides[0].kind == RowKind::kWhole) {
        return SetResults(frame, node, AfterLoop(states));
      }
      if (decides[0].kind != RowKind::kSizes) {
        return Fail(frame, n, "goes on until its condition holds for all rows");
      }
      // One round for each row, or so: what counts rounds depends on the number of rows.
      bool more = false;
      for (size_t i = 0; i < states.size(); ++i) {
        if (arguments[i] == ends[i]) continue;
        if (states[i].kind == RowKind::kWhole) {
          states[i] = RowState::Sizes();
          more = true;
        } else if (states[i].kind == RowKind::kRows || states[i].kind == RowKind::kList) {
          return Fail(frame, n, "computes on all rows as often as there are rows");
        }
      }
      if (!more) return SetResults(frame, node, AfterLoop(states));
    }
    Fail(frame, n, "is a loop whose states do not settle");
  }
  static std::vector<RowState> AfterLoop(std::vector<RowState> states) {
    for (RowState& s : states) {
      if (s.kind == RowKind::kPlace) s = RowState::Sizes();
    }
    return states;
  }

  // A product with constant weights uses each of them once for each position of its result.
  void Count(const Node& n) {
    const PartialShape& s = many_.graph.of({const_cast<Node*>(&n), 0});
    if (!s.fully_known() || s.rank() == 0) return;
    const Shape shape = s.ToShape();
    const Node* second = n.num_inputs() > 1 ? n.inputs()[1].node : nullptr;
    const auto weights = second != nullptr ? ConstantTensor(*second) : std::nullopt;
    const int64_t elements = shape.num_elements();
    const bool product = weights && weights->rank() > 1 && shape.back() > 0;
    answer_.work += product ? elements / shape.back() * weights->num_elements() : elements;
  }

  const RowQuestion& q_;
  absl::flat_hash_map<std::string, bool> draws_;  // functions that draw random numbers
  ModelShapes few_, many_;
  RowAnswer answer_;
};

}  // namespace

RowAnswer FollowRows(const RowQuestion& question) { return RowWalk(question).Run(); }

}  // namespace smelt
