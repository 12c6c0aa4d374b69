#include "smelt/lite/rows/chain.h"

#include <algorithm>

namespace smelt {

PartialShape Broadcast(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank()) return {};
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims;
  for (int i = 0; i < rank; ++i) {
    const int in_a = i - rank + a.rank(), in_b = i - rank + b.rank();
    const int64_t x = in_a < 0 ? 1 : a[in_a], y = in_b < 0 ? 1 : b[in_b];
    // A size that is not known is the other one, unless that is 1.
    dims.push_back(x == 1 ? y : y == 1 || x == y ? x : x < 0 ? y : y < 0 ? x : -1);
  }
  for (int64_t& d : dims) d = std::max<int64_t>(d, -1);
  return PartialShape::Of(dims);
}

std::vector<int64_t> StatedDims(const PartialShape& shape) {
  std::vector<int64_t> out;
  for (int i = 0; i < shape.rank(); ++i) out.push_back(std::max<int64_t>(shape[i], -1));
  return out;
}

std::vector<Endpoint> OperatorChain::Values(std::initializer_list<Arg> args) {
  Dtype type = Dtype::kFloat;
  for (const Arg& a : args) {
    if (a.value.node == nullptr || l_.type(a.value) == Dtype::kBool) continue;
    type = BaseType(l_.type(a.value));
    break;
  }
  std::vector<Endpoint> out;
  for (const Arg& a : args) {
    if (a.value.node != nullptr) {
      out.push_back(a.value);
      continue;
    }
    const StatusOr<Tensor> value = FilledTensor(type, Shape(), a.number);
    if (!value.ok()) {
      status_.Update(value.status());
      return {};
    }
    out.push_back(l_.Const(*value));
  }
  return out;
}

Endpoint OperatorChain::Op(OpName op, std::initializer_list<Arg> inputs) {
  if (!status_.ok()) return {};
  const std::vector<Endpoint> values = Values(inputs);
  if (!status_.ok()) return {};
  LiteOutput out = {BaseType(l_.type(values.back())), l_.shape(values[0])};
  for (const Endpoint& e : values) out.shape = Broadcast(out.shape, l_.shape(e));
  const StatusOr<Endpoint> made = l_.Add(op, values, {}, out);
  status_.Update(made.status());
  return made.ok() ? *made : Endpoint();
}

Endpoint OperatorChain::Compare(OpName op, Arg a, Arg b) {
  if (!status_.ok()) return {};
  const std::vector<Endpoint> values = Values({a, b});
  if (!status_.ok()) return {};
  const StatusOr<Endpoint> made =
      l_.Add(op, values, {}, {Dtype::kBool, Broadcast(l_.shape(values[0]), l_.shape(values[1]))});
  status_.Update(made.status());
  return made.ok() ? *made : Endpoint();
}

Endpoint OperatorChain::Select(Endpoint condition, Arg then, Arg otherwise) {
  return Op("tfl.select_v2", {condition, then, otherwise});
}

Endpoint OperatorChain::Make(OpName op, std::initializer_list<Endpoint> inputs, AttrMap options,
                             const LiteOutput& out) {
  if (!status_.ok()) return {};
  const StatusOr<Endpoint> made = l_.Add(op, inputs, std::move(options), out);
  status_.Update(made.status());
  return made.ok() ? *made : Endpoint();
}

std::vector<Endpoint> OperatorChain::MakeMany(OpName op, std::initializer_list<Endpoint> inputs,
                                              AttrMap options,
                                              const std::vector<LiteOutput>& outputs) {
  std::vector<Endpoint> out(outputs.size());
  if (!status_.ok()) return out;
  const StatusOr<Node*> made =
      l_.AddMany(op, std::vector<Endpoint>(inputs), std::move(options), outputs);
  status_.Update(made.status());
  for (size_t i = 0; made.ok() && i < out.size(); ++i) out[i] = {*made, static_cast<int>(i)};
  return out;
}

Endpoint OperatorChain::CountTo(Endpoint count, int64_t size) {
  return Make("tfl.range", {l_.Int(0), count, l_.Int(1)}, {},
              {Dtype::kInt32, PartialShape::Of({size})});
}

Endpoint OperatorChain::ShapeOf(Endpoint e) {
  if (!status_.ok()) return {};
  const StatusOr<Endpoint> made = l_.ShapeOf(e);
  status_.Update(made.status());
  return made.ok() ? *made : Endpoint();
}

std::vector<Endpoint> OperatorChain::Split(Endpoint e, int64_t count, int64_t axis) {
  const auto parts = static_cast<size_t>(count);
  if (!status_.ok()) return std::vector<Endpoint>(parts);
  const PartialShape from = l_.shape(e);
  std::vector<int64_t> dims;
  for (int i = 0; i < from.rank(); ++i) {
    const int64_t size = std::max<int64_t>(from[i], -1);
    dims.push_back(i == axis && size >= 0 ? size / count : size);
  }
  return MakeMany("tfl.split", {l_.Int(axis), e}, Options({{"num_splits", count}}),
                  std::vector<LiteOutput>(parts, {l_.type(e), PartialShape::Of(dims)}));
}

std::vector<Endpoint> OperatorChain::Unpack(Endpoint e, int64_t count, int64_t axis,
                                            const PartialShape& part) {
  const auto parts = static_cast<size_t>(count);
  if (!status_.ok()) return std::vector<Endpoint>(parts);
  return MakeMany("tfl.unpack", {e}, Options({{"num", count}, {"axis", axis}}),
                  std::vector<LiteOutput>(parts, {l_.type(e), part}));
}

Endpoint OperatorChain::Cast(Endpoint e, Dtype to) {
  if (!status_.ok() || l_.type(e) == to) return e;
  return Make("tfl.cast", {e}, Options({{"in_data_type", l_.type(e)}, {"out_data_type", to}}),
              {to, l_.shape(e)});
}

Endpoint OperatorChain::Rows(Endpoint from, Endpoint at) {
  if (!ok()) return {};
  const PartialShape of = shape(at), rows = shape(from);
  std::vector<int64_t> dims(of.dims().begin(), of.dims().end());
  for (int i = 1; i < rows.rank(); ++i) dims.push_back(rows[i]);
  for (int64_t& d : dims) d = std::max<int64_t>(d, -1);
  return Make("tfl.gather", {from, at}, Options({{"axis", int64_t{0}}}),
              {l_.type(from), PartialShape::Of(dims)});
}

Endpoint OperatorChain::Transpose(Endpoint e, const std::vector<int64_t>& order) {
  if (!status_.ok()) return {};
  const PartialShape from = l_.shape(e);
  std::vector<int64_t> dims;
  for (const int64_t o : order) dims.push_back(from.known_rank() ? from[static_cast<int>(o)] : -1);
  for (int64_t& d : dims) d = std::max<int64_t>(d, -1);
  return Make("tfl.transpose", {e, l_.Ints(order)}, {}, {l_.type(e), PartialShape::Of(dims)});
}

Endpoint OperatorChain::Reshape(Endpoint e, std::vector<int64_t> sizes) {
  if (!status_.ok()) return {};
  for (int64_t& s : sizes) s = std::max<int64_t>(s, -1);
  if (std::ranges::count(sizes, -1) > 1) {
    Fail(Unimplemented("more than one of its sizes is free"));
    return {};
  }
  return Make("tfl.reshape", {e, l_.Ints(sizes)}, Options({{"new_shape", sizes}}),
              {l_.type(e), PartialShape::Of(sizes)});
}

Endpoint OperatorChain::Reduce(OpName op, Endpoint e, const std::vector<int64_t>& axes, bool keep) {
  if (!status_.ok()) return {};
  const PartialShape from = l_.shape(e);
  std::vector<int64_t> dims;
  for (int i = 0; i < from.rank(); ++i) {
    const bool reduced = std::ranges::find(axes, i) != axes.end();
    if (!reduced) dims.push_back(std::max<int64_t>(from[i], -1));
    if (reduced && keep) dims.push_back(1);
  }
  return Make(op, {e, l_.Ints(axes)}, Options({{"keep_dims", keep}}),
              {l_.type(e), from.known_rank() ? PartialShape::Of(dims) : PartialShape()});
}

}  // namespace smelt
