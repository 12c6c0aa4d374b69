// Convolutions and products with the bias, normalization and activation that follow them.
#include "smelt/optimize/remap/contraction.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "smelt/optimize/onednn.h"
#include "smelt/optimize/remap/patterns.h"
#include "smelt/optimize/remap/rules.h"

namespace smelt::remap {
namespace {

constexpr Contraction kContractions[] = {{"Conv2D", "_FusedConv2D"}, {"MatMul", "_FusedMatMul"}};
constexpr Contraction kOneDnnContractions[] = {
    {"Conv2D", "_FusedConv2D"},
    {"Conv3D", "_FusedConv3D"},
    {"DepthwiseConv2dNative", "_FusedDepthwiseConv2dNative"},
    {"MatMul", "_FusedMatMul"},
};
std::span<const Contraction> Contractions() {
  return IsForOneDnn() ? std::span<const Contraction>(kOneDnnContractions)
                       : std::span<const Contraction>(kContractions);
}

constexpr OpSet kActivations = {"Relu", "Relu6", "Elu", "LeakyRelu"};
// Products for oneDNN take these as well.
constexpr OpSet kProductActivations = {"Sigmoid", "Tanh"};
constexpr OpSet kAnyActivation = {"Relu", "Relu6", "Elu", "LeakyRelu", "Sigmoid", "Tanh"};

// Does TF_XLA_FLAGS say that a global jit is for CPUs as well? The last word counts.
bool CompilesForCpu() {
  const char* flags = std::getenv("TF_XLA_FLAGS");
  bool compiles = false;
  for (absl::string_view flag : absl::StrSplit(flags == nullptr ? "" : flags, ' ')) {
    if (!absl::ConsumePrefix(&flag, "--tf_xla_cpu_global_jit")) continue;
    if (flag.empty() || flag == "=true" || flag == "=1") compiles = true;
    if (flag == "=false" || flag == "=0") compiles = false;
  }
  return compiles;
}

// Why the node cannot be the one that is fused with; empty: it can.
absl::string_view WhyNoContraction(const Node& n, const Rewriter& r) {
  if (!r.OnCpu(n)) return "it is not placed on a CPU";
  if (r.context().config.global_jit && CompilesForCpu())
    return "XLA compiles it, and fuses it there";
  const Dtype t = n.Type("T");
  if (IsForOneDnn()) {
    // Narrow numbers depend on the processor, which another one may be.
    return t == Dtype::kFloat ? "" : "for oneDNN floats are fused alone";
  }
  if (n.Is("MatMul")) return t == Dtype::kFloat ? "" : "products of this type are not fused";
  if (t != Dtype::kFloat && t != Dtype::kDouble) return "convolutions of this type are not fused";
  if (ChannelsFirst(n)) return "on a CPU channels must come last";
  return "";
}

// The contraction that gives `e`, if it may be fused with what reads it there.
Node* ContractionBefore(Endpoint e, const Node& reader, const Rewriter& r, const Contraction** row,
                        absl::string_view* why) {
  Node* n = e.node;
  const auto rows = Contractions();
  const auto found = std::ranges::find(rows, n->op_name(), &Contraction::op);
  if (found == rows.end()) return nullptr;
  *row = &*found;
  *why = WhyNoContraction(*n, r);
  if (why->empty() && n->Type("T") != reader.Type("T")) *why = "the types differ";
  if (why->empty() && !IsInner(*n)) *why = "others need the contraction, or wait for it";
  return why->empty() ? n : nullptr;
}

// Which side of a sum has one number for each channel of the other; -1: none.
int BiasSide(const Node& sum, Rewriter& r) {
  for (int side = 0; side < 2; ++side) {
    const Node& other = *sum.input(1 - side).node;
    const auto rows = Contractions();
    if (std::ranges::find(rows, other.op_name(), &Contraction::op) == rows.end()) continue;
    if (ChannelsFirst(other)) continue;
    const PartialShape& bias = r.shape(sum.input(side));
    const PartialShape& whole = r.shape(sum.input(1 - side));
    if (bias.rank() < 1 || bias.rank() > whole.rank() || whole.rank() < 2) continue;
    bool fits = true;
    for (int i = 0; i < bias.rank(); ++i) {
      const bool last = i == bias.rank() - 1;
      fits = fits && (last ? bias[i] > 0 && bias[i] == whole[whole.rank() - 1] : bias[i] == 1);
    }
    if (fits) return side;
  }
  return -1;
}

}  // namespace

bool IsInner(const Node& n) { return !IsRoot(n) && IsOutOfOrder(n) && NumDataUses(n) == 1; }

bool ChannelsFirst(const Node& n) {
  const std::string format = n.String("data_format", "NHWC");
  return format == "NCHW" || format == "NCDHW";
}

AttrMap FusedAttrs(const Node& contraction, const Contraction& row,
                   std::vector<std::string> fused_ops, const std::vector<Endpoint>& args) {
  AttrMap attrs;
  const OpDef* def = DefinitionOf(row.fused);
  for (const auto& [name, value] : contraction.attrs()) {
    if (def->FindAttr(name) != nullptr) attrs.Set(name, value);
  }
  if (row.op == OpName("Conv2D")) {
    std::vector<Dtype> types;
    for (const Endpoint& e : args) {
      types.push_back(BaseType(e.node->output_types[static_cast<size_t>(e.port)]));
    }
    attrs.Set("TArgs", std::move(types));
    attrs.Set("num_host_args", 0);
  }
  attrs.Set("num_args", static_cast<int64_t>(args.size()));
  attrs.Set("fused_ops", std::move(fused_ops));
  attrs.Set("epsilon", 0.0F);
  return attrs;
}

Status Fuse(Node& node, const Node& contraction, const Contraction& row, AttrMap attrs,
            const std::vector<Endpoint>& args, Rewriter& r) {
  std::vector<Endpoint> inputs = {contraction.input(0), contraction.input(1)};
  inputs.insert(inputs.end(), args.begin(), args.end());
  node.device = contraction.device;
  r.graph().SetInputs(&node, inputs);
  return r.Become(&node, row.fused.text(), std::move(attrs));
}

Biased FindBiased(const Node& sum, Rewriter& r) {
  Biased out;
  int bias = 1;
  if (sum.Is({"Add", "AddV2"})) {
    bias = IsForOneDnn() ? BiasSide(sum, r) : -1;
  } else if (!sum.Is("BiasAdd")) {
    return out;
  }
  if (bias < 0 || !IsOutOfOrder(sum)) return out;
  out.contraction = ContractionBefore(sum.input(1 - bias), sum, r, &out.row, &out.why);
  if (out.contraction == nullptr) return out;
  if (sum.Is("BiasAdd") && ChannelsFirst(sum) != ChannelsFirst(*out.contraction)) {
    out.contraction = nullptr;
    out.why = "the bias is added to another dimension";
  }
  out.bias = sum.input(bias);
  return out;
}

namespace {

StatusOr<Rewritten> ContractionWithBias(Node& node, Rewriter& r) {
  const Biased found = FindBiased(node, r);
  if (found.contraction == nullptr) return found.why.empty() ? r.No() : r.No(found.why);
  if (!r.context().allow_non_differentiable_rewrites) return r.No("a gradient may be taken");
  const Node* contraction = found.contraction;
  RETURN_IF_ERROR(Fuse(node, *contraction, *found.row,
                       FusedAttrs(*contraction, *found.row, {"BiasAdd"}, {found.bias}),
                       {found.bias}, r));
  return r.InPlace();
}

StatusOr<Rewritten> ContractionWithBiasAndActivation(Node& node, Rewriter& r) {
  const Node& bias_add = *node.input(0).node;
  if (!IsOutOfOrder(node)) return r.No();
  const Biased found = FindBiased(bias_add, r);
  if (found.contraction == nullptr) return found.why.empty() ? r.No() : r.No(found.why);
  if (node.Is(kProductActivations) && !(IsForOneDnn() && found.contraction->Is("MatMul"))) {
    return r.No("only products for oneDNN are fused with it");
  }
  if (node.Is("LeakyRelu") && found.contraction->Is("DepthwiseConv2dNative")) {
    return r.No("depthwise convolutions are not fused with it");
  }
  if (!r.context().allow_non_differentiable_rewrites) return r.No("a gradient may be taken");
  if (!IsInner(bias_add)) return r.No("others need the sum with the bias");
  if (node.Type("T") != bias_add.Type("T")) return r.No("the types differ");
  AttrMap attrs =
      FusedAttrs(*found.contraction, *found.row, {"BiasAdd", std::string(node.op())}, {found.bias});
  if (node.Is("LeakyRelu")) attrs.Set("leakyrelu_alpha", node.Float("alpha", 0.2F));
  RETURN_IF_ERROR(Fuse(node, *found.contraction, *found.row, std::move(attrs), {found.bias}, r));
  return r.InPlace();
}

// BiasAdd(Squeeze(Conv2D)) -> Squeeze(_FusedConv2D), where the channels are not squeezed.
StatusOr<Rewritten> ContractionWithSqueezeAndBias(Node& node, Rewriter& r) {
  Node* squeeze = node.input(0).node;
  if (!squeeze->Is("Squeeze") || !squeeze->input(0).node->Is({"Conv2D", "Conv3D"})) return r.No();
  if (!IsOutOfOrder(node)) return r.No("an order hangs on the sum");
  if (!IsInner(*squeeze)) return r.No("others need the squeezed tensor");
  const Contraction* row = nullptr;
  absl::string_view why;
  Node* conv = ContractionBefore(squeeze->input(0), *squeeze, r, &row, &why);
  if (conv == nullptr) return r.No(why);
  if (!r.context().allow_non_differentiable_rewrites) return r.No("a gradient may be taken");
  const std::vector<int64_t> dims = squeeze->Ints("squeeze_dims");
  if (dims.empty()) return r.No("which dimensions are squeezed is not said");
  const int64_t last = conv->Is("Conv3D") ? 4 : 3;
  const auto squeezed_away = [&](int64_t d) {
    return d == last || d == -1 || d < -last - 1 || d > last;
  };
  if (std::ranges::any_of(dims, squeezed_away)) return r.No("the channels are squeezed");
  if (ChannelsFirst(*conv)) return r.No("channels must come last");
  const Endpoint bias = node.input(1);
  AttrMap squeezed = squeeze->attrs();
  const std::string device = squeeze->device;
  // The convolution keeps its name, and the last node of the pattern its own.
  RETURN_IF_ERROR(
      Fuse(*conv, *conv, *row, FusedAttrs(*conv, *row, {"BiasAdd"}, {bias}), {bias}, r));
  r.graph().SetInputs(&node, {{conv, 0}});
  node.device = device;
  RETURN_IF_ERROR(r.Become(&node, "Squeeze", std::move(squeezed)));
  return r.InPlace();
}

struct Normalized {
  Node* conv = nullptr;
  const Contraction* row = nullptr;
  absl::string_view why;
};

// A normalization of a convolution by statistics that are given.
Normalized FindNormalized(const Node& norm, const Rewriter& r) {
  Normalized out;
  if (!norm.Is(kBatchNorms) || !norm.input(0).node->Is("Conv2D")) return out;
  if (!IsOutOfOrder(norm)) {
    out.why = "an order hangs on the normalization";
  } else if (norm.Bool("is_training", true)) {
    out.why = "it is trained";
  } else if (norm.String("data_format", "NHWC") != "NHWC") {
    out.why = "on a CPU channels must come last";
  } else if (norm.Type("T") != Dtype::kFloat || norm.Type("U", Dtype::kFloat) != Dtype::kFloat) {
    out.why = "only floats are fused";
  } else if (norm.NumUses(0) != NumDataUses(norm)) {
    out.why = "others read its statistics";
  } else {
    out.conv = ContractionBefore(norm.input(0), norm, r, &out.row, &out.why);
  }
  return out;
}

StatusOr<Rewritten> FuseNormalized(Node& node, const Node& norm, const Normalized& found,
                                   Rewriter& r) {
  if (!r.context().allow_non_differentiable_rewrites) return r.No("a gradient may be taken");
  std::vector<Endpoint> args(norm.inputs().begin() + 1, norm.inputs().begin() + 5);
  std::vector<std::string> ops = {"FusedBatchNorm"};
  if (&node != &norm) ops.emplace_back(node.Is("Mul") ? "_MklSwish" : node.op());
  AttrMap attrs = FusedAttrs(*found.conv, *found.row, std::move(ops), args);
  attrs.Set("epsilon", norm.Float("epsilon", 1e-4F));
  if (node.Is("LeakyRelu")) attrs.Set("leakyrelu_alpha", node.Float("alpha", 0.2F));
  RETURN_IF_ERROR(Fuse(node, *found.conv, *found.row, std::move(attrs), args, r));
  return r.InPlace();
}

StatusOr<Rewritten> ConvWithBatchNorm(Node& node, Rewriter& r) {
  const Normalized found = FindNormalized(node, r);
  if (found.conv == nullptr) return found.why.empty() ? r.No() : r.No(found.why);
  if (IsRoot(node) && node.num_outputs() > 1) return r.No("its statistics may be fetched");
  return FuseNormalized(node, node, found, r);
}

StatusOr<Rewritten> ConvWithBatchNormAndActivation(Node& node, Rewriter& r) {
  const Node& norm = *node.input(0).node;
  if (!IsOutOfOrder(node)) return r.No();
  const Normalized found = FindNormalized(norm, r);
  if (found.conv == nullptr) return found.why.empty() ? r.No() : r.No(found.why);
  if (!IsInner(norm)) return r.No("others need the normalized tensor");
  if (node.Type("T") != norm.Type("T")) return r.No("the types differ");
  return FuseNormalized(node, norm, found, r);
}

// Mul(n, Sigmoid(n)) of a normalized convolution, for oneDNN.
StatusOr<Rewritten> ConvWithBatchNormAndSwish(Node& node, Rewriter& r) {
  const auto [gate, other] = Sides(node, {"Sigmoid"});
  if (gate == nullptr || gate->input(0) != other || other.port != 0) return r.No();
  const Node& norm = *other.node;
  const Normalized found = FindNormalized(norm, r);
  if (found.conv == nullptr) return found.why.empty() ? r.No() : r.No(found.why);
  if (!IsOutOfOrder(node) || !IsInner(*gate)) return r.No("others need the Sigmoid");
  if (IsRoot(norm) || NumDataUses(norm) != 2) return r.No("others need the normalized tensor");
  return FuseNormalized(node, norm, found, r);
}

}  // namespace

const Rule kConvWithBatchNormAndSwish = {
    "ContractionWithBatchNormAndSwish",
    {"Mul"},
    ConvWithBatchNormAndSwish,
    "Mul(n, Sigmoid(n)), n = FusedBatchNorm(Conv2D) -> _FusedConv2D",
    [](const PassContext&) { return IsForOneDnn(); }};
const Rule kContractionWithBias = {"ContractionWithBiasAdd",
                                   {"Add", "AddV2", "BiasAdd"},
                                   ContractionWithBias,
                                   "BiasAdd(Conv2D | MatMul) -> _FusedConv2D | _FusedMatMul"};
const Rule kContractionWithBiasAndActivation = {
    "ContractionWithBiasAddAndActivation", kAnyActivation, ContractionWithBiasAndActivation,
    "Relu(BiasAdd(Conv2D | MatMul)) -> _FusedConv2D | _FusedMatMul"};
const Rule kContractionWithSqueezeAndBias = {"ContractionWithSqueezeAndBiasAdd",
                                             {"BiasAdd"},
                                             ContractionWithSqueezeAndBias,
                                             "BiasAdd(Squeeze(Conv2D)) -> Squeeze(_FusedConv2D)"};
const Rule kConvWithBatchNorm = {"ContractionWithBatchNorm", kBatchNorms, ConvWithBatchNorm,
                                 "FusedBatchNorm(Conv2D) -> _FusedConv2D"};
const Rule kConvWithBatchNormAndActivation = {"ContractionWithBatchNormAndActivation", kActivations,
                                              ConvWithBatchNormAndActivation,
                                              "Relu(FusedBatchNorm(Conv2D)) -> _FusedConv2D"};

}  // namespace smelt::remap
