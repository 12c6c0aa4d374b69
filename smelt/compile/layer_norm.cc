#include "smelt/compile/layer_norm.h"

#include <algorithm>

namespace smelt {
namespace {

constexpr OpSet kSumOps = {"AddV2", "Add", "AddN"};

class NormFinder {
 public:
  NormFinder(const Plan& plan, const PlanReaders& readers, Reasons* reasons)
      : plan_(plan), readers_(readers), reasons_(reasons) {}

  std::optional<SpelledLayerNorm> Find(size_t first) {
    if (plan_.actions[first].node->Is("FusedBatchNormV3")) return FindFused(first);
    if (plan_.actions[first].node->Is("Square")) return FindOfSquares(first);
    size_t moments = first;
    found_.x = plan_.actions[first].inputs[0];
    found_.actions = {first};
    if (IsCast(first, Dtype::kBfloat16, Dtype::kFloat)) {
      const auto& of_wide = readers_.Of(ValueOf(first));
      if (of_wide.size() != 2) return std::nullopt;
      moments = IsMeanOfLast(of_wide[0]) ? of_wide[0] : of_wide[1];
      found_.actions.push_back(moments);
      found_.narrow = true;
    }
    if (!IsMeanOfLast(moments)) return std::nullopt;
    const PlanAction& mean = plan_.actions[moments];
    const int wide = mean.inputs[0];
    if (found_.narrow && !Same(wide, ValueOf(first))) return std::nullopt;
    const auto& of_mean = readers_.Of(mean.outputs[0]);
    if (of_mean.size() != 2) {
      const bool squares = std::ranges::any_of(of_mean, [&](size_t reader) {
        return reader != readers_.no_action() && Is(reader, {"SquaredDifference"});
      });
      if (squares) Refuse(first, "its mean is read by more than two, or is a result");
      return std::nullopt;
    }
    size_t difference = of_mean[0], squares = of_mean[1];
    if (Is(difference, {"SquaredDifference"})) std::swap(difference, squares);
    int center = mean.outputs[0];
    if (found_.narrow && !Narrow(&difference, &center)) return std::nullopt;
    if (!Is(squares, {"SquaredDifference"}) || !ReadsBoth(squares, wide, mean)) {
      return std::nullopt;
    }
    if (!IsElementwise(difference, {"Sub"})) {
      auto affine = FindAffine(difference, center, squares);
      if (!affine) Refuse(first, "no x * factor + (offset - mean * factor) is made of its moments");
      return affine;
    }
    if (!Reads(difference, {found_.x, center})) {
      return Refuse(first, "its mean is not subtracted from what it is taken of");
    }
    found_.actions.push_back(difference);
    const size_t root = TakeRoot(squares);
    if (root == readers_.no_action()) return Refuse(first, kNoRoot);
    const size_t product = TakeProducts(difference, root);
    if (product == readers_.no_action()) {
      return Refuse(first, "no product of the difference, the root and a row of scales follows");
    }
    const size_t last = OnlyReader(product);
    if (!IsSum(last) || !TakeRow(last, ValueOf(product), &found_.offset) ||
        !(ShapeOf(ValueOf(last)) == ShapeOf(found_.x))) {
      return Refuse(first, "no sum with a row of offsets follows the product");
    }
    found_.actions.push_back(last);
    return found_;
  }

 private:
  static constexpr absl::string_view kNoRoot =
      "its squares are not read by a mean, a sum with a number and a root alone";
  std::nullopt_t Refuse(size_t first, absl::string_view why) const {
    NoteReason(reasons_, *plan_.actions[first].node, "begins no layer normalization: ", why);
    return std::nullopt;
  }

  // x * factor + (offset - mean * factor), where factor is root * scale, in all spellings of Keras
  // and tf.nn.batch_normalization, and with sums as Grappler joins them. `center` is the action
  // that reads the mean, as value `moved`, beside the squares.
  std::optional<SpelledLayerNorm> FindAffine(size_t center, int moved, size_t squares) {
    found_.affine = !found_.narrow;
    const size_t root = TakeRoot(squares);
    if (root == readers_.no_action()) return std::nullopt;
    int factor = ValueOf(root);
    if (const size_t scaled = OnlyReader(root); scaled != readers_.no_action()) {
      if (!IsElementwise(scaled, {"Mul"}) || !TakeRow(scaled, factor, &found_.scale)) {
        return std::nullopt;
      }
      found_.actions.push_back(scaled);
      factor = ValueOf(scaled);
    }
    const bool negative = IsElementwise(center, {"Neg"});
    if (negative) {
      found_.actions.push_back(center);
      moved = ValueOf(center);
      center = OnlyReader(center);
    }
    const auto& of_factor = readers_.Of(factor);
    if (of_factor.size() != 2 || !IsProductOf(center, moved, factor)) return std::nullopt;
    const size_t product = of_factor[0] == center ? of_factor[1] : of_factor[0];
    if (!IsProductOf(product, found_.x, factor)) return std::nullopt;
    found_.actions.push_back(center);
    found_.actions.push_back(product);
    const size_t last = negative ? JoinNegative(product, center) : JoinPositive(product, center);
    // The kernel for bfloat16 has all operands.
    const bool whole = !found_.narrow || (found_.scale >= 0 && found_.offset >= 0);
    if (last == readers_.no_action() || !(ShapeOf(ValueOf(last)) == ShapeOf(found_.x)) || !whole) {
      return std::nullopt;
    }
    return found_;
  }
  // product + (-mean * factor) + offset, in any order; without an offset, too. The last sum.
  size_t JoinNegative(size_t product, size_t center) {
    const size_t by_product = OnlyReader(product), by_center = OnlyReader(center);
    if (by_product == by_center) {
      if (!IsSumOf(by_product, ValueOf(product), ValueOf(center))) return readers_.no_action();
      found_.actions.push_back(by_product);
      const size_t next = OnlyReader(by_product);
      if (!IsSum(next) || !TakeRow(next, ValueOf(by_product), &found_.offset)) return by_product;
      found_.actions.push_back(next);
      return next;
    }
    if (!IsSum(by_center) || OnlyReader(by_center) != by_product ||
        !TakeRow(by_center, ValueOf(center), &found_.offset) ||
        !IsSumOf(by_product, ValueOf(product), ValueOf(by_center))) {
      return readers_.no_action();
    }
    found_.actions.push_back(by_center);
    found_.actions.push_back(by_product);
    return by_product;
  }
  // product + (offset - mean * factor), or product + -(mean * factor).
  size_t JoinPositive(size_t product, size_t center) {
    const size_t last = OnlyReader(product), shift = OnlyReader(center);
    const bool shifts =
        IsElementwise(shift, {"Neg"}) ||
        (IsElementwise(shift, {"Sub"}) && Same(plan_.actions[shift].inputs[1], ValueOf(center)) &&
         TakeRow(shift, ValueOf(center), &found_.offset));
    if (!shifts || OnlyReader(shift) != last || !IsSumOf(last, ValueOf(product), ValueOf(shift))) {
      return readers_.no_action();
    }
    found_.actions.push_back(shift);
    found_.actions.push_back(last);
    return last;
  }

  // By the root of the mean of squares alone; the scale may stand at the root or behind.
  std::optional<SpelledLayerNorm> FindOfSquares(size_t squares) {
    const size_t mean = OnlyReader(squares);
    if (!Is(squares, {"Square"}) || !IsMeanOfLast(mean) ||
        !Same(plan_.actions[mean].inputs[0], ValueOf(squares))) {
      return std::nullopt;
    }
    found_.x = plan_.actions[squares].inputs[0];
    found_.of_squares = true;
    const size_t root = TakeRoot(squares);
    if (root == readers_.no_action() || !(ShapeOf(ValueOf(root)) == ShapeOf(ValueOf(mean)))) {
      return Refuse(squares, kNoRoot);
    }
    size_t last = OnlyReader(root);
    if (!IsElementwise(last, {"Mul"})) return Refuse(squares, "no product reads its root alone");
    found_.actions.push_back(last);
    if (IsProductOf(last, found_.x, ValueOf(root))) {
      const size_t scaled = OnlyReader(last);
      if (IsElementwise(scaled, {"Mul"}) && TakeRow(scaled, ValueOf(last), &found_.scale)) {
        found_.actions.push_back(scaled);
        last = scaled;
      }
    } else {
      const int factor = ValueOf(last);
      if (!TakeRow(last, ValueOf(root), &found_.scale)) return std::nullopt;
      last = OnlyReader(last);
      if (!IsProductOf(last, found_.x, factor)) {
        return Refuse(squares, "what is multiplied is not what it is the square of");
      }
      found_.actions.push_back(last);
    }
    if (!(ShapeOf(ValueOf(last)) == ShapeOf(found_.x))) return std::nullopt;
    return found_;
  }

  // Keras 2's: rows are channels of a batch normalization without scales of its own, behind which
  // the layer's are.
  std::optional<SpelledLayerNorm> FindFused(size_t first) {
    const PlanAction& a = plan_.actions[first];
    const Node& n = *a.node;
    if (!a.then.empty() || !n.Bool("is_training") || n.String("data_format") != "NCHW" ||
        a.inputs.size() < 3 || At(a.inputs[0]).dtype != Dtype::kFloat) {
      return std::nullopt;
    }
    const Shape& rows = ShapeOf(a.inputs[0]);
    if (rows.rank() != 4 || rows[0] != 1 || rows[3] != 1 || rows[2] < 2 || rows[1] < 1 ||
        !IsAll(a.inputs[1], 1) || !IsAll(a.inputs[2], 0)) {
      return std::nullopt;
    }
    for (size_t o = 1; o < a.outputs.size(); ++o) {
      if (!readers_.Of(a.outputs[o]).empty()) return std::nullopt;
    }
    found_.x = plan_.Root(a.inputs[0]);
    found_.epsilon = n.Float("epsilon");
    found_.actions = {first};
    const Shape& x = ShapeOf(found_.x);
    if (x.rank() < 1 || x.back() != rows[2] || x.num_elements() != rows.num_elements()) {
      return std::nullopt;
    }
    const size_t product = OnlyReader(first);
    if (!Is(product, {"Mul"})) return std::nullopt;
    const auto& factors = plan_.actions[product].inputs;
    const bool left = plan_.Root(factors[0]) == plan_.Root(a.outputs[0]);
    const int normal = factors[left ? 0 : 1];
    const size_t last = OnlyReader(product);
    if (!(ShapeOf(normal) == ShapeOf(ValueOf(product))) ||
        !TakeRow(product, normal, &found_.scale) || !IsSum(last) ||
        !TakeRow(last, ValueOf(product), &found_.offset) ||
        ShapeOf(ValueOf(last)).num_elements() != x.num_elements() ||
        ShapeOf(ValueOf(last)).back() != x.back()) {
      return std::nullopt;
    }
    found_.actions.push_back(product);
    found_.actions.push_back(last);
    return found_;
  }
  bool IsAll(int value, float number) const {
    const Tensor* t = plan_.ConstantOf(value);
    return t != nullptr && t->dtype() == Dtype::kFloat &&
           std::ranges::all_of(t->flat<float>(), [&](float f) { return f == number; });
  }

  // From the squares to the root of their mean and a number, in the type of x; no_action(): it is
  // something else.
  size_t TakeRoot(size_t squares) {
    const size_t variance = OnlyReader(squares);
    if (!IsMeanOfLast(variance)) return readers_.no_action();
    const size_t sum = OnlyReader(variance);
    if (!IsSum(sum, Dtype::kFloat) || !TakeEpsilon(sum, variance)) return readers_.no_action();
    const size_t root = OnlyReader(sum);
    if (!Is(root, {"Rsqrt"})) return readers_.no_action();
    for (const size_t i : {squares, variance, sum, root}) found_.actions.push_back(i);
    if (!found_.narrow) return root;
    const size_t rounded = OnlyReader(root);
    if (!IsCast(rounded, Dtype::kFloat, Dtype::kBfloat16)) return readers_.no_action();
    found_.actions.push_back(rounded);
    return rounded;
  }

  const PlanValue& At(int value) const { return plan_.values[static_cast<size_t>(value)]; }
  const Shape& ShapeOf(int value) const { return At(value).shape; }
  int ValueOf(size_t action) const { return plan_.actions[action].outputs[0]; }
  bool Same(int a, int b) const {
    return plan_.Root(a) == plan_.Root(b) && ShapeOf(a) == ShapeOf(b);
  }

  bool Is(size_t action, const OpSet& ops, Dtype dtype = Dtype::kFloat) const {
    if (action >= plan_.actions.size()) return false;
    const PlanAction& a = plan_.actions[action];
    return a.node->Is(ops) && a.then.empty() && a.outputs.size() == 1 &&
           At(a.outputs[0]).dtype == dtype;
  }
  // Of the type that x has.
  bool IsElementwise(size_t action, const OpSet& ops) const {
    return Is(action, ops, found_.narrow ? Dtype::kBfloat16 : Dtype::kFloat);
  }
  bool IsCast(size_t action, Dtype from, Dtype to) const {
    return Is(action, {"Cast"}, to) && At(plan_.actions[action].inputs[0]).dtype == from;
  }
  // From the cast of the mean to the only one that reads it.
  bool Narrow(size_t* difference, int* center) {
    if (!IsCast(*difference, Dtype::kFloat, Dtype::kBfloat16)) return false;
    found_.actions.push_back(*difference);
    *center = ValueOf(*difference);
    *difference = OnlyReader(*difference);
    return true;
  }
  size_t OnlyReader(size_t action) const { return readers_.OnlyOf(ValueOf(action)); }
  bool Reads(size_t action, std::span<const int> values) const {
    const auto& inputs = plan_.actions[action].inputs;
    return std::ranges::equal(inputs, values, [&](int a, int b) { return Same(a, b); });
  }
  bool Reads(size_t action, std::initializer_list<int> values) const {
    return Reads(action, std::span<const int>(values.begin(), values.size()));
  }
  bool ReadsBoth(size_t squares, int x, const PlanAction& mean) const {
    return Reads(squares, {x, mean.outputs[0]}) || Reads(squares, {mean.outputs[0], x});
  }

  // A mean of floats along the last dimension, which stays with size one.
  bool IsMeanOfLast(size_t action) const {
    if (!Is(action, {"Mean"})) return false;
    const Shape& x = ShapeOf(plan_.actions[action].inputs[0]);
    const Shape& y = ShapeOf(ValueOf(action));
    if (x.rank() == 0 || y.rank() != x.rank() || x.back() < 2 || y.back() != 1) return false;
    return y.num_elements() * x.back() == x.num_elements() && x.num_elements() > 0;
  }

  // Of a sum of the variance and a number.
  bool TakeEpsilon(size_t sum, size_t variance) {
    for (const int side : {0, 1}) {
      const auto& inputs = plan_.actions[sum].inputs;
      const PlanValue& number = At(inputs[static_cast<size_t>(side)]);
      if (!Same(inputs[static_cast<size_t>(1 - side)], ValueOf(variance)) ||
          plan_.ConstantOf(inputs[static_cast<size_t>(side)]) == nullptr ||
          number.shape.num_elements() != 1) {
        continue;
      }
      found_.epsilon = plan_.constants[static_cast<size_t>(number.number)].data<float>()[0];
      return true;
    }
    return false;
  }

  // The operand beside `value`, where that has one element for each of x's last dimension.
  bool TakeRow(size_t action, int value, int* row) const {
    const auto& inputs = plan_.actions[action].inputs;
    for (const size_t side : {0, 1}) {
      if (!Same(inputs[1 - side], value)) continue;
      const Shape& s = ShapeOf(inputs[side]);
      const int64_t depth = ShapeOf(found_.x).back();
      if (s.rank() == 0 || s.back() != depth || s.num_elements() != depth ||
          s.rank() > ShapeOf(found_.x).rank()) {
        continue;
      }
      *row = inputs[side];
      return true;
    }
    return false;
  }
  // Of two.
  bool IsSum(size_t action, Dtype dtype) const {
    return Is(action, kSumOps, dtype) && plan_.actions[action].inputs.size() == 2;
  }
  bool IsSum(size_t action) const {
    return IsSum(action, found_.narrow ? Dtype::kBfloat16 : Dtype::kFloat);
  }
  bool IsSumOf(size_t action, int a, int b) const {
    return IsSum(action) && IsPairOf(action, a, b);
  }
  bool IsPairOf(size_t action, int a, int b) const {
    return Reads(action, {a, b}) || Reads(action, {b, a});
  }
  bool IsProductOf(size_t action, int a, int b) const {
    return IsElementwise(action, {"Mul"}) && IsPairOf(action, a, b);
  }

  // The product of difference, root and scale, in any order.
  size_t TakeProducts(size_t difference, size_t root) {
    const size_t by_difference = OnlyReader(difference), by_root = OnlyReader(root);
    if (!IsElementwise(by_difference, {"Mul"}) || !IsElementwise(by_root, {"Mul"}))
      return readers_.no_action();
    const auto take = [&](size_t first, size_t second) {
      found_.actions.push_back(first);
      found_.actions.push_back(second);
      return second;
    };
    if (by_difference == by_root) {  // (d * r) * s
      const size_t last = OnlyReader(by_root);
      const bool fits = IsProductOf(by_root, ValueOf(difference), ValueOf(root)) &&
                        IsElementwise(last, {"Mul"}) &&
                        TakeRow(last, ValueOf(by_root), &found_.scale);
      return fits ? take(by_root, last) : readers_.no_action();
    }
    // (d * s) * r
    if (OnlyReader(by_difference) == by_root &&
        TakeRow(by_difference, ValueOf(difference), &found_.scale) &&
        IsProductOf(by_root, ValueOf(by_difference), ValueOf(root))) {
      return take(by_difference, by_root);
    }
    // d * (r * s)
    if (OnlyReader(by_root) == by_difference && TakeRow(by_root, ValueOf(root), &found_.scale) &&
        IsProductOf(by_difference, ValueOf(difference), ValueOf(by_root))) {
      return take(by_root, by_difference);
    }
    return readers_.no_action();
  }

  const Plan& plan_;
  const PlanReaders& readers_;
  Reasons* const reasons_;
  SpelledLayerNorm found_;
};

}  // namespace

std::optional<SpelledLayerNorm> FindLayerNorm(const Plan& plan, size_t first,
                                              const PlanReaders& readers, Reasons* reasons) {
  return NormFinder(plan, readers, reasons).Find(first);
}

}  // namespace smelt
