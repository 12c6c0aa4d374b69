// bfloat16 and int8 layers: the nodes that the optimizer makes of them compute what the graphs say.
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <thread>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "smelt/graph/text.h"
#include "smelt/runtime/session.h"

namespace smelt {
namespace {

StatusOr<Tensor> Answer(const std::string& text, std::vector<std::pair<std::string, Tensor>> feeds,
                        bool optimize) {
  ASSIGN_OR_RETURN(auto graph, ParseGraph(text));
  SessionOptions options;
  options.optimize = optimize;
  options.threads = 2;
  Session session(std::shared_ptr<const Graph>(std::move(graph)), options);
  ASSIGN_OR_RETURN(auto out, session.Run(feeds, {"y"}, {}));
  return out[0];
}

using Feeds = std::vector<std::pair<std::string, Tensor>>;

// Clients of one session, which makes its programs meanwhile, get the bits that sessions of one
// request each do.
void ExpectSameAtOnce(const std::string& text, const std::vector<Feeds>& requests) {
  auto graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  Session session(std::shared_ptr<const Graph>(*std::move(graph)), {.threads = 2});
  std::vector<Tensor> want;
  for (const Feeds& feeds : requests) {
    const auto answer = Answer(text, feeds, true);
    ASSERT_TRUE(answer.ok()) << answer.status();
    want.push_back(*answer);
  }
  std::vector<std::thread> clients;
  for (size_t c = 0; c < 3; ++c) {
    clients.emplace_back([&, c] {
      for (size_t i = 0; i < 2 * requests.size(); ++i) {
        const size_t at = (i + c) % requests.size();
        const auto got = session.Run(requests[at], {"y"}, {});
        ASSERT_TRUE(got.ok()) << got.status();
        ASSERT_TRUE((*got)[0].Identical(want[at])) << "client " << c << ", request " << at;
      }
    });
  }
  for (std::thread& t : clients) t.join();
}

std::string Ints(std::mt19937& rng, int64_t n, int low, int high) {
  std::uniform_int_distribution<int> d(low, high);
  std::vector<int> v(n);
  for (int& x : v) x = d(rng);
  return absl::StrJoin(v, ",");
}
std::string Floats(std::mt19937& rng, int64_t n, float low, float high) {
  std::uniform_real_distribution<float> d(low, high);
  std::vector<float> v(n);
  for (float& x : v) x = d(rng);
  return absl::StrJoin(v, ",");
}

Tensor RandomFloats(std::mt19937& rng, const Shape& shape) {
  Tensor t = *Tensor::Make(Dtype::kFloat, shape, HeapAllocator());
  std::uniform_real_distribution<float> d(-2, 2);
  for (float& x : t.flat<float>()) x = d(rng);
  return t;
}

// ---- int8 ----

struct LayerCase {
  int64_t size, in, out, kernel, stride, pad, groups;
  bool dot = false;
  int64_t dilation = 1, more_after = 0;  // padding
};
constexpr LayerCase kLayerCases[] = {
    {8, 16, 32, 3, 1, 1, 1},
    {9, 3, 7, 3, 2, 1, 1},
    {5, 70, 33, 1, 1, 0, 1},
    {7, 24, 24, 3, 1, 1, 24},
    {10, 17, 34, 3, 2, 1, 17},
    {6, 8, 8, 5, 1, 2, 2},
    {4, 64, 48, 0, 0, 0, 1, true},
    {1, 1000, 3, 0, 0, 0, 1, true},
    // So many weights that a team binds the kernels.
    {3, 600, 600, 0, 0, 0, 1, true},
    {5, 192, 192, 3, 1, 1, 1},
    // The library has no code for it.
    {8, 16, 16, 1, 70000, 0, 1},
    // Depthwise: whole registers and parts of them, windows that reach beyond both borders.
    {8, 64, 64, 3, 1, 1, 64},
    {9, 32, 32, 3, 2, 0, 32, false, 1, 1},
    {11, 100, 100, 5, 1, 2, 100},
    {2, 16, 16, 7, 1, 3, 16},
    {13, 40, 40, 3, 1, 2, 40, false, 2},
    {15, 200, 200, 3, 2, 3, 200, false, 3, 2},
    {1, 96, 96, 1, 1, 0, 96},
    {6, 130, 130, 2, 3, 0, 130},
    // Windows of one pixel: steps, tiles and channels that are not whole.
    {5, 24, 70, 1, 1, 0, 1},
    {7, 16, 96, 1, 2, 0, 1},
    {4, 40, 17, 1, 3, 0, 1},
    {11, 20, 33, 0, 0, 0, 1, true},
};
// Those after kBroadcast: steps in float, then the way to int8. kSumOfInt8 adds what was int8.
enum class LayerEnd {
  kInt8,
  kClamped,
  kFloat,
  kRelu,
  kResidual,
  kBroadcast,
  kResidualToInt8,
  kSumOfInt8,
  kSiluToInt8,
  kSilu
};

// y: what `from` becomes at a scale of 0.03, clamped to [-120, 127].
constexpr char kLayerToInt8[] = R"(
  s2 = Const {dtype=float, value=float[]{0.03}}
  z2 = Const {dtype=float, value=float[]{-9}}
  low2 = Const {dtype=float, value=float[]{-120}}
  td = Div(last, s2) {T=float}
  ta = AddV2(td, z2) {T=float}
  th = Maximum(ta, low2) {T=float}
  tl = Minimum(th, high) {T=float}
  tr = Round(tl) {T=float}
  y = Cast(tr) {SrcT=float, DstT=int8}
)";
constexpr char kLayerThroughInt8[] = R"(
  s3 = Const {dtype=float, value=float[]{0.02}}
  z3 = Const {dtype=float, value=float[]{5}}
  ud = Div(other, s3) {T=float}
  ua = AddV2(ud, z3) {T=float}
  uh = Maximum(ua, low) {T=float}
  ul = Minimum(uh, high) {T=float}
  ur = Round(ul) {T=float}
  u8 = Cast(ur) {SrcT=float, DstT=int8}
  uf = Cast(u8) {SrcT=int8, DstT=float}
  uo = Sub(uf, z3) {T=float}
  us = Mul(uo, s3) {T=float}
)";

std::string LayerText(std::mt19937& rng, const LayerCase& c, LayerEnd end, bool per_channel) {
  const int64_t filter = c.dot ? c.in * c.out : c.kernel * c.kernel * c.in / c.groups * c.out;
  const int64_t terms = c.dot ? c.in : c.kernel * c.kernel * c.in / c.groups;
  const std::string factors =
      absl::StrCat(per_channel ? absl::StrCat("float[", c.out, "]") : "float[]", "{",
                   Floats(rng, per_channel ? c.out : 1, 1e-3F / static_cast<float>(terms),
                          1e-1F / static_cast<float>(terms)),
                   "}");
  std::string t = R"(
  x = Placeholder {dtype=float, shape=shape(?)}
  other = Placeholder {dtype=float, shape=shape(?)}
  s = Const {dtype=float, value=float[]{0.016}}
  zx = Const {dtype=float, value=float[]{-7}}
  low = Const {dtype=float, value=float[]{-128}}
  high = Const {dtype=float, value=float[]{127}}
  d = Div(x, s) {T=float}
  dz = AddV2(d, zx) {T=float}
  dh = Maximum(dz, low) {T=float}
  dl = Minimum(dh, high) {T=float}
  dr = Round(dl) {T=float}
  q = Cast(dr) {SrcT=float, DstT=int8}
)";
  if (c.dot) {
    absl::StrAppend(&t, "  w = Const {dtype=int8, value=int8[", c.in, ",", c.out, "]{",
                    Ints(rng, filter, -127, 127), "}}\n",
                    "  acc = XlaDotV2(q, w) {LhsT=int8, RhsT=int8, preferred_element_type=int32, "
                    "dimension_numbers=\"\\n\\001\\001\\022\\001\\000\", precision_config=\"\", "
                    "_quantized_layer=\"l\"}\n",
                    "  b = Const {dtype=int32, value=int32[1,", c.out, "]{",
                    Ints(rng, c.out, -9999, 9999), "}}\n");
  } else {
    const int64_t after = c.pad + c.more_after;
    absl::StrAppend(
        &t, "  pads = Const {dtype=int32, value=int32[4,2]{0,0,", c.pad, ",", after, ",", c.pad,
        ",", after, ",0,0}}\n  z8 = Const {dtype=int8, value=int8[]{-7}}\n",
        "  p = PadV2(q, pads, z8) {T=int8, Tpaddings=int32}\n",
        "  w = Const {dtype=int8, value=int8[", c.kernel, ",", c.kernel, ",", c.in / c.groups, ",",
        c.out, "]{", Ints(rng, filter, -127, 127), "}}\n",
        "  strides = Const {dtype=int32, value=int32[2]{", c.stride, ",", c.stride, "}}\n",
        "  none = Const {dtype=int32, value=int32[2,2]{0,0,0,0}}\n",
        "  ones = Const {dtype=int32, value=int32[2]{1,1}}\n",
        "  apart = Const {dtype=int32, value=int32[2]{", c.dilation, ",", c.dilation, "}}\n",
        "  groups = Const {dtype=int32, value=int32[]{", c.groups, "}}\n",
        "  acc = XlaConvV2(p, w, strides, none, ones, apart, groups) {LhsT=int8, RhsT=int8, "
        "Tindices=int32, preferred_element_type=int32, batch_group_count=1, precision_config=\"\", "
        "dimension_numbers="
        "\"\\030\\002\\040\\003\\062\\002\\000\\001\\100\\003\\120\\003\\132\\002\\001\\002\\142\\0"
        "02\\001\\002\"}\n",
        "  b = Const {dtype=int32, value=int32[1,1,1,", c.out, "]{", Ints(rng, c.out, -9999, 9999),
        "}}\n");
  }
  absl::StrAppend(&t, R"(
  o = AddV2(acc, b) {T=int32}
  f = Cast(o) {SrcT=int32, DstT=float}
  m = Const {dtype=float, value=)",
                  factors, R"(}
  k = Mul(f, m) {T=float}
)");
  switch (end) {
    case LayerEnd::kFloat:
      return absl::StrCat(t, "  y = Identity(k) {T=float}\n");
    case LayerEnd::kRelu:
      return absl::StrCat(t, "  y = Relu6(k) {T=float}\n");
    case LayerEnd::kResidual:
    case LayerEnd::kBroadcast:
      return absl::StrCat(t, "  sum = AddV2(k, other) {T=float}\n  y = Relu(sum) {T=float}\n");
    case LayerEnd::kResidualToInt8:
      return absl::StrCat(t, "  last = AddV2(k, other) {T=float}\n", kLayerToInt8);
    case LayerEnd::kSumOfInt8:
      return absl::StrCat(t, kLayerThroughInt8, "  sum = AddV2(k, us) {T=float}\n",
                          "  last = Relu(sum) {T=float}\n", kLayerToInt8);
    case LayerEnd::kSilu:
      return absl::StrCat(t, "  sg = Sigmoid(k) {T=float}\n  y = Mul(k, sg) {T=float}\n");
    case LayerEnd::kSiluToInt8:
      return absl::StrCat(t, "  sg = Sigmoid(k) {T=float}\n  last = Mul(k, sg) {T=float}\n",
                          kLayerToInt8);
    default:
      return absl::StrCat(t, R"(
  z = Const {dtype=float, value=float[]{-9}}
  low2 = Const {dtype=float, value=float[]{)",
                          end == LayerEnd::kClamped ? -9 : -128, R"(}}
  high2 = Const {dtype=float, value=float[]{)",
                          end == LayerEnd::kClamped ? 50 : 127, R"(}}
  ka = AddV2(k, z) {T=float}
  kh = Maximum(ka, low2) {T=float}
  kl = Minimum(kh, high2) {T=float}
  kr = Round(kl) {T=float}
  y = Cast(kr) {SrcT=float, DstT=int8}
)");
  }
}

TEST(Int8, NoRows) {
  std::mt19937 rng(10);
  for (const LayerCase& c : {kLayerCases[0], kLayerCases[6], kLayerCases[10]}) {
    for (const LayerEnd end : {LayerEnd::kInt8, LayerEnd::kFloat, LayerEnd::kSiluToInt8}) {
      const std::string text = LayerText(rng, c, end, true);
      const Tensor x =
          RandomFloats(rng, c.dot ? Shape({0, c.in}) : Shape({0, c.size, c.size, c.in}));
      const Tensor other = RandomFloats(rng, Shape({1}));
      const auto want = Answer(text, {{"x", x}, {"other", other}}, false);
      const auto got = Answer(text, {{"x", x}, {"other", other}}, true);
      ASSERT_TRUE(want.ok()) << want.status();
      ASSERT_TRUE(got.ok()) << got.status();
      ASSERT_EQ(want->shape().ToString(), got->shape().ToString());
      ASSERT_EQ(want->dtype(), got->dtype());
    }
  }
}

// The int8 result of a layer as floats: between two kernels it is stored as they like.
std::string BackToFloat(const std::string& text) {
  return absl::StrCat(absl::StrReplaceAll(text, {{"  y = Cast(", "  y8 = Cast("}}), R"(
  s9 = Const {dtype=float, value=float[]{1}}
  z9 = Const {dtype=float, value=float[]{-9}}
  f9 = Cast(y8) {SrcT=int8, DstT=float}
  o9 = Sub(f9, z9) {T=float}
  y = Mul(o9, s9) {T=float}
)");
}

TEST(Int8, LayersStoreWhatTheNextReads) {
  std::mt19937 rng(11);
  for (const LayerCase& c : kLayerCases) {
    for (const LayerEnd end : {LayerEnd::kInt8, LayerEnd::kClamped, LayerEnd::kResidualToInt8,
                               LayerEnd::kSumOfInt8, LayerEnd::kSiluToInt8}) {
      SCOPED_TRACE(absl::StrCat("layer ", &c - kLayerCases, " end ", static_cast<int>(end)));
      const std::string text = LayerText(rng, c, end, true);
      const Tensor x =
          RandomFloats(rng, c.dot ? Shape({c.size, c.in}) : Shape({2, c.size, c.size, c.in}));
      const auto shape = Answer(text, {{"x", x}, {"other", RandomFloats(rng, Shape({1}))}}, false);
      ASSERT_TRUE(shape.ok()) << shape.status();
      Tensor other = RandomFloats(rng, shape->shape());
      other.flat<float>()[0] = std::numeric_limits<float>::infinity();
      other.flat<float>()[1] = -std::numeric_limits<float>::infinity();
      const auto want = Answer(BackToFloat(text), {{"x", x}, {"other", other}}, false);
      const auto got = Answer(BackToFloat(text), {{"x", x}, {"other", other}}, true);
      ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
      int64_t off = 0;
      for (int64_t i = 0; i < want->num_elements(); ++i) {
        ASSERT_NEAR(want->flat<float>()[i], got->flat<float>()[i], 1) << i;
        off += want->flat<float>()[i] != got->flat<float>()[i] ? 1 : 0;
      }
      ASSERT_LE(off, 1 + want->num_elements() / 1000);
    }
  }
}

// A NaN has no place in int8: it becomes the least number there.
TEST(Int8, NotANumberBecomesTheLeast) {
  std::mt19937 rng(9);
  for (const LayerCase& c : kLayerCases) {
    for (const LayerEnd end : {LayerEnd::kResidualToInt8, LayerEnd::kSumOfInt8}) {
      const std::string text = LayerText(rng, c, end, true);
      const Tensor x =
          RandomFloats(rng, c.dot ? Shape({c.size, c.in}) : Shape({2, c.size, c.size, c.in}));
      const auto shape = Answer(text, {{"x", x}, {"other", RandomFloats(rng, Shape({1}))}}, false);
      ASSERT_TRUE(shape.ok()) << shape.status();
      Tensor other = RandomFloats(rng, shape->shape());
      const auto before = Answer(text, {{"x", x}, {"other", other}}, true);
      other.flat<float>()[1] = std::numeric_limits<float>::quiet_NaN();
      const auto got = Answer(text, {{"x", x}, {"other", other}}, true);
      ASSERT_TRUE(before.ok() && got.ok()) << got.status();
      for (int64_t i = 0; i < got->num_elements(); ++i) {
        if (i != 1) {
          ASSERT_EQ(before->flat<int8_t>()[i], got->flat<int8_t>()[i]) << i;
        } else if (end == LayerEnd::kResidualToInt8) {
          ASSERT_EQ(got->flat<int8_t>()[i], -120) << &c - kLayerCases;
        }
      }
    }
  }
}

TEST(Int8, FusedLayersComputeWhatTheirNodesDo) {
  std::mt19937 rng(7);
  for (const LayerCase& c : kLayerCases) {
    for (const LayerEnd end :
         {LayerEnd::kInt8, LayerEnd::kClamped, LayerEnd::kFloat, LayerEnd::kRelu,
          LayerEnd::kResidual, LayerEnd::kBroadcast, LayerEnd::kResidualToInt8,
          LayerEnd::kSumOfInt8, LayerEnd::kSiluToInt8, LayerEnd::kSilu}) {
      for (const bool per_channel : {false, true}) {
        SCOPED_TRACE(absl::StrCat("layer ", &c - kLayerCases, " end ", static_cast<int>(end),
                                  per_channel ? " per channel" : ""));
        const std::string text = LayerText(rng, c, end, per_channel);
        const Tensor x =
            RandomFloats(rng, c.dot ? Shape({c.size, c.in}) : Shape({2, c.size, c.size, c.in}));
        Tensor other = RandomFloats(rng, Shape({c.dot ? int64_t{1} : c.out}));
        if (end == LayerEnd::kResidual || end == LayerEnd::kResidualToInt8 ||
            end == LayerEnd::kSumOfInt8) {
          auto plain = Answer(text, {{"x", x}, {"other", other}}, false);
          ASSERT_TRUE(plain.ok()) << plain.status();
          other = RandomFloats(rng, plain->shape());
          other.flat<float>()[0] = std::numeric_limits<float>::infinity();
          other.flat<float>()[1] = -std::numeric_limits<float>::infinity();
          other.flat<float>()[2] = 1e30F;
        }
        const auto want = Answer(text, {{"x", x}, {"other", other}}, false);
        const auto got = Answer(text, {{"x", x}, {"other", other}}, true);
        ASSERT_TRUE(want.ok()) << want.status();
        ASSERT_TRUE(got.ok()) << got.status();
        ASSERT_EQ(want->dtype(), got->dtype());
        ASSERT_EQ(want->shape().ToString(), got->shape().ToString());
        int64_t off = 0;  // by one, where the floats before lie about half way
        for (int64_t i = 0; i < want->num_elements(); ++i) {
          if (want->dtype() == Dtype::kInt8) {
            ASSERT_NEAR(want->flat<int8_t>()[i], got->flat<int8_t>()[i], 1) << i;
            off += want->flat<int8_t>()[i] != got->flat<int8_t>()[i] ? 1 : 0;
          } else if (want->flat<float>()[i] != got->flat<float>()[i]) {  // infinite, or near
            ASSERT_NEAR(want->flat<float>()[i], got->flat<float>()[i], 2e-5) << i;
          }
        }
        ASSERT_LE(off, 1 + want->num_elements() / 1000);
      }
    }
  }
}

TEST(Int8, ClientsAtOnce) {
  std::mt19937 rng(12);
  for (const size_t which : {0, 3, 6, 9, 13, 19}) {
    const LayerCase& c = kLayerCases[which];
    for (const LayerEnd end : {LayerEnd::kFloat, LayerEnd::kSiluToInt8}) {
      SCOPED_TRACE(absl::StrCat("layer ", which, " end ", static_cast<int>(end)));
      const std::string text = LayerText(rng, c, end, true);
      std::vector<Feeds> requests;
      for (const int64_t n : {1, 2, 5}) {
        const Shape shape = c.dot ? Shape({n, c.in}) : Shape({n, c.size, c.size, c.in});
        requests.push_back({{"x", RandomFloats(rng, shape)}, {"other", RandomFloats(rng, {1})}});
      }
      ExpectSameAtOnce(text, requests);
    }
  }
}

// ---- bfloat16 ----

// A layer in type T between float borders.
std::string NarrowText(absl::string_view dtype, absl::string_view layer) {
  std::string t = "  x = Placeholder {dtype=float, shape=shape(?)}\n";
  const bool narrow = dtype == "bfloat16";
  absl::StrAppend(
      &t, narrow ? "  n = Cast(x) {SrcT=float, DstT=bfloat16}\n" : "  n = Identity(x) {T=float}\n");
  std::string body(layer);
  size_t at;
  while ((at = body.find('@')) != std::string::npos) body.replace(at, 1, std::string(dtype));
  absl::StrAppend(
      &t, body,
      narrow ? "  y = Cast(z) {SrcT=bfloat16, DstT=float}\n" : "  y = Identity(z) {T=float}\n");
  return t;
}

TEST(Bfloat16, LayersAreNearFloat) {
  std::mt19937 rng(8);
  const std::string filter = absl::StrCat("  w = Const {dtype=@, value=@[3,3,16,32]{",
                                          Floats(rng, 3 * 3 * 16 * 32, -0.1F, 0.1F), "}}\n");
  const std::string depthwise = absl::StrCat("  w = Const {dtype=@, value=@[3,3,16,2]{",
                                             Floats(rng, 3 * 3 * 32, -0.3F, 0.3F), "}}\n");
  const std::string statistics =
      absl::StrCat("  g = Const {dtype=float, value=float[32]{", Floats(rng, 32, 0.5F, 1), "}}\n",
                   "  c = Conv2D(n, w) {T=@, strides=list(1,1,1,1), padding=\"SAME\"}\n");
  const std::string normalized =
      "  b = FusedBatchNormV3(c, g, g, g, g) {T=@, U=float, is_training=false}\n"
      "  z = Relu(b) {T=@}\n";
  const std::string matrix = absl::StrCat("  w = Const {dtype=@, value=@[256,300]{",
                                          Floats(rng, 256 * 300, -0.1F, 0.1F), "}}\n");
  const std::string bias =
      absl::StrCat("  b = Const {dtype=@, value=@[300]{", Floats(rng, 300, -1, 1), "}}\n");
  std::string depthwise_layer = depthwise + statistics + normalized;
  depthwise_layer.replace(depthwise_layer.find("Conv2D"), 6, "DepthwiseConv2dNative");
  const Shape image({2, 9, 9, 16});
  const struct {
    Shape shape;
    std::string layer;
  } cases[] = {
      {image, filter + statistics + normalized},
      {image, depthwise_layer},
      {image, filter + "  z = Conv2D(n, w) {T=@, strides=list(1,2,2,1), padding=\"VALID\"}\n"},
      {Shape({2, 40, 40, 16}),
       "  z = MaxPool(n) {T=@, ksize=list(1,3,3,1), strides=list(1,2,2,1), padding=\"SAME\"}\n"},
      {Shape({2, 40, 40, 16}),
       "  z = AvgPool(n) {T=@, ksize=list(1,3,3,1), strides=list(1,2,2,1), padding=\"SAME\"}\n"},
      {Shape({32, 256}), matrix + bias +
                             "  m = MatMul(n, w) {T=@}\n  a = BiasAdd(m, b) {T=@}\n"
                             "  z = Tanh(a) {T=@}\n"},
      {Shape({1, 256}), matrix + "  z = MatMul(n, w) {T=@}\n"},
      {Shape({4, 64, 48}), "  z = BatchMatMulV2(n, n) {T=@, adj_x=false, adj_y=true}\n"},
      {Shape({4, 16, 256}), matrix + "  z = Einsum(n, w) {T=@, N=2, equation=\"abc,cd->abd\"}\n"},
      {Shape({3, 5}), "  z = MatMul(n, n) {T=@, transpose_b=true}\n"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.layer.substr(c.layer.rfind("z = ")));
    const Tensor x = RandomFloats(rng, c.shape);
    const auto want = Answer(NarrowText("float", c.layer), {{"x", x}}, true);
    ASSERT_TRUE(want.ok()) << want.status();
    for (const bool optimize : {false, true}) {
      const auto got = Answer(NarrowText("bfloat16", c.layer), {{"x", x}}, optimize);
      ASSERT_TRUE(got.ok()) << got.status();
      ASSERT_EQ(want->shape().ToString(), got->shape().ToString());
      float top = 0;
      for (const float v : want->flat<float>()) top = std::max(top, std::abs(v));
      for (int64_t i = 0; i < want->num_elements(); ++i) {
        ASSERT_NEAR(want->flat<float>()[i], got->flat<float>()[i], 0.02F * top) << i;
      }
    }
    // Clients that send other numbers of rows.
    std::vector<Feeds> requests;
    for (const int64_t rows : {c.shape.dims()[0], c.shape.dims()[0] + 1, int64_t{3}}) {
      Shape shape = c.shape;
      shape.Set(0, rows);
      requests.push_back({{"x", RandomFloats(rng, shape)}});
    }
    ExpectSameAtOnce(NarrowText("bfloat16", c.layer), requests);
  }
}

}  // namespace
}  // namespace smelt
