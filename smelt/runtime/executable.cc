#include "smelt/runtime/executable.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "smelt/base/out_of_memory.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/kernels/direct_call.h"
#include "smelt/kernels/resource_types.h"
#include "smelt/optimize/passes.h"
#include "smelt/runtime/dataflow.h"
#include "smelt/runtime/sequential.h"

namespace smelt {
namespace {

constexpr int64_t kMaxArgs = 1 << 20;
// A region of fewer nodes stays as it is: making a program of it costs more than it saves.
constexpr int kLeastRegion = 2;

// Named by traces of the whole node; Item::compiled runs.
constexpr Kernel kProgramKernel = {.op = "_Program", .name = "compiled"};
constexpr Kernel kScanKernel = {.op = "_Scan", .name = "scan"};

StatusOr<const Kernel*> KernelOf(const Node& n, const FunctionLibrary& library) {
  if (n.Is("_Program")) return &kProgramKernel;
  if (n.Is("_Scan")) return &kScanKernel;
  auto kernel = FindKernel(n);
  if (!kernel.ok() && library.Find(n.op()) != nullptr) return DirectCallKernel();
  return kernel;
}

int64_t ConstantBytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Node* n : graph.Nodes()) {
    const TensorValue* value = StatedConstant(*n);
    if (value == nullptr || value->num_elements() < 0) continue;
    bytes += value->num_elements() * static_cast<int64_t>(Tensor::ElementSize(value->dtype));
  }
  return bytes;
}

// What only the dataflow executor runs.
bool NeedsDataflow(const Node& n) {
  return n.Is(kControlFlow) || n.Is("ControlTrigger") || n.Is("_SwitchN");
}

// A topological order, depth first among the nodes that are ready, so that values are read while
// they are in cache; ties go to the node that is first in `order`.
std::vector<Node*> RunningOrder(const std::vector<Node*>& order, int max_id) {
  std::vector<int> pending(max_id, 0);
  std::vector<std::vector<Node*>> readers(max_id);
  for (Node* n : order) {
    for (const Endpoint& e : n->inputs()) readers[e.node->id()].push_back(n);
    for (Node* c : n->control_inputs()) readers[c->id()].push_back(n);
    pending[n->id()] = n->num_inputs() + static_cast<int>(n->control_inputs().size());
  }
  std::vector<Node*> ready, out;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (pending[(*it)->id()] == 0) ready.push_back(*it);
  }
  while (!ready.empty()) {
    Node* n = ready.back();
    ready.pop_back();
    out.push_back(n);
    auto& r = readers[n->id()];
    for (auto it = r.rbegin(); it != r.rend(); ++it) {
      if (--pending[(*it)->id()] == 0) ready.push_back(*it);
    }
  }
  return out;
}

}  // namespace

Status ReadRef(const Tensor& handle, Tensor* value) {
  ASSIGN_OR_RETURN(auto variable, FindResource<Variable>(handle));
  *value = variable->Read();
  if (!value->valid()) {
    return FailedPrecondition("Attempting to use uninitialized value ", variable->name());
  }
  return OkStatus();
}

Status Executable::Build(std::unique_ptr<Graph> graph, std::string function, bool inline_constants,
                         std::vector<Region> regions) {
  graph_ = std::move(graph);
  function_ = std::move(function);
  absl::flat_hash_map<const Node*, std::unique_ptr<Graph>> bodies;
  for (Region& region : regions) bodies[region.node] = std::move(region.body);
  ASSIGN_OR_RETURN(std::vector<Node*> order, graph_->TopologicalOrder());
  if (std::ranges::none_of(order, [](const Node* n) { return NeedsDataflow(*n); })) {
    order = RunningOrder(order, graph_->max_id());
  }
  std::vector<int> first_slot(graph_->max_id(), -1);  // of each node; constants: -2 - index
  std::map<std::string, std::vector<std::string>> missing;
  Status first_missing;
  for (Node* n : order) {
    if (n->Is("_Arg")) {
      const int64_t index = n->Int("index", -1);
      if (index < 0 || index > kMaxArgs) {
        return InvalidArgument("_Arg '", n->name(), "' has index ", index);
      }
      if (static_cast<size_t>(index) >= arg_slots_.size()) {
        arg_slots_.resize(index + 1, -1);
        arg_types_.resize(index + 1, Dtype::kInvalid);
      }
      first_slot[n->id()] = arg_slots_[index] = num_slots_++;
      arg_types_[index] = BaseType(n->output_types[0]);
      continue;
    }
    if (n->Is("_Retval")) {
      const int64_t index = n->Int("index", -1);
      if (index < 0 || index > kMaxArgs) {
        return InvalidArgument("_Retval '", n->name(), "' has index ", index);
      }
      if (static_cast<size_t>(index) >= results_.size()) {
        results_.resize(index + 1, Input{-1, false, false});
      }
      continue;
    }
    // Left where a region took a copy: the bytes are there once.
    if (n->Is("Const") && inline_constants && n->uses().empty()) continue;
    const auto body = bodies.find(n);
    auto kernel = KernelOf(*n, *graph_->library());
    if (!kernel.ok()) {
      missing[std::string(n->op())].push_back(n->name());
      if (first_missing.ok()) first_missing = kernel.status();
      continue;
    }
    if (n->Is("Const") && inline_constants) {
      auto state = (*kernel)->prepare(*n);
      if (!state.ok()) {
        return WithNode(state.status(), function_, *n);
      }
      std::vector<Tensor> out(1);
      Step step;
      OpContext ctx(*n, state->get(), step, {}, {}, std::span<Tensor>(out));
      RETURN_IF_ERROR(OrOutOfMemory([&] { return (*kernel)->run(ctx); }));
      constant_bytes_ += static_cast<int64_t>(out[0].bytes());
      constants_.push_back(std::move(out[0]));
      first_slot[n->id()] = -1 - static_cast<int>(constants_.size());
      continue;
    }
    Item item;
    item.node = n;
    item.kernel = *kernel;
    item.num_inputs = n->num_inputs();
    item.num_outputs = n->num_outputs();
    if ((item.kernel == &kProgramKernel || item.kernel == &kScanKernel) && body == bodies.end()) {
      return Internal(n->op(), " '", n->name(), "' has no body");
    }
    if (body != bodies.end()) {
      constant_bytes_ += ConstantBytes(*body->second);
      item.compiled = n->Is("_Scan") ? MakeCompiledScan(*n, std::move(body->second), function_)
                                     : MakeCompiledRegion(*n, std::move(body->second), function_);
    }
    item.first_output = num_slots_;
    first_slot[n->id()] = num_slots_;
    num_slots_ += n->num_outputs();
    items_.push_back(std::move(item));
  }
  if (!missing.empty()) {
    std::vector<std::string> lines;
    for (const auto& [op, nodes] : missing) {
      lines.push_back(absl::StrCat(op, " (", nodes.size(),
                                   nodes.size() == 1 ? " node, " : " nodes, first ", "'", nodes[0],
                                   "')"));
    }
    return Status(
        first_missing.code(),
        absl::StrCat(first_missing.message(), "\nOps without a kernel",
                     function_.empty() ? "" : absl::StrCat(" in function '", function_, "'"), ": ",
                     absl::StrJoin(lines, ", ")));
  }
  auto input_of = [&](Endpoint e) {
    const int base = first_slot[e.node->id()];
    return Input{base < -1 ? base + 1 : base + e.port, false, false};
  };
  for (Item& item : items_) {
    item.first_input = static_cast<int>(inputs_.size());
    max_inputs_ = std::max(max_inputs_, item.num_inputs);
    for (int i = 0; i < item.num_inputs; ++i) {
      const Endpoint e = item.node->inputs()[i];
      Input in = input_of(e);
      in.deref = IsRef(e.node->output_types[e.port]) && !IsRef(item.node->input_types[i]);
      inputs_.push_back(in);
    }
    if (item.kernel->prepare != nullptr) {
      auto state = item.kernel->prepare(*item.node);
      if (!state.ok()) {
        return WithNode(state.status(), function_, *item.node);
      }
      item.state = *std::move(state);
    }
  }
  waits_for_nobody_ = std::ranges::all_of(items_, [&](const Item& item) {
    const Node& n = *item.node;
    return item.compiled != nullptr ||
           !(HasEffect(n) || n.Is(kNeverFolded) || CallsFunctions(*graph_->library(), n));
  });
  absl::flat_hash_set<int64_t> given;
  for (Node* n : order) {
    if (!n->Is("_Retval")) continue;
    Input in = input_of(n->inputs()[0]);
    in.deref = IsRef(n->inputs()[0].node->output_types[n->inputs()[0].port]);
    const int64_t index = n->Int("index");
    results_[index] = in;
    given.insert(index);
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    if (!given.contains(static_cast<int64_t>(i))) {
      return InvalidArgument("Retval[", i, "] does not have value");
    }
  }
  return OkStatus();
}

std::string Executable::ProgramsText(bool reasons) const {
  std::string text;
  const std::string of = function_.empty() ? "" : absl::StrCat(" of function ", function_);
  for (const Item& item : items_) {
    if (item.compiled != nullptr) {
      absl::StrAppend(&text, item.node->op(), " ", item.node->name(), of, "\n",
                      item.compiled->Text(reasons));
      if (reasons) text += WhereItEnds(*item.node);
    } else if (reasons && num_results() > 0) {  // not what only restores and initializes
      absl::StrAppend(&text, item.node->op(), " ", item.node->name(), of, " [", item.kernel->name,
                      "] is in no program: ", WhyAlone(*item.node), "\n");
    }
  }
  return text;
}

// What stands behind a region, and why it is not in it.
std::string Executable::WhereItEnds(const Node& region) const {
  std::string text;
  std::vector<const Node*> seen;
  for (const Use& use : region.uses()) {
    if (use.node->Is("_Retval") || std::ranges::find(seen, use.node) != seen.end()) continue;
    seen.push_back(use.node);
    absl::StrAppend(&text, "  ends before ", use.node->op(), " '", use.node->name(), "'",
                    use.node->Is("_Program") ? ", a region that waits for others, too\n"
                                             : absl::StrCat(": ", WhyAlone(*use.node), "\n"));
  }
  return text;
}

// Why loops of version 1 stayed.
std::string Executable::WhyNoScan() const {
  for (const Node* n : graph_->Nodes()) {
    if (n->attrs().Find(kNoScan) == nullptr) continue;
    return absl::StrCat("; the loop at '", n->name(), "' is no scan: ", n->String(kNoScan));
  }
  return "";
}

std::string Executable::WhyAlone(const Node& n) const {
  if (!compiles_) {
    for (const Node* other : graph_->Nodes()) {
      if (!NeedsDataflow(*other)) continue;
      return absl::StrCat("the graph has control flow of version 1 (", other->op(), " '",
                          other->name(), "')", WhyNoScan());
    }
    return "nothing of the graph is compiled";
  }
  if (n.attrs().Find(kNoScan) != nullptr) return absl::StrCat("it is no scan: ", n.String(kNoScan));
  if (const absl::string_view why = WhyNotCompilable(n); !why.empty()) {
    return absl::StrCat("it ", why);
  }
  return absl::StrCat("a region of fewer than ", kLeastRegion, " nodes is not worth it");
}

void Executable::VisitPrograms(ProgramVisitor visit) const {
  for (const Item& item : items_) {
    if (item.compiled != nullptr) item.compiled->Visit(visit);
  }
}

Status Executable::CheckArgs(std::span<const Tensor> args) const {
  if (args.size() < arg_types_.size()) {
    return InvalidArgument("Function ", function_, " takes ", arg_types_.size(),
                           " argument(s) but ", args.size(), " argument(s) were passed");
  }
  for (size_t i = 0; i < arg_types_.size(); ++i) {
    if (arg_types_[i] != Dtype::kInvalid && args[i].dtype() != arg_types_[i]) {
      return InvalidArgument("Argument ", i, " of ", function_.empty() ? "the graph" : function_,
                             " should be of type ", DtypeName(arg_types_[i]), " but is of type ",
                             DtypeName(args[i].dtype()));
    }
  }
  return OkStatus();
}

Status Executable::RunItem(const Item& item, Step& step, std::span<Tensor* const> inputs,
                           std::span<const bool> last_use, std::span<Tensor> outputs) const {
  if (item.compiled != nullptr) return item.compiled->Run(inputs, outputs, step);
  OpContext ctx(*item.node, item.state.get(), step, inputs, last_use, outputs);
  const int64_t start = step.stats ? absl::GetCurrentTimeNanos() : 0;
  Status status = OrOutOfMemory([&] { return item.kernel->run(ctx); });
  if (!status.ok()) [[unlikely]] {
    return WithNode(status, function_, *item.node);
  }
  for (int i = 0; i < item.num_outputs; ++i) {
    if (!outputs[i].valid()) [[unlikely]] {
      return Internal("kernel ", item.kernel->name, " left output ", i, " unset\n\t ",
                      NodeInError(function_, *item.node));
    }
  }
  if (step.stats) [[unlikely]] {
    int64_t bytes = 0;
    for (const Tensor& t : outputs) bytes += static_cast<int64_t>(t.bytes());
    step.stats->Add(*item.node, item.kernel->name, start, bytes);
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<Executable>> Executable::Make(std::unique_ptr<Graph> graph,
                                                       std::string function, bool compile,
                                                       std::vector<std::unique_ptr<Graph>> scans) {
  bool control_flow = false;
  for (const Node* n : graph->Nodes()) control_flow = control_flow || NeedsDataflow(*n);
  if (control_flow) return MakeDataflow(std::move(graph), std::move(function));
  std::vector<Region> regions;
  if (compile) {
    ASSIGN_OR_RETURN(regions, CutRegions(*graph, kLeastRegion));
  }
  for (Node* n : graph->Nodes()) {
    if (!n->Is("_Scan")) continue;
    const auto number = static_cast<size_t>(n->Int("body", -1));
    if (number < scans.size() && scans[number] != nullptr) {
      regions.push_back({n, std::move(scans[number])});
    }
  }
  ASSIGN_OR_RETURN(auto made,
                   MakeSequential(std::move(graph), std::move(function), std::move(regions)));
  made->compiles_ = compile;
  return made;
}

}  // namespace smelt
