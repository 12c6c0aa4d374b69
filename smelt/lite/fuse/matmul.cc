// batch_matmul and fully_connected: what is around a product, and products that are something else.
#include <algorithm>

#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/common/kernel_ranks.h"
#include "smelt/lite/fuse/fusion.h"

namespace smelt {
namespace {

bool SwapsLastTwo(const Node& n) {
  if (!n.Is("tfl.transpose")) return false;
  const auto order = IntsOf(n.input(1));
  if (!order || order->size() < 2) return false;
  std::vector<int64_t> plain = *order;
  std::swap(plain[plain.size() - 1], plain[plain.size() - 2]);
  for (size_t i = 0; i < plain.size(); ++i) {
    if (plain[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// (x y)^T is y^T x^T.
StatusOr<bool> FuseTransposeAfterBatchMatmul(Node& n, Fuser& f) {
  const Endpoint e = n.input(0);
  if (!e.node->Is("tfl.batch_matmul") || !SwapsLastTwo(n)) return false;
  if (!Fuser::ReadOnce(e)) return f.Declined(n, "others read what it follows");
  const Node& product = *e.node;
  AttrMap options = OptionsOf(product);
  options.Set("adj_x", !product.Bool("adj_y"));
  options.Set("adj_y", !product.Bool("adj_x"));
  ASSIGN_OR_RETURN(
      const Endpoint by,
      f.Add("tfl.batch_matmul", {product.input(1), product.input(0)}, std::move(options), n));
  f.Replace(&n, by);
  return true;
}

constexpr OpSet kProductReshapes = {"tfl.reshape", "tfl.squeeze", "tfl.expand_dims"};

// The sizes of [rows..., units] as a reshape says them; nothing where it cannot.
std::optional<std::vector<int64_t>> ProductRows(const PartialShape& to, int64_t last) {
  std::vector<int64_t> out = StatedSizes(to);
  out.back() = last;
  return CanReshapeTo(out) ? std::optional(out) : std::nullopt;
}

// Weights that are one matrix, whatever dimensions of one are in front.
bool IsOneMatrix(const PartialShape& weights) {
  for (int i = 0; i + 2 < weights.rank(); ++i) {
    if (weights[i] != 1) return false;
  }
  return weights.rank() >= 2;
}

// reshape(batch_matmul(reshape(x), w)) of weights that are one matrix for all: rows of any
// dimensions.
StatusOr<bool> FuseReshapesAroundBatchMatmul(Node& n, Fuser& f) {
  const Endpoint e = n.input(0);
  const Node& product = *e.node;
  if (!product.Is("tfl.batch_matmul") || product.Bool("adj_x")) return false;
  const Endpoint rows = product.input(0);
  const PartialShape weights = Fuser::shape(product.input(1));
  if (!rows.node->Is(kProductReshapes) || !IsOneMatrix(weights)) return false;
  const PartialShape x = Fuser::shape(rows.node->input(0)), to = Fuser::shape({&n, 0});
  const PartialShape flat = Fuser::shape(rows);
  if (x.rank() < 2 || flat.rank() < weights.rank()) return false;
  if (to.rank() > KernelRanksOf(product.op_name()).most) return false;
  const bool turned = product.Bool("adj_y");
  const int64_t inner = flat[flat.rank() - 1], units = weights[weights.rank() - (turned ? 2 : 1)];
  if (inner <= 0 || units <= 0) return false;
  if (to.rank() < weights.rank() || to[to.rank() - 1] != units) {
    return f.Declined(n, "its rows are not those before the reshape");
  }
  if (!Fuser::ReadOnce(e) || !Fuser::ReadOnce(rows)) {
    return f.Declined(n, "others read what it follows");
  }
  const auto sizes = ProductRows(to, inner);
  if (!sizes) return false;
  Endpoint in = rows.node->input(0);
  if (!SameWhenEqualElements(x, PartialShape::Of(*sizes))) {
    ASSIGN_OR_RETURN(in, f.Reshape(in, *sizes, n));
  }
  ASSIGN_OR_RETURN(const Endpoint by,
                   f.Add("tfl.batch_matmul", {in, product.input(1)}, OptionsOf(product), n));
  f.Replace(&n, by);
  return true;
}

// The same of fully_connected, which takes rows of any dimensions, and of several in a row.
StatusOr<bool> FuseReshapesAroundProduct(Node& n, Fuser& f) {
  const PartialShape to = Fuser::shape({&n, 0});
  std::vector<Node*> products;  // the last first
  Endpoint e = n.input(0);
  bool alone = Fuser::ReadOnce(e);
  while (e.node->Is("tfl.fully_connected")) {
    const PartialShape weights = Fuser::shape(e.node->input(1));
    const PartialShape rows = Fuser::shape(e.node->input(0));
    if (weights.rank() != 2 || weights[0] <= 0 || weights[1] <= 0) return false;
    if (rows.rank() < 1 || rows[rows.rank() - 1] != weights[1]) return false;
    products.push_back(e.node);
    e = e.node->input(0);
    alone = alone && Fuser::ReadOnce(e);
  }
  if (products.empty() || !e.node->Is(kProductReshapes) || to.rank() < 2) return false;
  const auto weights = [](const Node& product) { return Fuser::shape(product.input(1)); };
  if (to[to.rank() - 1] != weights(*products.front())[0]) {
    return f.Declined(n, "its rows are not those before the reshape");
  }
  if (!alone) return f.Declined(n, "others read what it follows");
  const auto sizes = ProductRows(to, weights(*products.back())[1]);
  if (!sizes) return false;
  ASSIGN_OR_RETURN(Endpoint by, f.Reshape(e.node->input(0), *sizes, n));
  const bool keeps = to.rank() != 2;
  for (size_t i = products.size() - 1; i > 0; --i) {
    Node* product = products[i];
    PartialShape made = to;
    made.Set(to.rank() - 1, weights(*product)[0]);
    product->AttrsToChange().Set("keep_num_dims", keeps);
    product->AttrsToChange().Set(kOutputShapes, std::vector<PartialShape>{made});
    f.SetInput(product, 0, by);
    by = {product, 0};
  }
  const Node& last = *products.front();
  AttrMap options = OptionsOf(last);
  options.Erase("keep_num_dims");
  if (keeps) options.Set("keep_num_dims", true);
  std::vector<Endpoint> inputs(last.inputs().begin(), last.inputs().end());
  inputs[0] = by;
  ASSIGN_OR_RETURN(by, f.Add("tfl.fully_connected", inputs, std::move(options), n));
  f.Replace(&n, by);
  return true;
}

// batch_matmul by a constant matrix is fully_connected.
StatusOr<bool> FuseBatchMatmulIntoProduct(Node& n, Fuser& f) {
  const auto weights = Fuser::Constant(n.input(1));
  const PartialShape x = Fuser::shape(n.input(0));
  if (!weights || weights->dtype() != Dtype::kFloat || weights->rank() != 2) return false;
  if (!x.known_rank() || x.rank() < 2) return false;
  if (n.Bool("adj_x")) return f.Declined(n, "its first operand is transposed");
  Tensor rows = *weights;
  if (!n.Bool("adj_y")) {
    ASSIGN_OR_RETURN(rows, Transposed(rows, {1, 0}));
  }
  AttrMap options;
  if (x.rank() > 2) options.Set("keep_num_dims", true);
  ASSIGN_OR_RETURN(Node * none, f.graph().Add("no_value", "tfl.no_value", {}));
  ASSIGN_OR_RETURN(const Endpoint by,
                   f.Add("tfl.fully_connected", {n.input(0), f.Const(rows, n), {none, 0}},
                         std::move(options), n));
  f.Replace(&n, by);
  return true;
}

// A product over one element is one for each pair.
StatusOr<bool> FuseProductOfOne(Node& n, Fuser& f) {
  const PartialShape x = Fuser::shape(n.input(0));
  const auto weights = Fuser::Constant(n.input(1));
  if (!weights || weights->dtype() != Dtype::kFloat || weights->rank() != 2) return false;
  if (weights->dim(1) != 1 || x.rank() < 1 || x[x.rank() - 1] != 1) return false;
  if (n.num_inputs() > 2 && !n.input(2).node->Is("tfl.no_value")) {
    return f.Declined(n, "the product has a bias");
  }
  // What is added to it becomes its bias.
  if (std::ranges::any_of(n.uses(), [](const Use& use) {
        return use.node->Is({"tfl.add", "tfl.sub"});
      })) {
    return f.Declined(n, "what is added to it can be its bias");
  }
  // Without keep_num_dims there are two dimensions.
  if (x.rank() > KernelRanksOf("tfl.mul").broadcast || (x.rank() != 2 && !n.Bool("keep_num_dims")))
    return false;
  AttrMap options;
  options.Set("fused_activation_function", n.String("fused_activation_function", "NONE"));
  const Endpoint factors = f.Const(weights->WithShape(Shape({weights->dim(0)})), n);
  ASSIGN_OR_RETURN(const Endpoint by,
                   f.Add("tfl.mul", {n.input(0), factors}, std::move(options), n));
  f.Replace(&n, by);
  return true;
}

constexpr Fusion kMatmulFusions[] = {
    {"FuseTransposeAfterBatchMatmul",
     {"tfl.transpose"},
     FuseTransposeAfterBatchMatmul,
     "transpose(batch_matmul(x, y)) -> batch_matmul(y, x), both transposed"},
    {"FuseReshapesAroundBatchMatmul", kProductReshapes, FuseReshapesAroundBatchMatmul,
     "reshape(batch_matmul(reshape(x), w)) -> batch_matmul(x, w) of one matrix w"},
    {"FuseReshapesAroundProduct", kProductReshapes, FuseReshapesAroundProduct,
     "reshape(fully_connected(reshape(x))) -> fully_connected(reshape(x)) with keep_num_dims"},
    {"FuseBatchMatmulIntoProduct",
     {"tfl.batch_matmul"},
     FuseBatchMatmulIntoProduct,
     "batch_matmul(x, w) by a constant matrix w -> fully_connected(x, w)"},
    {"FuseProductOfOne",
     {"tfl.fully_connected"},
     FuseProductOfOne,
     "fully_connected(x) over one element -> mul(x)"},
};

}  // namespace

std::span<const Fusion> MatmulFusions() { return kMatmulFusions; }

}  // namespace smelt
