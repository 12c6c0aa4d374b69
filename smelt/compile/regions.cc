#include "smelt/compile/regions.h"

#include <algorithm>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/graph/copy_node.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/graph/shape/values.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

using Port = std::pair<int, int>;

bool IsNumber(Dtype t) { return !IsRef(t) && IsPod(t); }

// Runs of compilable nodes in an order in which inputs come before readers: all that can run before
// the next other node must.
StatusOr<std::vector<std::vector<Node*>>> Runs(const Graph& graph) {
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  std::vector<int> pending(static_cast<size_t>(graph.max_id()), 0);
  std::deque<Node*> ready[2];  // others, compilable ones
  const auto add = [&](Node* n) { ready[IsCompilable(*n) ? 1 : 0].push_back(n); };
  for (Node* n : order) {
    pending[static_cast<size_t>(n->id())] =
        n->num_inputs() + static_cast<int>(n->control_inputs().size());
    if (pending[static_cast<size_t>(n->id())] == 0) add(n);
  }
  std::vector<std::vector<Node*>> runs;
  while (!ready[0].empty() || !ready[1].empty()) {
    for (const int kind : {0, 1}) {
      if (kind == 1 && !ready[1].empty()) runs.emplace_back();
      while (!ready[kind].empty()) {
        Node* n = ready[kind].front();
        ready[kind].pop_front();
        if (kind == 1) runs.back().push_back(n);
        for (const Use& use : n->uses()) {
          if (--pending[static_cast<size_t>(use.node->id())] == 0) add(use.node);
        }
      }
    }
  }
  return runs;
}

constexpr OpSet kReadsShapes = {"Shape", "ShapeN", "Size", "Rank"};
constexpr OpSet kShapeArithmetic = {
    "Add",      "AddV2",   "Cast",         "ConcatV2", "ExpandDims", "FloorDiv", "GatherV2",
    "Identity", "Maximum", "Minimum",      "Mul",      "Pack",       "Prod",     "Reshape",
    "Slice",    "Squeeze", "StridedSlice", "Sub",      "Unpack"};

// What is computed of shapes is computed in each run that reads it, of the tensors whose shapes it
// needs: when these are known no run of the program computes it, where as an argument it would hide
// what shapes follow from it.
class ShapeCopies {
 public:
  ShapeCopies(Graph& graph, std::vector<std::vector<Node*>>& runs) : graph_(graph), runs_(runs) {}

  Status Add() {
    for (size_t i = 0; i < runs_.size(); ++i) {
      for (const Node* n : runs_[i]) run_of_[n] = i;
    }
    // Inputs first, so that nobody looks far back.
    for (const auto& run : runs_) {
      for (const Node* n : run) OfShapes(*n);
    }
    for (size_t i = 0; i < runs_.size(); ++i) {
      run_ = i;
      copies_.clear();
      added_.clear();
      for (Node* n : runs_[i]) {
        RETURN_IF_ERROR(Renew(n));
      }
      runs_[i].insert(runs_[i].begin(), added_.begin(), added_.end());
    }
    return OkStatus();
  }

 private:
  // Is the node of another run, and made of shapes and constants alone?
  bool IsForeignShape(const Node& n) {
    const auto run = run_of_.find(&n);
    return run != run_of_.end() && run->second != run_ && OfShapes(n);
  }
  bool OfShapes(const Node& n) {
    if (const auto known = depth_.find(&n); known != depth_.end()) return known->second > 0;
    int depth = 0;
    if (run_of_.contains(&n) && n.control_inputs().empty() &&
        std::ranges::all_of(n.output_types, IsIndexType)) {
      if (n.Is(kReadsShapes)) {
        depth = 1;
      } else if (n.Is(kShapeArithmetic)) {
        depth = DepthOf(n);
      }
    }
    depth_[&n] = depth;
    return depth > 0;
  }
  // One more than that of its inputs; 0 where one is not made of shapes, or it is too far from
  // them.
  int DepthOf(const Node& n) {
    constexpr int kMostSteps = 64;
    int depth = 1;
    for (const Endpoint& e : n.inputs()) {
      if (e.node->Is("Const")) continue;
      if (!OfShapes(*e.node)) return 0;
      depth = std::max(depth, depth_[e.node] + 1);
    }
    return depth <= kMostSteps ? depth : 0;
  }

  // The node's inputs from copies.
  Status Renew(Node* n) {
    std::vector<Endpoint> inputs(n->inputs().begin(), n->inputs().end());
    bool changed = false;
    for (Endpoint& e : inputs) {
      if (!IsForeignShape(*e.node)) continue;
      ASSIGN_OR_RETURN(e.node, CopyOf(*e.node));
      changed = true;
    }
    if (changed) graph_.SetInputs(n, inputs);
    return OkStatus();
  }
  StatusOr<Node*> CopyOf(const Node& n) {
    if (const auto it = copies_.find(&n); it != copies_.end()) return it->second;
    std::vector<Endpoint> inputs(n.inputs().begin(), n.inputs().end());
    if (!n.Is(kReadsShapes)) {
      for (Endpoint& e : inputs) {
        if (e.node->Is("Const")) continue;
        ASSIGN_OR_RETURN(e.node, CopyOf(*e.node));
      }
    }
    ASSIGN_OR_RETURN(Node * copy, AddCopy(graph_, n, n.name()));
    graph_.SetInputs(copy, inputs);
    added_.push_back(copy);
    return copies_[&n] = copy;
  }

  Graph& graph_;
  std::vector<std::vector<Node*>>& runs_;
  size_t run_ = 0;
  absl::flat_hash_map<const Node*, size_t> run_of_;
  absl::flat_hash_map<const Node*, int> depth_;  // steps from shapes; 0: made of other things too
  absl::flat_hash_map<const Node*, Node*> copies_;  // in this run
  std::vector<Node*> added_;                        // each behind what it reads
};

bool HasDataUse(const Node& n) {
  return std::ranges::any_of(n.uses(), [](const Use& use) { return !use.is_control(); });
}

// Constants that wait for what has no effect, as constant folding leaves them, wait for nothing:
// one that a region waits for would end the region before. Where branches of version 1 may be
// dead, waiting tells whether a constant is. What else nobody reads stays waited for, as it may
// fail.
void FreeConstants(Graph& graph) {
  const auto nodes = graph.Nodes();
  if (std::ranges::any_of(nodes, [](const Node* n) { return n->Is(kControlFlow); })) return;
  for (Node* n : nodes) {
    if (!n->Is("Const") || n->control_inputs().empty()) continue;
    const bool free = std::ranges::all_of(n->control_inputs(), [](const Node* w) {
      return w->Is({"_Arg", "Const"}) || (IsCompilable(*w) && HasDataUse(*w));
    });
    if (free) graph.SetControlInputs(n, {});
  }
}

class RegionCut {
 public:
  RegionCut(Graph& graph, const std::vector<Node*>& nodes) : graph_(graph), nodes_(nodes) {
    for (const Node* n : nodes) inside_.insert(n);
  }

  StatusOr<Region> Run() {
    Region region;
    region.body = std::make_unique<Graph>(graph_.library());
    body_ = region.body.get();
    for (Node* n : nodes_) RETURN_IF_ERROR(Copy(*n));
    ASSIGN_OR_RETURN(region.node, Replace());
    return region;
  }

 private:
  // Of a variable by reference, what it holds.
  static Dtype TakenType(Endpoint e) {
    return BaseType(e.node->output_types[static_cast<size_t>(e.port)]);
  }
  StatusOr<Endpoint> InBody(Endpoint e) {
    if (const auto it = copies_.find(e.node); it != copies_.end()) {
      return Endpoint{it->second, e.port};
    }
    if (e.node->Is("Const") && e.node->control_inputs().empty()) {
      ASSIGN_OR_RETURN(Node * c, AddCopy(*body_, *e.node, e.node->name()));
      copies_[e.node] = c;
      return Endpoint{c, 0};
    }
    Endpoint& arg = args_[{e.node->id(), e.port}];
    if (arg.node == nullptr) {
      AttrMap attrs;
      attrs.Set("T", TakenType(e));
      attrs.Set("index", static_cast<int64_t>(taken_.size()));
      const std::string name = body_->FreeName(absl::StrCat("_arg_", taken_.size()));
      ASSIGN_OR_RETURN(arg.node, body_->Add(name, "_Arg", {}, std::move(attrs)));
      taken_.push_back(e);
    }
    return arg;
  }

  Status Copy(const Node& n) {
    std::vector<Endpoint> inputs;
    for (const Endpoint& e : n.inputs()) {
      ASSIGN_OR_RETURN(const Endpoint in, InBody(e));
      inputs.push_back(in);
    }
    ASSIGN_OR_RETURN(Node * c, AddCopy(*body_, n, n.name()));
    copies_[&n] = c;
    body_->SetInputs(c, inputs);
    for (Node* w : n.control_inputs()) {
      // What is inside runs in order anyway.
      if (!inside_.contains(w)) waits_.push_back(w);
    }
    for (int p = 0; p < n.num_outputs(); ++p) {
      const bool read = std::ranges::any_of(n.uses(), [&](const Use& use) {
        return !use.is_control() && use.port() == p && !inside_.contains(use.node);
      });
      if (!read) continue;
      AttrMap attrs;
      attrs.Set("T", n.output_types[static_cast<size_t>(p)]);
      attrs.Set("index", static_cast<int64_t>(given_.size()));
      const std::string name = body_->FreeName(absl::StrCat("_retval_", given_.size()));
      RETURN_IF_ERROR(body_->Add(name, "_Retval", {Endpoint{c, p}}, std::move(attrs)).status());
      given_.push_back({const_cast<Node*>(&n), p});
    }
    return OkStatus();
  }

  StatusOr<Node*> Replace() {
    std::vector<Dtype> taken_types, given_types;
    for (const Endpoint& e : taken_) taken_types.push_back(TakenType(e));
    for (const Endpoint& e : given_) {
      given_types.push_back(e.node->output_types[static_cast<size_t>(e.port)]);
    }
    AttrMap attrs;
    attrs.Set("Targs", taken_types);
    attrs.Set("Tresults", given_types);
    ASSIGN_OR_RETURN(Node * program,
                     graph_.Add(graph_.FreeName("_program"), "_Program", taken_, std::move(attrs)));
    graph_.SetControlInputs(program, waits_);
    for (size_t i = 0; i < given_.size(); ++i) {
      graph_.ReplaceAllUses(given_[i], {program, static_cast<int>(i)});
    }
    for (Node* n : nodes_) graph_.ReplaceControlUses(n, program);
    graph_.Remove(std::span<Node* const>(nodes_));
    return program;
  }

  Graph& graph_;
  const std::vector<Node*>& nodes_;
  Graph* body_ = nullptr;
  absl::flat_hash_set<const Node*> inside_;
  absl::flat_hash_map<const Node*, Node*> copies_;
  absl::flat_hash_map<Port, Endpoint> args_;
  std::vector<Endpoint> taken_, given_;
  std::vector<Node*> waits_;
};

}  // namespace

absl::string_view WhyNotCompilable(const Node& n) {
  if (n.def() == nullptr) return "is of an op that is not known";
  if (n.def()->stateful) return "is stateful";
  if (n.num_outputs() == 0) return "has no result";
  if (n.Is("Const") || n.Is("_Arg") || n.Is("_Retval") || n.Is("_Program")) {
    return "is no computation";
  }
  if (n.Is(kControlFlow)) return "is control flow of version 1";
  if (n.Is(kNeverFolded) || n.Is(kStructuralOps)) return "depends on more than its inputs";
  if (n.attrs().Find("_root") != nullptr || n.attrs().Find("_fed") != nullptr) {
    return "is fed, or asked for by name";
  }
  if (!std::ranges::all_of(n.input_types, IsNumber)) return "takes what is no number";
  if (!std::ranges::all_of(n.output_types, IsNumber)) return "gives what is no number";
  bool calls = false;
  ForEachFunc(n.attrs(), [&](const FuncAttr&) { calls = true; });
  if (calls) return "calls a function";
  if (FindShapeRule(n.op_name()) == nullptr) return "has no shape rule";
  return FindKernel(n).ok() ? "" : "has no kernel";
}

bool IsCompilable(const Node& n) { return WhyNotCompilable(n).empty(); }

StatusOr<std::vector<Region>> CutRegions(Graph& graph, int least) {
  FreeConstants(graph);
  ASSIGN_OR_RETURN(auto runs, Runs(graph));
  std::erase_if(runs, [&](const auto& nodes) { return static_cast<int>(nodes.size()) < least; });
  RETURN_IF_ERROR(ShapeCopies(graph, runs).Add());
  std::vector<Region> regions;
  for (const std::vector<Node*>& nodes : runs) {
    ASSIGN_OR_RETURN(Region region, RegionCut(graph, nodes).Run());
    regions.push_back(std::move(region));
  }
  return regions;
}

}  // namespace smelt
