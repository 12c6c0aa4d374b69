// TensorFlow's pin_to_host_optimizer: small integers, numbers and strings are computed where the
// host reads them, and not sent to an accelerator and back.
#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/optimize/host_memory.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

// More elements are worth an accelerator's memory.
constexpr int64_t kMostElements = 64;

constexpr OpSet kTpuOps = {"TPUCompile", "TPUPartitionedCall"};
// Inputs that kernels of every device read from the host's memory.
struct HostInputs {
  OpName op;
  std::array<absl::string_view, 3> args;  // empty: no more
};
constexpr HostInputs kReadFromHost[] = {
    {"ArgMax", {"dimension"}},
    {"ArgMin", {"dimension"}},
    {"BroadcastTo", {"shape"}},
    {"Concat", {"concat_dim"}},
    {"ConcatV2", {"axis"}},
    {"ExpandDims", {"dim"}},
    {"Fill", {"dims"}},
    {"GatherV2", {"axis"}},
    {"Max", {"reduction_indices"}},
    {"Mean", {"reduction_indices"}},
    {"Min", {"reduction_indices"}},
    {"Pad", {"paddings"}},
    {"Prod", {"reduction_indices"}},
    {"Range", {"start", "limit", "delta"}},
    {"Reshape", {"shape"}},
    {"ReverseV2", {"axis"}},
    {"Slice", {"begin", "size"}},
    {"Split", {"split_dim"}},
    {"SplitV", {"size_splits", "split_dim"}},
    {"StridedSlice", {"begin", "end", "strides"}},
    {"Sum", {"reduction_indices"}},
    {"Tile", {"multiples"}},
    {"Transpose", {"perm"}},
};

bool IsOnHost(const Node& n) { return absl::StrContains(n.device, "CPU"); }

bool StaysWhereItIs(const Node& n) {
  return absl::StartsWith(n.op(), "Collective") || n.Is(kControlFlow) || n.Is("NoOp");
}

// Does TensorFlow have a kernel of the node for a CPU?
bool HasCpuKernel(const Node& n) {
  if (n.def() == nullptr || n.def()->cpu_types.empty()) return false;
  // "T in {float, half}; U in {int32}", or "any".
  for (const absl::string_view part : absl::StrSplit(n.def()->cpu_types, "; ")) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, " in {");
    if (sides.size() != 2) continue;
    const absl::string_view types = sides[1].substr(0, sides[1].find('}'));
    const std::vector<absl::string_view> names = absl::StrSplit(types, ", ");
    const absl::string_view type = DtypeName(n.Type(sides[0]));
    if (std::ranges::find(names, type) == names.end()) return false;
  }
  return true;
}

// The host of the node's device; empty where its device is of no kind that is left.
std::string HostOf(const Node& n) {
  constexpr absl::string_view kHost = "/device:CPU:0";
  if (n.device.empty()) return std::string(kHost);
  if (!absl::StrContains(n.device, "GPU")) return "";
  const size_t at = n.device.rfind("/device");
  if (at != std::string::npos) return absl::StrCat(n.device.substr(0, at), kHost);
  return absl::StrCat(n.device.substr(0, n.device.rfind("GPU")), "CPU:0");
}

class HostPinner {
 public:
  HostPinner(Graph& graph, const PassContext& context)
      : graph_(graph),
        context_(context),
        shapes_(InferSymbolicShapes(graph, XlaShapeRules())),
        friendly_(static_cast<size_t>(graph.max_id()), false) {}

  Status Run() {
    for (const Node* n : graph_.Nodes()) {
      if (n->Is(kTpuOps)) return OkStatus();
    }
    // Who reads is asked after what it reads, which may have moved by then.
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    std::vector<std::pair<Node*, std::string>> constants;
    for (Node* n : order) {
      if (PassesOn(*n)) friendly_[static_cast<size_t>(n->id())] = IsFriendly(n->input(0));
      if (IsOnHost(*n) || !MayMove(*n)) continue;
      const std::string host = HostOf(*n);
      if (host.empty()) continue;
      if (n->Is("Const")) constants.emplace_back(n, n->device);
      n->device = host;
      context_.Fired("PinToHost", *n);
    }
    for (const auto& [n, device] : constants) {
      const bool read_on_host = std::ranges::all_of(n->uses(), [](const Use& use) {
        return use.is_control() || ReadsFromHost(*use.node, use.input);
      });
      if (read_on_host) continue;
      n->device = device;
      Declined(*n, "a reader wants it on its own device");
    }
    return OkStatus();
  }

 private:
  bool IsSmall(Endpoint e) const {
    const Dtype type = e.node->output_types[static_cast<size_t>(e.port)];
    if (type == Dtype::kString) return true;
    if (type != Dtype::kInt32 && type != Dtype::kInt64 && type != Dtype::kFloat) return false;
    const PartialShape& shape = shapes_.of(e);
    return shape.fully_known() && shape.ToShape().num_elements() <= kMostElements;
  }

  // Is the value small, and in the host's memory wherever its node runs? What an Identity passes on
  // may be read directly once it is gone.
  bool IsFriendly(Endpoint e) const {
    if (StaysWhereItIs(*e.node) || !IsSmall(e)) return false;
    if (PassesOn(*e.node)) return friendly_[static_cast<size_t>(e.node->id())];
    return IsOnHost(*e.node) || e.node->Is(kGiveToHost) || IsOfIntegersOnHost(*e.node);
  }

  static bool PassesOn(const Node& n) {
    return n.Is("Identity") || (n.Is("IdentityN") && n.num_inputs() == 1);
  }

  bool MayMove(const Node& n) {
    if (StaysWhereItIs(n) || !HasCpuKernel(n)) return false;
    for (int i = 0; i < n.num_outputs(); ++i) {
      if (!IsSmall({const_cast<Node*>(&n), i})) return false;
    }
    for (const Endpoint& e : n.inputs()) {
      if (!IsFriendly(e)) return Declined(n, "an input is large, or on another device");
    }
    if (n.Is(kDrawsNumbers)) return Declined(n, "another device draws other numbers");
    if (n.attrs().Find("_class") != nullptr) return Declined(n, "it stays beside another node");
    return true;
  }

  static bool ReadsFromHost(const Node& n, int input) {
    if (IsOnHost(n) || IsOfIntegersOnHost(n)) return true;
    const auto* row = std::ranges::find(kReadFromHost, n.op_name(), &HostInputs::op);
    if (row == std::end(kReadFromHost)) return false;
    return std::ranges::any_of(row->args, [&](absl::string_view arg) {
      if (arg.empty()) return false;
      const auto [first, count] = InputRange(n, arg);
      return input >= first && input < first + count;
    });
  }

  bool Declined(const Node& n, absl::string_view why) const {
    return context_.Declined("PinToHost", n, why);
  }

  Graph& graph_;
  const PassContext& context_;
  const ShapeTable shapes_;
  std::vector<bool> friendly_;  // of Identities that were met, by id
};

}  // namespace

Status PinToHost(Graph& graph, const PassContext& context) {
  return HostPinner(graph, context).Run();
}

}  // namespace smelt
