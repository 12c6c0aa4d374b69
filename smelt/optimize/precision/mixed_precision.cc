// TensorFlow's auto_mixed_precision: what profits from half or bfloat16 is computed in it, and
// Casts stand where narrow and wide numbers meet.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "smelt/base/processor.h"
#include "smelt/optimize/onednn.h"
#include "smelt/optimize/passes.h"
#include "smelt/optimize/precision/paint.h"

namespace smelt {
namespace {

constexpr absl::string_view kRule = "AutoMixedPrecision";
constexpr int kFirstArchitectureWithTensorCores = 7;

// What the machines say, and what the environment says of them.
class Machines {
 public:
  static StatusOr<Machines> Of(std::span<const DeviceProperties> devices) {
    Machines m;
    m.devices_.assign(devices.begin(), devices.end());
    ASSIGN_OR_RETURN(m.ignore_performance_, PrecisionSwitch("IGNORE_PERFORMANCE", false));
    ASSIGN_OR_RETURN(const bool simulate, PrecisionSwitch("SIMULATE_GPU", false));
    if (simulate && m.DefaultGpu() == nullptr) {
      DeviceProperties gpu;
      gpu.name = "/job:localhost/replica:0/task:0/device:GPU:0";
      gpu.type = "GPU";
      gpu.environment = {{"architecture", "8.0"}, {"cuda", "11050"}, {"cudnn", "8302"}};
      m.devices_.push_back(std::move(gpu));
    }
    return m;
  }

  // A node without a device is for the first GPU where there is one.
  bool OnGpu(const Node& n) const {
    if (n.device.empty()) return DefaultGpu() != nullptr;
    return absl::StrContains(absl::AsciiStrToLower(DevicePart(n.device)), "gpu");
  }
  bool OnCpu(const Node& n) const {
    if (n.device.empty()) return DefaultGpu() == nullptr;
    return absl::StrContains(absl::AsciiStrToLower(DevicePart(n.device)), "cpu");
  }
  bool OnFastGpu(const Node& n) const {
    if (!OnGpu(n)) return false;
    if (ignore_performance_) return true;
    for (const DeviceProperties& d : devices_) {
      if (!n.device.empty() && absl::EndsWith(d.name, n.device)) return IsFast(d);
    }
    const DeviceProperties* gpu = DefaultGpu();
    return gpu != nullptr && IsFast(*gpu);
  }
  bool HasFastGpu() const {
    return std::ranges::any_of(devices_, [&](const DeviceProperties& d) {
      return d.type == "GPU" && (ignore_performance_ || IsFast(d));
    });
  }
  // The version of a library of the GPUs; 0: not known.
  int Version(const std::string& library) const {
    for (const DeviceProperties& d : devices_) {
      if (d.type != "GPU") continue;
      const auto it = d.environment.find(library);
      int version = 0;
      if (it != d.environment.end() && absl::SimpleAtoi(it->second, &version)) return version;
    }
    return 0;
  }
  bool HasHalfOnCpu() const {
    for (const DeviceProperties& d : devices_) {
      if (d.type != "CPU") continue;
      const auto it = d.environment.find("half");
      if (it != d.environment.end()) return it->second == "true";
    }
    // What TensorFlow asks of the processor before it makes graphs for a CPU half.
    return CpuHas(CpuFeature::kFastHalf);
  }

 private:
  static absl::string_view DevicePart(absl::string_view name) {
    const size_t at = name.rfind('/');
    return at == absl::string_view::npos ? name : name.substr(at);
  }
  static bool IsFast(const DeviceProperties& d) {
    const auto it = d.environment.find("architecture");
    if (it == d.environment.end()) return false;
    const std::vector<std::string> parts = absl::StrSplit(it->second, '.');
    int major = 0, minor = 0;
    if (!absl::SimpleAtoi(parts[0], &major)) return false;
    if (parts.size() > 1 && !absl::SimpleAtoi(parts[1], &minor)) return false;
    return major >= kFirstArchitectureWithTensorCores;
  }
  const DeviceProperties* DefaultGpu() const {
    const auto it = std::ranges::find(devices_, "GPU", &DeviceProperties::type);
    return it == devices_.end() ? nullptr : &*it;
  }

  std::vector<DeviceProperties> devices_;
  bool ignore_performance_ = false;
};

// Writes what was painted into the graph.
class Caster {
 public:
  Caster(Graph& graph, const PassContext& context, const TypeGraph& types,
         const std::vector<bool>& narrow, Dtype type, bool emulate)
      : graph_(graph),
        context_(context),
        types_(types),
        narrow_(narrow),
        type_(type),
        emulate_(emulate) {}

  Status Run() {
    const std::vector<Node*> nodes = graph_.Nodes();
    for (Node* n : nodes) {
      const auto [first, end] = types_.Range(*n);
      for (int place = first; place < end; ++place) {
        if (!IsNarrow(place)) continue;
        context_.Fired(kRule, *n);
        if (!emulate_) Narrow(place);
      }
    }
    for (Node* n : nodes) {
      if (!emulate_) RETURN_IF_ERROR(graph_.ResolveTypes(n));
    }
    for (Node* n : nodes) {
      for (int port = 0; port < n->num_outputs(); ++port) RETURN_IF_ERROR(CastOutput(n, port));
    }
    for (Node* n : nodes) {
      if (emulate_) RETURN_IF_ERROR(WidenInputs(n));
    }
    return OkStatus();
  }

 private:
  bool IsNarrow(int place) const {
    return narrow_[static_cast<size_t>(place)] && types_.at(place).type == Dtype::kFloat;
  }

  void Narrow(int place) {
    const TypePlace& p = types_.at(place);
    if (p.element < 0) {
      p.node->AttrsToChange().Set(p.attr, type_);
      return;
    }
    std::vector<Dtype> list = *p.node->Find(p.attr)->get<std::vector<Dtype>>();
    list[static_cast<size_t>(p.element)] = type_;
    p.node->AttrsToChange().Set(p.attr, std::move(list));
  }

  // A Cast of `e`, which all of `readers` read from now on.
  StatusOr<Endpoint> Cast(Endpoint e, bool to_narrow, std::span<const Use> readers) {
    const absl::string_view what = !to_narrow              ? "CastToFp32"
                                   : type_ == Dtype::kHalf ? "CastToFp16"
                                                           : "CastToBf16";
    const std::string base = absl::StrCat(e.node->name(), "-", e.port, "-", what, "-");
    int number = 0;
    const auto name = [&] { return absl::StrCat(base, number, "-AutoMixedPrecision"); };
    while (graph_.Find(name()) != nullptr) ++number;
    AttrMap attrs;
    attrs.Set("SrcT", to_narrow ? Dtype::kFloat : type_);
    attrs.Set("DstT", to_narrow ? type_ : Dtype::kFloat);
    ASSIGN_OR_RETURN(Node * cast, graph_.Add(name(), "Cast", {e}, std::move(attrs)));
    cast->device = e.node->device;
    for (const Use& use : readers) graph_.SetInput(use.node, use.input, {cast, 0});
    return Endpoint{cast, 0};
  }

  // What reads the output as the other kind of number gets it from a Cast. An emulation rounds the
  // output before, for all readers.
  Status CastOutput(Node* n, int port) {
    const int place = types_.OfOutput(*n, port);
    if (types_.at(place).type != Dtype::kFloat) return OkStatus();
    const bool narrow = IsNarrow(place);
    std::vector<Use> all, others;
    for (const Use& use : n->OrderedUses()) {
      if (use.is_control() || use.port() != port) continue;
      all.push_back(use);
      if (IsNarrow(types_.OfInput(*use.node, use.input)) != narrow) others.push_back(use);
    }
    Endpoint from{n, port};
    if (emulate_ && narrow && !all.empty() && !IsBackEdge(*n)) {
      ASSIGN_OR_RETURN(from, Cast(from, true, all));
    }
    return others.empty() ? OkStatus() : Cast(from, !narrow, others).status();
  }

  // A node that an emulation leaves in float reads rounded numbers as float.
  Status WidenInputs(Node* n) {
    for (int i = 0; i < n->num_inputs(); ++i) {
      if (!IsNarrow(types_.OfInput(*n, i)) || IsBackEdge(*n->input(i).node)) continue;
      const Use use{n, i};
      RETURN_IF_ERROR(Cast(n->input(i), false, {&use, 1}).status());
    }
    return OkStatus();
  }

  // A Merge reads its NextIteration itself; that passes on what was rounded.
  static bool IsBackEdge(const Node& n) { return n.Is("NextIteration"); }

  Graph& graph_;
  const PassContext& context_;
  const TypeGraph& types_;
  const std::vector<bool>& narrow_;
  const Dtype type_;
  const bool emulate_;
};

// Older normalizations have one type, newer ones keep statistics in float beside narrow numbers.
Status RenewNormalizations(Graph& graph, absl::FunctionRef<bool(const Node&)> may_change) {
  for (Node* n : graph.Nodes()) {
    if (!n->Is({"FusedBatchNorm", "FusedBatchNormGrad"}) || !may_change(*n)) continue;
    if (n->Type("T") != Dtype::kFloat) continue;
    graph.SetOp(n, n->Is("FusedBatchNorm") ? "FusedBatchNormV2" : "FusedBatchNormGradV2");
    n->AttrsToChange().Set("U", Dtype::kFloat);
    RETURN_IF_ERROR(graph.ResolveTypes(n));
  }
  return OkStatus();
}

Status MixPrecision(PrecisionMode mode, Graph& graph, const PassContext& context) {
  ASSIGN_OR_RETURN(const Machines machines, Machines::Of(context.devices));
  if (mode == PrecisionMode::kHalfOnGpu && !machines.HasFastGpu()) return OkStatus();
  if (mode == PrecisionMode::kHalfOnCpu && !machines.HasHalfOnCpu()) return OkStatus();
  const std::string level = absl::AsciiStrToUpper(PrecisionVariable("LEVEL"));
  PaintOptions options;
  options.mode = mode;
  options.force_all = level == "UNSAFE_FORCE_ALL";
  if (options.force_all &&
      (mode == PrecisionMode::kBfloat16 || mode == PrecisionMode::kHalfOnCpu)) {
    return InvalidArgument(
        "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL cannot be set to UNSAFE_FORCE_ALL when oneDNN "
        "is used");
  }
  options.narrow = mode == PrecisionMode::kBfloat16 ? Dtype::kBfloat16 : Dtype::kHalf;
  // An emulation is for the GPUs of a later run, whose libraries are not known: recent ones.
  const bool emulated = mode == PrecisionMode::kEmulated;
  ASSIGN_OR_RETURN(options.lists,
                   ReadPrecisionLists(mode, emulated ? 10000 : machines.Version("cuda"),
                                      emulated ? 8000 : machines.Version("cudnn")));
  std::vector<bool> changeable(static_cast<size_t>(graph.max_id()));
  for (const Node* n : graph.Nodes()) {
    // What a function takes and gives is its own.
    const bool stays = IsRoot(*n) || CallsFunctions(*graph.library(), *n);
    const bool may =
        !stays && (mode == PrecisionMode::kHalfOnGpu ? machines.OnFastGpu(*n) : machines.OnCpu(*n));
    changeable[static_cast<size_t>(n->id())] = may;
    if (may || !n->Is(options.lists.allow)) continue;
    context.Declined(kRule, *n, stays ? "the node must stay as it is" : "it is on another device");
  }
  const auto may_change = [&](const Node& n) { return changeable[static_cast<size_t>(n.id())]; };
  const auto on_gpu = [&](const Node& n) { return machines.OnGpu(n); };
  RETURN_IF_ERROR(RenewNormalizations(graph, may_change));
  const TypeGraph types(graph);
  ASSIGN_OR_RETURN(const std::vector<bool> narrow,
                   PaintTypes(types, graph, options, may_change, on_gpu));
  ASSIGN_OR_RETURN(const bool emulate, PrecisionSwitch("EMULATE_FP16", true));
  return Caster(graph, context, types, narrow, options.narrow, emulated && emulate).Run();
}

}  // namespace

Status MixHalfOnCpu(Graph& graph, const PassContext& context) {
  return MixPrecision(PrecisionMode::kHalfOnCpu, graph, context);
}
Status MixHalfOnGpu(Graph& graph, const PassContext& context) {
  return MixPrecision(PrecisionMode::kHalfOnGpu, graph, context);
}
Status MixBfloat16(Graph& graph, const PassContext& context) {
  if (!IsForOneDnn()) return OkStatus();
  return MixPrecision(PrecisionMode::kBfloat16, graph, context);
}
Status EmulateHalf(Graph& graph, const PassContext& context) {
  return MixPrecision(PrecisionMode::kEmulated, graph, context);
}

}  // namespace smelt
