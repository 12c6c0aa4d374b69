#include "smelt/graph/shape/values.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

// Longer vectors are data, not shapes.
constexpr int64_t kMaxTracked = 1024;

struct ValueStep {
  const Node& node;
  std::span<const PartialShape* const> inputs;
  std::span<const IntVector* const> values;
  std::vector<std::optional<IntVector>> out;

  // The input's value; all unknown when only its shape is known.
  std::optional<IntVector> Value(int i) const {
    if (values[i] != nullptr) return *values[i];
    const PartialShape& s = *inputs[i];
    if (s.rank() == 0) return IntVector{true, Dims(1, kUnknownInt)};
    if (s.rank() == 1 && s[0] >= 0 && s[0] <= kMaxRank) {
      return IntVector{false, Dims(static_cast<size_t>(s[0]), kUnknownInt)};
    }
    return {};
  }
  // The value of an input that is a known scalar or vector of one element.
  std::optional<int64_t> Int(int i) const {
    const IntVector* v = values[i];
    if (v == nullptr || v->values.size() != 1 || !IsKnownInt(v->values[0])) return {};
    return v->values[0];
  }
  bool Known(int i) const { return values[i] != nullptr && values[i]->complete(); }
};

void FromShape(const PartialShape& s, std::optional<IntVector>* out) {
  if (!s.known_rank()) return;
  *out = IntVector{};
  for (int64_t d : s.dims()) (*out)->values.push_back(d == kUnknownDim ? kUnknownInt : d);
}

void ShapeValue(ValueStep& s) {
  for (size_t i = 0; i < s.out.size(); ++i) FromShape(*s.inputs[i], &s.out[i]);
}

void SizeValue(ValueStep& s) {
  const int64_t n = NumElements(*s.inputs[0]);
  if (n != kUnknownDim) s.out[0] = IntVector{true, {n}};
}

void RankValue(ValueStep& s) {
  if (s.inputs[0]->known_rank()) s.out[0] = IntVector{true, {s.inputs[0]->rank()}};
}

void PackValue(ValueStep& s) {
  if (s.node.Int("axis") != 0 && s.node.Int("axis") != -1) return;
  // All have one shape: where one is a scalar all are.
  const bool scalars =
      std::ranges::any_of(s.inputs, [](const PartialShape* shape) { return shape->rank() == 0; });
  IntVector v;
  for (size_t i = 0; i < s.values.size(); ++i) {
    const auto part = s.Value(static_cast<int>(i));
    if (part ? !part->scalar : !scalars) return;
    v.values.push_back(part ? part->values[0] : kUnknownInt);
  }
  s.out[0] = std::move(v);
}

void ConcatValue(ValueStep& s) {
  IntVector v;
  for (size_t i = 0; i + 1 < s.values.size(); ++i) {
    const auto part = s.Value(static_cast<int>(i));
    if (!part || part->scalar) return;
    v.values.insert(v.values.end(), part->values.begin(), part->values.end());
  }
  s.out[0] = std::move(v);
}

void PassValue(ValueStep& s) {
  for (size_t i = 0; i < s.out.size() && i < s.values.size(); ++i) {
    if (s.values[i] != nullptr) s.out[i] = *s.values[i];
  }
}

void SwitchValue(ValueStep& s) {
  if (s.values[0] != nullptr) s.out[0] = s.out[1] = *s.values[0];
}

void CastValue(ValueStep& s) {
  if (s.values[0] == nullptr) return;
  IntVector v = *s.values[0];
  if (s.node.output_types[0] == Dtype::kInt32) {
    for (int64_t& x : v.values) {
      if (IsKnownInt(x) && x != static_cast<int32_t>(x)) x = kUnknownInt;
    }
  }
  s.out[0] = std::move(v);
}

void StridedSliceValue(ValueStep& s) {
  const Node& n = s.node;
  const auto v = s.Value(0);
  if (!v || v->scalar || n.Int("ellipsis_mask") != 0 || n.Int("new_axis_mask") != 0) return;
  const bool from_start = (n.Int("begin_mask") & 1) != 0, to_end = (n.Int("end_mask") & 1) != 0;
  const auto begin = s.Int(1), end = s.Int(2), stride = s.Int(3);
  if (!stride || *stride == 0) return;
  const auto size = static_cast<int64_t>(v->values.size());
  if (n.Int("shrink_axis_mask") & 1) {
    if (!begin) return;
    const int64_t at = *begin < 0 ? *begin + size : *begin;
    if (at < 0 || at >= size) return;
    s.out[0] = IntVector{true, {v->values[at]}};
    return;
  }
  if ((!from_start && !begin) || (!to_end && !end)) return;
  const bool forward = *stride > 0;
  const int64_t low = forward ? 0 : -1, high = forward ? size : size - 1;
  const auto place = [&](int64_t x) { return std::clamp(x < 0 ? x + size : x, low, high); };
  const int64_t from = from_start ? (forward ? 0 : size - 1) : place(*begin);
  const int64_t to = to_end ? (forward ? size : -1) : place(*end);
  const int64_t step = std::clamp<int64_t>(*stride, -kMaxTracked - 1, kMaxTracked + 1);
  IntVector out;
  for (int64_t i = from; forward ? i < to : i > to; i += step) out.values.push_back(v->values[i]);
  s.out[0] = std::move(out);
}

void SliceValue(ValueStep& s) {
  const auto v = s.Value(0);
  const auto begin = s.Int(1), count = s.Int(2);
  if (!v || v->scalar || !begin || !count) return;
  const auto size = static_cast<int64_t>(v->values.size());
  if (*begin < 0 || *begin > size || *count < -1) return;
  const int64_t n = *count == -1 ? size - *begin : *count;
  if (n > size - *begin) return;
  s.out[0] = IntVector{false, Dims(v->values.begin() + *begin, v->values.begin() + *begin + n)};
}

void GatherValue(ValueStep& s) {
  const auto v = s.Value(0);
  if (!v || v->scalar || !s.Known(1) || s.node.Int("batch_dims") != 0) return;
  if (s.values.size() > 2) {
    const auto axis = s.Int(2);
    if (!axis || (*axis != 0 && *axis != -1)) return;
  }
  IntVector out{s.values[1]->scalar, {}};
  for (int64_t i : s.values[1]->values) {
    if (i < 0 || i >= static_cast<int64_t>(v->values.size())) return;
    out.values.push_back(v->values[i]);
  }
  s.out[0] = std::move(out);
}

void ReshapeValue(ValueStep& s) {
  const auto v = s.Value(0);
  const IntVector* shape = s.values[1];
  if (!v || shape == nullptr || shape->scalar || shape->values.size() > 1) return;
  if (shape->values.empty() && v->values.size() != 1) return;
  s.out[0] = IntVector{shape->values.empty(), v->values};
}

void ExpandDimsValue(ValueStep& s) {
  const auto v = s.Value(0);
  if (v && v->scalar) s.out[0] = IntVector{false, v->values};
}

void SqueezeValue(ValueStep& s) {
  const auto v = s.Value(0);
  if (v && (v->scalar || v->values.size() == 1)) s.out[0] = IntVector{true, v->values};
}

std::optional<int64_t> Apply(absl::string_view op, int64_t a, int64_t b) {
  int64_t r;
  if (op == "Add" || op == "AddV2") {
    if (__builtin_add_overflow(a, b, &r)) return {};
    return r;
  }
  if (op == "Sub") {
    if (__builtin_sub_overflow(a, b, &r)) return {};
    return r;
  }
  if (op == "Mul") {
    if (__builtin_mul_overflow(a, b, &r)) return {};
    return r;
  }
  if (op == "Maximum") return std::max(a, b);
  if (op == "Minimum") return std::min(a, b);
  // FloorDiv and FloorMod round towards minus infinity, the other divisions towards zero.
  if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return {};
  const bool inexact = a % b != 0 && ((a % b < 0) != (b < 0));
  if (op == "FloorDiv") return a / b - (inexact ? 1 : 0);
  if (op == "FloorMod") return a % b + (inexact ? b : 0);
  return a / b;
}

// Ops whose inputs may not change places.
constexpr OpSet kOrdered = {"Sub", "FloorDiv", "Div", "TruncateDiv", "FloorMod"};

// Is op(x, y) = x whatever x is?
bool LeavesFirst(const Node& n, int64_t y) {
  if (n.Is("Add") || n.Is("AddV2") || n.Is("Sub")) return y == 0;
  return y == 1 && (n.Is("Mul") || n.Is("FloorDiv") || n.Is("Div") || n.Is("TruncateDiv"));
}

void BinaryValue(ValueStep& s) {
  auto a = s.Value(0), b = s.Value(1);
  if (!a || !b) return;
  const size_t na = a->values.size(), nb = b->values.size();
  if (na != nb && na != 1 && nb != 1) return;
  const bool narrow = s.node.output_types[0] == Dtype::kInt32;
  const bool product = s.node.Is("Mul");
  IntVector out{a->scalar && b->scalar, {}};
  for (size_t i = 0; i < (na == 1 ? nb : na); ++i) {
    const int64_t x = a->values[na == 1 ? 0 : i], y = b->values[nb == 1 ? 0 : i];
    std::optional<int64_t> r;
    if (product && (x == 0 || y == 0)) {
      r = 0;
    } else if (IsKnownInt(x) && IsKnownInt(y)) {
      r = Apply(s.node.op(), x, y);
    } else if (LeavesFirst(s.node, y) || (LeavesFirst(s.node, x) && !s.node.Is(kOrdered))) {
      out.values.push_back(IsKnownInt(y) ? x : y);
      continue;
    }
    // An int32 result that wraps around is no size.
    if (r && narrow && *r != static_cast<int32_t>(*r)) r.reset();
    out.values.push_back(r.value_or(kUnknownInt));
  }
  s.out[0] = std::move(out);
}

void NegValue(ValueStep& s) {
  if (s.values[0] == nullptr) return;
  IntVector v = *s.values[0];
  for (int64_t& x : v.values) {
    x = IsKnownInt(x) && x != std::numeric_limits<int32_t>::min() ? -x : kUnknownInt;
  }
  s.out[0] = std::move(v);
}

void ReduceValue(ValueStep& s) {
  const auto v = s.Value(0);
  if (!v || v->scalar || !s.Known(1) || s.values[1]->values.size() != 1) return;
  if (s.values[1]->values[0] != 0 && s.values[1]->values[0] != -1) return;
  IntVector out{!s.node.Bool("keep_dims"), {kUnknownInt}};
  const bool prod = s.node.Is("Prod"), sum = s.node.Is("Sum");
  if (v->complete() && (prod || sum || !v->values.empty())) {
    int64_t r = prod ? 1 : sum ? 0 : v->values[0];
    bool fits = true;
    for (int64_t x : v->values) {
      const auto next = Apply(prod               ? "Mul"
                              : sum              ? "Add"
                              : s.node.Is("Max") ? "Maximum"
                                                 : "Minimum",
                              r, x);
      fits = fits && next.has_value();
      if (fits) r = *next;
    }
    if (s.node.output_types[0] == Dtype::kInt32 && r != static_cast<int32_t>(r)) fits = false;
    if (fits) out.values[0] = r;
  }
  s.out[0] = std::move(out);
}

void RangeValue(ValueStep& s) {
  const auto start = s.Int(0), limit = s.Int(1), delta = s.Int(2);
  if (!start || !limit || !delta || *delta == 0) return;
  // An error.
  if (*delta > 0 ? *start > *limit : *start < *limit) return;
  IntVector v;
  int64_t x = *start;
  while (*delta > 0 ? x < *limit : x > *limit) {
    if (v.values.size() >= static_cast<size_t>(kMaxTracked)) return;
    v.values.push_back(x);
    if (__builtin_add_overflow(x, *delta, &x)) break;
  }
  s.out[0] = std::move(v);
}

void FillValue(ValueStep& s) {
  const IntVector* dims = s.values[0];
  const auto v = s.Value(1);
  if (dims == nullptr || dims->scalar || dims->values.size() > 1 || !v || !v->scalar) return;
  const int64_t n = dims->values.empty() ? 1 : dims->values[0];
  if (n < 0 || n > kMaxTracked) return;
  s.out[0] = IntVector{dims->values.empty(), Dims(static_cast<size_t>(n), v->values[0])};
}

void UnpackValue(ValueStep& s) {
  const auto v = s.Value(0);
  if (!v || v->scalar || v->values.size() != s.out.size()) return;
  for (size_t i = 0; i < s.out.size(); ++i) s.out[i] = IntVector{true, {v->values[i]}};
}

void SplitValue(ValueStep& s) {
  const auto v = s.Value(1);
  const size_t parts = s.out.size();
  if (!v || v->scalar || parts == 0 || v->values.size() % parts != 0) return;
  const size_t n = v->values.size() / parts;
  for (size_t i = 0; i < parts; ++i) {
    s.out[i] = IntVector{false, Dims(v->values.begin() + i * n, v->values.begin() + (i + 1) * n)};
  }
}

void BroadcastArgsValue(ValueStep& s) {
  PartialShape shapes[2];
  for (int i = 0; i < 2; ++i) {
    const auto v = s.Value(i);
    if (!v || v->scalar) return;
    shapes[i] = PartialShape::Of(std::span<const int64_t>(v->values.data(), v->values.size()));
  }
  auto out = BroadcastShapes(shapes[0], shapes[1]);
  if (out.ok()) FromShape(*out, &s.out[0]);
}

void InvertPermutationValue(ValueStep& s) {
  if (!s.Known(0) || s.values[0]->scalar) return;
  const Dims& p = s.values[0]->values;
  Dims inverse(p.size(), kUnknownInt);
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] < 0 || p[i] >= static_cast<int64_t>(p.size())) return;
    inverse[p[i]] = static_cast<int64_t>(i);
  }
  s.out[0] = IntVector{false, std::move(inverse)};
}

void ReverseValue(ValueStep& s) {
  const auto v = s.Value(0);
  const auto axis = s.Int(1);
  if (!v || v->scalar || !axis) return;
  s.out[0] = IntVector{false, Dims(v->values.rbegin(), v->values.rend())};
}

void LikeValue(ValueStep& s) {
  auto v = s.Value(0);
  if (!v) return;
  std::fill(v->values.begin(), v->values.end(), s.node.Is("OnesLike") ? 1 : 0);
  s.out[0] = std::move(v);
}

using ValueRule = void (*)(ValueStep&);
const ValueRule* FindValueRule(absl::string_view op) {
  static const auto* rules = new absl::flat_hash_map<absl::string_view, ValueRule>{
      {"Shape", ShapeValue},
      {"ShapeN", ShapeValue},
      {"Size", SizeValue},
      {"Rank", RankValue},
      {"Pack", PackValue},
      {"ConcatV2", ConcatValue},
      {"Identity", PassValue},
      {"IdentityN", PassValue},
      {"StopGradient", PassValue},
      {"PreventGradient", PassValue},
      {"Snapshot", PassValue},
      {"EnsureShape", PassValue},
      {"Enter", PassValue},
      {"Switch", SwitchValue},
      {"Cast", CastValue},
      {"StridedSlice", StridedSliceValue},
      {"Slice", SliceValue},
      {"Gather", GatherValue},
      {"GatherV2", GatherValue},
      {"Reshape", ReshapeValue},
      {"ExpandDims", ExpandDimsValue},
      {"Squeeze", SqueezeValue},
      {"Add", BinaryValue},
      {"AddV2", BinaryValue},
      {"Sub", BinaryValue},
      {"Mul", BinaryValue},
      {"Maximum", BinaryValue},
      {"Minimum", BinaryValue},
      {"FloorDiv", BinaryValue},
      {"FloorMod", BinaryValue},
      {"Div", BinaryValue},
      {"TruncateDiv", BinaryValue},
      {"Neg", NegValue},
      {"Prod", ReduceValue},
      {"Sum", ReduceValue},
      {"Max", ReduceValue},
      {"Min", ReduceValue},
      {"Range", RangeValue},
      {"Fill", FillValue},
      {"Unpack", UnpackValue},
      {"Split", SplitValue},
      {"BroadcastArgs", BroadcastArgsValue},
      {"InvertPermutation", InvertPermutationValue},
      {"ReverseV2", ReverseValue},
      {"ZerosLike", LikeValue},
      {"OnesLike", LikeValue},
  };
  auto it = rules->find(op);
  return it == rules->end() ? nullptr : &it->second;
}

}  // namespace

bool IntVector::complete() const { return std::ranges::all_of(values, IsKnownInt); }

std::optional<IntVector> IntVectorOf(const Tensor& t) {
  if (!t.valid() || !IsIndexType(t.dtype()) || t.rank() > 1 || t.num_elements() > kMaxTracked) {
    return {};
  }
  IntVector v{t.rank() == 0, {}};
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const int64_t x = IndexAt(t, i);
    v.values.push_back(IsKnownInt(x) ? x : kUnknownInt);
  }
  return v;
}

Tensor ToTensor(const IntVector& v, Dtype dtype) {
  Tensor t;
  if (dtype == Dtype::kInt32) {
    std::vector<int32_t> narrow(v.values.begin(), v.values.end());
    t = Tensor::Vector(std::span<const int32_t>(narrow));
  } else {
    t = Tensor::Vector(std::span<const int64_t>(v.values.data(), v.values.size()));
  }
  return v.scalar ? t.WithShape(Shape()) : t;
}

std::vector<std::optional<IntVector>> FollowValues(const Node& n,
                                                   std::span<const PartialShape* const> inputs,
                                                   std::span<const IntVector* const> values) {
  const ValueRule* rule = n.def() == nullptr ? nullptr : FindValueRule(n.op());
  if (rule == nullptr || n.num_outputs() == 0) return {};
  ValueStep step{n, inputs, values, {}};
  step.out.resize(n.num_outputs());
  (*rule)(step);
  for (int i = 0; i < n.num_outputs(); ++i) {
    auto& v = step.out[i];
    const bool fits = v && IsIndexType(n.output_types[i]) &&
                      v->values.size() <= static_cast<size_t>(kMaxTracked) &&
                      (!v->scalar || v->values.size() == 1);
    if (!fits) v.reset();
  }
  return std::move(step.out);
}

}  // namespace smelt
