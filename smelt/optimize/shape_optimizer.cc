// TensorFlow's shape_optimizer: numbers of elements that are computed from shapes.
#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "smelt/optimize/passes.h"
#include "smelt/optimize/rewrite/number_tensors.h"
#include "smelt/optimize/rewrite/rewriter.h"

namespace smelt {
namespace {

bool IsIndex(Dtype type) { return type == Dtype::kInt32 || type == Dtype::kInt64; }

// Prod(Shape(x)) -> Size(x)
StatusOr<Rewritten> ShapeProduct(Node& node, Rewriter& r) {
  Node* shape = node.input(0).node;
  if (!shape->Is("Shape") || !IsIndex(node.Type("T"))) return r.No();
  if (node.Bool("keep_dims")) return r.No("the product keeps its dimension");
  const PartialShape axes = r.shape(node.input(1));
  if (!axes.fully_known() || axes.ToShape().num_elements() != 1) {
    return r.No("it is not known to multiply over one axis");
  }
  // There is a kernel of Size for every type on a CPU.
  const std::string& device = shape->device;
  if (!r.context().for_execution && !device.empty() &&
      !absl::StrContains(absl::AsciiStrToUpper(device), "CPU")) {
    return r.No("no kernel of Size is known for its device");
  }
  AttrMap attrs = node.attrs();
  for (const absl::string_view name : {"Tidx", "keep_dims", "_root", "_fed"}) attrs.Erase(name);
  attrs.Set("out_type", node.Type("T"));
  attrs.Set("T", shape->Type("T"));
  node.device = device;
  r.graph().SetInputs(&node, {shape->input(0)});
  RETURN_IF_ERROR(r.Wait(&node, {shape, 0}));
  RETURN_IF_ERROR(r.Become(&node, "Size", std::move(attrs)));
  for (const Use& use : node.uses()) r.Visit(use.node);
  return r.InPlace();
}

// The product of the sizes that are numbers; nothing beyond int64. Symbols are added to `symbols`.
std::optional<int64_t> Elements(const PartialShape& shape, std::vector<int64_t>* symbols) {
  if (!IsSymbolic(shape)) return std::nullopt;
  int64_t elements = 1;
  for (const int64_t size : shape.dims()) {
    if (size < 0) {
      symbols->push_back(size);
    } else if (__builtin_mul_overflow(elements, size, &elements)) {
      return std::nullopt;
    }
  }
  std::ranges::sort(*symbols);
  return elements;
}

// Size(x) / Size(y) -> a constant, where what is not known of both is the same.
StatusOr<Rewritten> ShapeRatio(Node& node, Rewriter& r) {
  const Node *x = node.input(0).node, *y = node.input(1).node;
  if (!x->Is("Size") || !y->Is("Size")) return r.No();
  std::vector<int64_t> of_x, of_y;
  const std::optional<int64_t> above = Elements(r.shape(x->input(0)), &of_x);
  const std::optional<int64_t> below = Elements(r.shape(y->input(0)), &of_y);
  if (!above || !below || of_x != of_y) return r.No("the ratio is not known");
  if (*below == 0) return r.No("it divides by zero");
  const Dtype type = node.Type("T");
  const StatusOr<Attr> value = UniformTensor(type, Shape(), static_cast<double>(*above / *below));
  // Doubles have all integers up to 2^53.
  if (!value.ok() || *above / *below > (int64_t{1} << 53)) return r.No("the ratio is too large");
  AttrMap attrs = node.attrs();
  for (const absl::string_view name : {"T", "_root", "_fed"}) attrs.Erase(name);
  attrs.Set("dtype", type);
  attrs.Set("value", *value);
  const std::vector<Endpoint> sizes = {node.input(0), node.input(1)};
  r.graph().SetInputs(&node, {});
  for (const Endpoint& e : sizes) RETURN_IF_ERROR(r.Wait(&node, e));
  RETURN_IF_ERROR(r.Become(&node, "Const", std::move(attrs)));
  return r.InPlace();
}

constexpr Rule kShapeProduct = {
    "ShapeProduct", {"Prod"}, ShapeProduct, "Prod(Shape(x)) -> Size(x)"};
constexpr Rule kShapeRatio = {"ShapeRatio", {"Div"}, ShapeRatio, "Size(x) / Size(y) -> a constant"};
constexpr const Rule* kRules[] = {&kShapeProduct, &kShapeRatio};

}  // namespace

Status OptimizeShapes(Graph& graph, const PassContext& context) {
  return RunRules(kRules, "ShapeOptimizer", Toggle::kDefault, graph, context);
}

}  // namespace smelt
