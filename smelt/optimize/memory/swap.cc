#include <algorithm>
#include <limits>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/optimize/memory/parts.h"

namespace smelt::memory {
namespace {

constexpr absl::string_view kSwapRule = "Swap";
constexpr absl::string_view kSwapHint = "_swap_to_host";
// Smaller tensors, and those that are alive for a shorter time, are not worth it.
constexpr int64_t kSmallBytes = 1024;
constexpr int64_t kShortTime = 1'000'000;
// Of the bus between a GPU and its host.
constexpr int64_t kBytesPerNanosecond = 16;
// Whether or when they run depends on more than what they read.
constexpr OpSet kFlow = {"Enter",         "RefEnter",         "Exit",    "RefExit",
                         "NextIteration", "RefNextIteration", "Switch",  "RefSwitch",
                         "Merge",         "RefMerge",         "_SwitchN"};
// On one device they hand on the memory that they got.
constexpr OpSet kSameMemory = {"Identity", "Reshape"};

struct Input {
  Node* node;
  int input;
};

class Swapper {
 public:
  Swapper(Graph& graph, const PassContext& context, const MemoryModel* model)
      : graph_(graph), context_(context), model_(model), budget_(graph) {}

  Status Run(bool find_more) {
    if (find_more) FindInputs();
    for (Node* n : graph_.Nodes()) {
      if (n->attrs().Find(kSwapHint) != nullptr) AddMarked(n);
    }
    if (inputs_.empty()) return OkStatus();
    Placement placement(context_.devices);
    const ShapeTable shapes = InferSymbolicShapesBeside(
        graph_, XlaShapeRules(), [](const Node&) { return false; }, /*into_functions=*/false);
    finish_ = EarliestFinishTimes(graph_, shapes, placement);
    for (const auto& [id, swapped] : inputs_) {
      RETURN_IF_ERROR(SwapInputs(graph_.NodeOf(id), swapped, shapes));
    }
    return OkStatus();
  }

 private:
  bool Declined(const Node& n, absl::string_view why) const {
    return context_.Declined(kSwapRule, n, why);
  }

  void AddMarked(Node* n) {
    std::vector<int64_t> marked = n->Ints(kSwapHint);
    if (marked.empty()) marked = {n->Int(kSwapHint)};
    for (const int64_t i : marked) {
      if (i < 0 || i >= n->num_inputs()) {
        Declined(*n, absl::StrCat("it has no input ", i));
        continue;
      }
      AddInput(n, static_cast<int>(i));
    }
  }

  void AddInput(Node* n, int input) {
    std::vector<int>& inputs = inputs_[n->id()];
    if (std::ranges::find(inputs, input) == inputs.end()) inputs.push_back(input);
  }

  // ---- what a GPU has no memory for

  struct Candidate {
    int64_t bytes;
    std::vector<Input> uses;
    double fitness;  // the smaller the better
  };

  void FindInputs() {
    for (int device = 0; device < model_->placement.num_devices(); ++device) {
      const DeviceProperties& properties = model_->placement.device(device);
      const PeakMemory& peak = model_->peaks[static_cast<size_t>(device)];
      if (properties.type != "GPU" || properties.memory_size <= 0) continue;
      int64_t missing = peak.bytes - properties.memory_size;
      if (missing <= 0) continue;
      for (const Candidate& c : CandidatesOf(peak)) {
        for (const Input& use : c.uses) AddInput(use.node, use.input);
        missing -= c.bytes;
        if (missing < 0) break;
      }
    }
  }

  std::vector<Candidate> CandidatesOf(const PeakMemory& peak) {
    int64_t when = -1;
    for (const LiveTensor& live : peak.live) when = std::max(when, live.allocated);
    std::vector<Candidate> candidates;
    for (const LiveTensor& live : peak.live) {
      if (live.node == nullptr || live.bytes <= kSmallBytes) continue;
      if (live.freed - live.allocated <= kShortTime) {
        Declined(*live.node, "it is not alive for long enough");
        continue;
      }
      if (!IsSwappable({const_cast<Node*>(live.node), live.port})) continue;
      Candidate c{.bytes = live.bytes};
      int64_t next_use = std::numeric_limits<int64_t>::max();
      if (!UsesAfter(live, when, &c.uses, &next_use)) continue;
      // Made long before the peak and read long after it, by few.
      const double until = static_cast<double>(next_use - when);
      const double since = static_cast<double>(live.allocated - when);
      const double uses = static_cast<double>(c.uses.size());
      c.fitness = -(until * until / (uses * uses) + since * since);
      candidates.push_back(std::move(c));
    }
    std::ranges::stable_sort(candidates, {}, &Candidate::fitness);
    return candidates;
  }

  // The readers that run after `when`. False when there are none, one is not known to run, or one
  // wants a reference.
  bool UsesAfter(const LiveTensor& live, int64_t when, std::vector<Input>* uses,
                 int64_t* next_use) const {
    for (const Use& use : live.node->OrderedUses()) {
      if (use.is_control() || use.port() != live.port) continue;
      const NodeRun& run = model_->schedule.of(*use.node);
      if (run.start < 0) return false;
      const int64_t end = 1 + run.finish / 1000 * 1000;
      if (end <= when) continue;
      if (WantsReference(*use.node, use.input)) {
        return Declined(*live.node, absl::StrCat("'", use.node->name(), "' wants a reference"));
      }
      uses->push_back({use.node, use.input});
      *next_use = std::min(*next_use, end);
    }
    return !uses->empty();
  }

  static bool WantsReference(const Node& n, int input) {
    const size_t at = static_cast<size_t>(input);
    return n.def() == nullptr || at >= n.input_types.size() || IsRef(n.input_types[at]);
  }

  // Does swapping it out free memory? What variables and constants hold stays.
  bool IsSwappable(Endpoint e) {
    std::vector<const Node*> path;
    while (e.node->Is(kSameMemory) && e.node->device == e.node->input(0).node->device &&
           !swappable_.contains(e.node)) {
      path.push_back(e.node);
      // A loop of such nodes ends at the one that it begins with.
      swappable_[e.node] = false;
      e = e.node->input(0);
    }
    const auto known = swappable_.find(e.node);
    const Node& n = *e.node;
    const bool swappable = known != swappable_.end() && e.port == 0
                               ? known->second
                               : n.def() != nullptr && !n.Is(kPersistentOps) &&
                                     !IsRef(n.output_types[static_cast<size_t>(e.port)]);
    for (const Node* passed : path) swappable_[passed] = swappable;
    return swappable;
  }

  // ---- doing it

  int64_t FinishOf(const Node& n) const {
    const size_t at = static_cast<size_t>(n.id());
    return at < finish_.size() ? finish_[at] : -1;
  }

  Status SwapInputs(Node* n, const std::vector<int>& swapped, const ShapeTable& shapes) {
    int64_t bytes = 0;
    for (const int i : swapped) {
      bytes = AddEstimates(
          bytes, EstimatedBytes(n->input_types[static_cast<size_t>(i)], shapes.of(n->input(i))));
    }
    Node* in_trigger = InTrigger(*n, swapped, bytes / kBytesPerNanosecond);
    if (in_trigger == nullptr) {
      Declined(*n, "nothing runs between");
      return OkStatus();
    }
    for (const int i : swapped) RETURN_IF_ERROR(SwapInput(n, i, in_trigger));
    return OkStatus();
  }

  // What runs last of all that runs before the tensors must come back for `n` not to wait.
  Node* InTrigger(const Node& n, const std::vector<int>& swapped, int64_t time_to_swap) {
    int64_t latest = 0;
    std::map<std::string, Node*> todo;
    const auto look = [&](Node* input) {
      latest = std::max(latest, FinishOf(*input));
      todo[input->name()] = input;
      return FinishOf(*input) >= 0;
    };
    for (const Endpoint& e : n.inputs()) {
      if (!look(e.node)) return nullptr;
    }
    for (Node* c : n.control_inputs()) {
      if (!look(c)) return nullptr;
    }
    for (const int i : swapped) todo.erase(n.input(i).node->name());
    latest -= time_to_swap;
    std::pair<int64_t, Node*> best = {-1, nullptr};
    absl::flat_hash_set<const Node*> done;
    while (!todo.empty()) {
      Node* now = todo.begin()->second;
      todo.erase(todo.begin());
      done.insert(now);
      if (!budget_.Take()) return nullptr;
      if (now->Is(kFlow)) continue;
      const int64_t finish = FinishOf(*now);
      if (finish < 0) return nullptr;
      if (finish < latest) {
        if (finish >= best.first) best = {finish, now};
        continue;
      }
      const auto later = [&](Node* input) {
        if (!done.contains(input)) todo[input->name()] = input;
      };
      for (const Endpoint& e : now->inputs()) later(e.node);
      for (Node* c : now->control_inputs()) later(c);
    }
    return best.second;
  }

  // The first other reader of the tensor: by then it is in the host's memory.
  Node* OutTrigger(const Node& n, Endpoint tensor) const {
    Node* trigger = nullptr;
    for (const Use& use : tensor.node->OrderedUses()) {
      if (use.is_control() || use.port() != tensor.port || use.node == &n) continue;
      const int64_t finish = FinishOf(*use.node);
      if (finish < 0) continue;
      if (trigger == nullptr || finish < FinishOf(*trigger)) trigger = use.node;
    }
    return trigger;
  }

  Status SwapInput(Node* n, int input, Node* in_trigger) {
    const Endpoint tensor = n->input(input);
    if (!budget_.Take(static_cast<int64_t>(tensor.node->uses().size()))) {
      Declined(*n, "too many read what is swapped");
      return OkStatus();
    }
    Node* out_trigger = OutTrigger(*n, tensor);
    if (out_trigger == nullptr) {
      Declined(*n, "nothing else reads the tensor");
      return OkStatus();
    }
    const auto device = ParseDeviceName(n->device);
    if (n->device.empty() || !device || !absl::StrContains(device->type, "gpu")) {
      Declined(*n, absl::StrCat("Can't swap input ", input, " of node ", n->name(),
                                " since it is not on GPU"));
      return OkStatus();
    }
    if (WantsReference(*n, input)) {
      Declined(*n, absl::StrCat("Can't swap input ", input, " of node ", n->name(),
                                " since it expects a reference"));
      return OkStatus();
    }
    const std::string what = absl::StrCat(n->name(), "_", input);
    const std::string out_name = absl::StrCat("swap_out_", what);
    const std::string in_name = absl::StrCat("swap_in_", what);
    if (graph_.Find(out_name) != nullptr || graph_.Find(in_name) != nullptr) {
      Declined(*n, absl::StrCat("Input ", input, " of node ", n->name(), " is already swapped"));
      return OkStatus();
    }
    const std::string beside = absl::StrCat("loc@", what);
    AttrMap attrs;
    attrs.Set("T", BaseType(n->input_types[static_cast<size_t>(input)]));
    attrs.Set("_class", std::vector<std::string>{beside});
    ASSIGN_OR_RETURN(Node * out, graph_.Add(out_name, "_CopyFromGpuToHost", {tensor}, attrs));
    ASSIGN_OR_RETURN(Node * in, graph_.Add(in_name, "_CopyFromHostToGpu", {{out, 0}}, attrs));
    out->device = in->device = n->device;
    std::vector<std::string> together = n->Get<std::vector<std::string>>("_class", {});
    together.push_back(beside);
    n->AttrsToChange().Set("_class", std::move(together));
    graph_.SetInput(n, input, {in, 0});
    graph_.AddControlInput(out_trigger, out);
    graph_.AddControlInput(in, in_trigger);
    context_.Fired(kSwapRule, *n);
    return OkStatus();
  }

  Graph& graph_;
  const PassContext& context_;
  const MemoryModel* model_;  // nullptr: only marks count
  Budget budget_;
  std::map<int, std::vector<int>> inputs_;  // that are swapped, by node
  absl::flat_hash_map<const Node*, bool> swappable_;
  std::vector<int64_t> finish_;
};

}  // namespace

Status Swap(Graph& graph, const PassContext& context, const MemoryModel* model, bool find_more) {
  return Swapper(graph, context, model).Run(find_more);
}

}  // namespace smelt::memory
