#include "smelt/kernels/common/arguments.h"

#include "absl/strings/str_join.h"
#include "smelt/kernels/common/copy.h"

namespace smelt {

int64_t IntAt(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case Dtype::kInt32:
      return t.data<int32_t>()[i];
    case Dtype::kInt64:
      return t.data<int64_t>()[i];
    case Dtype::kInt16:
      return t.data<int16_t>()[i];
    case Dtype::kInt8:
      return t.data<int8_t>()[i];
    case Dtype::kUint8:
      return t.data<uint8_t>()[i];
    case Dtype::kUint16:
      return t.data<uint16_t>()[i];
    case Dtype::kUint32:
      return t.data<uint32_t>()[i];
    case Dtype::kUint64:
      return static_cast<int64_t>(t.data<uint64_t>()[i]);
    default:
      return 0;
  }
}

Dims IntsOf(const Tensor& t) {
  const int64_t n = t.num_elements();
  Dims out(n);
  for (int64_t i = 0; i < n; ++i) out[i] = IntAt(t, i);
  return out;
}

StatusOr<Shape> CheckedShape(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank) {
    return InvalidArgument("Shape has rank ", dims.size(), ", more than ", kMaxRank);
  }
  int64_t n = 1;
  for (int64_t d : dims) {
    if (d < 0) return InvalidArgument("Dimension ", d, " must be >= 0");
    if (__builtin_mul_overflow(n, d, &n)) {
      return InvalidArgument("Shape [", absl::StrJoin(dims, ","),
                             "] would have more than 2**63 - 1 elements");
    }
  }
  return Shape(dims);
}

Status SetInts(OpContext& ctx, int i, std::span<const int64_t> values) {
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(i, Shape({static_cast<int64_t>(values.size())})));
  if (out->dtype() == Dtype::kInt32) {
    std::copy(values.begin(), values.end(), out->data<int32_t>());
  } else {
    std::copy(values.begin(), values.end(), out->data<int64_t>());
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<KernelState>> ReadIntAttrs(const Node& node,
                                                    std::initializer_list<absl::string_view> names,
                                                    IntAttrs::BindFunction bind) {
  auto state = std::make_unique<IntAttrs>();
  state->bind = bind;
  int i = 0;
  for (absl::string_view name : names) {
    const Attr* attr = node.Find(name);
    if (attr != nullptr && attr->get<int64_t>() != nullptr) {
      state->values[i++] = *attr->get<int64_t>();
    } else if (attr != nullptr && attr->get<bool>() != nullptr) {
      state->values[i++] = *attr->get<bool>();
    } else {
      return InvalidArgument("No attr named '", name, "' in NodeDef: node '", node.name(), "' (",
                             node.op(), ")");
    }
  }
  return state;
}

StatusOr<Tensor> ShareOrCopyRows(OpContext& ctx, const Tensor& source, int64_t begin, int64_t end,
                                 const Shape& shape) {
  const int64_t n = shape.num_elements();
  const int64_t row = n == 0 ? 0 : source.shape().Product(1, source.rank());
  // A result below a quarter of the buffer is copied: it is not worth the memory it would keep.
  if (n > 0 && IsPod(source.dtype()) && source.buffer() &&
      static_cast<size_t>(n) * DtypeSize(source.dtype()) >= source.buffer()->size() / 4) {
    return source.Rows(begin, end).WithShape(shape);
  }
  ASSIGN_OR_RETURN(Tensor out, ctx.Temp(source.dtype(), shape));
  if (n > 0) {
    const CopyDim run{n, 1, 1};
    CopyStrided(source.dtype(), out.raw(), At(source.dtype(), source.raw(), begin * row),
                std::span(&run, 1));
  }
  return out;
}

StatusOr<BoundFunction> FunctionArgument(const OpContext& ctx, absl::string_view name, int first,
                                         int count, std::vector<Dtype> results) {
  const FuncAttr* f = ctx.node().Func(name);
  if (f == nullptr) return InvalidArgument(ctx.node().op(), " names no function '", name, "'");
  std::vector<Tensor> captured;
  for (int i = 0; i < count; ++i) captured.push_back(ctx.input(first + i));
  ASSIGN_OR_RETURN(Callee callee, Callee::Of(*f));
  return BoundFunction(std::move(callee), std::move(captured), std::move(results));
}

Status SetResults(OpContext& ctx, std::vector<Tensor> results) {
  // BoundFunction checks no results when the node states no types.
  if (results.size() != static_cast<size_t>(ctx.num_outputs())) {
    return InvalidArgument("the function returns ", results.size(), " values, ", ctx.node().op(),
                           " has ", ctx.num_outputs());
  }
  for (size_t i = 0; i < results.size(); ++i) {
    ctx.set_output(static_cast<int>(i), std::move(results[i]));
  }
  return OkStatus();
}

}  // namespace smelt
