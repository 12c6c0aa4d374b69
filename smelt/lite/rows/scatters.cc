// Ops that write into a tensor at places that are computed.
#include <algorithm>
#include <optional>
#include <utility>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

// The greatest, or least, of what is written to each place and of what was there: a segment for
// each place that indices can name.
LiteEndpoints ScatterExtreme(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32)));
  const PartialShape to = l.shape(n.input(0)), at = l.shape(n.input(1));
  const int64_t depth = at.rank() < 1 ? -1 : at[at.rank() - 1];
  if (depth < 1 || to.rank() < depth) return Unimplemented("the shape of its indices is not known");
  std::vector<int64_t> inner, outer, strides(static_cast<size_t>(depth), 1);
  int64_t places = 1;
  for (int i = 0; i < to.rank(); ++i) {
    if (to[i] < 0) return Unimplemented("the shape of what it writes into is not known");
    (i < depth ? outer : inner).push_back(to[i]);
    if (i < depth) places *= to[i];
  }
  for (size_t i = strides.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * outer[i];
  OperatorChain c(l);
  ASSIGN_OR_RETURN(Endpoint index, AsInt32(n.input(1), l));
  if (depth > 1) {
    index = c.Reduce("tfl.sum", c.Mul(index, l.Ints(strides)), {at.rank() - 1}, false);
  }
  Endpoint rows = n.input(2);
  std::vector<int64_t> sizes = inner;
  if (at.rank() != 2) {
    index = c.Reshape(index, {-1});
    sizes.insert(sizes.begin(), -1);
    rows = c.Reshape(rows, sizes);
  } else if (depth == 1) {
    index = c.Reshape(index, {std::max<int64_t>(at[0], -1)});
  }
  const Dtype type = l.type(n.input(0));
  std::vector<int64_t> dims = inner;
  dims.insert(dims.begin(), places);
  const std::vector<int64_t> whole(to.dims().begin(), to.dims().end());
  const bool greatest = n.Is("TensorScatterMax");
  Endpoint value =
      c.Make(greatest ? OpName("tfl.unsorted_segment_max") : OpName("tfl.unsorted_segment_min"),
             {rows, index, l.Int(places)}, {}, {type, PartialShape::Of(dims)});
  if (depth > 1) value = c.Reshape(value, whole);
  value = greatest ? c.Max(n.input(0), value) : c.Min(n.input(0), value);
  // A segment of nothing is the lowest finite number, and infinities stay where nothing is written.
  if (type != Dtype::kFloat) return c.Done(value);
  const Endpoint ones = c.Add(c.Op("tfl.zeros_like", {index}), 1);
  Endpoint count = c.Make("tfl.unsorted_segment_sum", {ones, index, l.Int(places)}, {},
                          {Dtype::kInt32, PartialShape::Of({places})});
  std::vector<int64_t> column = outer;
  column.resize(whole.size(), 1);
  if (column.size() > 1) count = c.Reshape(count, column);
  return c.Done(c.Select(c.Less(0, count), value, n.input(0)));
}

// One place of the first dimensions, whose number is computed: as x[i] and x[i, j] are written.
LiteEndpoints UpdatePlace(Node& n, Legalizer& l) {
  const PartialShape to = l.shape(n.input(0)), value = l.shape(n.input(4)),
                     at = l.shape(n.input(1));
  const auto strides = l.Integers(n.input(3));
  const int64_t depth = at.rank() == 1 ? at[0] : -1;
  if (depth < 1 || !strides || std::ranges::any_of(*strides, [](int64_t s) { return s != 1; }) ||
      n.Int("shrink_axis_mask") != (int64_t{1} << depth) - 1 || n.Int("ellipsis_mask") != 0 ||
      n.Int("new_axis_mask") != 0 || !to.fully_known() || to.rank() < depth) {
    return Unimplemented("the part that it writes is not known");
  }
  std::vector<int64_t> sizes(to.dims().begin(), to.dims().end());
  const std::vector<int64_t> outer(sizes.begin(), sizes.begin() + depth);
  if (value != PartialShape::Of({sizes.begin() + depth, sizes.end()})) {
    return Unimplemented("what it writes is broadcast");
  }
  std::fill(sizes.begin(), sizes.begin() + depth, 1);
  OperatorChain c(l);
  ASSIGN_OR_RETURN(Endpoint first, AsInt32(n.input(1), l));
  const Endpoint from_end = c.Add(first, l.Ints(outer)), negative = c.Less(first, 0);
  first = c.Select(negative, from_end, first);
  if (to.rank() > depth) {
    const std::vector<int64_t> rest(static_cast<size_t>(to.rank() - depth));
    first = c.Make("tfl.concatenation", {first, l.Ints(rest)}, Options({{"axis", int64_t{0}}}),
                   {Dtype::kInt32, PartialShape::Of({to.rank()})});
  }
  const Endpoint part = c.Reshape(n.input(4), sizes);
  return c.Done(c.Make("tfl.dynamic_update_slice", {n.input(0), part, first}, {}, l.OutputOf(n)));
}

// Where a part begins or ends along one dimension: a constant, or an int32 scalar.
struct Bound {
  std::optional<int64_t> known;
  Endpoint number, given;  // as the model has it: of any type
};

// The number of a vector of one that was made of it.
std::optional<Endpoint> OnlyNumber(Endpoint e, const Legalizer& l) {
  const bool made = e.node->Is("tfl.reshape") || e.node->Is("tfl.expand_dims");
  if (!made || l.rank(e.node->input(0)) != 0) return std::nullopt;
  return e.node->input(0);
}

StatusOr<Bound> BoundAt(Endpoint e, int64_t at, OperatorChain& c) {
  Legalizer& l = c.l();
  if (const auto known = l.Integers(e)) return Bound{(*known)[static_cast<size_t>(at)], {}, {}};
  std::optional<Endpoint> number = OnlyNumber(e, l);
  if (e.node->Is("tfl.pack")) number = e.node->input(static_cast<int>(at));
  if (!number) {
    ASSIGN_OR_RETURN(const Endpoint all, AsInt32(e, l));
    const Endpoint one =
        c.Make("tfl.slice", {all, l.Ints(std::vector{at}), l.Ints(std::vector{int64_t{1}})}, {},
               {Dtype::kInt32, PartialShape::Of({1})});
    const Endpoint alone = c.Reshape(one, {});
    return Bound{{}, alone, alone};
  }
  if (const auto known = l.Integers(*number)) return Bound{known->front(), {}, {}};
  ASSIGN_OR_RETURN(const Endpoint narrow, AsInt32(*number, l));
  return Bound{{}, narrow, *number};
}

// What a number is a constant more than, and that constant.
std::pair<Endpoint, int64_t> Offset(Endpoint e, const Legalizer& l) {
  int64_t more = 0;
  while (e.node->Is("tfl.add") || e.node->Is("tfl.sub")) {
    const bool adds = e.node->Is("tfl.add");
    const auto first = l.Integers(e.node->input(0)), second = l.Integers(e.node->input(1));
    if (second && second->size() == 1) {
      more += adds ? second->front() : -second->front();
      e = e.node->input(0);
    } else if (adds && first && first->size() == 1) {
      more += first->front();
      e = e.node->input(1);
    } else {
      break;
    }
  }
  return {e, more};
}

// Is `end` so much behind `begin`, wherever that is?
bool EndsBehind(const Bound& begin, const Bound& end, int64_t size, const Legalizer& l) {
  if (begin.known || end.known) return false;
  const auto [from, before] = Offset(begin.given, l);
  const auto [to, behind] = Offset(end.given, l);
  return from == to && behind - before == size;
}

// As Python counts: from the end where it is negative, and not beyond it.
OperatorChain::Arg Clamped(const Bound& b, int64_t size, OperatorChain& c) {
  if (b.known) {
    const int64_t at = *b.known < 0 ? *b.known + size : *b.known;
    return static_cast<double>(std::clamp(at, int64_t{0}, size));
  }
  const auto n = static_cast<double>(size);
  const Endpoint behind = c.Add(b.number, n);
  const Endpoint negative = c.Less(b.number, 0);
  return c.Min(c.Max(c.Select(negative, behind, b.number), 0), n);
}

// A part whose begin or end is computed, of the value's size: what has another size once it runs
// is nothing, behind the end, or an error.
LiteEndpoints UpdateRange(Node& n, Legalizer& l) {
  const PartialShape to = l.shape(n.input(0)), value = l.shape(n.input(4));
  const int64_t said = l.rank(n.input(1)) == 1 ? l.shape(n.input(1))[0] : -1;
  const auto strides = l.Integers(n.input(3));
  if (said < 0 || said > to.rank() || !strides || !to.fully_known() || !value.fully_known()) {
    return Unimplemented("the part that it writes is not known");
  }
  if (n.Int("ellipsis_mask") != 0 || n.Int("new_axis_mask") != 0 ||
      std::ranges::any_of(*strides, [](int64_t s) { return s != 1; })) {
    return Unimplemented("the part that it writes is not by ones");
  }
  OperatorChain c(l);
  std::vector<Endpoint> first;
  std::optional<Endpoint> fits;
  std::vector<int64_t> sizes;
  int left = 0;  // of the value's dimensions
  for (int i = 0; i < to.rank(); ++i) {
    const auto has = [&](absl::string_view mask) { return (n.Int(mask) >> i & 1) != 0; };
    const bool one = i < said && has("shrink_axis_mask");
    Bound begin{0, {}, {}}, end{to[i], {}, {}};
    if (one || (i < said && !has("begin_mask"))) {
      ASSIGN_OR_RETURN(begin, BoundAt(n.input(1), i, c));
    }
    if (!one && i < said && !has("end_mask")) {
      ASSIGN_OR_RETURN(end, BoundAt(n.input(2), i, c));
    }
    const OperatorChain::Arg from = Clamped(begin, to[i], c);
    const auto place = [&] { return l.Int(static_cast<int64_t>(from.number)); };
    if (one) {
      first.push_back(begin.known ? place() : from.value);
      sizes.push_back(1);
      continue;
    }
    if (left == value.rank()) return Unimplemented("what it writes is broadcast");
    const int64_t size = value[left++];
    const bool known = begin.known && end.known;
    // A value of one is written to every place of a range, however many these are.
    if (!known && size <= 1 && !EndsBehind(begin, end, size, l)) {
      return Unimplemented("the size of the part that it writes is not known");
    }
    const OperatorChain::Arg behind = Clamped(end, to[i], c);
    sizes.push_back(size);
    if (known) {
      if (behind.number - from.number != static_cast<double>(size) || size < 1) {
        return Unimplemented("what it writes is broadcast, or nothing");
      }
      first.push_back(place());
      continue;
    }
    const Endpoint right = c.Equal(c.Sub(behind, from), static_cast<double>(size));
    fits = fits ? c.And(*fits, right) : right;
    first.push_back(begin.known ? place() : c.Min(from, static_cast<double>(to[i] - size)));
  }
  if (left != value.rank()) return Unimplemented("what it writes is broadcast");
  Endpoint part = value.rank() == to.rank() ? n.input(4) : c.Reshape(n.input(4), sizes);
  RETURN_IF_ERROR(c.Done(part).status());
  ASSIGN_OR_RETURN(const Endpoint at,
                   l.Add("tfl.pack", first,
                         Options({{"values_count", int64_t{to.rank()}}, {"axis", int64_t{0}}}),
                         {Dtype::kInt32, PartialShape::Of({to.rank()})}));
  if (fits) {
    const Endpoint there = c.Make("tfl.slice", {n.input(0), at, l.Ints(sizes)}, {},
                                  {l.type(n.input(0)), PartialShape::Of(sizes)});
    part = c.Select(*fits, part, there);
  }
  return c.Done(c.Make("tfl.dynamic_update_slice", {n.input(0), part, at}, {}, l.OutputOf(n)));
}

// A part by ones, at constant places.
LiteEndpoints UpdatePart(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(
      CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kBool, Dtype::kInt8)));
  const PartialShape at = l.shape(n.input(1));
  const bool places =
      at.rank() == 1 && at[0] >= 1 && n.Int("shrink_axis_mask") == (int64_t{1} << at[0]) - 1;
  if (places && !l.Integers(n.input(1))) return UpdatePlace(n, l);
  if (!l.Integers(n.input(1)) || !l.Integers(n.input(2))) return UpdateRange(n, l);
  const PartialShape to = l.shape(n.input(0)), value = l.shape(n.input(4));
  const auto begin = l.Integers(n.input(1)), end = l.Integers(n.input(2)),
             strides = l.Integers(n.input(3));
  if (!strides || !to.fully_known() || !value.fully_known()) {
    return Unimplemented("the part that it writes is not known");
  }
  if (n.Int("ellipsis_mask") != 0 || n.Int("new_axis_mask") != 0 ||
      std::ranges::any_of(*strides, [](int64_t s) { return s != 1; })) {
    return Unimplemented("the part that it writes is not by ones");
  }
  std::vector<int64_t> first, sizes, left;
  for (int i = 0; i < to.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    const bool said = k < begin->size(),
               shrinks = said && (n.Int("shrink_axis_mask") >> i & 1) != 0;
    const auto place = [&](int64_t at) {
      return std::clamp(at < 0 ? at + to[i] : at, int64_t{0}, to[i]);
    };
    const bool from_first = !said || (!shrinks && (n.Int("begin_mask") >> i & 1) != 0);
    const bool to_last = !said || (!shrinks && (n.Int("end_mask") >> i & 1) != 0);
    first.push_back(from_first ? 0 : place((*begin)[k]));
    const int64_t last = shrinks ? first.back() + 1 : to_last ? to[i] : place((*end)[k]);
    sizes.push_back(last - first.back());
    if (!shrinks) left.push_back(sizes.back());
  }
  if (PartialShape::Of(left) != value ||
      std::ranges::any_of(sizes, [](int64_t s) { return s < 1; })) {
    return Unimplemented("what it writes is broadcast, or nothing");
  }
  OperatorChain c(l);
  const Endpoint part = left == sizes ? n.input(4) : c.Reshape(n.input(4), sizes);
  return c.Done(
      c.Make("tfl.dynamic_update_slice", {n.input(0), part, l.Ints(first)}, {}, l.OutputOf(n)));
}

// What others write into: zeros, where it may hold anything.
LiteEndpoints Emptied(Node& n, Legalizer& l) {
  const LiteOutput out = l.OutputOf(n);
  if (!Has(Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kBool), out.type)) {
    return Unimplemented("its operator does not fill ", DtypeName(out.type));
  }
  ASSIGN_OR_RETURN(const Endpoint sizes, AsInt32(n.input(0), l));
  ASSIGN_OR_RETURN(const Tensor zero, Tensor::Zeros(out.type, Shape()));
  return One(l.Add("tfl.fill", {sizes, l.Const(zero)}, {}, out));
}

constexpr ExportRow kScatterRows[] = {
    {"Empty", Emptied},
    {"TensorScatterMax", ScatterExtreme},
    {"TensorScatterMin", ScatterExtreme},
    {"TensorStridedSliceUpdate", UpdatePart},
};

}  // namespace

std::span<const ExportRow> ScatterExport() { return kScatterRows; }

}  // namespace smelt
