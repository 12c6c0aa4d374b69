// Dilated convolutions as TensorFlow spells them: SpaceToBatchND spreads the image over the batch,
// a plain convolution sees each part, and BatchToSpaceND gathers the results.
#include <algorithm>
#include <optional>

#include "smelt/compile/plan.h"
#include "smelt/compile/readers.h"
#include "smelt/compile/zero_weights.h"
#include "smelt/kernels/dilates_window.h"

namespace smelt {
namespace {

// Both by dimension of what is spread, the batch and what is left alone included.
struct Spread {
  Dims blocks;
  Dims edges;  // two each: paddings, or crops
};

class DilationFolder {
 public:
  DilationFolder(Plan& plan, Reasons* reasons) : plan_(plan), reasons_(reasons), readers_(plan) {}

  void Run() {
    std::vector<size_t> spreading;
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      if (plan_.actions[i].node->Is("SpaceToBatchND")) spreading.push_back(i);
    }
    for (const size_t i : spreading) FoldReaders(i);
    std::erase_if(plan_.actions, [](const PlanAction& a) { return a.node == nullptr; });
  }

 private:
  PlanValue& At(int value) { return plan_.values[static_cast<size_t>(value)]; }
  const PlanValue& At(int value) const { return plan_.values[static_cast<size_t>(value)]; }

  // Of a SpaceToBatchND or BatchToSpaceND that makes `spread` of `whole`, or the other way. What a
  // run would find wrong is left to it.
  std::optional<Spread> SpreadOf(const PlanAction& action, const Shape& whole,
                                 const Shape& spread) const {
    const Tensor* blocks = plan_.ConstantOf(action.inputs[1]);
    const Tensor* edges = plan_.ConstantOf(action.inputs[2]);
    const int rank = whole.rank();
    if (blocks == nullptr || edges == nullptr || blocks->num_elements() >= rank ||
        edges->num_elements() != 2 * blocks->num_elements()) {
      return std::nullopt;
    }
    Spread out{Dims(static_cast<size_t>(rank), 1), Dims(2 * static_cast<size_t>(rank), 0)};
    int64_t parts = 1;
    for (int i = 1; i <= blocks->num_elements(); ++i) {
      const int64_t block = IndexAt(*blocks, i - 1);
      const int64_t before = IndexAt(*edges, 2 * i - 2), after = IndexAt(*edges, 2 * i - 1);
      if (block < 1 || before < 0 || after < 0 || spread[i] * block != whole[i] + before + after) {
        return std::nullopt;
      }
      const auto at = static_cast<size_t>(i);
      out.blocks[at] = block;
      out.edges[2 * at] = before, out.edges[2 * at + 1] = after;
      parts *= block;
    }
    if (spread[0] != whole[0] * parts) return std::nullopt;
    return out;
  }

  // A tensor's dimensions where it has the bytes of one with fewer: each as it is there, or
  // kOneMore, of one element. nullopt: it has others.
  static constexpr int kOneMore = -1;
  using Places = std::vector<int>;
  static std::optional<Places> PlacesOf(const Shape& narrow, const Shape& wide) {
    Places out;
    int next = 0;
    for (const int64_t size : wide.dims()) {
      const bool same = next < narrow.rank() && size == narrow[next];
      if (!same && size != 1) return std::nullopt;
      out.push_back(same ? next++ : kOneMore);
    }
    if (next < narrow.rank()) return std::nullopt;
    return out;
  }
  static Spread Wider(const Spread& spread, const Places& places) {
    Spread out;
    for (const int place : places) {
      const bool same = place != kOneMore;
      const auto at = static_cast<size_t>(place);
      out.blocks.push_back(same ? spread.blocks[at] : 1);
      for (size_t side = 0; side < 2; ++side) {
        out.edges.push_back(same ? spread.edges[2 * at + side] : 0);
      }
    }
    return out;
  }
  static Dims Wider(const Shape& narrow, const Places& places) {
    Dims out;
    for (const int place : places) out.push_back(place != kOneMore ? narrow[place] : 1);
    return out;
  }

  // The value's bytes under another shape.
  int NameOf(int value, const Dims& dims) {
    PlanValue name;
    name.of = At(value).of;
    name.dtype = At(value).dtype;
    name.shape = Shape(std::span<const int64_t>(dims));
    name.same_as = value;
    plan_.values.push_back(std::move(name));
    return static_cast<int>(plan_.values.size()) - 1;
  }

  void FoldReaders(size_t i) {
    const PlanAction& action = plan_.actions[i];
    const int image = action.inputs[0], parts = action.outputs[0];
    const std::optional<Spread> spread = SpreadOf(action, At(image).shape, At(parts).shape);
    if (!spread || At(image).shape.num_elements() == 0 || plan_.ConstantOf(image) != nullptr)
      return;
    const std::vector<size_t> readers = readers_.Of(parts);
    bool all = !readers.empty();
    for (const size_t r : readers) {
      const absl::string_view why =
          r != readers_.no_action() ? Fold(r, image, parts, *spread) : "it is a result";
      if (why.empty()) continue;
      all = false;
      NoteReason(reasons_, *action.node, "is no reader's dilation: ", why);
    }
    if (all) plan_.actions[i].node = nullptr;
  }

  // Lets action r read the image; why that cannot be, or nothing.
  absl::string_view Fold(size_t r, int image, int parts, const Spread& spread) {
    PlanAction& action = plan_.actions[r];
    const auto* dilates = dynamic_cast<const DilatesWindow*>(action.state.get());
    if (dilates == nullptr || plan_.Root(action.inputs[0]) != plan_.Root(parts) ||
        action.outputs.size() != 1) {
      return "what reads it has no window that could be dilated";
    }
    // Operands of what follows inside would be spread, too, but for those of channels.
    for (size_t k = 1; k < action.inputs.size(); ++k) {
      if (plan_.Root(action.inputs[k]) == plan_.Root(parts) ||
          (k > 1 && At(action.inputs[k]).shape.rank() > 1)) {
        return "what reads it has another operand that is spread";
      }
    }
    const int results = action.outputs[0];
    const size_t g = readers_.OnlyOf(results);
    if (g == readers_.no_action() || !plan_.actions[g].node->Is("BatchToSpaceND")) {
      return kNotGathered;
    }
    PlanAction& gather = plan_.actions[g];
    if (plan_.Root(gather.inputs[0]) != plan_.Root(results)) return kNotGathered;

    // Copies: values are added below.
    const Shape seen = At(action.inputs[0]).shape, made = At(results).shape;
    const Shape spread_shape = At(parts).shape, gathered_shape = At(gather.inputs[0]).shape;
    const Shape whole = At(gather.outputs[0]).shape;
    const std::optional<Spread> gathered = SpreadOf(gather, whole, gathered_shape);
    const auto places = PlacesOf(spread_shape, seen), made_places = PlacesOf(gathered_shape, made);
    if (!gathered || !places || !made_places) return "shapes in between are others";
    Spread in = Wider(spread, *places);
    const Spread out = Wider(*gathered, *made_places);
    if (in.blocks != out.blocks) return "it is gathered by other blocks";
    // What is cropped need not be padded for.
    for (size_t k = 0; k < in.edges.size(); ++k) {
      in.edges[k] -= out.edges[k];
      if (in.edges[k] < 0) return "more is cropped than is padded";
    }
    const bool pads = std::ranges::any_of(in.edges, [](int64_t n) { return n > 0; });
    if (pads && !KeepsZeros(plan_, action)) return "what reads it would not see zeros as zeros";
    std::shared_ptr<KernelState> state = dilates->Dilated(in.blocks, in.edges);
    if (state == nullptr) return "the kernel takes no such dilation";

    action.state = std::move(state);
    action.inputs[0] = NameOf(image, Wider(At(image).shape, *places));
    // The kernel's own shape is the value, and the gathered one its name.
    const int gathered_value = gather.outputs[0];
    const Dims dims = Wider(whole, *made_places);
    PlanValue value = At(gathered_value);
    value.of = At(results).of;
    value.shape = Shape(std::span<const int64_t>(dims));
    const int number = static_cast<int>(plan_.values.size());
    plan_.values.push_back(std::move(value));
    At(gathered_value).same_as = number;
    At(gathered_value).place = PlanValue::Place::kArena;
    At(gathered_value).number = -1;
    action.outputs[0] = number;
    gather.node = nullptr;
    return "";
  }

  static constexpr absl::string_view kNotGathered =
      "what is made of it is not gathered at once, by BatchToSpaceND alone";
  Plan& plan_;
  Reasons* const reasons_;
  const PlanReaders readers_;
};

}  // namespace

void FoldDilations(Plan& plan, Reasons* reasons) { DilationFolder(plan, reasons).Run(); }

}  // namespace smelt
