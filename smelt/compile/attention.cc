#include "smelt/compile/attention.h"

#include <algorithm>
#include <set>

#include "smelt/compile/strided_view.h"
#include "smelt/graph/einsum_equation.h"

namespace smelt {
namespace {

constexpr OpSet kBatchMatMuls = {"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3",
                                 "_MklFusedBatchMatMulV2"};
constexpr int kNoLabel = EinsumShapes::kNone;

// A product of two tensors: a label for each dimension, kNoLabel for one that is broadcast.
struct Labeled {
  EinsumLabels in[2], out;
};

bool HasLabel(const EinsumLabels& labels, int label) {
  return std::ranges::find(labels, label) != labels.end();
}
bool AreDistinct(const EinsumLabels& labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (labels[i] == labels[k] && labels[i] != kNoLabel) return false;
    }
  }
  return true;
}

// What is added to the scores, or chooses among them, and their shape there.
struct TakenMask {
  int value = -1;
  Shape shape;
};

class AttentionFinder {
 public:
  AttentionFinder(const Plan& plan, const PlanReaders& readers, Reasons* reasons)
      : plan_(plan), readers_(readers), reasons_(reasons) {}

  std::optional<SpelledAttention> Find(size_t first) {
    first_ = first;
    if (plan_.actions[first].inputs.empty()) return std::nullopt;
    dtype_ = At(plan_.actions[first].inputs[0]).dtype;
    if (dtype_ != Dtype::kFloat && dtype_ != Dtype::kBfloat16) return std::nullopt;
    Labeled scores;
    if (!Label(first, &scores)) return std::nullopt;
    if (!FollowScores(first, &scores.out)) {
      if (reasons_ != nullptr && SoftmaxFollows(first)) {
        Refuse(
            "scores are read elsewhere, or other than by numbers, masks and orders of them, "
            "before the softmax");
      }
      return std::nullopt;
    }
    Labeled mixed;
    TakeChoiceBehind();
    last_ = readers_.OnlyOf(probabilities_);
    if (!Label(last_, &mixed)) {
      return Refuse("the softmax is not read by one product of its type alone");
    }
    taken_.push_back(last_);
    if (!TakeScores(scores)) return Refuse("no rows of queries and of keys lie at steps");
    if (!TakeMixed(mixed)) return Refuse("no rows of values or of results lie at steps");
    found_.attention.narrow = dtype_ == Dtype::kBfloat16;
    ListUnits();
    if (found_.attention.narrow && !nn::SuitsNarrowAttention(found_.attention)) {
      return Refuse("the kernel of bfloat16 does not take such sizes or steps");
    }
    ListActions();
    return std::move(found_);
  }

 private:
  std::nullopt_t Refuse(absl::string_view why) const {
    NoteReason(reasons_, *plan_.actions[first_].node, "begins no attention: ", why);
    return std::nullopt;
  }
  // Within a few actions, each the first reader of the one before.
  bool SoftmaxFollows(size_t first) const {
    size_t next = first;
    for (int steps = 0; steps < 8; ++steps) {
      if (plan_.actions[next].outputs.empty()) return false;
      const std::vector<size_t>& readers = readers_.Of(ValueOf(next));
      if (readers.empty() || readers[0] == readers_.no_action()) return false;
      next = readers[0];
      if (plan_.actions[next].node->Is("Softmax")) return true;
    }
    return false;
  }

  const PlanValue& At(int value) const { return plan_.values[static_cast<size_t>(value)]; }
  const Shape& ShapeOf(int value) const { return At(value).shape; }
  int ValueOf(size_t action) const { return plan_.actions[action].outputs[0]; }
  bool Same(int a, int b) const { return IsUnder(ShapeOf(b), a, b); }

  // Has `a` the elements of `value`, under that shape?
  bool IsUnder(const Shape& shape, int a, int value) const {
    return plan_.Root(a) == plan_.Root(value) && ShapeOf(a) == shape;
  }

  // A product of what the first is of, none of it empty, that is bound to nothing else yet.
  bool Label(size_t index, Labeled* l) const {
    if (index >= plan_.actions.size()) return false;
    const PlanAction& a = plan_.actions[index];
    if (a.inputs.size() < 2 || a.outputs.size() != 1 || !a.then.empty()) return false;
    for (const int v : {a.inputs[0], a.inputs[1], a.outputs[0]}) {
      if (At(v).dtype != dtype_ || ShapeOf(v).num_elements() == 0) return false;
    }
    if (a.node->Is("Einsum")) {
      if (a.inputs.size() != 2) return false;
      const auto equation = ParseEinsum(a.node->String("equation"));
      if (!equation.ok() || equation->inputs.size() != 2) return false;
      const Shape* shapes[] = {&ShapeOf(a.inputs[0]), &ShapeOf(a.inputs[1])};
      const auto s = ExpandEinsum(*equation, shapes);
      if (!s.ok()) return false;
      *l = {{s->inputs[0], s->inputs[1]}, s->output};
    } else if (a.node->Is(kBatchMatMuls)) {
      LabelMatMul(a, l);
    } else {
      return false;
    }
    return l->out.size() >= 2 && std::ssize(l->out) == ShapeOf(a.outputs[0]).rank() &&
           AreDistinct(l->in[0]) && AreDistinct(l->in[1]) && AreDistinct(l->out);
  }
  void LabelMatMul(const PlanAction& a, Labeled* l) const {
    const Shape& out = ShapeOf(a.outputs[0]);
    constexpr int kRow = 'i', kColumn = 'j', kInner = 'k';
    for (int p = 0; p + 2 < out.rank(); ++p) l->out.push_back(kEllipsis + p);
    l->out.push_back(kRow);
    l->out.push_back(kColumn);
    for (const int side : {0, 1}) {
      const Shape& s = ShapeOf(a.inputs[static_cast<size_t>(side)]);
      const int missing = out.rank() - s.rank();
      for (int p = 0; p + 2 < s.rank(); ++p) {
        l->in[side].push_back(s[p] == out[p + missing] ? kEllipsis + p + missing : kNoLabel);
      }
      const bool turned = a.node->Bool(side == 0 ? "adj_x" : "adj_y");
      int before = side == 0 ? kRow : kInner, behind = side == 0 ? kInner : kColumn;
      if (turned) std::swap(before, behind);
      l->in[side].push_back(before);
      l->in[side].push_back(behind);
    }
  }

  // From the product to the probabilities: an order of dimensions, a scale, masks or a choice, the
  // softmax, with reshapes in between. `labels` are the scores'.
  bool FollowScores(size_t first, EinsumLabels* labels) {
    int value = ValueOf(first);
    scores_ = ShapeOf(value);
    if (!TakeFused(plan_.actions[first])) return false;
    for (int steps = 0; steps < 6; ++steps) {
      const size_t reader = readers_.OnlyOf(value);
      if (reader == readers_.no_action()) return false;
      const PlanAction& a = plan_.actions[reader];
      if (a.outputs.size() != 1 || !a.then.empty()) return false;
      taken_.push_back(reader);
      if (const Dims order = TransposeOrder(plan_, a); !order.empty()) {
        if (!Same(a.inputs[0], value) || !(ShapeOf(value) == scores_) || !masks_.empty()) {
          return false;
        }
        const EinsumLabels before = *labels;
        for (size_t i = 0; i < order.size(); ++i) {
          (*labels)[i] = before[static_cast<size_t>(order[i])];
        }
        value = a.outputs[0];
        scores_ = ShapeOf(value);
        continue;
      }
      const Shape& shape = ShapeOf(a.outputs[0]);
      if (shape.num_elements() != scores_.num_elements() || shape.rank() < 2) return false;
      const auto reads = [&](size_t i) { return IsUnder(shape, a.inputs[i], value); };
      if (a.node->Is("Softmax")) {
        if (!reads(0) || shape[shape.rank() - 1] != scores_.back()) return false;
        probabilities_ = a.outputs[0];
        return true;
      }
      if (a.node->Is("SelectV2")) {
        if (!(shape == scores_) || !TakeChoice(a, value)) return false;
        value = a.outputs[0];
        continue;
      }
      if (a.inputs.size() != 2) return false;
      const size_t side = reads(0) ? 0 : 1;
      if (!reads(side)) return false;
      const int other = a.inputs[1 - side];
      if (a.node->Is("Mul") || (a.node->Is("RealDiv") && side == 0)) {
        const std::optional<float> number = ConstantNumber(plan_, other);
        if (!number || !masks_.empty()) return false;
        float& scale = found_.attention.scale;
        scale = a.node->Is("Mul") ? scale * *number : scale / *number;
      } else if (a.node->Is({"AddV2", "Add"})) {
        if (!TakeMask(other, dtype_, shape)) return false;
      } else {
        return false;
      }
      value = a.outputs[0];
    }
    return false;
  }
  // What the remapper has joined: a number to multiply by, then a sum's operand.
  bool TakeFused(const PlanAction& product) {
    if (product.inputs.size() == 2) return true;
    const std::optional<float> number = ConstantNumber(plan_, product.inputs[2]);
    if (!number) return false;
    found_.attention.scale *= *number;
    return product.inputs.size() == 3 ||
           (product.inputs.size() == 4 && TakeMask(product.inputs[3], dtype_, scores_));
  }
  // Of the values or a number.
  bool TakeChoice(const PlanAction& a, int value) {
    nn::Attention& found = found_.attention;
    found.keeps = Same(a.inputs[1], value);
    const std::optional<float> number = ConstantNumber(plan_, a.inputs[found.keeps ? 2 : 1]);
    if (!number || !Same(a.inputs[found.keeps ? 1 : 2], value) || !masks_.empty() ||
        !TakeMask(a.inputs[0], Dtype::kBool, scores_)) {
      return false;
    }
    found.chooses = true;
    found.hidden = *number;
    return true;
  }
  // The same choice of the probabilities or a number, if only it reads them.
  void TakeChoiceBehind() {
    nn::Attention& found = found_.attention;
    const size_t reader = readers_.OnlyOf(probabilities_);
    if (!found.chooses || reader == readers_.no_action()) return;
    const PlanAction& a = plan_.actions[reader];
    if (!a.node->Is("SelectV2") || a.outputs.size() != 1 || !a.then.empty() ||
        !Same(a.inputs[0], masks_[0].value) ||
        !Same(a.inputs[found.keeps ? 1 : 2], probabilities_) ||
        !(ShapeOf(a.outputs[0]) == ShapeOf(probabilities_))) {
      return;
    }
    const std::optional<float> number = ConstantNumber(plan_, a.inputs[found.keeps ? 2 : 1]);
    if (!number) return;
    found.hides_behind = true;
    found.hidden_behind = *number;
    taken_.push_back(reader);
    probabilities_ = a.outputs[0];
  }
  // One that is broadcast to the scores, which are under another shape there.
  bool TakeMask(int mask, Dtype dtype, const Shape& shape) {
    const Shape& s = ShapeOf(mask);
    if (masks_.size() == 2 || found_.attention.chooses || s.rank() > shape.rank() ||
        At(mask).dtype != dtype) {
      return false;
    }
    const int missing = shape.rank() - s.rank();
    for (int i = 0; i < s.rank(); ++i) {
      if (s[i] != shape[missing + i] && s[i] != 1) return false;
    }
    const int rank = shape.rank(), own = scores_.rank();
    if (shape[rank - 1] == scores_[own - 1] && shape[rank - 2] == scores_[own - 2]) {
      masks_.push_back({mask, shape});
      return true;
    }
    // As many numbers lie as the scores do.
    if (s.num_elements() != shape.num_elements()) return false;
    masks_.push_back({mask, scores_});
    return true;
  }

  // The step of the dimension that has the label; 0 where none has it.
  static int64_t StepOf(const StridedView& view, const EinsumLabels& labels, int label) {
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == label && view.dims[i] != 1) return view.steps[i];
    }
    return 0;
  }
  // The only label of `these` that is in neither of the others; kNoLabel: there is not exactly one.
  static int OnlyLabel(const EinsumLabels& these, bool (*want)(bool, bool), const EinsumLabels& a,
                       const EinsumLabels& b) {
    int found = kNoLabel;
    for (const int label : these) {
      if (label == kNoLabel || !want(HasLabel(a, label), HasLabel(b, label))) continue;
      if (found != kNoLabel) return kNoLabel;
      found = label;
    }
    return found;
  }
  static bool InFirst(bool a, bool b) { return a && !b; }
  int64_t SizeOf(int value, const EinsumLabels& labels, int label) const {
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == label) return ShapeOf(value).dims()[i];
    }
    return 1;
  }

  bool TakeScores(const Labeled& l) {
    nn::Attention& a = found_.attention;
    const int key = l.out.back(), query = l.out[l.out.size() - 2];
    if (key == kNoLabel || query == kNoLabel) return false;
    const size_t q_side = HasLabel(l.in[0], key) ? 1 : 0, k_side = 1 - q_side;
    const EinsumLabels &q_labels = l.in[q_side], &k_labels = l.in[k_side];
    if (!HasLabel(k_labels, key) || HasLabel(q_labels, key) || !HasLabel(q_labels, query) ||
        HasLabel(k_labels, query)) {
      return false;
    }
    const int inner = OnlyLabel(q_labels, InFirst, k_labels, l.out);
    if (inner == kNoLabel || !EachIsIn(q_labels, l.out, inner) ||
        !EachIsIn(k_labels, l.out, inner)) {
      return false;
    }
    const PlanAction& product = plan_.actions[first_];
    const int q = product.inputs[q_side], k = product.inputs[k_side];
    q_ = ViewOf(plan_, q, first_, true);
    k_ = ViewOf(plan_, k, first_, true);
    a.queries = scores_[scores_.rank() - 2];
    a.keys = scores_.back();
    a.depth = SizeOf(q, q_labels, inner);
    const auto gaps = [&] { return a.depth > 1 && StepOf(q_, q_labels, inner) != 1; };
    if (gaps()) q_ = AsItIs(q);
    if (gaps()) return false;
    a.q_row = StepOf(q_, q_labels, query);
    const auto steps_fit = [&] {
      a.k_row = StepOf(k_, k_labels, key);
      a.k_column = a.depth > 1 ? StepOf(k_, k_labels, inner) : 1;
      return a.k_row >= 0 && a.k_column > 0 && (a.k_column == 1 || a.k_row == 1 || a.keys == 1);
    };
    if (!steps_fit()) k_ = AsItIs(k);
    if (!steps_fit()) return false;
    a.scale *= q_.scale * k_.scale;
    q_steps_ = BatchSteps(q_, q_labels, l.out);
    k_steps_ = BatchSteps(k_, k_labels, l.out);
    return a.q_row >= 0;
  }
  // Not traced back through any action.
  StridedView AsItIs(int value) const { return ViewOf(plan_, value, 0, false); }
  static bool EachIsIn(const EinsumLabels& labels, const EinsumLabels& all, int but) {
    return std::ranges::all_of(
        labels, [&](int l) { return l == kNoLabel || l == but || HasLabel(all, l); });
  }

  // Steps along the scores' dimensions before the last two, named by `labels`.
  static Dims BatchSteps(const StridedView& view, const EinsumLabels& labels,
                         const EinsumLabels& names) {
    Dims steps;
    for (size_t i = 0; i + 2 < names.size(); ++i) steps.push_back(StepOf(view, labels, names[i]));
    return steps;
  }

  bool TakeMixed(const Labeled& l) {
    nn::Attention& a = found_.attention;
    const PlanAction& product = plan_.actions[last_];
    if (product.inputs.size() != 2) return false;
    const auto reads = [&](size_t i) {
      return IsUnder(scores_, product.inputs[i], probabilities_);
    };
    const size_t p_side = reads(0) ? 0 : 1, v_side = 1 - p_side;
    if (!reads(p_side)) return false;
    const EinsumLabels &p_labels = l.in[p_side], &v_labels = l.in[v_side];
    const int key = p_labels.back(), query = p_labels[p_labels.size() - 2];
    if (key == kNoLabel || query == kNoLabel || HasLabel(l.out, key) || !HasLabel(v_labels, key) ||
        !HasLabel(l.out, query) || HasLabel(v_labels, query)) {
      return false;
    }
    const int column = OnlyLabel(v_labels, InFirst, l.out, p_labels);
    if (column == kNoLabel || !EachIsIn(v_labels, p_labels, column) ||
        !EachIsIn(p_labels, l.out, key)) {
      return false;
    }
    const int v = product.inputs[v_side];
    v_ = ViewOf(plan_, v, last_, false);
    a.width = SizeOf(v, v_labels, column);
    const auto gaps = [&] { return a.width > 1 && StepOf(v_, v_labels, column) != 1; };
    if (gaps()) v_ = AsItIs(v);
    if (gaps()) return false;
    a.v_row = StepOf(v_, v_labels, key);
    const StridedView out = TakeOutput(product.outputs[0]);
    if (a.width > 1 && StepOf(out, l.out, column) != 1) return false;
    a.out_row = StepOf(out, l.out, query);
    v_steps_ = BatchSteps(v_, v_labels, p_labels);
    out_steps_ = BatchSteps(out, l.out, p_labels);
    return a.v_row > 0 || a.keys == 1;
  }
  // The product as it lies in what the only one who reads it makes of it.
  StridedView TakeOutput(int value) {
    StridedView out = AsItIs(value);
    const size_t reader = readers_.OnlyOf(value);
    if (reader == readers_.no_action()) return out;
    const PlanAction& next = plan_.actions[reader];
    const Dims order = TransposeOrder(plan_, next);
    if (order.empty() || !Same(next.inputs[0], value)) return out;
    taken_.push_back(reader);
    const StridedView turned = AsItIs(next.outputs[0]);
    for (size_t i = 0; i < order.size(); ++i) {
      out.steps[static_cast<size_t>(order[i])] = turned.steps[i];
    }
    return out;
  }

  void ListUnits() {
    nn::Attention& a = found_.attention;
    const int batch_rank = scores_.rank() - 2;
    a.units.resize(1);
    a.units[0] = {q_.first, k_.first, v_.first, 0, {}};
    for (int d = 0; d < batch_rank; ++d) {
      std::vector<nn::Attention::Unit> units;
      const auto at = static_cast<size_t>(d);
      for (const nn::Attention::Unit& u : a.units) {
        for (int64_t i = 0; i < scores_[d]; ++i) {
          units.push_back({u.q + i * q_steps_[at],
                           u.k + i * k_steps_[at],
                           u.v + i * v_steps_[at],
                           u.out + i * out_steps_[at],
                           {}});
        }
      }
      a.units = std::move(units);
    }
    found_.inputs = {q_.value, k_.value, v_.value};
    for (size_t m = 0; m < masks_.size(); ++m) {
      found_.inputs.push_back(masks_[m].value);
      ListMask(masks_[m], m);
    }
  }
  // Units are in the order of rows of the scores, under whatever shape.
  void ListMask(const TakenMask& mask, size_t number) {
    nn::Attention& a = found_.attention;
    const StridedView view = AsItIs(mask.value);
    const int rank = mask.shape.rank();
    // A mask of as many numbers lies as the scores, whatever its own shape.
    const bool whole = ShapeOf(mask.value).num_elements() == mask.shape.num_elements();
    Dims steps(static_cast<size_t>(rank), 0);
    int64_t behind = 1;
    for (int i = rank; i-- > 0;) {
      const auto at = static_cast<size_t>(i);
      const size_t missing = steps.size() - std::min(steps.size(), view.dims.size());
      if (whole) {
        steps[at] = mask.shape[i] == 1 ? 0 : behind;
        behind *= mask.shape[i];
      } else if (at >= missing && view.dims[at - missing] != 1) {
        steps[at] = view.steps[at - missing];
      }
    }
    a.masks.push_back({steps[steps.size() - 2], steps.back()});
    std::vector<int64_t> places = {0};
    for (int d = 0; d + 2 < rank; ++d) {
      std::vector<int64_t> more;
      for (const int64_t place : places) {
        for (int64_t i = 0; i < mask.shape[d]; ++i) {
          more.push_back(place + i * steps[static_cast<size_t>(d)]);
        }
      }
      places = std::move(more);
    }
    for (size_t u = 0; u < a.units.size(); ++u) a.units[u].masks[number] = places[u];
  }

  // What was taken, and what was traced back through if nobody else reads it.
  void ListActions() {
    std::set<size_t> gone(taken_.begin(), taken_.end());
    gone.insert(first_);
    std::set<size_t> traced;
    for (const StridedView* view : {&q_, &k_, &v_}) {
      traced.insert(view->actions.begin(), view->actions.end());
    }
    // Readers stand behind what they read.
    for (auto i = traced.rbegin(); i != traced.rend(); ++i) {
      const bool unread = std::ranges::all_of(plan_.actions[*i].outputs, [&](int v) {
        return std::ranges::all_of(readers_.Of(v), [&](size_t r) { return gone.contains(r); });
      });
      if (unread) gone.insert(*i);
    }
    gone.erase(first_);
    found_.actions.assign(gone.begin(), gone.end());
  }

  const Plan& plan_;
  const PlanReaders& readers_;
  Reasons* const reasons_;
  SpelledAttention found_;
  size_t first_ = 0, last_ = 0;  // the products
  Dtype dtype_ = Dtype::kInvalid;
  std::vector<size_t> taken_;
  Shape scores_;
  int probabilities_ = -1;
  std::vector<TakenMask> masks_;
  StridedView q_, k_, v_;
  Dims q_steps_, k_steps_, v_steps_, out_steps_;
};

}  // namespace

std::optional<SpelledAttention> FindAttention(const Plan& plan, size_t first,
                                              const PlanReaders& readers, Reasons* reasons) {
  if (!plan.actions[first].node->Is("Einsum") && !plan.actions[first].node->Is(kBatchMatMuls)) {
    return std::nullopt;
  }
  return AttentionFinder(plan, readers, reasons).Find(first);
}

}  // namespace smelt
