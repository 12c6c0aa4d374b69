// Windows of one pixel that leave out pixels, as residual networks have them at the begin of a
// stage: what they leave out is not computed in the first place.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "smelt/graph/op_facts.h"
#include "smelt/optimize/passes.h"
#include "smelt/optimize/rewrite/rewriter.h"

namespace smelt {
namespace {

constexpr int kImageRank = 4;
// Chains are followed so far.
constexpr int kMostSteps = 64;
// What leaving out pixels of a tensor that is whole costs, in products for each pixel and channel.
constexpr double kSliceCost = 16;

using SpatialStrides = std::array<int64_t, 2>;
constexpr SpatialStrides kNoStride = {1, 1};

// Elementwise along height and width; the other inputs are of channels, or of one element.
constexpr OpSet kOfChannels = {"BiasAdd",          "FusedBatchNorm", "FusedBatchNormV2",
                               "FusedBatchNormV3", "_Int8Quantize",  "_Int8Dequantize",
                               "_ByteTable"};
constexpr OpSet kWindows = {"Conv2D", "_Int8Conv2D"};
constexpr int kInt8Addends = 3;  // the first of them among the inputs

bool IsChannelsFirst(const Node& n) { return n.String("data_format", "NHWC") == "NCHW"; }

// A convolution of an image, as the pass looks at it.
struct ImageWindow {
  Node* node;
  bool first;  // are channels in front of height and width?
  SpatialStrides stride, size;
  double products;  // for an element of the result
  bool padded;      // or by how much is not known

  bool IsPixel() const { return size == kNoStride && !padded; }
};

std::optional<ImageWindow> ImageWindowOf(Node* n, Rewriter& r) {
  if (!n->Is(kWindows)) return std::nullopt;
  const bool int8 = n->Is("_Int8Conv2D");
  const std::string format = std::string(n->String("data_format", "NHWC"));
  const TensorValue* filter = r.ConstantValue(n->input(1));
  const std::vector<int64_t> strides = n->Ints("strides");
  if ((format != "NHWC" && format != "NCHW") || filter == nullptr ||
      filter->shape.rank() != kImageRank || !filter->shape.fully_known() ||
      strides.size() != (int8 ? 2 : kImageRank)) {
    return std::nullopt;
  }
  const PartialShape& sizes = filter->shape;
  ImageWindow w = {n, format == "NCHW", {}, {sizes[0], sizes[1]}, 0, false};
  const size_t at = int8 ? 0 : (w.first ? 2 : 1);
  w.stride = {strides[at], strides[at + 1]};
  w.products =
      static_cast<double>(sizes[0]) * static_cast<double>(sizes[1]) * static_cast<double>(sizes[2]);
  // A window of one pixel is padded by nothing where paddings are not stated.
  const std::vector<int64_t> stated = n->Ints(int8 ? "padding" : "explicit_paddings");
  w.padded = std::ranges::any_of(stated, [](int64_t p) { return p != 0; });
  return w;
}

// What is to be done for a tensor of which only every few pixels are read.
struct ThinningPlan {
  std::vector<Node*> thinner;                 // whose results are
  std::vector<ImageWindow> windows;           // which take the stride
  std::vector<std::pair<Node*, int>> slices;  // inputs that are read whole by others
  double saved = 0;

  double cost() const { return kSliceCost * static_cast<double>(slices.size()); }
  bool pays() const { return saved > cost(); }
  void Take(const ThinningPlan& other) {
    thinner.insert(thinner.end(), other.thinner.begin(), other.thinner.end());
    windows.insert(windows.end(), other.windows.begin(), other.windows.end());
    slices.insert(slices.end(), other.slices.begin(), other.slices.end());
    saved += other.saved;
  }
};

class Thinner {
 public:
  Thinner(SpatialStrides stride, bool channels_first, Rewriter& r)
      : stride_(stride), first_(channels_first), r_(r) {}

  // Plans that `e` has fewer pixels, which nobody misses. False, and nothing is planned: it cannot.
  bool Plan(Endpoint e, int steps, ThinningPlan& plan) {
    Node* n = e.node;
    if (e.port != 0 || steps > kMostSteps) return false;
    if (const auto window = ImageWindowOf(n, r_)) return PlanWindow(*window, steps, plan);
    if (n->Is(kOfChannels)) return PlanOfChannels(n, steps, plan);
    if (!n->Is(kElementwiseOps) || n->num_outputs() != 1) return false;
    return PlanElementwise(n, steps, plan);
  }

  Status Apply(const ThinningPlan& plan) {
    for (const ImageWindow& w : plan.windows) SetStride(w, stride_);
    for (const auto& [n, input] : plan.slices) RETURN_IF_ERROR(Slice(n, input));
    for (Node* n : plan.thinner) r_.SetShape({n, 0}, Thin(r_.shape({n, 0})));
    return OkStatus();
  }

  static void SetStride(const ImageWindow& w, SpatialStrides stride) {
    AttrMap& attrs = w.node->AttrsToChange();
    if (w.node->Is("_Int8Conv2D")) {
      attrs.Set("strides", std::vector<int64_t>{stride[0], stride[1]});
      return;
    }
    // Where windows begin must not change.
    if (w.size != kNoStride && w.node->String("padding") == "SAME") {
      const std::vector<int64_t> dilations = w.node->Ints("dilations");
      const size_t at = w.first ? 2 : 1;
      std::vector<int64_t> pads(2 * kImageRank, 0);
      for (size_t i = 0; i < 2; ++i) {
        const int64_t dilation = dilations.size() == kImageRank ? dilations[at + i] : 1;
        const int64_t all = (w.size[i] - 1) * dilation;
        pads[2 * (at + i)] = all / 2;
        pads[2 * (at + i) + 1] = all - all / 2;
      }
      attrs.Set("padding", std::string("EXPLICIT"));
      attrs.Set("explicit_paddings", std::move(pads));
    }
    const auto [y, x] = stride;
    attrs.Set("strides",
              w.first ? std::vector<int64_t>{1, 1, y, x} : std::vector<int64_t>{1, y, x, 1});
  }

 private:
  int Spatial(int i) const { return (first_ ? 2 : 1) + i; }

  // Is `reader` all that reads `e`, once?
  static bool IsReadBy(Endpoint e, const Node* reader) {
    const auto& uses = e.node->uses();
    return uses.size() == 1 && uses.begin()->node == reader && !IsRoot(*e.node) && !IsFed(*e.node);
  }

  bool PlanWindow(const ImageWindow& w, int steps, ThinningPlan& plan) {
    if (w.first != first_ || w.stride != kNoStride) return false;
    ThinningPlan before;
    // Sums of int8 layers may broadcast what they add, which is found out when they run.
    for (int i = kInt8Addends; i < w.node->num_inputs() && w.node->Is("_Int8Conv2D"); ++i) {
      if (!SameSymbolicShape(r_.shape(w.node->input(i)), r_.shape({w.node, 0}))) return false;
      PlanInput(w.node, i, steps, before);
    }
    before.saved += w.products;
    before.thinner.push_back(w.node);
    ThinningPlan further;
    if (w.IsPixel() && IsReadBy(w.node->input(0), w.node) &&
        Plan(w.node->input(0), steps + 1, further) && further.pays()) {
      before.Take(further);
    } else {
      before.windows.push_back(w);
    }
    plan.Take(before);
    return true;
  }

  void PlanInput(Node* n, int input, int steps, ThinningPlan& plan) {
    const Endpoint e = n->input(input);
    if (IsReadBy(e, n) && Plan(e, steps + 1, plan)) return;
    plan.slices.emplace_back(n, input);
  }

  bool PlanOfChannels(Node* n, int steps, ThinningPlan& plan) {
    if (n->Bool("is_training") || r_.shape({n, 0}).rank() != kImageRank) return false;
    if (n->attrs().Find("data_format") != nullptr && IsChannelsFirst(*n) != first_) return false;
    for (const Use& use : n->uses()) {
      if (!use.is_control() && use.port() != 0) return false;
    }
    plan.thinner.push_back(n);
    PlanInput(n, 0, steps, plan);
    return true;
  }

  bool PlanElementwise(Node* n, int steps, ThinningPlan& plan) {
    const PartialShape out = r_.shape({n, 0});
    if (out.rank() != kImageRank || !HasNoErrors(*n)) return false;
    std::vector<int> images;
    for (int i = 0; i < n->num_inputs(); ++i) {
      const PartialShape in = r_.shape(n->input(i));
      if (!in.known_rank()) return false;
      if (!IsConstantInSpace(in)) images.push_back(i);
    }
    for (const int i : images) {
      const PartialShape in = r_.shape(n->input(i));
      if (in.rank() != kImageRank) return false;
      // One alone gives the result its sizes.
      for (int d = 0; d < 2 && images.size() > 1; ++d) {
        const int64_t size = in[Spatial(d)];
        if (size == -1 || size != out[Spatial(d)]) return false;
      }
    }
    if (images.empty()) return false;
    plan.thinner.push_back(n);
    for (const int i : images) PlanInput(n, i, steps, plan);
    return true;
  }

  // Integers may be divided by zero, which is an error wherever it stands.
  static bool HasNoErrors(const Node& n) {
    const auto fits = [](Dtype t) { return IsFloating(t) || t == Dtype::kInt8; };
    return std::ranges::all_of(n.output_types, fits) && std::ranges::all_of(n.input_types, fits) &&
           (IsFloating(n.output_types[0]) || n.Is("Cast"));
  }

  bool IsConstantInSpace(const PartialShape& in) const {
    for (int d = 0; d < 2; ++d) {
      const int at = Spatial(d) - (kImageRank - in.rank());
      if (at >= 0 && in[at] != 1) return false;
    }
    return true;
  }

  PartialShape Thin(PartialShape s) const {
    for (int d = 0; d < 2; ++d) {
      const int64_t size = s[Spatial(d)];
      if (stride_[static_cast<size_t>(d)] == 1) continue;
      s.Set(Spatial(d), size < 0 ? -1 : (size - 1) / stride_[static_cast<size_t>(d)] + 1);
    }
    return s;
  }

  Status Slice(Node* n, int input) {
    const Endpoint e = n->input(input);
    std::vector<int32_t> steps(kImageRank, 1);
    for (int d = 0; d < 2; ++d) {
      steps[static_cast<size_t>(Spatial(d))] =
          static_cast<int32_t>(stride_[static_cast<size_t>(d)]);
    }
    const auto constant = [&](absl::string_view what, const std::vector<int32_t>& values) {
      return Endpoint{r_.AddConst(r_.Name(*e.node, what), Tensor::Vector<int32_t>(values), *n), 0};
    };
    const Endpoint zeros = constant("begin", std::vector<int32_t>(kImageRank, 0));
    const Endpoint by = constant("strides", steps);
    AttrMap attrs;
    constexpr int64_t kAll = (1 << kImageRank) - 1;
    attrs.Set("begin_mask", kAll);
    attrs.Set("end_mask", kAll);
    attrs.Set("T", e.node->output_types[static_cast<size_t>(e.port)]);
    attrs.Set("Index", Dtype::kInt32);
    const PartialShape to = Thin(r_.shape(e));
    ASSIGN_OR_RETURN(Node * slice, r_.Add(r_.Name(*e.node, "thin"), "StridedSlice",
                                          {e, zeros, zeros, by}, std::move(attrs), *n));
    r_.SetShape({slice, 0}, to);
    r_.graph().SetInput(n, input, {slice, 0});
    return OkStatus();
  }

  const SpatialStrides stride_;
  const bool first_;
  Rewriter& r_;
};

StatusOr<Rewritten> MoveStrideUp(Node& node, Rewriter& r) {
  const auto window = ImageWindowOf(&node, r);
  if (!window || window->stride == kNoStride || !window->IsPixel()) return r.No();
  const Endpoint e = node.input(0);
  if (r.HasControlFlow()) return r.No("nodes of the graph may not run");
  if (IsRoot(*e.node) || IsFed(*e.node)) return r.No();
  std::vector<ImageWindow> readers;
  for (const Use& use : e.node->uses()) {
    auto reader = use.is_control() || use.input != 0 ? std::nullopt : ImageWindowOf(use.node, r);
    if (!reader || !reader->IsPixel() || reader->stride != window->stride ||
        reader->first != window->first) {
      return r.No("others read all pixels of its input");
    }
    readers.push_back(*reader);
  }
  Thinner thinner(window->stride, window->first, r);
  ThinningPlan plan;
  if (!thinner.Plan(e, 0, plan) || plan.saved == 0) {
    return r.No("no convolution before it computes pixels that it leaves out");
  }
  if (!plan.pays()) return r.No("to leave out pixels of what else is added costs more");
  RETURN_IF_ERROR(thinner.Apply(plan));
  for (const ImageWindow& reader : readers) Thinner::SetStride(reader, kNoStride);
  return Rewriter::InPlace();
}

constexpr Rule kRule = {"MoveStrideUp", kWindows, MoveStrideUp,
                        "Conv2D of one pixel with strides (x) -> Conv2D(x of fewer pixels)"};

}  // namespace

Status MoveStridesUp(Graph& graph, const PassContext& context) {
  const Rule* const rules[] = {&kRule};
  return RunRules(rules, "EarlyStrides", Toggle::kOn, graph, context);
}

}  // namespace smelt
