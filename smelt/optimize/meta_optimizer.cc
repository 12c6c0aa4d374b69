#include "smelt/optimize/meta_optimizer.h"

#include <algorithm>
#include <iterator>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/clock.h"
#include "smelt/graph/function_ops.h"
#include "smelt/graph/verify.h"
#include "smelt/optimize/function_item.h"
#include "smelt/optimize/inline_policy.h"
#include "smelt/optimize/instantiate.h"
#include "smelt/optimize/plan_passes.h"

namespace smelt {
namespace {

// A node moves from branch to branch inside of it that often; TensorFlow looks as deep.
constexpr int kMostGenerations = 16;

constexpr OpSet kCompiles = {"XlaLaunch", "XlaLaunchV2", "TPUPartitionedCall", "_TPUReplicate"};

int64_t CountEdges(const Graph& graph) {
  int64_t edges = 0;
  for (int id = 0; id < graph.max_id(); ++id) {
    if (const Node* n = graph.NodeOf(id)) {
      edges += static_cast<int64_t>(n->inputs().size() + n->control_inputs().size());
    }
  }
  return edges;
}

class MetaOptimizer {
 public:
  MetaOptimizer(GraphItem& item, const MetaOptions& options) : item_(item), options_(options) {
    const int64_t timeout = options.config.meta_optimizer_timeout_ms;
    if (timeout > 0) deadline_ = absl::Now() + absl::Milliseconds(timeout);
  }

  StatusOr<OptimizationReport> Run() {
    if (options_.config.disable_meta_optimizer) return std::move(report_);
    RETURN_IF_ERROR(VerifyChanges(*item_.graph));
    ClearMarks(*item_.graph);
    RETURN_IF_ERROR(item_.Mark());
    PassContext context = Context();
    context.fetch_known = !item_.fetches.empty();
    context.item_id = item_.id;
    context.fetches = item_.fetches;
    context.item = &item_;
    DropUncalledFunctions(/*siblings=*/true);
    // What others call by name as well need not be there twice.
    const absl::flat_hash_set<std::string> kept(item_.kept_functions.begin(),
                                                item_.kept_functions.end());
    if (!kept.empty()) {
      context.keep_call = [&](const Function& f) { return kept.contains(f.name()); };
    }
    RETURN_IF_ERROR(OptimizeGraph(*item_.graph, "", context));
    if (absl::Now() > deadline_) return DeadlineIsOver();
    ClearMarks(*item_.graph);
    ReassignColocation(*item_.graph);
    if (item_.optimize_function_library) {
      RETURN_IF_ERROR(OptimizeLibrary());
      RETURN_IF_ERROR(OptimizeAtTheEnd(context));
    }
    DropUncalledFunctions(options_.config.disable_tfg_optimizer);
    return std::move(report_);
  }

 private:
  // Functions that the graph calls or that are kept, and those that these call; with `siblings`
  // what implementation_selector may take in their place as well.
  absl::flat_hash_set<std::string> CalledOrKept(bool siblings) const {
    const FunctionLibrary& library = *item_.graph->library();
    absl::flat_hash_set<std::string> called;
    absl::flat_hash_map<std::string, std::vector<std::string>> of_interface;
    const auto interface_of = [](const Function& f) {
      const Attr* attr = f.attrs.Find("api_implements");
      return attr == nullptr ? nullptr : attr->get<std::string>();
    };
    if (siblings) {
      for (const Function* f : library.Functions()) {
        if (const auto* name = interface_of(*f)) of_interface[*name].push_back(f->name());
      }
    }
    std::vector<std::string> todo = CalledFunctions(*item_.graph);
    todo.insert(todo.end(), item_.kept_functions.begin(), item_.kept_functions.end());
    while (!todo.empty()) {
      const std::string name = std::move(todo.back());
      todo.pop_back();
      const Function* f = library.Find(name);
      if (f == nullptr || !called.insert(name).second) continue;
      if (const auto* interface = interface_of(*f)) {
        // Once for each interface.
        const auto others = of_interface.extract(*interface);
        if (!others.empty())
          todo.insert(todo.end(), others.mapped().begin(), others.mapped().end());
      }
      for (std::string& callee : CalledFunctions(*f->body)) todo.push_back(std::move(callee));
      ForEachFunc(f->attrs, [&](const FuncAttr& named) { todo.push_back(named.name); });
      const auto gradient = library.gradients.find(name);
      if (gradient != library.gradients.end()) todo.push_back(gradient->second);
    }
    return called;
  }

  // TensorFlow's TFG passes, which are the last, drop what nobody calls any more.
  void DropUncalledFunctions(bool siblings) {
    FunctionLibrary& library = *item_.graph->library();
    const auto called = CalledOrKept(siblings);
    std::vector<std::string> dropped;
    for (const Function* f : library.Functions()) {
      if (!called.contains(f->name())) dropped.push_back(f->name());
    }
    for (const std::string& name : dropped) {
      library.Remove(name);
      library.gradients.erase(name);
    }
  }

  // Each function by itself, callees of new calls too, until all that are called are done.
  Status OptimizeLibrary() {
    FunctionLibrary& library = *item_.graph->library();
    absl::flat_hash_set<std::string> done;
    FindCompiled();
    MarkCalleesOfDataSets();
    for (bool found = true; found;) {
      found = false;
      const auto called = CalledOrKept(options_.config.disable_tfg_optimizer);
      // In the order of the library, so that results do not depend on hashes.
      std::vector<Function*> functions = library.Functions();
      for (Function* f : functions) {
        if (!called.contains(f->name()) || !done.insert(f->name()).second) continue;
        if (!MayOptimize(*f)) continue;
        found = true;
        RETURN_IF_ERROR(OptimizeFunction(*f));
      }
    }
    return OkStatus();
  }

  // Functions that a compiler for accelerators gets, and those that they call.
  void FindCompiled() {
    const FunctionLibrary& library = *item_.graph->library();
    std::vector<std::string> todo;
    const auto look = [&](const Graph& graph) {
      for (const Node* n : graph.Nodes()) {
        if (!n->Is(kCompiles) && !IsForXla(n->attrs())) continue;
        ForEachCallee(library, *n, [&](absl::string_view name) { todo.emplace_back(name); });
      }
    };
    look(*item_.graph);
    for (const Function* f : library.Functions()) {
      if (IsForXla(f->attrs)) todo.push_back(f->name());
      look(*f->body);
    }
    while (!todo.empty()) {
      const Function* f = library.Find(todo.back());
      todo.pop_back();
      if (f == nullptr || !compiled_.insert(f->name()).second) continue;
      for (std::string& callee : CalledFunctions(*f->body)) todo.push_back(std::move(callee));
    }
  }

  // What functions of data sets call belongs to the data set too.
  void MarkCalleesOfDataSets() {
    const FunctionLibrary& library = *item_.graph->library();
    std::vector<Function*> todo;
    for (Function* f : library.Functions()) {
      if (IsOfDataSet(*f)) todo.push_back(f);
    }
    while (!todo.empty()) {
      const Function* f = todo.back();
      todo.pop_back();
      for (const std::string& name : CalledFunctions(*f->body)) {
        Function* callee = library.Find(name);
        if (callee == nullptr || IsOfDataSet(*callee)) continue;
        callee->attrs.Set("_tf_data_function", true);
        todo.push_back(callee);
      }
    }
  }

  static bool IsOfDataSet(const Function& f) {
    const Attr* mark = f.attrs.Find("_tf_data_function");
    const bool* marked = mark == nullptr ? nullptr : mark->get<bool>();
    return marked != nullptr && *marked;
  }

  // Bodies with holes (a type that the caller gives) are optimized where they are called; those of
  // data sets by the data set.
  static bool MayOptimize(const Function& f) {
    if (IsOfDataSet(f)) return false;
    for (const Node* n : f.body->Nodes()) {
      for (const auto& [name, attr] : n->attrs()) {
        if (attr.get<PlaceholderAttr>() != nullptr) return false;
      }
    }
    return true;
  }

  // The passes of the end, for graphs with branches, the one kind of node that these are about.
  // What a function needs of its arguments is known when its own branches are done.
  Status OptimizeAtTheEnd(const PassContext& of_item) {
    std::vector<Pass> passes;
    for (const PassRow& row : AllPasses()) {
      if (row.turn == PassTurn::kAtTheEnd && row.wanted(options_.config))
        passes.push_back(row.pass);
    }
    if (passes.empty() || IsTooSmall(*item_.graph)) return OkStatus();
    FunctionLibrary& library = *item_.graph->library();
    for (const std::string& name : CalleesFirst()) {
      // New functions by how many copies of copies they are.
      std::vector<std::pair<std::string, int>> todo = {{name, 0}};
      while (!todo.empty()) {
        const auto [now, generation] = std::move(todo.back());
        todo.pop_back();
        Function* f = library.Find(now);
        if (!HasBranches(*f->body) || HasPlaceholders(*f->body)) continue;
        const size_t before = library.Functions().size();
        RETURN_IF_ERROR(OptimizeFunction(*f, passes));
        const std::vector<Function*> functions = library.Functions();
        for (size_t i = before; i < functions.size(); ++i) {
          inlinable_nodes_ -= functions[i]->body->num_nodes();
          if (generation < kMostGenerations)
            todo.emplace_back(functions[i]->name(), generation + 1);
        }
        inlinable_nodes_ = std::max<int64_t>(0, inlinable_nodes_);
      }
    }
    if (!HasBranches(*item_.graph)) return OkStatus();
    RETURN_IF_ERROR(item_.Mark());
    RETURN_IF_ERROR(RunAndReport(passes, *item_.graph, "", of_item));
    ClearMarks(*item_.graph);
    return OkStatus();
  }

  static bool HasBranches(const Graph& graph) {
    return std::ranges::any_of(graph.Nodes(), [](const Node* n) { return IsBranch(*n); });
  }

  // The functions that are called or kept, each behind those that it calls, except in circles.
  std::vector<std::string> CalleesFirst() const {
    struct Open {
      std::string name;
      std::vector<std::string> callees;
      size_t next = 0;
    };
    const FunctionLibrary& library = *item_.graph->library();
    std::vector<std::string> order;
    absl::flat_hash_set<std::string> seen;
    std::vector<Open> stack = {{"", CalledFunctions(*item_.graph)}};
    auto& first = stack[0].callees;
    first.insert(first.end(), item_.kept_functions.begin(), item_.kept_functions.end());
    while (!stack.empty()) {
      Open& top = stack.back();
      if (top.next == top.callees.size()) {
        if (!top.name.empty()) order.push_back(std::move(top.name));
        stack.pop_back();
        continue;
      }
      const std::string callee = std::move(top.callees[top.next++]);
      const Function* f = library.Find(callee);
      if (f == nullptr || !seen.insert(callee).second) continue;
      stack.push_back({callee, CalledFunctions(*f->body)});
    }
    return order;
  }

  // Runs `passes`, or, where there are none, those of the configuration.
  Status OptimizeFunction(Function& f, std::span<const Pass> passes = {}) {
    PassContext context = Context();
    const auto& gradients = item_.graph->library()->gradients;
    context.allow_non_differentiable_rewrites = !gradients.contains(f.name());
    context.item_id = f.name();
    context.is_body = true;
    context.lower_control_flow = !compiled_.contains(f.name());
    FunctionItem item(f);
    const auto kept = item_.kept_in_functions.find(f.name());
    RETURN_IF_ERROR(item.Open(kept == item_.kept_in_functions.end() ? std::vector<std::string>()
                                                                    : kept->second));
    std::vector<std::string> fetches;
    for (const Node* n : item.body().Nodes()) {
      if (n->Is("_Retval")) fetches.push_back(n->name());
    }
    context.fetches = fetches;
    context.asked_for = &item.asked_for();
    if (passes.empty()) {
      RETURN_IF_ERROR(OptimizeGraph(item.body(), f.name(), context));
    } else {
      RETURN_IF_ERROR(RunAndReport(passes, item.body(), f.name(), context));
    }
    return item.Close();
  }

  PassContext Context() const {
    PassContext context;
    context.config = options_.config;
    context.devices = options_.devices;
    context.versions = item_.versions;
    context.for_execution = false;
    context.device_type = "";
    context.deadline = deadline_;
    context.log = options_.log;
    context.inlinable_nodes = std::min(kMaxInlinedNodes, inlinable_nodes_);
    return context;
  }

  bool IsTooSmall(const Graph& graph) const {
    const int configured = options_.config.min_graph_nodes;
    return graph.num_nodes() < (configured == 0 ? kDefaultMinGraphNodes : configured);
  }

  void Show(const std::string& name, const Graph& graph) {
    if (shown_.insert(name).second && options_.before) options_.before(name, graph);
  }

  Status OptimizeGraph(Graph& graph, const std::string& name, const PassContext& context) {
    Show(name, graph);
    if (IsTooSmall(graph)) return OkStatus();
    ASSIGN_OR_RETURN(PassPlan plan, PlanPasses(options_.config, graph));
    if (name.empty()) report_.unknown_optimizers = std::move(plan.unknown);
    return RunAndReport(plan.passes, graph, name, context);
  }

  Status RunAndReport(std::span<const Pass> passes, Graph& graph, const std::string& name,
                      const PassContext& context) {
    Show(name, graph);
    GraphReport report;
    report.graph = name;
    int64_t edges = CountEdges(graph);
    PipelineOptions pipeline;
    pipeline.verify = VerifyPasses::kUndo;
    pipeline.undo_failures = true;
    pipeline.graph = name;
    if (options_.config.fail_on_optimizer_errors) {
      pipeline.verify = VerifyPasses::kFail;
      pipeline.undo_failures = false;
    }
    if (options_.config.verify_between_optimizers || options_.config.verify_at_the_end) {
      pipeline.verify = VerifyPasses::kRefuse;
    }
    pipeline.after = [&](const PassRun& run, const Graph& now) {
      GraphReport::Pass pass{std::string(run.pass), run.outcome, run.time, run.nodes_before,
                             run.nodes_after,       edges,       edges,    run.why_undone};
      if (run.outcome == PassRun::Outcome::kChanged) pass.edges_after = edges = CountEdges(now);
      // Only inlining adds many.
      inlinable_nodes_ -= std::max(0, run.nodes_after - run.nodes_before);
      inlinable_nodes_ = std::max<int64_t>(0, inlinable_nodes_);
      report.passes.push_back(std::move(pass));
      if (options_.after) options_.after(run, now);
    };
    RETURN_IF_ERROR(RunPasses(passes, graph, context, pipeline));
    DropWrongOutputShapes(graph);
    const auto [at, first] = report_of_.try_emplace(name, report_.graphs.size());
    if (first) {
      report_.graphs.push_back(std::move(report));
    } else {
      auto& before = report_.graphs[at->second].passes;
      std::ranges::move(report.passes, std::back_inserter(before));
    }
    return OkStatus();
  }

  GraphItem& item_;
  const MetaOptions& options_;
  absl::Time deadline_ = absl::InfiniteFuture();
  int64_t inlinable_nodes_ = kMaxInlinedNodesOfItem;
  absl::flat_hash_set<std::string> compiled_;           // by FindCompiled
  absl::flat_hash_set<std::string> shown_;              // graphs that `before` saw
  absl::flat_hash_map<std::string, size_t> report_of_;  // by graph: its place in the report
  OptimizationReport report_;
};

}  // namespace

StatusOr<OptimizationReport> OptimizeItem(GraphItem& item, const MetaOptions& options) {
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(OptimizationReport report, MetaOptimizer(item, options).Run());
  report.time = absl::Now() - start;
  return report;
}

}  // namespace smelt
