// Choosing elements by a condition.
#include <algorithm>
#include <cstring>

#include "smelt/base/parallel.h"
#include "smelt/kernels/elementwise/elementwise.h"

namespace smelt {
namespace {

constexpr int64_t kSelectGrain = 1 << 15;

// out[i] = c[i] ? a[i * a_step] : b[i * b_step], by width or as objects.
template <typename W>
void SelectElements(const bool* c, int64_t c_step, const W* a, int64_t a_step, const W* b,
                    int64_t b_step, W* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = c[i * c_step] ? a[i * a_step] : b[i * b_step];
}
struct SelectWide {
  uint64_t low, high;
};

using SelectFn = TileOp::SelectFn;
template <typename W>
void SelectRowAs(const bool* c, int64_t c_step, const void* a, int64_t a_step, const void* b,
                 int64_t b_step, void* out, int64_t n) {
  if constexpr (std::is_integral_v<W> || std::is_same_v<W, SelectWide>) {
    if (c_step == 0) {
      // One side for the whole row.
      const W* from = static_cast<const W*>(n > 0 && *c ? a : b);
      const int64_t step = n > 0 && *c ? a_step : b_step;
      W* to = static_cast<W*>(out);
      if (step == 1) {
        if (n > 0) std::memmove(to, from, static_cast<size_t>(n) * sizeof(W));
      } else {
        for (int64_t i = 0; i < n; ++i) to[i] = *from;
      }
      return;
    }
    if constexpr (sizeof(W) <= 8) {
      const IsaSelectFn fn = sizeof(W) == 1   ? Isa().select1
                             : sizeof(W) == 2 ? Isa().select2
                             : sizeof(W) == 4 ? Isa().select4
                                              : Isa().select8;
      return fn(reinterpret_cast<const uint8_t*>(c), a, a_step, b, b_step, out, n);
    }
  }
  SelectElements(c, c_step, static_cast<const W*>(a), a_step, static_cast<const W*>(b), b_step,
                 static_cast<W*>(out), n);
}

SelectFn SelectFor(Dtype t) {
  switch (t) {
    case Dtype::kString:
      return SelectRowAs<std::string>;
    case Dtype::kResource:
      return SelectRowAs<ResourceHandle>;
    case Dtype::kVariant:
      return SelectRowAs<Variant>;
    default:
      break;
  }
  switch (DtypeSize(t)) {
    case 1:
      return SelectRowAs<uint8_t>;
    case 2:
      return SelectRowAs<uint16_t>;
    case 4:
      return SelectRowAs<uint32_t>;
    case 8:
      return SelectRowAs<uint64_t>;
    case 16:
      return SelectRowAs<SelectWide>;
    default:
      return nullptr;
  }
}

// Rows of the result, those of each operand lying where the plan says.
void SelectRows(SelectFn fn, int64_t size, const Broadcast& bc, const void* const* inputs,
                void* output) {
  const int64_t n = bc.shape.num_elements();
  if (n == 0) return;
  const int64_t length = bc.sizes.back();
  const bool* c = static_cast<const bool*>(inputs[0]);
  const char* a = static_cast<const char*>(inputs[1]);
  const char* b = static_cast<const char*>(inputs[2]);
  char* out = static_cast<char*>(output);
  ParallelFor(
      n / length, std::max<int64_t>(1, kSelectGrain / length), [&](int64_t begin, int64_t end) {
        ForEachRow(bc, begin, end, [&](const int64_t* offsets, int64_t at, int64_t count) {
          fn(c + offsets[0], bc.strides[0].back(), a + offsets[1] * size, bc.strides[1].back(),
             b + offsets[2] * size, bc.strides[2].back(), out + at * size, count);
        });
      });
}

class BoundSelect final : public BoundKernel {
 public:
  BoundSelect(SelectFn fn, size_t size, Broadcast bc, const BindContext& context)
      : fn_(fn), size_(static_cast<int64_t>(size)), bc_(std::move(bc)) {
    for (const int i : {1, 2}) {
      lends_[i] = context.inputs[static_cast<size_t>(i)].shape == context.outputs[0].shape;
    }
  }
  Status Run(const void* const* inputs, void* const* outputs, void*) const override {
    SelectRows(fn_, size_, bc_, inputs, outputs[0]);
    return OkStatus();
  }
  bool may_overwrite(int i) const override { return i < 3 && lends_[i]; }

 private:
  const SelectFn fn_;
  const int64_t size_;
  const Broadcast bc_;
  bool lends_[3] = {};
};

struct SelectState final : TiledState {
  SelectFn fn = nullptr;
  size_t size = 0;  // of an element in memory
  bool broadcasts = false;
  bool pod = false;

  std::optional<TileOp> tile_op() const override {
    if (!pod) return std::nullopt;
    TileOp op;
    op.kind = TileOp::Kind::kSelect;
    op.select = fn;
    op.same_shapes = !broadcasts;
    op.grain = kSelectGrain;
    return op;
  }

  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override {
    Shape c = context.inputs[0].shape;
    const Shape& a = context.inputs[1].shape;
    const Shape& b = context.inputs[2].shape;
    // What Select alone takes, and says of other shapes, RunSelect knows.
    if (!pod || (!broadcasts && !(a == b))) return nullptr;
    if (!broadcasts && c.rank() == 1 && a.rank() > 1 && c[0] == a[0]) {
      Dims rows(static_cast<size_t>(a.rank()), 1);
      rows[0] = c[0];
      c = Shape(std::span<const int64_t>(rows));
    } else if (!broadcasts && c.rank() != 0 && !(c == a)) {
      return nullptr;
    }
    Broadcast bc;
    const Shape* shapes[] = {&c, &a, &b};
    if (!MakeBroadcast(shapes, &bc)) return nullptr;
    return std::make_unique<BoundSelect>(fn, size, std::move(bc), context);
  }
};

StatusOr<std::unique_ptr<KernelState>> PrepareSelect(const Node& node) {
  const Dtype t = node.Type("T");
  auto state = std::make_unique<SelectState>();
  state->fn = SelectFor(t);
  state->size = Tensor::ElementSize(t);
  state->broadcasts = node.Is("SelectV2");
  state->pod = IsPod(t);
  if (state->fn == nullptr) {
    return InvalidArgument("node '", node.name(), "': ", node.op(), " does not take ",
                           DtypeName(t));
  }
  return state;
}

// All three of one shape.
Status SelectSame(OpContext& ctx) {
  const auto& s = ctx.state<SelectState>();
  const Tensor& t = ctx.input(1);
  const bool* c = ctx.input(0).data<bool>();
  const char* a = static_cast<const char*>(t.raw());
  const char* b = static_cast<const char*>(ctx.input(2).raw());
  ASSIGN_OR_RETURN(Tensor * result, ctx.Forward(0, {1, 2}, t.shape()));
  char* out = static_cast<char*>(result->raw());
  ParallelFor(t.num_elements(), kSelectGrain, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * static_cast<int64_t>(s.size);
    s.fn(c + begin, 1, a + at, 1, b + at, 1, out + at, end - begin);
  });
  return OkStatus();
}

// Select: a scalar condition chooses a whole tensor, a vector chooses rows, else shapes are equal.
Status RunSelect(OpContext& ctx) {
  const auto& s = ctx.state<SelectState>();
  const Shape& c = ctx.input(0).shape();
  const Shape& a = ctx.input(1).shape();
  const Shape& b = ctx.input(2).shape();
  if (c.rank() == 0) {
    if (!(a == b)) {
      return InvalidArgument("'then' and 'else' must have the same size.  but received: ",
                             a.ToString(), " vs. ", b.ToString());
    }
    ctx.set_output(0, ctx.TakeInput(ctx.input(0).scalar<bool>() ? 1 : 2));
    return OkStatus();
  }
  if (c.rank() == 1 && a.rank() != 1) {
    if (a.rank() < 1) {
      return InvalidArgument("'then' must be at least a vector, but saw shape: ", a.ToString());
    }
    if (a[0] != c[0]) {
      return InvalidArgument(
          "Number of batches of 'then' must match size of 'cond', but saw: ", a[0], " vs. ", c[0]);
    }
    if (!(a == b)) {
      return InvalidArgument("'then' and 'else' must have the same size.  but received: ",
                             a.ToString(), " vs. ", b.ToString());
    }
  } else if (!(c == a) || !(c == b)) {
    const int other = c == a ? 2 : 1;
    return InvalidArgument("Inputs to operation ", ctx.node().name(), " of type ", ctx.node().op(),
                           " must have the same size and shape.  Input 0: ", c.ToString(),
                           " != input ", other, ": ", ctx.input(other).shape().ToString());
  }
  if (c == a) return SelectSame(ctx);
  const int64_t rows = c[0];
  const int64_t length = a.Product(1, a.rank());
  const bool* choose = ctx.input(0).data<bool>();
  const char* x = static_cast<const char*>(ctx.input(1).raw());
  const char* y = static_cast<const char*>(ctx.input(2).raw());
  ASSIGN_OR_RETURN(Tensor * result, ctx.Allocate(0, a));
  char* out = static_cast<char*>(result->raw());
  if (length == 0) return OkStatus();
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t at = i * length * static_cast<int64_t>(s.size);
    s.fn(choose + i, 0, x + at, 1, y + at, 1, out + at, length);
  }
  return OkStatus();
}

Status RunSelectV2(OpContext& ctx) {
  const auto& s = ctx.state<SelectState>();
  const Shape& c = ctx.input(0).shape();
  const Shape& a = ctx.input(1).shape();
  const Shape& b = ctx.input(2).shape();
  if (c == a && c == b) return SelectSame(ctx);
  Broadcast bc;
  const Shape* shapes[] = {&c, &a, &b};
  if (!MakeBroadcast(shapes, &bc)) {
    return InvalidArgument("condition ", c.ToString(), ", then ", a.ToString(), ", and else ",
                           b.ToString(), " must be broadcastable");
  }
  const void* const inputs[] = {ctx.input(0).raw(), ctx.input(1).raw(), ctx.input(2).raw()};
  ASSIGN_OR_RETURN(Tensor * result, ctx.Forward(0, {1, 2}, bc.shape));
  SelectRows(s.fn, static_cast<int64_t>(s.size), bc, inputs, result->raw());
  return OkStatus();
}

constexpr Kernel kSelectTable[] = {
    {"Select", "", kAnyType, "isa:select", RunSelect, PrepareSelect},
    {"SelectV2", "", kAnyType, "isa:select", RunSelectV2, PrepareSelect},
};

}  // namespace

extern constinit const std::span<const Kernel> kSelectKernels = kSelectTable;

}  // namespace smelt
