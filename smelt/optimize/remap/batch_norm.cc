// A normalization by constant statistics is a product and a sum, once constants are folded.
#include <algorithm>

#include "smelt/optimize/remap/contraction.h"
#include "smelt/optimize/remap/fold_weights.h"
#include "smelt/optimize/remap/rules.h"

namespace smelt::remap {
namespace {

// Makes the nodes that stand for one normalization; each is named NAME/<what it is>.
class Primitives {
 public:
  Primitives(Node& node, Rewriter& r) : node_(node), r_(r) {
    float_.Set("T", Dtype::kFloat);
    reshape_ = float_;
    reshape_.Set("Tshape", Dtype::kInt32);
  }

  Status Make() {
    Endpoint args[4];
    for (int i = 0; i < 4; ++i) args[i] = node_.input(1 + i);
    if (node_.String("data_format", "NHWC") != "NHWC") RETURN_IF_ERROR(SpreadOverChannels(args));
    const auto& [scale, offset, mean, variance] = args;
    const Tensor epsilon = Tensor::Scalar(node_.Float("epsilon", 1e-4F));
    Node* const added = r_.AddConst(Name("Const"), epsilon, node_);
    ASSIGN_OR_RETURN(const Endpoint sum, Add("VarPlusEpsilon", "Add", {variance, {added, 0}}));
    ASSIGN_OR_RETURN(const Endpoint inverse, Add("Inv", "Rsqrt", {sum}));
    ASSIGN_OR_RETURN(const Endpoint scaled, Add("Scaled", "Mul", {inverse, scale}));
    ASSIGN_OR_RETURN(const Endpoint product, Add("Mul", "Mul", {node_.input(0), scaled}));
    ASSIGN_OR_RETURN(const Endpoint shift, Add("Mul2", "Mul", {mean, scaled}));
    ASSIGN_OR_RETURN(const Endpoint moved, Add("Offset", "Sub", {offset, shift}));
    r_.CopyShape({&node_, 0}, product);
    r_.graph().SetInputs(&node_, {product, moved});
    return r_.Become(&node_, "Add", float_);
  }

 private:
  std::string Name(absl::string_view what) const {
    return r_.graph().FreeName(absl::StrCat(node_.name(), "/", what));
  }

  StatusOr<Endpoint> Add(absl::string_view what, absl::string_view op,
                         std::initializer_list<Endpoint> inputs) {
    ASSIGN_OR_RETURN(Node * n, r_.Add(Name(what), op, inputs, float_, node_));
    return Endpoint{n, 0};
  }

  // Vectors of one number for each channel, where channels come second.
  Status SpreadOverChannels(Endpoint (&args)[4]) {
    constexpr absl::string_view kNames[] = {"Scale", "Offset", "Mean", "Variance"};
    std::vector<int32_t> sizes = {1, -1, 1, 1};
    if (r_.shape(node_.input(0)).rank() == 5) sizes.push_back(1);
    Node* shape = r_.AddConst(Name("NCHWShape"), Tensor::Vector<int32_t>(sizes), node_);
    r_.graph().AddControlInput(shape, args[0].node);
    for (int i = 0; i < 4; ++i) {
      ASSIGN_OR_RETURN(Node * n, r_.Add(Name(absl::StrCat("NCHWShaped", kNames[i])), "Reshape",
                                        {args[i], {shape, 0}}, reshape_, node_));
      args[i] = {n, 0};
    }
    return OkStatus();
  }

  Node& node_;
  Rewriter& r_;
  AttrMap float_, reshape_;
};

StatusOr<Rewritten> BatchNormToPrimitives(Node& node, Rewriter& r) {
  if (node.Bool("is_training", true)) return r.No("it is trained");
  if (node.Type("T") != Dtype::kFloat || node.Type("U", Dtype::kFloat) != Dtype::kFloat) {
    return r.No("only floats are taken apart");
  }
  // Sessions fuse it with what stands before it, or run it as it is.
  int constants = 0;
  for (const Endpoint& e : node.inputs()) constants += r.ConstantValue(e) != nullptr ? 1 : 0;
  const bool scale = r.ConstantValue(node.input(1)) != nullptr;
  const bool variance = r.ConstantValue(node.input(4)) != nullptr;
  if (!(scale && variance) && constants < 4) return r.No("its statistics are no constants");
  if (node.NumUses(0) != NumDataUses(node)) return r.No("others read its statistics");
  if (IsRoot(node)) return r.No("its statistics may be fetched");
  RETURN_IF_ERROR(Primitives(node, r).Make());
  return r.InPlace();
}

// In sessions its factors are numbers at once, so that what stands around it may take them.
StatusOr<Rewritten> BatchNormToScaleAndShift(Node& node, Rewriter& r) {
  if (node.Bool("is_training", true)) return r.No("it is trained");
  if (node.Type("T") != Dtype::kFloat || node.Type("U", Dtype::kFloat) != Dtype::kFloat) {
    return r.No("only floats are taken apart");
  }
  if (node.String("data_format", "NHWC") != "NHWC") return r.No("channels must come last");
  if (node.NumUses(0) != NumDataUses(node)) return r.No("others read its statistics");
  if (IsRoot(node)) return r.No("its statistics may be fetched");
  const PartialShape& x = r.shape(node.input(0));
  if (x.rank() != 4 || x[3] < 0) {
    return r.No("the number of channels is not known");
  }
  const auto norm = ConstantNormOf(node, x[3], r);
  if (!norm) return r.No("its statistics are no constants");
  AttrMap attrs;
  attrs.Set("T", Dtype::kFloat);
  const auto name = [&](absl::string_view what) {
    return r.graph().FreeName(absl::StrCat(node.name(), "/", what));
  };
  const Tensor scale = Tensor::Vector<float>(norm->scale);
  const Tensor shift = Tensor::Vector<float>(norm->shift);
  Node* const by = r.AddConst(name("scale"), scale, node);
  Node* const and_by = r.AddConst(name("shift"), shift, node);
  ASSIGN_OR_RETURN(Node * product,
                   r.Add(name("Mul"), "Mul", {node.input(0), {by, 0}}, attrs, node));
  r.CopyShape({&node, 0}, {product, 0});
  r.graph().SetInputs(&node, {Endpoint{product, 0}, Endpoint{and_by, 0}});
  RETURN_IF_ERROR(r.Become(&node, "AddV2", attrs));
  return r.InPlace();
}

}  // namespace

const Rule kBatchNormToScaleAndShift = {
    "FusedBatchNormToScaleAndShift", kBatchNorms, BatchNormToScaleAndShift,
    "FusedBatchNorm of constants, which no convolution took -> Mul and AddV2"};

const Rule kBatchNormToPrimitives = {
    "FusedBatchNorm", kBatchNorms, BatchNormToPrimitives,
    "FusedBatchNorm -> Mul and Add, where scale and variance are constants",
    [](const PassContext& context) { return !context.for_execution; }};

}  // namespace smelt::remap
