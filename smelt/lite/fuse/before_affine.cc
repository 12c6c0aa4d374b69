// What a convolution or a product reads, and is one with it: factors and sums of its input's
// channels, zeros around an image, the blocks of a dilated convolution.
#include <algorithm>
#include <cmath>

#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/fuse/fusion.h"

namespace smelt {
namespace {

constexpr OpSet kReaders = {"tfl.conv_2d", "tfl.depthwise_conv_2d", "tfl.fully_connected"};

// Which dimension of the weights is that of the input's channels. Channels of a depthwise
// convolution are in its last, as many as it makes of each.
int InputChannels(const Node& n) { return n.Is("tfl.fully_connected") ? 1 : 3; }

// `value`, of the input's channels, for each index of that dimension.
Tensor Spread(const Tensor& value, int64_t count) {
  const int64_t times = count / value.num_elements();
  Tensor out = *Tensor::Make(Dtype::kFloat, Shape({count}));
  for (int64_t i = 0; i < count; ++i) out.data<float>()[i] = value.data<float>()[i / times];
  return out;
}

// The operator before: a constant of the input's channels and what is left. The constant may be
// deep in a product of several, or a sum of several: `path` leads to it from the input of the
// affine operator, to the operator that reads it.
struct Before {
  std::vector<Node*> path;
  int constant = 1;  // which input of the last it is
  Tensor value;
  Endpoint rest() const { return path.back()->input(1 - constant); }
};

// Where a constant stands in a tree of one op, of so many levels at most.
bool FindConstant(Endpoint e, OpName op, bool left_too, int levels, Before* out) {
  if (!e.node->Is(op) || Fuser::type(e) != Dtype::kFloat) return false;
  out->path.push_back(e.node);
  for (const int c : {1, 0}) {
    if (c == 0 && !left_too) break;
    auto value = Fuser::Constant(e.node->input(c));
    if (!value) continue;
    out->constant = c;
    out->value = *std::move(value);
    return true;
  }
  for (const int c : {0, 1}) {
    const Endpoint inner = e.node->input(c);
    if (levels > 1 && Fuser::ReadOnce(inner) && !HasActivation(*inner.node) &&
        FindConstant(inner, op, left_too, levels - 1, out)) {
      return true;
    }
  }
  out->path.pop_back();
  return false;
}

// Has every operator on the way its shape without the constant too? One that is broadcast to the
// constant's shape would not.
bool KeepsShapes(const Before& b) {
  PartialShape without = Fuser::shape(b.rest());
  for (size_t i = b.path.size(); i-- > 0;) {
    const Node& n = *b.path[i];
    if (i + 1 < b.path.size()) {
      const bool first = n.input(0).node == b.path[i + 1];
      without = BroadcastOf(without, Fuser::shape(n.input(first ? 1 : 0)));
    }
    if (i == 0) return without == Fuser::shape({const_cast<Node*>(&n), 0});
  }
  return false;
}

// Reads the operator before, and takes its constant: once for each index of the dimension of its
// weights.
struct Reader {
  Node* n;
  Tensor weights, value;
};

// Every operator that reads `e`; nothing, with the reason in `why`, where one cannot take the
// constant.
StatusOr<std::vector<Reader>> ReadersOf(Endpoint e, const Tensor& value, int64_t channels,
                                        std::string* why) {
  std::vector<Reader> out;
  for (const Use& u : e.node->OrderedUses()) {
    Node& n = *u.node;
    if (u.input != 0 || !n.Is(kReaders)) {
      *why = absl::StrCat("others read '", e.node->name(), "'");
      return std::vector<Reader>();
    }
    const auto weights = Fuser::Constant(n.input(1));
    if (!weights) {
      *why = "the weights are no constant";
      return std::vector<Reader>();
    }
    ASSIGN_OR_RETURN(const auto all, PerChannel(value, channels));
    const int64_t count = weights->dim(InputChannels(n));
    if (!all || count % channels != 0 || (!n.Is("tfl.depthwise_conv_2d") && count != channels)) {
      *why = "the constant before it is not one number for each channel";
      return std::vector<Reader>();
    }
    out.push_back({&n, *weights, Spread(*all, count)});
  }
  return out;
}

// Looks for the constant; without readers there is none.
template <bool kLeftToo>
StatusOr<std::vector<Reader>> ConstantBefore(Node& n, OpName op, Before* b, Fuser& f) {
  const Endpoint e = n.input(0);
  // A quotient or a difference of several is another thing.
  constexpr int kMostLevels = 8;
  if (!FindConstant(e, op, kLeftToo, kLeftToo ? kMostLevels : 1, b)) return std::vector<Reader>();
  if (!KeepsShapes(*b)) return std::vector<Reader>();
  const PartialShape shape = Fuser::shape(e);
  const int64_t channels = shape.rank() < 1 ? 0 : shape[shape.rank() - 1];
  if (channels <= 0) return std::vector<Reader>();
  std::string why;
  if (HasActivation(*e.node)) why = absl::StrCat("'", e.node->name(), "' has an activation");
  std::vector<Reader> out;
  if (why.empty()) {
    ASSIGN_OR_RETURN(out, ReadersOf(e, b->value, channels, &why));
  }
  if (!why.empty()) f.Declined(n, why);
  return out;
}

// The operator that read the constant goes.
void TakeOut(const Before& b, const std::vector<Reader>& readers, Fuser& f) {
  const Endpoint rest = b.rest();
  if (b.path.size() == 1) {
    for (const Reader& r : readers) f.SetInput(r.n, 0, rest);
    return;
  }
  Node* outer = b.path[b.path.size() - 2];
  f.SetInput(outer, outer->input(0).node == b.path.back() ? 0 : 1, rest);
  for (size_t i = b.path.size() - 1; i-- > 0;) {
    Node* on_the_way = b.path[i];
    on_the_way->AttrsToChange().Set(
        kOutputShapes, std::vector<PartialShape>{BroadcastOf(Fuser::shape(on_the_way->input(0)),
                                                             Fuser::shape(on_the_way->input(1)))});
  }
}

StatusOr<Tensor> Scaled(const Reader& r, OpName op) {
  std::vector<int64_t> sizes(static_cast<size_t>(r.weights.rank()), 1);
  sizes[static_cast<size_t>(InputChannels(*r.n))] = r.value.num_elements();
  return Binary(op, r.weights, r.value.WithShape(Shape(sizes)));
}

// Factors of columns that bring numbers of several sizes to one: of integers on the scale of the
// greatest of a row, weights by the least keep too few bits.
bool Spreads(const Tensor& factors) {
  constexpr float kMost = 16;
  float least = 0, most = 0;
  for (const float v : factors.flat<float>()) {
    if (v == 0) continue;
    least = least == 0 ? std::abs(v) : std::min(least, std::abs(v));
    most = std::max(most, std::abs(v));
  }
  return !(most <= kMost * least);
}

template <bool kDiv>
StatusOr<bool> FuseFactorBefore(Node& n, Fuser& f) {
  Before b;
  ASSIGN_OR_RETURN(const std::vector<Reader> readers,
                   ConstantBefore<!kDiv>(n, kDiv ? OpName("tfl.div") : OpName("tfl.mul"), &b, f));
  if (!readers.empty() && f.coarse_weights() && Spreads(b.value)) {
    return f.Declined(n, "the weights, which become integers, would have columns of several sizes");
  }
  for (const Reader& r : readers) {
    ASSIGN_OR_RETURN(const Tensor scaled, Scaled(r, kDiv ? OpName("RealDiv") : OpName("Mul")));
    f.SetInput(r.n, 1, f.Const(scaled, *r.n));
  }
  if (!readers.empty()) TakeOut(b, readers, f);
  return !readers.empty();
}

// Why none of them can take a sum; empty: all can.
StatusOr<std::string> WhyNoSum(const std::vector<Reader>& readers, const Before& b) {
  int64_t more = 0;
  for (const Reader& r : readers) {
    const AffineParts parts = PartsOf(*r.n);
    // Of a sum the border of an image has none: only where there is no border.
    if (!r.n->Is("tfl.fully_connected") && r.n->String("padding", "SAME") != "VALID") {
      return "it pads the sum with zeros";
    }
    const int64_t made = r.weights.dim(parts.channels);
    ASSIGN_OR_RETURN(const Tensor bias, BiasOf(*r.n, made));
    if (!bias.valid()) return "the bias is no constant";
    const bool has_one =
        parts.bias < r.n->num_inputs() && !r.n->input(parts.bias).node->Is("tfl.no_value");
    if (!has_one && r.n->Is("tfl.fully_connected")) more += made;
  }
  if (more > b.value.num_elements()) return "its bias would be larger than the constant";
  return "";
}

template <bool kSub>
StatusOr<bool> FuseSumBefore(Node& n, Fuser& f) {
  Before b;
  ASSIGN_OR_RETURN(const std::vector<Reader> readers,
                   ConstantBefore<!kSub>(n, kSub ? OpName("tfl.sub") : OpName("tfl.add"), &b, f));
  if (readers.empty()) return false;
  ASSIGN_OR_RETURN(std::string why, WhyNoSum(readers, b));
  if (!why.empty()) return f.Declined(n, std::move(why));
  for (const Reader& r : readers) {
    const AffineParts parts = PartsOf(*r.n);
    ASSIGN_OR_RETURN(const Tensor bias, BiasOf(*r.n, r.weights.dim(parts.channels)));
    ASSIGN_OR_RETURN(const Tensor moved, Scaled(r, "Mul"));
    std::vector<int64_t> axes;
    for (int i = 0; i < moved.rank(); ++i) {
      if (i != parts.channels) axes.push_back(i);
    }
    AttrMap attrs;
    attrs.Set("T", Dtype::kFloat);
    attrs.Set("Tidx", Dtype::kInt64);
    ASSIGN_OR_RETURN(
        const auto sums,
        Evaluate("Sum", {moved, Tensor::Vector(std::span<const int64_t>(axes))}, attrs));
    ASSIGN_OR_RETURN(const Tensor sum,
                     Binary(kSub ? OpName("Sub") : OpName("AddV2"), bias, sums[0]));
    RETURN_IF_ERROR(SetBias(r.n, sum, f));
  }
  TakeOut(b, readers, f);
  return true;
}

// ---- zeros around an image

struct Window {
  int64_t size[2], stride[2], dilation[2];
};
Window WindowOf(const Node& n) {
  const PartialShape w = Fuser::shape(n.input(1));
  if (w.rank() != 4) return {};
  return {{w[1], w[2]},
          {n.Int("stride_h"), n.Int("stride_w")},
          {n.Int("dilation_h_factor", 1), n.Int("dilation_w_factor", 1)}};
}

// What SAME puts before and behind; nothing where the size is not known.
std::optional<std::pair<int64_t, int64_t>> SamePadding(int64_t in, int64_t size, int64_t stride,
                                                       int64_t dilation) {
  if (in <= 0 || size <= 0 || stride <= 0 || dilation <= 0) return std::nullopt;
  const int64_t out = (in + stride - 1) / stride;
  const int64_t all = std::max<int64_t>(0, (out - 1) * stride + (size - 1) * dilation + 1 - in);
  return std::pair(all / 2, all - all / 2);
}

// One dimension that a window moves along.
struct Along {
  int64_t size, stride, dilation;
};
std::vector<Along> WindowAlong(const Node& n) {
  const PartialShape w = Fuser::shape(n.input(1));
  const bool volumes = n.Is("tfl.conv_3d");
  if (w.rank() != (volumes ? 5 : 4)) return {};
  std::vector<Along> out;
  if (volumes) out.push_back({w[0], n.Int("stride_d"), n.Int("dilation_d_factor", 1)});
  const int at = 1;  // of the weights' dimensions
  out.push_back({w[at], n.Int("stride_h"), n.Int("dilation_h_factor", 1)});
  out.push_back({w[at + 1], n.Int("stride_w"), n.Int("dilation_w_factor", 1)});
  return out;
}

StatusOr<bool> FusePadIntoConv(Node& n, Fuser& f) {
  const Endpoint e = n.input(0);
  if (!e.node->Is("tfl.pad") || n.String("padding", "SAME") != "VALID") return false;
  const auto rows = IntsOf(e.node->input(1));
  const PartialShape x = Fuser::shape(e.node->input(0));
  const std::vector<Along> window = WindowAlong(n);
  const size_t rank = window.size() + 2;
  if (!rows || window.empty() || rows->size() != 2 * rank) return false;
  if (x.rank() != static_cast<int>(rank)) return false;
  const auto& r = *rows;
  if (r[0] != 0 || r[1] != 0 || r[2 * rank - 2] != 0 || r[2 * rank - 1] != 0) {
    return f.Declined(n, "images or channels are padded");
  }
  for (size_t d = 0; d < window.size(); ++d) {
    const auto same = SamePadding(x[static_cast<int>(d) + 1], window[d].size, window[d].stride,
                                  window[d].dilation);
    const size_t k = 2 + 2 * d;
    if (!same || same->first != r[k] || same->second != r[k + 1]) {
      return f.Declined(n, "it is padded otherwise than by SAME");
    }
  }
  n.AttrsToChange().Set("padding", "SAME");
  f.SetInput(&n, 0, e.node->input(0));
  return true;
}

// batch_to_space(conv(space_to_batch(x))), which is how TensorFlow 1 spells a dilated convolution.
// Of a sequence the convolution is between reshapes, which make an image of it.
struct Blocks {
  Node* conv = nullptr;
  Endpoint space_to_batch;
  int row = 1;            // the dimension of the image that the first of the blocks is
  bool sequence = false;  // blocks are of one dimension
};

bool OneSizeMore(const PartialShape& image, const PartialShape& x, int at) {
  if (image.rank() != 4 || x.rank() != 3 || image[at] != 1) return false;
  std::vector<int64_t> dims;
  for (int i = 0; i < 4; ++i) {
    if (i != at) dims.push_back(image[i]);
  }
  return SameWhenEqualElements(PartialShape::Of(dims), x);
}

std::optional<Blocks> BlocksBehind(Node& n) {
  const OpSet reshapes = {"tfl.reshape", "tfl.squeeze", "tfl.expand_dims"};
  Blocks b;
  Endpoint e = n.input(0);
  const Node* out = nullptr;
  if (e.node->Is(reshapes) && Fuser::ReadOnce(e)) {
    out = e.node;
    e = e.node->input(0);
  }
  b.conv = e.node;
  if (!b.conv->Is({"tfl.conv_2d", "tfl.depthwise_conv_2d"}) || !Fuser::ReadOnce(e)) {
    return std::nullopt;
  }
  b.space_to_batch = b.conv->input(0);
  if (out != nullptr) {
    const Node* in = b.space_to_batch.node;
    if (!in->Is(reshapes) || !Fuser::ReadOnce(b.space_to_batch)) return std::nullopt;
    const auto adds = [&](int at) {
      return OneSizeMore(Fuser::shape(b.space_to_batch), Fuser::shape(in->input(0)), at) &&
             OneSizeMore(Fuser::shape(e), Fuser::shape(n.input(0)), at);
    };
    if (!adds(1) && !adds(2)) return std::nullopt;
    b.row = adds(1) ? 2 : 1;
    b.sequence = true;
    b.space_to_batch = in->input(0);
  }
  return b.space_to_batch.node->Is("tfl.space_to_batch_nd") ? std::optional(b) : std::nullopt;
}

StatusOr<bool> FuseDilatedConv(Node& n, Fuser& f) {
  const std::optional<Blocks> b = BlocksBehind(n);
  if (!b) return false;
  const Node& conv = *b->conv;
  const Node& first = *b->space_to_batch.node;
  const size_t count = b->sequence ? 1 : 2;
  const auto block = IntsOf(n.input(1)), crops = IntsOf(n.input(2));
  const auto into = IntsOf(first.input(1)), pads = IntsOf(first.input(2));
  if (!block || !crops || !into || !pads || block->size() != count || *block != *into ||
      crops->size() != 2 * count || pads->size() != 2 * count) {
    return f.Declined(n, "its blocks are not those of the space_to_batch_nd");
  }
  if (!Fuser::ReadOnce(b->space_to_batch)) return f.Declined(n, "others read its blocks");
  const Window w = WindowOf(conv);
  if (conv.String("padding", "SAME") != "VALID" || w.stride[0] != 1 || w.stride[1] != 1 ||
      w.dilation[0] != 1 || w.dilation[1] != 1) {
    return f.Declined(n, "the convolution of its blocks pads, strides or is dilated");
  }
  const PartialShape x = Fuser::shape(first.input(0)), to = Fuser::shape({&n, 0});
  const int rank = static_cast<int>(count) + 2;
  if (x.rank() != rank || to.rank() != rank) return false;
  int64_t dilation[2] = {1, 1};
  bool same = true, valid = true;
  for (size_t d = 0; d < count; ++d) {
    const int at = b->row - 1 + static_cast<int>(d), dim = static_cast<int>(d) + 1;
    const int64_t by = (*block)[d];
    const int64_t reach = (w.size[at] - 1) * by;
    if (x[dim] == 0 || to[dim] == 0 || w.size[at] <= 0 || by <= 0) {
      return f.Declined(n, "the sizes of its image are not known");
    }
    // Whatever size the image has: pixels more than it.
    const int64_t more =
        (*pads)[2 * d] + (*pads)[2 * d + 1] - reach - (*crops)[2 * d] - (*crops)[2 * d + 1];
    const bool from_first = (*crops)[2 * d] == 0;
    same = same && from_first && more == 0 && (*pads)[2 * d] == reach / 2;
    valid = valid && from_first && more == -reach && (*pads)[2 * d] == 0;
    dilation[at] = by;
  }
  // The dimension that a sequence lacks is not padded where the filter has one row.
  if (b->sequence && w.size[2 - b->row] != 1) return f.Declined(n, "the filter has several rows");
  if (!same && !valid) return f.Declined(n, "its padding is neither SAME nor VALID");
  AttrMap options;
  for (const auto& [name, value] : conv.attrs()) {
    if (!name.empty() && name[0] != '_' && name[0] != 'T') options.Set(name, value);
  }
  options.Set("padding", valid ? "VALID" : "SAME");
  options.Set("dilation_h_factor", dilation[0]);
  options.Set("dilation_w_factor", dilation[1]);
  std::vector<Endpoint> inputs(conv.inputs().begin(), conv.inputs().end());
  inputs[0] = first.input(0);
  if (!b->sequence) {
    ASSIGN_OR_RETURN(const Endpoint by, f.Add(conv.op_name(), inputs, std::move(options), n));
    f.Replace(&n, by);
    return true;
  }
  std::vector<int64_t> image, result, back;
  for (int i = 0; i < 3; ++i) {
    image.push_back(std::max<int64_t>(x[i], -1));
    result.push_back(std::max<int64_t>(to[i], -1));
    back.push_back(std::max<int64_t>(to[i], -1));
  }
  if (x[2] < 0 || to[2] < 0 || (x[0] < 0 && (x[1] < 0 || to[1] < 0))) return false;
  image.insert(image.begin() + (3 - b->row), 1);
  result.insert(result.begin() + (3 - b->row), 1);
  ASSIGN_OR_RETURN(inputs[0], f.Reshape(first.input(0), image, n));
  ASSIGN_OR_RETURN(const Endpoint moved,
                   f.AddShaped(conv.op_name(), inputs, std::move(options), n.output_types[0],
                               PartialShape::Of(result), n));
  ASSIGN_OR_RETURN(const Endpoint by, f.Reshape(moved, back, n));
  f.Replace(&n, by);
  return true;
}

constexpr Fusion kBeforeAffineFusions[] = {
    {"FuseDilatedConv",
     {"tfl.batch_to_space_nd"},
     FuseDilatedConv,
     "batch_to_space(conv(space_to_batch(x))) -> conv(x), dilated"},
    {"FuseMulBeforeAffine", kReaders, FuseFactorBefore<false>,
     "conv(x * c) -> conv(x) by weights * c"},
    {"FuseDivBeforeAffine", kReaders, FuseFactorBefore<true>,
     "conv(x / c) -> conv(x) by weights / c"},
    {"FuseAddBeforeAffine", kReaders, FuseSumBefore<false>,
     "conv(x + c) -> conv(x) with bias weights * c, where nothing is padded"},
    {"FuseSubBeforeAffine", kReaders, FuseSumBefore<true>,
     "conv(x - c) -> conv(x) with bias -weights * c, where nothing is padded"},
    {"FusePadIntoConv",
     {"tfl.conv_2d", "tfl.depthwise_conv_2d", "tfl.conv_3d"},
     FusePadIntoConv,
     "conv(pad(x)) -> conv(x) with padding SAME, where that pads so"},
};

}  // namespace

std::span<const Fusion> BeforeAffineFusions() { return kBeforeAffineFusions; }

}  // namespace smelt
