#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "smelt/optimize/memory/parts.h"

namespace smelt::memory {
namespace {

constexpr absl::string_view kRelaxed = "_grappler_relax_allocator_constraints";
constexpr OpSet kAssigns = {"Assign", "AssignVariableOp"};
constexpr OpSet kSends = {"_Send", "_HostSend"};
// Their results are memory of their own, never that of an input.
constexpr OpSet kNeverHandOn = {"ArgMax",
                                "ArgMin",
                                "AudioSpectrogram",
                                "AvgPool",
                                "BatchMatMul",
                                "BatchMatMulV2",
                                "BatchNormWithGlobalNormalization",
                                "BatchToSpace",
                                "BatchToSpaceND",
                                "Bincount",
                                "BroadcastArgs",
                                "BroadcastGradientArgs",
                                "Bucketize",
                                "CTCBeamSearchDecoder",
                                "CTCGreedyDecoder",
                                "CTCLoss",
                                "ComplexAbs",
                                "Concat",
                                "ConcatOffset",
                                "ConcatV2",
                                "Conv2D",
                                "Copy",
                                "CopyHost",
                                "Cross",
                                "CudnnRNN",
                                "CudnnRNNBackprop",
                                "CudnnRNNBackpropV2",
                                "CudnnRNNBackpropV3",
                                "CudnnRNNCanonicalToParams",
                                "CudnnRNNCanonicalToParamsV2",
                                "CudnnRNNParamsSize",
                                "CudnnRNNParamsToCanonical",
                                "CudnnRNNParamsToCanonicalV2",
                                "CudnnRNNV2",
                                "CudnnRNNV3",
                                "DebugNanCount",
                                "DebugNumericSummary",
                                "DecodeProtoV2",
                                "DecodeWav",
                                "DeepCopy",
                                "DepthToSpace",
                                "Dequantize",
                                "Diag",
                                "DiagPart",
                                "EditDistance",
                                "Empty",
                                "EncodeProto",
                                "EncodeWav",
                                "ExtractImagePatches",
                                "ExtractVolumePatches",
                                "Fill",
                                "Gather",
                                "GatherNd",
                                "GatherV2",
                                "HistogramFixedWidth",
                                "InvertPermutation",
                                "IsInf",
                                "IsNan",
                                "LinSpace",
                                "LowerBound",
                                "MatMul",
                                "MatrixDiag",
                                "MatrixDiagPart",
                                "MatrixDiagPartV2",
                                "MatrixDiagV2",
                                "Mfcc",
                                "Multinomial",
                                "OneHot",
                                "Pack",
                                "ParameterizedTruncatedNormal",
                                "PopulationCount",
                                "RandomGamma",
                                "RandomPoisson",
                                "RandomPoissonV2",
                                "RandomStandardNormal",
                                "RandomUniform",
                                "RandomUniformInt",
                                "Range",
                                "Rank",
                                "RequantizationRange",
                                "Requantize",
                                "ReverseSequence",
                                "Shape",
                                "ShapeN",
                                "Size",
                                "SpaceToBatch",
                                "SpaceToBatchND",
                                "SpaceToDepth",
                                "SparseMatMul",
                                "Split",
                                "SplitV",
                                "TruncatedNormal",
                                "Unique",
                                "UniqueV2",
                                "UniqueWithCounts",
                                "UniqueWithCountsV2",
                                "Unpack",
                                "UnravelIndex",
                                "UpperBound",
                                "Where"};

bool MayHandOn(const Node& n) {
  return !n.Is(kNeverHandOn) && !absl::StrContains(n.op(), "Segment") &&
         !absl::StartsWith(n.op(), "Quantize");
}

// The task, and whether it is a CPU or a GPU; other kinds are alike.
struct Side {
  std::string task, kind;

  bool Crosses(const Side& other) const {
    return task != other.task || (kind == "cpu" && other.kind == "gpu") ||
           (kind == "gpu" && other.kind == "cpu");
  }
};

class AssignRelaxer {
 public:
  AssignRelaxer(Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), budget_(graph) {}

  void Run() {
    std::vector<Node*> assigns;
    absl::flat_hash_set<std::string> devices;
    bool sends = false;
    for (Node* n : graph_.Nodes()) {
      devices.insert(n->device);
      if (n->Is(kAssigns)) assigns.push_back(n);
      // TensorFlow looks no further.
      if ((sends = n->Is(kSends))) break;
    }
    if (!sends && devices.size() == 1) {
      for (Node* n : assigns) Relax(n);
      return;
    }
    for (Node* n : assigns) {
      if (done_.insert(n).second) RelaxUnlessItCrosses(n);
    }
  }

 private:
  void RelaxUnlessItCrosses(Node* assign) {
    const Side& side = SideOf(*assign);
    std::vector<Node*> relaxed;
    std::vector<Node*> todo = {assign};
    absl::flat_hash_set<const Node*> seen = {assign};
    while (!todo.empty()) {
      Node* n = todo.back();
      todo.pop_back();
      if (n->Is(kSends) || SideOf(*n).Crosses(side)) {
        context_.Declined("RelaxAssign", *assign, absl::StrCat("'", n->name(), "' may get it"));
        return;
      }
      if (n->Is(kAssigns)) relaxed.push_back(n);
      if (!MayHandOn(*n)) continue;
      for (const Use& use : n->uses()) {
        if (use.is_control() || !seen.insert(use.node).second) continue;
        if (!budget_.Take()) {
          context_.Declined("RelaxAssign", *assign, "the graph has too many readers to follow");
          return;
        }
        todo.push_back(use.node);
      }
    }
    for (Node* n : relaxed) {
      done_.insert(n);
      Relax(n);
    }
  }

  void Relax(Node* assign) {
    assign->AttrsToChange().Set(kRelaxed, true);
    context_.Fired("RelaxAssign", *assign);
  }

  const Side& SideOf(const Node& n) {
    const auto [it, added] = sides_.try_emplace(n.device);
    if (added && !n.device.empty()) {
      const auto name = ParseDeviceName(n.device);
      if (name) it->second = {name->job.empty() ? "" : name->Task(), name->type};
    }
    return it->second;
  }

  Graph& graph_;
  const PassContext& context_;
  Budget budget_;
  absl::flat_hash_set<const Node*> done_;
  std::map<std::string, Side> sides_;  // by device
};

}  // namespace

void RelaxAssigns(Graph& graph, const PassContext& context) { AssignRelaxer(graph, context).Run(); }

}  // namespace smelt::memory
