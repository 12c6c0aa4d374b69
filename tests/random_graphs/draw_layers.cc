// Layers that graphs spell in several ops: normalizations, attention, pools, residuals.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/random_graphs/drawer.h"

namespace smelt {
namespace {

const char* Truth(bool b) { return b ? "true" : "false"; }
std::string OfType(Drawer& d, DrawnPort p) { return "T=" + Drawer::Name(d.TypeOf(p)); }

void DrawSoftmax(Drawer& d) {
  const auto x = d.PickFloating(1);
  if (!x) return;
  d.Add(d.Word({"Softmax", "Softmax", "LogSoftmax"}), {*x}, OfType(d, *x), d.IsRounded(*x));
}

void DrawLayerNorm(Drawer& d) {
  const auto x = d.PickFloating(1);
  if (!x || d.IsHuge(*x)) return;
  const std::string t = OfType(d, *x);
  const Dtype type = d.TypeOf(*x);
  const int64_t depth[] = {d.ShapeOf(*x).back()}, last[] = {-1};
  const std::string means = t + ", Tidx=int32, keep_dims=true";
  const auto mean = d.Add("Mean", {*x, d.Ints(last)}, means, true);
  if (!mean) return;
  const auto stopped = d.OneIn(2) ? d.Add("StopGradient", {*mean}, t, false, false) : mean;
  const auto squares = stopped ? d.Add("SquaredDifference", {*x, *stopped}, t, true) : std::nullopt;
  const auto variance =
      squares ? d.Add("Mean", {*squares, d.Ints(last)}, means, true) : std::nullopt;
  if (!variance) return;
  Tensor tiny = *Tensor::Zeros(type, Shape());
  if (type == Dtype::kFloat) *tiny.data<float>() = 1e-3F;
  if (type == Dtype::kDouble) *tiny.data<double>() = 1e-3;
  if (type == Dtype::kHalf) *tiny.data<Half>() = Half(1e-3F);
  if (type == Dtype::kBfloat16) *tiny.data<Bfloat16>() = Bfloat16(1e-3F);
  const auto sum = d.Add("AddV2", {*variance, d.Constant(std::move(tiny))}, t, true);
  const auto root = sum ? d.Add("Rsqrt", {*sum}, t, true) : std::nullopt;
  if (!root) return;
  const DrawnPort scale = d.Fresh(type, depth), offset = d.Fresh(type, depth);
  const auto mul = [&](std::optional<DrawnPort> a, std::optional<DrawnPort> b) {
    if (!a || !b) return std::optional<DrawnPort>();
    return d.OneIn(2) ? d.Add("Mul", {*a, *b}, t, true) : d.Add("Mul", {*b, *a}, t, true);
  };
  if (d.OneIn(3)) {
    // As tf.nn.batch_normalization says it.
    const auto inverse = mul(root, scale);
    const auto scaled = mul(*x, inverse), shifted = mul(*mean, inverse);
    const auto rest = shifted ? d.Add("Sub", {offset, *shifted}, t, true) : std::nullopt;
    if (scaled && rest) d.Add("AddV2", {*scaled, *rest}, t, true);
    return;
  }
  const auto difference = d.Add("Sub", {*x, *mean}, t, true);
  const size_t order = d.Below(3);
  const auto product = order == 0   ? mul(mul(difference, root), scale)
                       : order == 1 ? mul(mul(difference, scale), root)
                                    : mul(difference, mul(root, scale));
  if (product) d.Add("AddV2", {*product, offset}, t, true);
}

void DrawBatchNorm(Drawer& d) {
  const auto x = d.Pick([](const Tensor& t) {
    return t.dtype() == Dtype::kFloat && (t.rank() == 4 || t.rank() == 5);
  });
  if (!x || d.IsHuge(*x)) return;
  const int64_t depth[] = {d.ShapeOf(*x).back()};
  Tensor variance = *Tensor::Make(Dtype::kFloat, Shape(depth));
  for (float& v : variance.flat<float>()) v = 0.5F + static_cast<float>(d.Below(16)) / 8;
  const auto y =
      d.Add("FusedBatchNormV3",
            {*x, d.Fresh(Dtype::kFloat, depth), d.Fresh(Dtype::kFloat, depth),
             d.Fresh(Dtype::kFloat, depth, true), d.Constant(std::move(variance))},
            absl::StrCat("T=float, U=float, epsilon=0.001f, is_training=false, data_format=\"",
                         d.ShapeOf(*x).rank() == 5 ? "NDHWC" : "NHWC", "\""),
            true, false);
  if (!y) return;
  d.AddToPool(*y);
  DrawTail(d, *y);
}

void DrawPool(Drawer& d) {
  const auto x = d.Pick([](const Tensor& t) {
    return Drawer::IsFloating(t.dtype()) && (t.rank() == 4 || t.rank() == 5);
  });
  if (!x) return;
  const int volume = d.ShapeOf(*x).rank() == 5 ? 3 : 2;
  std::vector<int64_t> window, strides;
  for (int i = 0; i < volume; ++i) {
    window.push_back(d.Between(1, 3));
    strides.push_back(d.Between(1, 3));
  }
  const auto list = [](const std::vector<int64_t>& v) {
    return absl::StrCat("list(1, ", absl::StrJoin(v, ", "), ", 1)");
  };
  const bool mean = d.OneIn(2);
  if (mean && d.IsHuge(*x)) return;
  d.Add(absl::StrCat(mean ? "AvgPool" : "MaxPool", volume == 3 ? "3D" : ""), {*x},
        absl::StrCat(OfType(d, *x), ", ksize=", list(window), ", strides=", list(strides),
                     ", padding=\"", d.Word({"SAME", "VALID"}), "\", data_format=\"",
                     volume == 3 ? "NDHWC" : "NHWC", "\""),
        mean);
}

void DrawResize(Drawer& d) {
  const auto x =
      d.Pick([](const Tensor& t) { return t.dtype() == Dtype::kFloat && t.rank() == 4; });
  if (!x || d.IsHuge(*x)) return;
  const int64_t to[] = {d.Between(1, 10), d.Between(1, 10)};
  d.Add(d.Word({"ResizeBilinear", "ResizeNearestNeighbor"}), {*x, d.Ints(to)},
        absl::StrCat("T=float, align_corners=false, half_pixel_centers=", Truth(d.OneIn(2))));
}

// softmax(q k' * scale + mask) v, of products as Keras and others spell it.
void DrawAttention(Drawer& d) {
  const auto x = d.Pick([](const Tensor& t) {
    return Drawer::IsFloating(t.dtype()) && t.rank() == 3 && t.num_elements() > 0;
  });
  if (!x || d.IsHuge(*x)) return;
  const Dtype type = d.TypeOf(*x);
  const std::string t = OfType(d, *x);
  const int64_t batch = d.ShapeOf(*x)[0], queries = d.ShapeOf(*x)[1], depth = d.ShapeOf(*x)[2];
  const int64_t heads = d.Between(1, 3), size = d.Between(1, 8),
                keys = d.OneIn(2) ? queries : d.Size();
  const bool self = keys == queries;
  const int64_t weights[] = {depth, heads, size}, source[] = {batch, keys, depth};
  const DrawnPort y = self ? *x : d.Like(type, source);
  if (d.IsHuge(y)) return;
  const auto project = [&](DrawnPort from) -> std::optional<DrawnPort> {
    if (d.OneIn(3)) {  // a plain product, taken apart
      const int64_t flat[] = {depth, heads * size}, all[] = {-1, depth},
                    to[] = {batch, -1, heads, size};
      const auto rows = d.Add("Reshape", {from, d.Ints(all)}, t + ", Tshape=int32", false, false);
      const auto p = rows ? d.Add("MatMul", {*rows, d.Fresh(type, flat, true)},
                                  t + ", transpose_a=false, transpose_b=false", true, false)
                          : std::nullopt;
      return p ? d.Add("Reshape", {*p, d.Ints(to)}, t + ", Tshape=int32", false, d.OneIn(20))
               : std::nullopt;
    }
    auto p = d.Add("Einsum", {from, d.Fresh(type, weights, true)},
                   t + ", N=2, equation=\"abc,cde->abde\"", true, d.OneIn(20));
    if (p && d.OneIn(2)) {
      const int64_t bias[] = {heads, size};
      p = d.Add("AddV2", {*p, d.Fresh(type, bias, true)}, t, true, false);
    }
    return p;
  };
  auto q = project(*x), k = project(y), v = project(y);
  if (!q || !k || !v) return;
  Tensor scale = *Tensor::Zeros(type, Shape());
  if (type == Dtype::kFloat) *scale.data<float>() = 0.35F;
  if (type == Dtype::kDouble) *scale.data<double>() = 0.35;
  if (type == Dtype::kHalf) *scale.data<Half>() = Half(0.35F);
  if (type == Dtype::kBfloat16) *scale.data<Bfloat16>() = Bfloat16(0.35F);
  const DrawnPort number = d.Constant(std::move(scale));
  const size_t scaled = d.Below(3);
  if (scaled == 0) q = d.Add("Mul", {*q, number}, t, true, false);
  if (!q) return;
  std::optional<DrawnPort> scores;
  const bool turned = d.OneIn(2);
  const int64_t order[] = {0, 2, 1, 3};
  const auto turn = [&](std::optional<DrawnPort> p) {
    return p ? d.Add("Transpose", {*p, d.Ints(order)}, t + ", Tperm=int32", false, false)
             : std::nullopt;
  };
  if (turned) {
    q = turn(q), k = turn(k), v = turn(v);
    if (!q || !k || !v) return;
    scores = d.Add("BatchMatMulV2", {*q, *k}, t + ", adj_x=false, adj_y=true", true, d.OneIn(20));
  } else {
    scores =
        d.Add("Einsum", {*k, *q}, t + ", N=2, equation=\"aecd,abcd->acbe\"", true, d.OneIn(20));
  }
  if (scores && scaled == 1) scores = d.Add("Mul", {*scores, number}, t, true, false);
  if (scores && d.OneIn(2)) {
    Dims mask = {batch, heads, queries, keys};
    for (size_t i = 0; i < 3; ++i) {
      if (d.OneIn(2)) mask[i] = 1;
    }
    while (!mask.empty() && mask[0] == 1 && d.OneIn(2)) mask.erase(mask.begin());
    DrawnPort m = d.Fresh(type, mask, true);
    scores = d.Add("AddV2", {*scores, m}, t, true, false);
  }
  if (!scores) return;
  const auto weight = d.Add("Softmax", {*scores}, t, true, d.OneIn(20));
  if (!weight) return;
  auto mixed =
      turned ? d.Add("BatchMatMulV2", {*weight, *v}, t + ", adj_x=false, adj_y=false", true)
             : d.Add("Einsum", {*weight, *v}, t + ", N=2, equation=\"acbe,aecd->abcd\"", true);
  if (mixed && turned) mixed = turn(mixed);
  if (!mixed) return;
  d.AddToPool(*mixed);
  const int64_t out[] = {heads, size, depth};
  const auto y2 = d.Add("Einsum", {*mixed, d.Fresh(type, out, true)},
                        t + ", N=2, equation=\"abcd,cde->abe\"", true);
  if (y2) d.Add("AddV2", {*y2, *x}, t);
}

// A gate as in recurrent cells: a product, split, each part through its own function, and joined.
void DrawGates(Drawer& d) {
  const auto x = d.PickFloating(2, 2);
  if (!x || d.IsHuge(*x)) return;
  const std::string t = OfType(d, *x);
  const Dtype type = d.TypeOf(*x);
  const int64_t units = d.Between(1, 20), rows = d.ShapeOf(*x)[0];
  const int64_t weights[] = {d.ShapeOf(*x)[1], 4 * units}, state[] = {rows, units};
  const auto z = d.Add("MatMul", {*x, d.Fresh(type, weights, true)},
                       t + ", transpose_a=false, transpose_b=false", true, false);
  const auto parts =
      z ? d.Add("Split", {d.Int(1), *z}, t + ", num_split=4", false, d.OneIn(10)) : std::nullopt;
  if (!parts) return;
  const auto one = [&](const char* op, DrawnPort p) {
    return d.Add(op, {p}, t, true, d.OneIn(10));
  };
  const auto two = [&](const char* op, std::optional<DrawnPort> a, std::optional<DrawnPort> b) {
    return a && b ? d.Add(op, {*a, *b}, t, true) : std::nullopt;
  };
  const auto in = one("Sigmoid", *parts), forget = one("Sigmoid", d.Next(*parts)),
             fresh = one("Tanh", d.Next(*parts, 2)), out = one("Sigmoid", d.Next(*parts, 3));
  const auto cell = two("AddV2", two("Mul", forget, d.Like(type, state)), two("Mul", in, fresh));
  if (!cell) return;
  two("Mul", out, one("Tanh", *cell));
}

constexpr Production kRows[] = {{3, DrawSoftmax}, {4, DrawLayerNorm}, {2, DrawBatchNorm},
                                {4, DrawPool},    {1, DrawResize},    {4, DrawAttention},
                                {2, DrawGates}};

}  // namespace

void DrawManyRows(Drawer& d) {
  const bool images = d.OneIn(2);
  const int64_t rows = d.Of<int64_t>({61, 64, 64, 80, 96}), depth = d.Of<int64_t>({96, 128});
  const int64_t flat[] = {rows, depth}, image[] = {d.Of<int64_t>({6, 7, 8}), 9, 9, 16};
  const Tensor fed = d.At(images ? d.Fresh(Dtype::kFloat, image) : d.Fresh(Dtype::kFloat, flat));
  DrawnPort x = d.Argument(fed);
  const size_t layers = 1 + d.Below(3);
  for (size_t i = 0; i < layers && !d.failed() && !d.IsHuge(x); ++i) {
    std::optional<DrawnPort> y;
    const Shape s = d.ShapeOf(x);
    if (images && s.rank() == 4) {
      const int64_t filter[] = {3, 3, s[3], 16};
      y = d.Add("Conv2D", {x, d.Constant(d.At(d.Fresh(Dtype::kFloat, filter, true)))},
                "T=float, strides=list(1, 1, 1, 1), padding=\"SAME\"", true, d.OneIn(8));
    } else if (!images && s.rank() == 2) {
      const int64_t weights[] = {s[1], d.Of<int64_t>({128, 160})};
      y = d.Add("MatMul", {x, d.Constant(d.At(d.Fresh(Dtype::kFloat, weights, true)))},
                "T=float, transpose_a=false, transpose_b=false", true, d.OneIn(8));
    }
    if (!y) break;
    x = DrawTail(d, *y);
    // Numbers stay as small as they were.
    x = d.Add(d.Word({"Tanh", "Sigmoid", "Softmax"}), {x}, "T=float", true, false).value_or(x);
    if (d.OneIn(6)) {
      const int64_t last[] = {d.OneIn(3) ? 0 : -1};
      const auto mean =
          d.Add("Mean", {x, d.Ints(last)}, "T=float, Tidx=int32, keep_dims=true", true, d.OneIn(8));
      if (mean) x = d.Add("Sub", {x, *mean}, "T=float", true, false).value_or(x);
    }
  }
  d.AddToPool(x);
}

std::span<const Production> LayerProductions() { return kRows; }

}  // namespace smelt
