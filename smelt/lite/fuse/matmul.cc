// batch_matmul and fully_connected: what is around a product, and products that are something else.
#include <algorithm>

#include "smelt/lite/common/evaluate.h"
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

// reshape(batch_matmul(reshape(x), w)) of weights that are one matrix for all: rows of any
// dimensions.
StatusOr<bool> FuseReshapesAroundBatchMatmul(Node& n, Fuser& f) {
  const Endpoint e = n.input(0);
  const Node& product = *e.node;
  if (!product.Is("tfl.batch_matmul") || product.Bool("adj_x")) return false;
  const Endpoint rows = product.input(0);
  const PartialShape weights = Fuser::shape(product.input(1));
  if (!rows.node->Is(kProductReshapes) || weights.rank() != 2) return false;
  const PartialShape x = Fuser::shape(rows.node->input(0)), to = Fuser::shape({&n, 0});
  const PartialShape flat = Fuser::shape(rows);
  // The kernel takes no more dimensions.
  if (x.rank() < 2 || x.rank() > 5 || flat.rank() != 2) return false;
  const int64_t inner = x[x.rank() - 1], units = weights[product.Bool("adj_y") ? 0 : 1];
  if (inner <= 0 || inner != flat[1]) {
    return f.Declined(n, "its rows are not those before the reshape");
  }
  std::vector<int64_t> dims;
  for (int i = 0; i + 1 < x.rank(); ++i) dims.push_back(x[i]);
  dims.push_back(units);
  if (units <= 0 || !SameWhenEqualElements(PartialShape::Of(dims), to)) return false;
  if (!Fuser::ReadOnce(e) || !Fuser::ReadOnce(rows)) {
    return f.Declined(n, "others read what it follows");
  }
  ASSIGN_OR_RETURN(
      const Endpoint by,
      f.Add("tfl.batch_matmul", {rows.node->input(0), product.input(1)}, OptionsOf(product), n));
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
  // Kernels broadcast no more dimensions; without keep_num_dims there are two.
  if (x.rank() > 4 || (x.rank() != 2 && !n.Bool("keep_num_dims"))) return false;
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
    {"FuseProductOfOne",
     {"tfl.fully_connected"},
     FuseProductOfOne,
     "fully_connected(x) over one element -> mul(x)"},
};

}  // namespace

std::span<const Fusion> MatmulFusions() { return kMatmulFusions; }

}  // namespace smelt
