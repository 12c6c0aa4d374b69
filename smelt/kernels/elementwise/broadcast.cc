#include <algorithm>
#include <cstring>

#include "smelt/base/parallel.h"
#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/elementwise/short_rows.h"

namespace smelt {
namespace {

// Elements of a block on the stack: conversions and short rows go through it.
constexpr int64_t kBlock = kNarrowBlock;
// Rows shorter than this are joined before a row function is called.
constexpr int64_t kShortRow = 64;

void Convert(Widen w, bool to_float, const void* x, void* y, int64_t n) {
  const IsaTable& isa = Isa();
  if (w == Widen::kHalf) {
    (to_float ? isa.f16_to_f32 : isa.f32_to_f16)(x, y, n);
  } else {
    (to_float ? isa.bf16_to_f32 : isa.f32_to_bf16)(x, y, n);
  }
}

// One row of a 16-bit type, by blocks of floats. An operand that does not step is one value for the
// whole row.
void WidenedRow(const BinaryState& s, const char* a, bool a_steps, const char* b, bool b_steps,
                char* out, int64_t n) {
  float x[kBlock], y[kBlock], r[kBlock];
  if (!a_steps) Convert(s.widen, true, a, x, 1);
  if (!b_steps) Convert(s.widen, true, b, y, 1);
  const IsaBinaryFn fn = a_steps ? (b_steps ? s.loops.vv : s.loops.vs) : s.loops.sv;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    if (a_steps) Convert(s.widen, true, a + i * 2, x, count);
    if (b_steps) Convert(s.widen, true, b + i * 2, y, count);
    if (s.narrow_result) {
      fn(x, y, r, count);
      Convert(s.widen, false, r, out + i * 2, count);
    } else {
      fn(x, y, out + i * s.out_size, count);
    }
  }
}

void BinaryRow(const BinaryState& s, const char* a, bool a_steps, const char* b, bool b_steps,
               char* out, int64_t n) {
  if (!a_steps && !b_steps) {
    // One pair of values for the whole row.
    if (n <= 0) return;
    if (s.widen != Widen::kNone) {
      WidenedRow(s, a, true, b, true, out, 1);
    } else {
      s.loops.vv(a, b, out, 1);
    }
    for (int64_t i = 1; i < n; ++i) std::memcpy(out + i * s.out_size, out, s.out_size);
    return;
  }
  if (s.widen != Widen::kNone) return WidenedRow(s, a, a_steps, b, b_steps, out, n);
  (a_steps ? (b_steps ? s.loops.vv : s.loops.vs) : s.loops.sv)(a, b, out, n);
}

// Rows [begin, end), each of n < kShortRow elements: one call serves many rows.
void ShortRows(const BinaryState& s, const Broadcast& bc, const char* a, const char* b, char* out,
               int64_t begin, int64_t end) {
  const int64_t n = bc.sizes.back();
  ShortOperand left(bc, 0, a, s.in_size), right(bc, 1, b, s.in_size);
  while (begin < end) {
    int64_t rows = std::min(kBlock / n, end - begin);
    rows = right.Limit(begin, left.Limit(begin, rows));
    BinaryRow(s, left.Rows(begin, rows), true, right.Rows(begin, rows), true,
              out + begin * n * s.out_size, rows * n);
    begin += rows;
  }
}

template <typename T>
bool AnyZero(const void* data, int64_t n) {
  const T* x = static_cast<const T*>(data);
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] == 0) return true;
  }
  return false;
}
template <typename T>
bool AnyNegative(const void* data, int64_t n) {
  const T* x = static_cast<const T*>(data);
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] < 0) return true;
  }
  return false;
}

// Of n elements.
Status CheckOperand(const BinaryState& s, const void* right, int64_t n) {
  if (s.check != OperandCheck::kExponent) {
    bool zero = false;
    switch (DtypeSize(s.type)) {
      case 1:
        zero = AnyZero<uint8_t>(right, n);
        break;
      case 2:
        zero = AnyZero<uint16_t>(right, n);
        break;
      case 4:
        zero = AnyZero<uint32_t>(right, n);
        break;
      default:
        zero = AnyZero<uint64_t>(right, n);
        break;
    }
    if (!zero) return OkStatus();
    return s.check == OperandCheck::kDivisor ? InvalidArgument("Integer division by zero")
                                             : Internal(
                                                   "Unexpected error in binary operator "
                                                   "(only integer div and mod should have errors)");
  }
  bool negative = false;
  switch (s.type) {
    case Dtype::kInt8:
      negative = AnyNegative<int8_t>(right, n);
      break;
    case Dtype::kInt16:
      negative = AnyNegative<int16_t>(right, n);
      break;
    case Dtype::kInt32:
      negative = AnyNegative<int32_t>(right, n);
      break;
    case Dtype::kInt64:
      negative = AnyNegative<int64_t>(right, n);
      break;
    default:
      break;
  }
  return negative ? InvalidArgument("Integers to negative integer powers are not allowed")
                  : OkStatus();
}

}  // namespace

Status IncompatibleShapes(const Shape& a, const Shape& b) {
  return InvalidArgument("Incompatible shapes: ", a.ToString(), " vs. ", b.ToString());
}

bool MakeBroadcast(std::span<const Shape* const> shapes, Broadcast* out) {
  int rank = 0;
  for (const Shape* s : shapes) rank = std::max(rank, s->rank());
  const int count = static_cast<int>(shapes.size());
  Dims result(rank, 1);
  for (const Shape* s : shapes) {
    const int skip = rank - s->rank();
    for (int i = 0; i < s->rank(); ++i) {
      const int64_t d = (*s)[i];
      if (d == 1) continue;
      int64_t& r = result[skip + i];
      if (r != 1 && r != d) return false;
      r = d;
    }
  }
  auto shape = Shape::Make(result);
  if (!shape.ok()) return false;
  out->shape = *std::move(shape);
  // From the innermost dimension out; reversed at the end.
  out->sizes.clear();
  for (Dims& s : out->strides) s.clear();
  int64_t running[Broadcast::kMaxOperands] = {1, 1, 1};
  for (int i = rank - 1; i >= 0; --i) {
    const int64_t size = result[i];
    int64_t stride[Broadcast::kMaxOperands] = {};
    for (int k = 0; k < count; ++k) {
      const int at = i - (rank - shapes[k]->rank());
      const int64_t d = at >= 0 ? (*shapes[k])[at] : 1;
      stride[k] = d == 1 ? 0 : running[k];
      running[k] *= d;
    }
    if (size == 1) continue;
    bool merge = !out->sizes.empty();
    for (int k = 0; merge && k < count; ++k) {
      merge = stride[k] == out->strides[k].back() * out->sizes.back();
    }
    if (merge) {
      out->sizes.back() *= size;
      continue;
    }
    out->sizes.push_back(size);
    for (int k = 0; k < count; ++k) out->strides[k].push_back(stride[k]);
  }
  if (out->sizes.empty()) {
    out->sizes.push_back(1);
    for (int k = 0; k < count; ++k) out->strides[k].push_back(0);
  }
  std::reverse(out->sizes.begin(), out->sizes.end());
  for (int k = 0; k < count; ++k) std::reverse(out->strides[k].begin(), out->strides[k].end());
  return true;
}

int64_t NumRows(const Broadcast& bc) {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < bc.sizes.size(); ++i) rows *= bc.sizes[i];
  return rows;
}

void ForEachRow(const Broadcast& bc, int64_t begin, int64_t end,
                absl::FunctionRef<void(const int64_t* offsets, int64_t out, int64_t n)> row) {
  if (begin >= end) return;
  const int outer = static_cast<int>(bc.sizes.size()) - 1;
  const int64_t n = bc.sizes.back();
  Dims index(outer, 0);
  int64_t offsets[Broadcast::kMaxOperands] = {};
  int64_t left = begin;
  for (int d = outer - 1; d >= 0; --d) {
    index[d] = left % bc.sizes[d];
    left /= bc.sizes[d];
    for (int k = 0; k < Broadcast::kMaxOperands; ++k) {
      if (!bc.strides[k].empty()) offsets[k] += index[d] * bc.strides[k][d];
    }
  }
  for (int64_t i = begin; i < end; ++i) {
    row(offsets, i * n, n);
    for (int d = outer - 1; d >= 0; --d) {
      const bool carry = ++index[d] == bc.sizes[d];
      for (int k = 0; k < Broadcast::kMaxOperands; ++k) {
        if (bc.strides[k].empty()) continue;
        offsets[k] += carry ? bc.strides[k][d] * (1 - bc.sizes[d]) : bc.strides[k][d];
      }
      if (!carry) break;
      index[d] = 0;
    }
  }
}

Widen WidenOf(Dtype t) {
  return t == Dtype::kHalf ? Widen::kHalf : t == Dtype::kBfloat16 ? Widen::kBfloat16 : Widen::kNone;
}
Dtype ComputeType(Dtype t) { return WidenOf(t) == Widen::kNone ? t : Dtype::kFloat; }

bool IsaTypeOf(Dtype t, IsaType* out) {
  switch (t) {
    case Dtype::kFloat:
      *out = IsaType::kF32;
      return true;
    case Dtype::kDouble:
      *out = IsaType::kF64;
      return true;
    case Dtype::kInt32:
      *out = IsaType::kI32;
      return true;
    case Dtype::kInt64:
      *out = IsaType::kI64;
      return true;
    case Dtype::kUint32:
      *out = IsaType::kU32;
      return true;
    case Dtype::kUint64:
      *out = IsaType::kU64;
      return true;
    case Dtype::kUint8:
      *out = IsaType::kU8;
      return true;
    case Dtype::kInt8:
      *out = IsaType::kI8;
      return true;
    default:
      return false;
  }
}

StatusOr<std::unique_ptr<KernelState>> MakeBinaryState(const Node& node, Dtype type, Dtype result,
                                                       const IsaBinaryLoops& loops,
                                                       OperandCheck check, int64_t grain) {
  if (loops.vv == nullptr || loops.vs == nullptr || loops.sv == nullptr) {
    return InvalidArgument("node '", node.name(), "': ", node.op(), " does not take ",
                           DtypeName(type));
  }
  auto state = std::make_unique<BinaryState>();
  state->loops = loops;
  state->in_size = static_cast<uint8_t>(DtypeSize(type));
  state->out_size = static_cast<uint8_t>(DtypeSize(result));
  state->widen = WidenOf(type);
  state->narrow_result = result == type;
  // Loops over the type itself: nothing is widened around them.
  if (const IsaBinaryLoops narrow = NarrowBinary(node.op(), state->widen);
      narrow.vv != nullptr && type == result) {
    state->loops = narrow;
    state->widen = Widen::kNone;
  }
  state->check = IsInteger(type) ? check : OperandCheck::kNone;
  state->type = type;
  state->grain = grain;
  return state;
}

namespace {

// How two operands of known shapes meet.
struct BinaryPlan {
  Shape shape;       // of the result
  bool row = false;  // both are one row, in which an operand of one value does not step
  bool a_steps = false, b_steps = false;
  Broadcast bc;  // unless row
};

// False when the shapes do not broadcast.
bool PlanBinary(const Shape& a, const Shape& b, BinaryPlan* plan) {
  const int64_t na = a.num_elements(), nb = b.num_elements();
  plan->row = a == b || (nb == 1 && b.rank() <= a.rank()) || (na == 1 && a.rank() <= b.rank());
  if (plan->row) {
    // No shapes to work out.
    plan->a_steps = na != 1 || nb == 1;
    plan->b_steps = nb != 1 || na == 1;
    plan->shape = na == 1 && a.rank() <= b.rank() && !(a == b) ? b : a;
    return true;
  }
  const Shape* shapes[] = {&a, &b};
  if (!MakeBroadcast(shapes, &plan->bc)) return false;
  plan->shape = plan->bc.shape;
  return true;
}

// `out` may be the bytes of an operand that has as many elements as the result: it is read in
// order.
void ComputeBinary(const BinaryState& s, const BinaryPlan& plan, const char* a, const char* b,
                   char* out) {
  const int64_t n = plan.shape.num_elements();
  if (n == 0) return;
  if (plan.row) {
    if (n <= s.grain) return BinaryRow(s, a, plan.a_steps, b, plan.b_steps, out, n);
    ParallelFor(n, s.grain, [&](int64_t begin, int64_t end) {
      BinaryRow(s, plan.a_steps ? a + begin * s.in_size : a, plan.a_steps,
                plan.b_steps ? b + begin * s.in_size : b, plan.b_steps, out + begin * s.out_size,
                end - begin);
    });
    return;
  }
  const Broadcast& bc = plan.bc;
  const int64_t length = bc.sizes.back();
  const int64_t rows = n / length;
  const bool join = length < kShortRow && rows > 1;
  ParallelFor(rows, std::max<int64_t>(1, s.grain / length), [&](int64_t begin, int64_t end) {
    if (join) return ShortRows(s, bc, a, b, out, begin, end);
    const bool a_steps = bc.strides[0].back() != 0;
    const bool b_steps = bc.strides[1].back() != 0;
    ForEachRow(bc, begin, end, [&](const int64_t* offsets, int64_t at, int64_t count) {
      BinaryRow(s, a + offsets[0] * s.in_size, a_steps, b + offsets[1] * s.in_size, b_steps,
                out + at * s.out_size, count);
    });
  });
}

class BoundBinary final : public BoundKernel {
 public:
  BoundBinary(const BinaryState& state, BinaryPlan plan, const BindContext& context)
      : state_(state),
        plan_(std::move(plan)),
        checked_(state.check == OperandCheck::kNone || plan_.shape.num_elements() == 0
                     ? 0
                     : context.inputs[1].shape.num_elements()) {
    // An operand of one element for a longer result is read again after the first write.
    for (size_t i = 0; i < 2; ++i) {
      lends_[i] = context.inputs[i].dtype == context.outputs[0].dtype &&
                  context.inputs[i].shape.num_elements() == plan_.shape.num_elements();
    }
  }
  Status Run(const void* const* inputs, void* const* outputs, void*) const override {
    if (checked_ > 0) RETURN_IF_ERROR(CheckOperand(state_, inputs[1], checked_));
    ComputeBinary(state_, plan_, static_cast<const char*>(inputs[0]),
                  static_cast<const char*>(inputs[1]), static_cast<char*>(outputs[0]));
    return OkStatus();
  }
  bool may_overwrite(int i) const override { return lends_[i]; }

 private:
  const BinaryState& state_;
  const BinaryPlan plan_;
  const int64_t checked_;  // elements of the right operand
  bool lends_[2];
};

}  // namespace

StatusOr<std::unique_ptr<BoundKernel>> BinaryState::Bind(const BindContext& context) {
  BinaryPlan plan;
  if (!PlanBinary(context.inputs[0].shape, context.inputs[1].shape, &plan)) return nullptr;
  return std::make_unique<BoundBinary>(*this, std::move(plan), context);
}

std::optional<TileOp> BinaryState::tile_op() const {
  if (widen != Widen::kNone || check != OperandCheck::kNone) return std::nullopt;
  TileOp op;
  op.kind = TileOp::Kind::kBinary;
  op.binary = loops;
  op.grain = grain;
  return op;
}

Status RunBinary(OpContext& ctx) {
  const auto& s = ctx.state<BinaryState>();
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  BinaryPlan plan;
  if (!PlanBinary(a.shape(), b.shape(), &plan)) {
    if (!s.incompatible_is_value) return IncompatibleShapes(a.shape(), b.shape());
    ASSIGN_OR_RETURN(Tensor * t, ctx.Allocate(0, Shape()));
    *t->data<bool>() = s.incompatible_value;
    return OkStatus();
  }
  if (s.check != OperandCheck::kNone && plan.shape.num_elements() > 0) {
    RETURN_IF_ERROR(CheckOperand(s, b.raw(), b.num_elements()));
  }
  const auto* left = static_cast<const char*>(a.raw());
  const auto* right = static_cast<const char*>(b.raw());
  // Forward takes no operand of one element for a longer result.
  ASSIGN_OR_RETURN(Tensor * out, ctx.Forward(0, {0, 1}, plan.shape));
  ComputeBinary(s, plan, left, right, static_cast<char*>(out->raw()));
  return OkStatus();
}

StatusOr<std::unique_ptr<KernelState>> MakeUnaryState(const Node& node, Dtype type, Dtype result,
                                                      UnaryFn fn, IsaUnaryFn f32, int64_t grain,
                                                      float alpha) {
  auto state = std::make_unique<UnaryState>();
  if (ComputeType(type) != Dtype::kFloat) f32 = nullptr;
  if (fn == nullptr && f32 == nullptr) {
    return InvalidArgument("node '", node.name(), "': ", node.op(), " does not take ",
                           DtypeName(type));
  }
  state->fn = fn;
  state->f32 = f32;
  state->in_size = static_cast<uint8_t>(DtypeSize(type));
  state->out_size = static_cast<uint8_t>(DtypeSize(result));
  state->widen = WidenOf(type);
  state->narrow_result = result == type;
  if (state->widen != Widen::kNone) state->narrow = NarrowActivation(node.op());
  state->alpha = alpha;
  state->grain = grain;
  return state;
}

namespace {

// y may be x where elements are as large.
void ComputeUnary(const UnaryState& s, const char* x, char* y, int64_t n) {
  const auto row = [&s](const void* from, void* to, int64_t count) {
    if (s.narrow != nullptr) {
      s.narrow(s.widen, static_cast<float*>(to), count, s.alpha);
    } else if (s.f32 != nullptr) {
      s.f32(static_cast<const float*>(from), static_cast<float*>(to), count, s.alpha);
    } else {
      s.fn(from, to, count, s.alpha);
    }
  };
  if (s.widen == Widen::kNone && n <= s.grain) {
    if (n > 0) row(x, y, n);
    return;
  }
  ParallelFor(n, s.grain, [&](int64_t begin, int64_t end) {
    if (s.widen == Widen::kNone) {
      return row(x + begin * s.in_size, y + begin * s.out_size, end - begin);
    }
    float block[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t count = std::min(kBlock, end - i);
      Convert(s.widen, true, x + i * s.in_size, block, count);
      if (s.narrow_result) {
        row(block, block, count);
        Convert(s.widen, false, block, y + i * s.out_size, count);
      } else {
        row(block, y + i * s.out_size, count);
      }
    }
  });
}

class BoundUnary final : public BoundKernel {
 public:
  BoundUnary(const UnaryState& state, int64_t n, bool lends)
      : state_(state), n_(n), lends_(lends) {}
  Status Run(const void* const* inputs, void* const* outputs, void*) const override {
    ComputeUnary(state_, static_cast<const char*>(inputs[0]), static_cast<char*>(outputs[0]), n_);
    return OkStatus();
  }
  bool may_overwrite(int) const override { return lends_; }

 private:
  const UnaryState& state_;
  const int64_t n_;
  const bool lends_;
};

}  // namespace

StatusOr<std::unique_ptr<BoundKernel>> UnaryState::Bind(const BindContext& context) {
  return std::make_unique<BoundUnary>(*this, context.inputs[0].shape.num_elements(),
                                      context.inputs[0].dtype == context.outputs[0].dtype);
}

std::optional<TileOp> UnaryState::tile_op() const {
  if (widen != Widen::kNone || narrow != nullptr) return std::nullopt;
  TileOp op;
  op.f32 = f32;
  op.unary = fn;
  op.alpha = alpha;
  op.grain = grain;
  return op;
}

Status RunUnary(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  const auto* x = static_cast<const char*>(in.raw());
  const int64_t n = in.num_elements();
  ASSIGN_OR_RETURN(Tensor * t, ctx.Forward(0, {0}, in.shape()));
  ComputeUnary(ctx.state<UnaryState>(), x, static_cast<char*>(t->raw()), n);
  return OkStatus();
}

}  // namespace smelt
