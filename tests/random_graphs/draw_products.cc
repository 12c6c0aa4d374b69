// Products and convolutions, with what layers have behind them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/random_graphs/drawer.h"

namespace smelt {
namespace {

const char* Bool(bool b) { return b ? "true" : "false"; }

// Of small integers products are exact; of narrow types they are slow.
std::optional<DrawnPort> PickFactor(Drawer& d, int least_rank, int most_rank) {
  const auto x = d.PickFloating(least_rank, most_rank);
  if (!x || d.IsHuge(*x)) return std::nullopt;
  return x;
}

void DrawMatMul(Drawer& d) {
  auto x = PickFactor(d, 2, 2);
  if (!x) {
    // Rows of what there is.
    const auto more = PickFactor(d, 3, 5);
    if (!more) return;
    const int64_t to[] = {-1, d.ShapeOf(*more).back()};
    x = d.Add("Reshape", {*more, d.Ints(to)},
              absl::StrCat("T=", Drawer::Name(d.TypeOf(*more)), ", Tshape=int32"));
    if (!x) return;
  }
  const Dtype t = d.TypeOf(*x);
  const bool ta = d.OneIn(5), tb = d.OneIn(4), right = d.OneIn(8);
  const int64_t inner = d.ShapeOf(*x)[(right ? !ta : ta) ? 0 : 1];
  Dims dims = {inner, d.Size()};
  if (right ? !tb : tb) std::swap(dims[0], dims[1]);
  const DrawnPort w = d.OneIn(12) && d.ShapeOf(*x)[0] == d.ShapeOf(*x)[1] ? *x : d.Like(t, dims);
  if (d.IsHuge(w)) return;
  const auto y = right ? d.Add("MatMul", {w, *x},
                               absl::StrCat("T=", Drawer::Name(t), ", transpose_a=", Bool(tb),
                                            ", transpose_b=", Bool(ta)),
                               true)
                       : d.Add("MatMul", {*x, w},
                               absl::StrCat("T=", Drawer::Name(t), ", transpose_a=", Bool(ta),
                                            ", transpose_b=", Bool(tb)),
                               true);
  if (y) DrawTail(d, *y);
}

void DrawBatchMatMul(Drawer& d) {
  const auto x = PickFactor(d, 2, 5);
  if (!x) return;
  const Dtype t = d.TypeOf(*x);
  const bool ax = d.OneIn(4), ay = d.OneIn(3);
  Dims dims(d.ShapeOf(*x).dims().begin(), d.ShapeOf(*x).dims().end());
  const int64_t inner = dims[dims.size() - (ax ? 2 : 1)];
  dims[dims.size() - 2] = ay ? d.Size() : inner;
  dims[dims.size() - 1] = ay ? inner : d.Size();
  for (size_t i = 0; i + 2 < dims.size(); ++i) {
    if (d.OneIn(4)) dims[i] = 1;
  }
  while (dims.size() > 2 && d.OneIn(4)) dims.erase(dims.begin());
  const DrawnPort w = d.Like(t, dims);
  if (d.IsHuge(w)) return;
  const auto y =
      d.Add("BatchMatMulV2", {*x, w},
            absl::StrCat("T=", Drawer::Name(t), ", adj_x=", Bool(ax), ", adj_y=", Bool(ay)), true);
  if (y) DrawTail(d, *y);
}

void DrawEinsum(Drawer& d) {
  const auto x = PickFactor(d, 2, 4);
  if (!x) return;
  const int rank = d.ShapeOf(*x).rank();
  static const std::vector<std::vector<const char*>> kEquations = {
      {"ab,bc->ac", "ab,cb->ca", "ab,ab->", "ab,ab->a", "ab,b->a", "ab,bcd->acd", "ab,bcd->cad",
       "ab->ba", "ab->a", "...b,bc->...c", "ab,c->abc"},
      {"abc,cd->abd", "abc,cde->abde", "abc,dc->abd", "abc,acd->abd", "abc,adc->abd",
       "abc,bcd->abd", "abc,bcd->bad", "abc->cab", "abc->b", "...bc,cd->...bd", "abc,bc->a",
       "abc,abd->acd", "abc,cbd->ad"},
      {"abcd,cde->abe", "abcd,aecd->acbe", "abcd,abed->abce", "abcd,abde->abce", "acbe,aecd->abcd",
       "abcd,de->abce", "abcd,dcef->abef", "abcd->dcba", "BTNH,BFNH->BNFT", "BNFT,BTNH->BFNH"}};
  const auto& menu = kEquations[static_cast<size_t>(rank - 2)];
  const std::string equation = menu[d.Below(menu.size())];
  const Dtype t = d.TypeOf(*x);
  std::vector<DrawnPort> inputs = {*x};
  const size_t comma = equation.find(','), arrow = equation.find("->");
  if (comma != std::string::npos) {
    const std::string first = equation.substr(0, comma),
                      second = equation.substr(comma + 1, arrow - comma - 1);
    std::string labels = first;
    if (labels.rfind("...", 0) == 0)
      labels = std::string(static_cast<size_t>(rank) + 3 - labels.size(), '.') + labels.substr(3);
    Dims dims;
    for (const char c : second) {
      const size_t at = labels.find(c);
      dims.push_back(at == std::string::npos ? d.Size() : d.ShapeOf(*x)[static_cast<int>(at)]);
    }
    inputs.push_back(d.Like(t, dims));
    if (d.IsHuge(inputs[1])) return;
  }
  const auto y = d.Add(
      "Einsum", inputs,
      absl::StrCat("T=", Drawer::Name(t), ", N=", inputs.size(), ", equation=\"", equation, "\""),
      true);
  if (y) DrawTail(d, *y);
}

// NHWC, or NDHWC of three dimensions.
std::string Window(const std::vector<int64_t>& inner) {
  return absl::StrCat("list(1, ", absl::StrJoin(inner, ", "), ", 1)");
}

void DrawConv(Drawer& d) {
  const auto x = d.Pick([](const Tensor& t) {
    return Drawer::IsFloating(t.dtype()) && (t.rank() == 4 || t.rank() == 5);
  });
  if (!x || d.IsHuge(*x)) return;
  const int volume = d.ShapeOf(*x).rank() == 5 ? 3 : 2;
  const Dtype t = d.TypeOf(*x);
  const int64_t depth = d.ShapeOf(*x).back();
  if (depth == 0) return;
  const bool depthwise = volume == 2 && d.OneIn(3);
  const bool grouped = volume == 2 && !depthwise && depth % 2 == 0 && d.OneIn(10);
  Dims filter;
  std::vector<int64_t> strides, dilations, pads = {0, 0};
  const bool square = d.OneIn(2);
  for (int i = 0; i < volume; ++i) {
    filter.push_back(square && i > 0 ? filter[0] : d.Between(1, 3 + (d.OneIn(6) ? 4 : 0)));
    strides.push_back(square && i > 0 ? strides[0] : d.OneIn(3) ? d.Between(1, 3) : 1);
    dilations.push_back(volume == 3 || !d.OneIn(5) ? 1 : d.Between(1, 3));
    pads.push_back(d.Between(0, 2));
    pads.push_back(d.Between(0, 2));
  }
  if (depthwise) strides[1] = strides[0];
  pads.push_back(0);
  pads.push_back(0);
  filter.push_back(grouped ? depth / 2 : depth);
  filter.push_back(depthwise ? d.Of<int64_t>({1, 1, 1, 2})
                   : grouped ? 2 * d.Between(1, 4)
                             : d.Size());
  int64_t taps = 1;
  for (const int64_t f : filter) taps *= f;
  if (taps > 40000) return;
  const std::string padding =
      volume == 2 && d.OneIn(4) ? "EXPLICIT" : d.Word({"SAME", "SAME", "VALID"});
  const DrawnPort w = d.Like(t, filter);
  if (d.IsHuge(w)) return;
  std::string attrs = absl::StrCat("T=", Drawer::Name(t), ", strides=", Window(strides),
                                   ", dilations=", Window(dilations), ", padding=\"", padding,
                                   "\", data_format=\"", volume == 3 ? "NDHWC" : "NHWC", "\"");
  if (padding == "EXPLICIT")
    absl::StrAppend(&attrs, ", explicit_paddings=list(", absl::StrJoin(pads, ", "), ")");
  const auto y = d.Add(volume == 3 ? "Conv3D"
                       : depthwise ? "DepthwiseConv2dNative"
                                   : "Conv2D",
                       {*x, w}, attrs, true);
  if (y) DrawTail(d, *y);
}

// A convolution from its result to an image whose size is among those that give such a result.
void DrawConvTranspose(Drawer& d) {
  const auto x = d.Pick([](const Tensor& t) {
    return (t.dtype() == Dtype::kFloat || t.dtype() == Dtype::kDouble) &&
           (t.rank() == 4 || t.rank() == 5);
  });
  if (!x || d.IsHuge(*x)) return;
  const Shape shape = d.ShapeOf(*x);
  const int volume = shape.rank() - 2;
  const Dtype t = d.TypeOf(*x);
  const int64_t out_depth = d.Size();
  const bool same = d.OneIn(2);
  Dims filter, sizes = {shape[0]};
  std::vector<int64_t> strides;
  for (int i = 0; i < volume; ++i) {
    const int64_t stride = d.Between(1, 3), window = d.Between(1, 4);
    if (shape[1 + i] == 0) return;
    strides.push_back(stride);
    filter.push_back(window);
    const int64_t least = (shape[1 + i] - 1) * stride + (same ? 1 : window);
    sizes.push_back(d.Between(least, least + stride - 1));
  }
  sizes.push_back(out_depth);
  filter.push_back(out_depth);
  filter.push_back(shape.back());
  int64_t taps = 1;
  for (const int64_t f : filter) taps *= f;
  if (taps == 0 || taps > 40000) return;
  const DrawnPort w = d.Like(t, filter);
  if (d.IsHuge(w)) return;
  const std::vector<int64_t> plain(static_cast<size_t>(volume), 1);
  const auto y =
      d.Add(volume == 3 ? "Conv3DBackpropInputV2" : "Conv2DBackpropInput", {d.Ints(sizes), w, *x},
            absl::StrCat("T=", Drawer::Name(t), volume == 3 ? ", Tshape=int32" : "",
                         ", strides=", Window(strides), ", dilations=", Window(plain),
                         ", padding=\"", same ? "SAME" : "VALID", "\", data_format=\"",
                         volume == 3 ? "NDHWC" : "NHWC", "\""),
            true);
  if (y) DrawTail(d, *y);
}

// A convolution whose taps stand apart, as TensorFlow spells it: the image is spread over the
// batch, seen, and gathered. Several may see it.
void DrawDilatedConv(Drawer& d) {
  const auto x = d.Pick(
      [](const Tensor& t) { return t.dtype() == Dtype::kFloat && t.rank() >= 3 && t.rank() <= 5; });
  if (!x || d.IsHuge(*x)) return;
  const Shape shape = d.ShapeOf(*x);
  const int spatial = shape.rank() - 2;
  std::vector<int64_t> blocks, pads, crops;
  Dims filter;
  for (int i = 0; i < spatial; ++i) {
    const int64_t block = d.Between(1, 3), before = d.Between(0, 4), size = shape[1 + i] + before;
    const int64_t after = (block - size % block) % block;
    if (size + after == 0) return;
    blocks.push_back(block);
    pads.insert(pads.end(), {before, after});
    const int64_t window = d.Between(1, std::min<int64_t>(3, (size + after) / block));
    const int64_t results = size + after - (window - 1) * block;
    crops.push_back(d.Between(0, std::min(before, results)));
    crops.push_back(d.Between(0, std::min(after, results - crops.back())));
    filter.push_back(window);
  }
  if (spatial == 1) filter.insert(filter.begin(), 1);
  filter.push_back(shape.back());
  filter.push_back(d.Size());
  if (shape.back() == 0 || filter.back() == 0) return;
  const auto pairs = [&](const std::vector<int64_t>& values) {
    Tensor t = *Tensor::Make(Dtype::kInt32, Shape({spatial, 2}));
    std::ranges::copy(values, t.data<int32_t>());
    return d.Constant(std::move(t));
  };
  const auto spread = d.Add("SpaceToBatchND", {*x, d.Ints(blocks), pairs(pads)},
                            "T=float, Tblock_shape=int32, Tpaddings=int32", false, d.OneIn(8));
  if (!spread) return;
  const std::vector<int64_t> plain(static_cast<size_t>(std::max(spatial, 2)), 1);
  for (size_t n = 1 + d.Below(2); n > 0; --n) {
    const DrawnPort w = d.Like(Dtype::kFloat, filter);
    if (d.IsHuge(w)) return;
    auto y = spatial == 1
                 ? d.Add("ExpandDims", {*spread, d.Int(1)}, "T=float, Tdim=int32", false, false)
                 : spread;
    if (y) {
      y = d.Add(spatial == 3 ? "Conv3D" : "Conv2D", {*y, w},
                absl::StrCat("T=float, strides=", Window(plain), ", dilations=", Window(plain),
                             ", padding=\"", d.OneIn(6) ? "SAME" : "VALID", "\", data_format=\"",
                             spatial == 3 ? "NDHWC" : "NHWC", "\""),
                true, false);
    }
    if (y && spatial == 1)
      y = d.Add("Squeeze", {*y}, "T=float, squeeze_dims=list(1)", false, false);
    if (y) {
      y = d.Add("BatchToSpaceND", {*y, d.Ints(blocks), pairs(crops)},
                "T=float, Tblock_shape=int32, Tcrops=int32");
    }
    if (y) DrawTail(d, *y);
  }
}

// A recommender's: the products of all pairs.
void DrawDotInteraction(Drawer& d) {
  const auto x = PickFactor(d, 2, 2);
  if (!x) return;
  const auto dims = d.ShapeOf(*x).dims();
  std::vector<DrawnPort> parts = {*x};
  const size_t count = 2 + d.Below(4);
  while (parts.size() < count) parts.push_back(d.Like(d.TypeOf(*x), dims));
  for (const DrawnPort& p : parts) {
    if (d.IsHuge(p)) return;
  }
  const std::string t = "T=" + Drawer::Name(d.TypeOf(*x));
  const auto all = d.Add("Pack", parts, absl::StrCat("N=", parts.size(), ", ", t, ", axis=1"));
  if (all) d.Add("BatchMatMulV2", {*all, *all}, t + ", adj_x=false, adj_y=true", true);
}

constexpr Production kRows[] = {
    {5, DrawMatMul},        {3, DrawBatchMatMul}, {3, DrawEinsum},        {8, DrawConv},
    {2, DrawConvTranspose}, {2, DrawDilatedConv}, {1, DrawDotInteraction}};

}  // namespace

DrawnPort DrawTail(Drawer& d, DrawnPort x) {
  const size_t count = d.Below(5);
  for (size_t i = 0; i < count && !d.failed(); ++i) {
    const Dtype t = d.TypeOf(x);
    std::optional<DrawnPort> next;
    switch (d.Below(5)) {
      case 0: {
        if (d.ShapeOf(x).rank() < 2) break;
        const int64_t depth[] = {d.ShapeOf(x).back()};
        next = d.Add("BiasAdd", {x, d.Like(t, depth)},
                     absl::StrCat("T=", Drawer::Name(t), ", data_format=\"NHWC\""));
        break;
      }
      case 1: {
        const DrawnPort other = d.OneIn(3) ? d.Partner(x) : d.Like(t, d.ShapeOf(x).dims());
        next = d.OneIn(2) ? d.Add("AddV2", {x, other}, "T=" + Drawer::Name(t))
                          : d.Add("AddV2", {other, x}, "T=" + Drawer::Name(t));
        break;
      }
      case 2:
        if (!d.OneIn(3)) {
          next = DrawActivation(d, x);
        } else {
          next =
              d.Add(d.Word({"Mul", "Sub", "Maximum"}), {x, d.Partner(x)}, "T=" + Drawer::Name(t));
        }
        break;
      default:
        next = DrawActivation(d, x);
    }
    if (next) x = *next;
  }
  return x;
}

DrawnPort DrawActivation(Drawer& d, DrawnPort x) {
  const Dtype t = d.TypeOf(x);
  const std::string attr = "T=" + Drawer::Name(t);
  const bool rounded = d.IsRounded(x);
  const auto number = [&](double v) {
    Tensor c = *Tensor::Make(t, Shape());
    if (t == Dtype::kFloat) *c.data<float>() = static_cast<float>(v);
    if (t == Dtype::kDouble) *c.data<double>() = v;
    if (t == Dtype::kHalf) *c.data<Half>() = Half(static_cast<float>(v));
    if (t == Dtype::kBfloat16) *c.data<Bfloat16>() = Bfloat16(static_cast<float>(v));
    return d.Constant(std::move(c));
  };
  const auto then = [&](const char* op, DrawnPort a,
                        std::optional<DrawnPort> b = std::nullopt) -> DrawnPort {
    const auto y = b ? d.Add(op, {a, *b}, attr, rounded) : d.Add(op, {a}, attr, rounded);
    return y.value_or(a);
  };
  switch (d.Below(12)) {
    case 0:
    case 1:

      return d.Add(d.Word({"Relu", "Relu6"}), {x}, attr).value_or(x);
    case 2:
      return then("Tanh", x);
    case 3:
      return then("Sigmoid", x);
    case 4:
      return then("Elu", x);
    case 5:
      return d
          .Add("LeakyRelu", {x},
               absl::StrCat(attr,
                            ", alpha=", d.Word({"0.1f", "0.2f", "0.3f", "0.0f", "1.5f", "-0.5f"})))
          .value_or(x);
    case 6: {  // GELU
      const DrawnPort e = then("Erf", then("Mul", x, number(0.7071067811865476)));
      const DrawnPort half = then("Mul", number(0.5), x);
      return then("Mul", half, then("AddV2", e, number(1)));
    }
    case 7: {
      const DrawnPort cube = then("Mul", then("Mul", x, x), x);
      const DrawnPort inner = then("Mul", number(0.7978845608028654),
                                   then("AddV2", x, then("Mul", number(0.044715), cube)));
      return then("Mul", then("Mul", number(0.5), x),
                  then("AddV2", number(1), then("Tanh", inner)));
    }
    case 8:  // swish
      return then("Mul", x, then("Sigmoid", x));
    case 9: {  // hard swish
      const DrawnPort six = then("Relu6", then("AddV2", x, number(3)));
      return then("Mul", then("Mul", x, six), number(1.0 / 6));
    }
    case 10:
      return then("Minimum", then("Maximum", x, number(0)), number(6));
    default:
      return then("Softplus", x);
  }
}

std::span<const Production> ProductProductions() { return kRows; }

}  // namespace smelt
