#include <algorithm>

#include "absl/strings/match.h"
#include "smelt/optimize/constant/rules.h"
#include "smelt/optimize/rewrite/number_tensors.h"

namespace smelt::constant {

AttrMap HiddenAttrs(const Node& node) {
  AttrMap attrs;
  for (const auto& [name, attr] : node.attrs()) {
    if (absl::StartsWith(name, "_")) attrs.Set(name, attr);
  }
  return attrs;
}

bool IsMarkedForTpu(const Node& node) {
  return std::ranges::any_of(
      node.attrs(), [](const auto& attr) { return absl::StrContains(attr.first, "_tpu_"); });
}

Status ReadOnly(Node& node, std::span<const Endpoint> inputs, Rewriter& r) {
  const std::vector<Endpoint> before(node.inputs().begin(), node.inputs().end());
  const std::vector<Endpoint> after(inputs.begin(), inputs.end());
  r.graph().SetInputs(&node, after);
  for (const Endpoint& e : before) {
    if (std::ranges::find(after, e) == after.end()) RETURN_IF_ERROR(r.Wait(&node, e));
  }
  return OkStatus();
}

namespace {

StatusOr<Rewritten> BecomeCopy(Node& node, absl::string_view op, int input, Rewriter& r) {
  const Dtype type = node.output_types[0];
  if (IsRef(type)) {
    const bool by_reference = std::ranges::any_of(node.uses(), [](const Use& use) {
      return !use.is_control() && IsRef(use.node->input_types[static_cast<size_t>(use.input)]);
    });
    if (by_reference) return r.No("its result is read by reference");
  }
  AttrMap attrs = HiddenAttrs(node);
  attrs.Set("T", BaseType(type));
  const Endpoint from = node.input(input);
  RETURN_IF_ERROR(ReadOnly(node, std::span(&from, 1), r));
  RETURN_IF_ERROR(r.Become(&node, op, std::move(attrs)));
  return r.InPlace();
}

}  // namespace

StatusOr<Rewritten> BecomeIdentity(Node& node, int input, Rewriter& r) {
  return BecomeCopy(node, "Identity", input, r);
}

StatusOr<Rewritten> BecomeSnapshot(Node& node, int input, Rewriter& r) {
  return BecomeCopy(node, r.WritesInPlace() ? "Snapshot" : "Identity", input, r);
}

StatusOr<Rewritten> BecomeBroadcastTo(Node& node, int input, Rewriter& r) {
  const PartialShape shape = r.shape({&node, 0});
  if (!shape.fully_known()) return r.No("the shape of the result is not known");
  AttrMap attrs = HiddenAttrs(node);
  attrs.Set("T", BaseType(node.output_types[0]));
  attrs.Set("Tidx", Dtype::kInt32);
  Node* sizes = r.AddConst(r.PrefixedName(node, absl::StrCat("-broadcastto_shape-", input)),
                           IntegerVector(Dtype::kInt32, shape.dims()), node);
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (i != input) RETURN_IF_ERROR(r.Wait(sizes, node.input(i)));
  }
  RETURN_IF_ERROR(ReadOnly(node, std::vector<Endpoint>{node.input(input), {sizes, 0}}, r));
  RETURN_IF_ERROR(r.Become(&node, "BroadcastTo", std::move(attrs)));
  return r.InPlace();
}

StatusOr<Rewritten> BecomeConst(Node& node, Dtype dtype, Attr value, Rewriter& r) {
  AttrMap attrs = HiddenAttrs(node);
  attrs.Set("dtype", dtype);
  attrs.Set("value", std::move(value));
  RETURN_IF_ERROR(ReadOnly(node, {}, r));
  RETURN_IF_ERROR(r.Become(&node, "Const", std::move(attrs)));
  return r.InPlace();
}

StatusOr<Rewritten> BecomeUniform(Node& node, double value, const Shape& shape, Rewriter& r) {
  const Dtype dtype = BaseType(node.output_types[0]);
  const auto tensor = UniformTensor(dtype, shape, value);
  if (!tensor.ok()) return r.No("a constant of its type is not made");
  return BecomeConst(node, dtype, *tensor, r);
}

StatusOr<Rewritten> BecomeNoOp(Node& node, Rewriter& r) {
  RETURN_IF_ERROR(ReadOnly(node, {}, r));
  RETURN_IF_ERROR(r.Become(&node, "NoOp", HiddenAttrs(node)));
  return r.InPlace();
}

StatusOr<Node*> ConstBeside(const Node& node, absl::string_view suffix, const Tensor& value,
                            Endpoint before, Rewriter& r) {
  Node* c = r.AddConst(r.PrefixedName(node, suffix), value, node);
  RETURN_IF_ERROR(r.Wait(c, before));
  return c;
}

Tensor IntegerVector(Dtype dtype, std::span<const int64_t> values) {
  if (dtype == Dtype::kInt64) {
    return Tensor::Vector<int64_t>(std::vector<int64_t>(values.begin(), values.end()));
  }
  std::vector<int32_t> narrow;
  for (const int64_t v : values) narrow.push_back(static_cast<int32_t>(v));
  return Tensor::Vector<int32_t>(narrow);
}

bool IsAll(double value, Endpoint e, const Rewriter& r) {
  // A Fill may be of a Fill; deeper ones nobody writes.
  for (int depth = 0; depth < 2 && e.node->Is("Fill") && !IsFed(*e.node); ++depth) {
    e = e.node->input(1);
  }
  if (IsFed(*e.node)) return false;
  if (e.node->Is("ZerosLike")) return value == 0;
  if (e.node->Is("OnesLike")) return value == 1;
  const TensorValue* stated = r.ConstantValue(e);
  return stated != nullptr && UniformValue(*stated) == std::optional<double>(value);
}

}  // namespace smelt::constant
