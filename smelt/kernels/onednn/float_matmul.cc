#include "smelt/kernels/onednn/float_matmul.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "smelt/base/parallel.h"
#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/nn/isa_activation.h"
#include "smelt/kernels/onednn/activation_behind.h"
#include "smelt/kernels/onednn/bound_layer.h"
#include "smelt/kernels/onednn/features.h"
#include "smelt/kernels/onednn/fused_post_ops.h"
#include "smelt/kernels/onednn/keep_nan.h"

namespace smelt::onednn {
namespace {

// Below this many multiply-adds a call of the library costs more than the arithmetic.
constexpr int64_t kSmallProduct = 65536;

// What loops of our own do to a product: add a bias, then a matrix, then apply an activation.
struct LoopSteps {
  int bias = -1, addend = -1;  // arguments
  UnaryF32 act = UnaryF32::kIdentity;
  float alpha = 0;
};
// False when there are other steps. What is added to one row is a bias.
bool StepsOfLoop(const nn::MatMulProblem& p, const FusedOps& fused, LoopSteps* loop) {
  size_t i = 0;
  const auto& steps = fused.steps;
  const bool one_row = p.m == 1 && p.batches() == 1;
  loop->alpha = fused.leaky_alpha;
  if (i < steps.size() && (steps[i].kind == FusedStep::Kind::kBias ||
                           (one_row && steps[i].kind == FusedStep::Kind::kAdd))) {
    loop->bias = steps[i].arg;
    ++i;
  }
  if (i < steps.size() && steps[i].kind == FusedStep::Kind::kAdd) {
    loop->addend = steps[i].arg;
    ++i;
  }
  if (i < steps.size() && steps[i].kind == FusedStep::Kind::kActivation) {
    loop->act = nn::IsaActivation(steps[i].activation);
    ++i;
  }
  return i == steps.size();
}

// How many columns are worth a thread: those of some microseconds' work, which is more of it where
// vectors are wide. A weight that is read takes about as long as a multiplication, as weights
// seldom lie in the nearest cache.
int64_t LeastColumns(const nn::MatMulProblem& p) {
  const int64_t least_per_thread = 4096 * Isa().dense_panel;
  return std::max<int64_t>(1, least_per_thread / ((p.m + 1) * p.k));
}

// Weights that are packed for loops of our own: those that the caches keep between runs. What comes
// from memory comes as fast as it lies, and the first answer need not wait for a copy.
constexpr int64_t kMostPacked = int64_t{1} << 19;

// Up to so many rows packed weights and loops of our own beat the library, which copies and tiles
// for products that are larger.
constexpr int64_t kFewRows = 16;

bool IsSmallProduct(const nn::MatMulProblem& p) {
  // Sizes are those of tensors in memory: m * n does not overflow, m * n * k may.
  return p.output.num_elements() <= kSmallProduct / p.k;
}

// Are the loops of isa.h faster for this product than the library?
bool WantsOwnLoop(const nn::MatMulProblem& p, bool constant_b) {
  if (p.transpose_a || p.batches() != 1) return false;
  if (IsSmallProduct(p) || (p.n == 1 && p.m <= kFewRows)) return true;
  if (p.transpose_b) return false;
  // One row reads each weight once: there is nothing to gain from packing, nor from compiling.
  if (p.m == 1) return true;
  // The library copies weights that lie a multiple of a kilobyte apart, on each call unless they
  // are constant.
  return !constant_b && p.m <= 8 && p.n % 256 == 0;
}

// Can weights be packed for loops of our own, once for all runs? One column lies as it is read.
bool Packs(const nn::MatMulProblem& p, bool constant_b) {
  return constant_b && p.n > 1 && p.n <= kMostPacked / p.k;
}
bool IsFewRows(const nn::MatMulProblem& p) {
  return !p.transpose_a && p.batches() == 1 && p.m <= kFewRows;
}

// What a run adds; nullptr where there is none.
struct LoopAddends {
  const float* bias = nullptr;
  const float* matrix = nullptr;  // [m, n]
};
LoopAddends AddendsOf(const LoopSteps& steps, const void* const* inputs) {
  const auto of = [&](int arg) {
    return arg < 0 ? nullptr : static_cast<const float*>(inputs[2 + arg]);
  };
  return {of(steps.bias), of(steps.addend)};
}

// What is left to do to columns [from, from + n) of products that have their bias.
void AddMatrix(const nn::MatMulProblem& p, const LoopSteps& steps, const float* matrix,
               int64_t from, int64_t n, float* y) {
  for (int64_t at = from; at < p.m * p.n; at += p.n) {
    Isa().bias_unary[static_cast<int>(steps.act)](y + at, matrix + at, y + at, n, steps.alpha);
  }
}
// What the loops of isa.h apply: the activation, if that comes next.
UnaryF32 ActInside(const LoopSteps& steps) {
  return steps.addend < 0 ? steps.act : UnaryF32::kIdentity;
}

void OwnLoop(const nn::MatMulProblem& p, const float* a, const float* b, const LoopSteps& steps,
             const LoopAddends& addends, float* y) {
  const IsaTable& isa = Isa();
  const float* bias = addends.bias;
  if (!p.transpose_b && p.n > 1) {
    // Slices of columns, in whole cache lines.
    constexpr int64_t kSlice = 64;
    const int64_t slices = (p.n + kSlice - 1) / kSlice;
    ParallelFor(slices, (LeastColumns(p) + kSlice - 1) / kSlice, [&](int64_t begin, int64_t end) {
      const int64_t from = begin * kSlice;
      const int64_t n = std::min(end * kSlice, p.n) - from;
      isa.dense(a, p.k, p.m, p.k, b + from, p.n, n, bias ? bias + from : nullptr, ActInside(steps),
                steps.alpha, y + from, p.n);
      if (steps.addend >= 0) AddMatrix(p, steps, addends.matrix, from, n, y);
    });
    return;
  }
  const UnaryF32 act = ActInside(steps);
  for (int64_t i = 0; i < p.m; ++i) {
    float* row = y + i * p.n;
    for (int64_t j = 0; j < p.n; ++j) row[j] = isa.dot(a + i * p.k, b + j * p.k, p.k);
    if (bias != nullptr) {
      isa.bias_unary[static_cast<int>(act)](row, bias, row, p.n, steps.alpha);
    } else if (act != UnaryF32::kIdentity) {
      isa.unary[static_cast<int>(act)](row, row, p.n, steps.alpha);
    }
  }
  if (steps.addend >= 0) AddMatrix(p, steps, addends.matrix, 0, p.n, y);
}

class BoundLoop final : public BoundKernel {
 public:
  BoundLoop(const nn::MatMulProblem& p, const LoopSteps& steps) : p_(p), steps_(steps) {}

  Status Run(const void* const* inputs, void* const* outputs, void* /*scratch*/) const override {
    const auto input = [&](int i) { return static_cast<const float*>(inputs[i]); };
    OwnLoop(p_, input(0), input(1), steps_, AddendsOf(steps_, inputs),
            static_cast<float*>(outputs[0]));
    return OkStatus();
  }

 private:
  const nn::MatMulProblem p_;
  const LoopSteps steps_;
};

// One row by weights that come from far away. Threads that share columns would each read parts of
// a page, and what fetches ahead for them the parts of others: each takes rows of the weights, one
// behind the other, and the sums are added.
class BoundRowLoop final : public BoundKernel {
 public:
  BoundRowLoop(const nn::MatMulProblem& p, const LoopSteps& steps)
      : p_(p), steps_(steps), parts_(PartsOf(p)) {}

  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    const IsaTable& isa = Isa();
    const auto* a = static_cast<const float*>(inputs[0]);
    const auto* b = static_cast<const float*>(inputs[1]);
    const LoopAddends addends = AddendsOf(steps_, inputs);
    auto* y = static_cast<float*>(outputs[0]);
    const auto sums = [&](int64_t i) {
      return i == 0 ? y : static_cast<float*>(scratch) + (i - 1) * Stride();
    };
    ParallelFor(parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t from = p_.k * i / parts_, rows = p_.k * (i + 1) / parts_ - from;
        isa.dense(a + from, rows, 1, rows, b + from * p_.n, p_.n, p_.n,
                  i == 0 ? addends.bias : nullptr, UnaryF32::kIdentity, 0, sums(i), p_.n);
      }
    });
    for (int64_t i = 1; i < parts_; ++i) {
      const UnaryF32 act = i + 1 < parts_ ? UnaryF32::kIdentity : ActInside(steps_);
      isa.bias_unary[static_cast<int>(act)](y, sums(i), y, p_.n, steps_.alpha);
    }
    if (steps_.addend >= 0) AddMatrix(p_, steps_, addends.matrix, 0, p_.n, y);
    return OkStatus();
  }
  size_t scratch_bytes() const override {
    return static_cast<size_t>((parts_ - 1) * Stride()) * sizeof(float);
  }

  static bool Suits(const nn::MatMulProblem& p) {
    constexpr int64_t kNear = int64_t{1} << 18, kPage = 1024;  // floats
    return p.m == 1 && p.batches() == 1 && !p.transpose_b && p.n > 1 && p.n <= kPage &&
           p.k > kNear / p.n && PartsOf(p) > 1;
  }

 private:
  // As many weights are worth a thread as those that share columns take.
  static int64_t PartsOf(const nn::MatMulProblem& p) {
    return std::min<int64_t>(Threads(), p.n / LeastColumns(p));
  }
  // Whole cache lines.
  int64_t Stride() const { return (p_.n + 15) / 16 * 16; }

  const nn::MatMulProblem p_;
  const LoopSteps steps_;
  const int64_t parts_;
};

// A small product whose second matrix is turned around first.
class BoundTurnedLoop final : public BoundKernel {
 public:
  BoundTurnedLoop(const nn::MatMulProblem& p, const LoopSteps& steps) : p_(p), steps_(steps) {}

  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    const auto input = [&](int i) { return static_cast<const float*>(inputs[i]); };
    const float* b = input(1);
    auto* turned = static_cast<float*>(scratch);
    for (int64_t c = 0; c < p_.n; ++c) {
      for (int64_t r = 0; r < p_.k; ++r) turned[r * p_.n + c] = b[c * p_.k + r];
    }
    const LoopAddends addends = AddendsOf(steps_, inputs);
    auto* y = static_cast<float*>(outputs[0]);
    Isa().dense(input(0), p_.k, p_.m, p_.k, turned, p_.n, p_.n, addends.bias, ActInside(steps_),
                steps_.alpha, y, p_.n);
    if (steps_.addend >= 0) AddMatrix(p_, steps_, addends.matrix, 0, p_.n, y);
    return OkStatus();
  }
  size_t scratch_bytes() const override { return static_cast<size_t>(p_.k * p_.n) * sizeof(float); }

  // Fewer rows are not worth the turn.
  static bool Suits(const nn::MatMulProblem& p) {
    constexpr int64_t kLeastRows = 4;
    return p.transpose_b && p.m >= kLeastRows && IsSmallProduct(p);
  }

 private:
  const nn::MatMulProblem p_;
  const LoopSteps steps_;
};

// With weights as dense_pack lays them out: they are read from front to back and, the next time,
// from back to front, so that a loop whose weights fill the cache finds what it read last.
class PackedLoop final : public BoundKernel {
 public:
  // Fewer bytes stay in a core's cache anyway.
  static constexpr size_t kLeastTurned = size_t{1} << 18;
  static constexpr int64_t kLeastOfLargePages = int64_t{1} << 17;  // floats

  static StatusOr<std::unique_ptr<BoundKernel>> Make(const nn::MatMulProblem& p,
                                                     const LoopSteps& steps, const float* b) {
    const IsaTable& isa = Isa();
    const int64_t panels = (p.n + isa.dense_panel - 1) / isa.dense_panel;
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{panels, p.k, isa.dense_panel}));
    // Loops that read hundreds of small pages time and again wait for where these are.
    const bool large = shape.num_elements() >= kLeastOfLargePages;
    ASSIGN_OR_RETURN(Tensor weights,
                     Tensor::Make(Dtype::kFloat, shape, large ? KeptAllocator() : HeapAllocator()));
    if (p.transpose_b) {
      isa.dense_pack_turned(b, p.k, p.k, p.n, weights.data<float>());
    } else {
      isa.dense_pack(b, p.n, p.k, p.n, weights.data<float>());
    }
    return std::unique_ptr<BoundKernel>(new PackedLoop(p, steps, std::move(weights)));
  }

  Status Run(const void* const* inputs, void* const* outputs, void* /*scratch*/) const override {
    const IsaTable& isa = Isa();
    const auto* a = static_cast<const float*>(inputs[0]);
    const LoopAddends addends = AddendsOf(steps_, inputs);
    const float* bias = addends.bias;
    auto* y = static_cast<float*>(outputs[0]);
    const float* weights = weights_.data<float>();
    // Loops begin with states of zeros.
    const int64_t k = finite_ && AreZeros(a, p_.m * p_.k) ? 0 : p_.k;
    const auto columns = [&](int64_t begin, int64_t end) {
      const int64_t from = begin * isa.dense_panel;
      const int64_t n = std::min(end * isa.dense_panel, p_.n) - from;
      isa.dense_packed(a, p_.k, p_.m, k, weights + from * p_.k, n, bias ? bias + from : nullptr,
                       addends.matrix ? addends.matrix + from : nullptr, steps_.act, steps_.alpha,
                       y + from, p_.n);
    };
    const bool back = turns_ && GoesBack();
    ParallelFor(weights_.dim(0), panels_per_thread_, [&](int64_t begin, int64_t end) {
      if (!back) return columns(begin, end);
      for (int64_t i = end; i-- > begin;) columns(i, i + 1);
    });
    return OkStatus();
  }

 private:
  PackedLoop(const nn::MatMulProblem& p, const LoopSteps& steps, Tensor weights)
      : p_(p),
        steps_(steps),
        weights_(std::move(weights)),
        turns_(weights_.bytes() >= kLeastTurned),
        finite_(AreFinite(weights_.data<float>(), weights_.num_elements())),
        panels_per_thread_((LeastColumns(p) + Isa().dense_panel - 1) / Isa().dense_panel) {}

  // Some numbers at a time, which vectors compare.
  template <typename Fn>
  static bool All(const float* x, int64_t n, Fn holds) {
    constexpr int64_t kBlock = 16;
    int64_t i = 0;
    for (; i + kBlock <= n; i += kBlock) {
      int others = 0;
      for (int64_t j = 0; j < kBlock; ++j) others |= holds(x[i + j]) ? 0 : 1;
      if (others != 0) return false;
    }
    return std::all_of(x + i, x + n, holds);
  }
  static bool AreZeros(const float* x, int64_t n) {
    return n > 0 && *x == 0.0f && All(x, n, [](float v) { return v == 0.0f; });
  }
  static bool AreFinite(const float* x, int64_t n) {
    return All(x, n, [](float v) { return v - v == 0.0f; });
  }

  // Did this thread read the weights from the front the last time? Of each thread, as threads that
  // take turns would seldom find it their own way round, and wait for each other to say it.
  bool GoesBack() const {
    struct Last {
      const PackedLoop* of = nullptr;
      bool back = false;
    };
    constexpr int kBits = 3;  // a loop's body has few products; any others are read from the front
    thread_local std::array<Last, 1 << kBits> all;
    Last& last = all[reinterpret_cast<uintptr_t>(this) * 0x9E3779B97F4A7C15u >> (64 - kBits)];
    last = {this, last.of == this && !last.back};
    return last.back;
  }

  const nn::MatMulProblem p_;
  const LoopSteps steps_;
  const Tensor weights_;  // [panels, k, dense_panel]
  const bool turns_;
  const bool finite_;  // zeros times weights are zeros
  const int64_t panels_per_thread_;
};

// One matrix, or a batch of them, stored densely; `transposed`: with rows and columns exchanged.
Layout MatrixLayout(Dtype dtype, const Dims& batch, int64_t rows, int64_t columns,
                    bool transposed) {
  Dims dims = batch;
  dims.push_back(transposed ? columns : rows);
  dims.push_back(transposed ? rows : columns);
  Layout l = Layout::Dense(dtype, dims);
  if (transposed) {
    const size_t r = dims.size();
    std::swap(l.dims[r - 2], l.dims[r - 1]);
    std::swap(l.strides[r - 2], l.strides[r - 1]);
  }
  return l;
}

struct MatMulLayouts {
  Layout a, b, dst;
  bool single_b = false;  // one matrix b: it may be packed
};

MatMulLayouts MakeMatMulLayouts(const nn::MatMulProblem& p, Dtype dtype) {
  MatMulLayouts l;
  l.single_b = p.batches_b() == 1 && (!p.transpose_a || p.batches() == 1);
  if (l.single_b) {
    const int64_t rows = p.batches() * p.m;
    l.a = MatrixLayout(dtype, {}, rows, p.k, p.transpose_a);
    l.b = MatrixLayout(dtype, {}, p.k, p.n, p.transpose_b);
    l.dst = MatrixLayout(dtype, {}, rows, p.n, false);
    return l;
  }
  Dims batch = p.batch, batch_a = p.batch_a, batch_b = p.batch_b;
  if (batch_a == batch_b) batch = batch_a = batch_b = Dims{p.batches()};
  l.a = MatrixLayout(dtype, batch_a, p.m, p.k, p.transpose_a);
  l.b = MatrixLayout(dtype, batch_b, p.k, p.n, p.transpose_b);
  l.dst = MatrixLayout(dtype, batch, p.m, p.n, false);
  return l;
}

// Is there enough to do for bfloat16 to be faster than float, conversions included?
bool WorthBfloat16(const nn::MatMulProblem& p) {
  return Bfloat16IsNative() && p.k > 0 && !IsSmallProduct(p);
}

}  // namespace

Status FloatMatMul::Run(const nn::MatMulProblem& p, const Tensor& a, const Tensor& b,
                        bool constant_b, const FusedOps& fused, nn::FusedArgs args, Tensor* out,
                        Allocator* allocator) {
  if (out->num_elements() == 0) return OkStatus();
  const LayerCall whole{a, b, constant_b, fused, args, out, allocator};
  if (out->dtype() == Dtype::kFloat) return RunInType(p, whole);
  const bool all_bfloat16 = a.dtype() == Dtype::kBfloat16 && b.dtype() == Dtype::kBfloat16 &&
                            out->dtype() == Dtype::kBfloat16;
  return narrow_.Run(whole, all_bfloat16 && WorthBfloat16(p),
                     [&](const LayerCall& call) { return RunInType(p, call); });
}

StatusOr<Plan> FloatMatMul::PlanOf(const nn::MatMulProblem& p, const Shape& a, const Shape& b,
                                   Dtype dtype, bool constant_b, const FusedOps& fused) {
  PlanKey key = MakePlanKey({&a, &b});
  key.push_back(static_cast<int64_t>(dtype));
  key.push_back(p.transpose_a | p.transpose_b << 1 | constant_b << 2);
  AppendSteps(fused, &key);
  return plans_.Get(key, [&] {
    const MatMulLayouts l = MakeMatMulLayouts(p, dtype);
    const int depth_dim = static_cast<int>(l.dst.dims.size()) - 1;
    const FusedPostOps post = MakeFusedPostOps(fused, l.dst, depth_dim);
    Layout bias;
    if (post.bias) {
      Dims dims(l.dst.dims.size(), 1);
      dims.back() = p.n;
      bias = Layout::Dense(Dtype::kFloat, dims);
    }
    return Primitive::Matmul(l.a, l.b, constant_b && l.single_b, bias, l.dst, post.post_ops);
  });
}

StatusOr<std::unique_ptr<BoundKernel>> FloatMatMul::Bind(const nn::MatMulProblem& p,
                                                         const BindContext& context,
                                                         const FusedOps& fused) {
  const BoundTensor& a = context.inputs[0];
  const BoundTensor& b = context.inputs[1];
  const Dtype dtype = context.outputs[0].dtype;
  const bool takes = dtype == Dtype::kFloat || (dtype == Dtype::kBfloat16 && WorthBfloat16(p));
  if (!takes || a.dtype != dtype || b.dtype != dtype) {
    return DeclineToBind("neither a product of floats nor one worth making in bfloat16");
  }
  if (p.k == 0) return DeclineToBind("sums of nothing");
  const bool constant_b = b.constant != nullptr;
  const bool packs = Packs(p, constant_b);
  const bool floats = std::ranges::all_of(
      context.inputs, [](const BoundTensor& t) { return t.dtype == Dtype::kFloat; });
  if (floats && (WantsOwnLoop(p, constant_b) || (packs && IsFewRows(p)))) {
    LoopSteps steps;
    if (!StepsOfLoop(p, fused, &steps)) {
      return DeclineToBind(
          "the loop for few rows adds a bias and a matrix and applies an activation alone");
    }
    if (packs) {
      return PackedLoop::Make(p, steps, b.constant->data<float>());
    }
    if (BoundTurnedLoop::Suits(p)) return std::make_unique<BoundTurnedLoop>(p, steps);
    if (BoundRowLoop::Suits(p)) return std::make_unique<BoundRowLoop>(p, steps);
    return std::make_unique<BoundLoop>(p, steps);
  }
  auto arguments = std::make_shared<LayerArguments>();
  ASSIGN_OR_RETURN(const bool fit, MakeLayerArguments(fused, context, dtype, arguments.get()));
  if (!fit) return DeclineToBind("an argument is of a type that is not known beforehand");
  if (floats && constant_b && nn::TiledProduct::Wants(p)) {
    const auto [bias, addend] = OperandsOfTiles(fused, arguments->args);
    ASSIGN_OR_RETURN(auto own, tiled_.Bind(p, *b.constant, bias, addend, fused));
    if (own != nullptr) return own;
  }
  if (dtype == Dtype::kBfloat16 && constant_b && nn::MatrixBfloat16::Suits(p)) {
    const TileOperands operands = OperandsOfTiles(fused, arguments->args);
    const auto bind = [&](const FusedOps& steps) {
      return matrices_.Bind(p, *b.constant, operands.bias, operands.addend, steps);
    };
    ASSIGN_OR_RETURN(auto own, BindBeforeExponential(fused, p.output.num_elements(), bind));
    if (own != nullptr) return own;
  }
  const size_t clamp = FirstClamp(fused);
  if (clamp + 1 < fused.steps.size()) {
    return DeclineToBind("oneDNN's clamp, which makes 0 of NaN, would not be the last step");
  }
  const auto bind = [this, p, shape = a.shape, shape_b = b.shape, dtype, constant_b,
                     constant = constant_b ? *b.constant : Tensor(),
                     arguments](const FusedOps& steps) -> StatusOr<std::unique_ptr<BoundKernel>> {
    ASSIGN_OR_RETURN(const Plan plan, PlanOf(p, shape, shape_b, dtype, constant_b, steps));
    if (plan == nullptr) return DeclineToBind("oneDNN has no primitive for it");
    std::shared_ptr<const Tensor> weights;
    if (constant_b) {
      ASSIGN_OR_RETURN(weights, plans_.Weights(plan, constant, true, HeapAllocator()));
    }
    return BindLayer(plan, std::move(weights), steps, arguments->args, arguments);
  };
  if (dtype == Dtype::kBfloat16 && clamp == fused.steps.size()) {
    return BindBeforeExponential(fused, p.output.num_elements(), bind);
  }
  if (clamp == fused.steps.size()) return bind(fused);
  // Weights are looked at before they are packed: their pages are given back then.
  std::vector<WatchedInput> watched;
  bool modest = true;
  for (size_t i = 0; i < 2 + arguments->args.size(); ++i) {
    const int64_t n = context.inputs[i].shape.num_elements();
    const void* constant = i < 2 ? nullptr : arguments->args[i - 2].constant;
    if (i < 2 && context.inputs[i].constant != nullptr)
      constant = context.inputs[i].constant->raw();
    const Dtype type = i < 2 ? dtype : ArgumentType(fused, i - 2, dtype);
    if (constant != nullptr) {
      modest = modest && nn::AllModest(constant, n, type);
    } else {
      watched.push_back({static_cast<int>(i), n, type});
    }
  }
  if (!modest)
    return DeclineToBind("oneDNN's clamp would make 0 of NaN, which a constant may give");
  ASSIGN_OR_RETURN(auto layer, bind(fused));
  if (layer == nullptr) return layer;
  return KeepNan(std::move(layer), std::move(watched), fused.steps[clamp].activation,
                 p.output.num_elements(), dtype,
                 [bind, before = StepsBefore(fused, clamp)] { return bind(before); });
}

Status FloatMatMul::RunInType(const nn::MatMulProblem& p, const LayerCall& call) {
  const Tensor& a = call.x;
  const Tensor& b = call.w;
  const bool constant_b = call.constant_w;
  const FusedOps& fused = call.fused;
  const nn::FusedArgs args = call.args;
  Tensor* out = call.out;
  Allocator* allocator = call.allocator;
  const Dtype dtype = a.dtype();
  if (p.k == 0) {
    std::memset(out->raw(), 0, out->bytes());
    nn::ApplyFusedOps(fused, args, out->rank() - 1, out);
    return OkStatus();
  }
  if (dtype == Dtype::kFloat && WantsOwnLoop(p, constant_b)) {
    LoopSteps steps;
    const bool inside = StepsOfLoop(p, fused, &steps);
    if (!inside) steps = LoopSteps();
    const auto of = [&](int arg) {
      return arg < 0 ? nullptr : args[static_cast<size_t>(arg)]->data<float>();
    };
    OwnLoop(p, a.data<float>(), b.data<float>(), steps, {of(steps.bias), of(steps.addend)},
            out->data<float>());
    if (!inside) nn::ApplyFusedOps(fused, args, out->rank() - 1, out);
    return OkStatus();
  }
  // What the library would lose a NaN in is done behind it.
  const size_t kept = StepsThatKeepNan(fused, a, b, constant_b ? &modest_b_ : nullptr, {}, args);
  if (dtype != Dtype::kFloat && kept < fused.steps.size()) {
    return Unimplemented("a clamp of ", DtypeName(dtype), " that keeps NaN");
  }
  const FusedOps inside = StepsBefore(fused, kept), behind = StepsFrom(fused, kept);
  ASSIGN_OR_RETURN(const Plan plan, PlanOf(p, a.shape(), b.shape(), dtype, constant_b, inside));
  if (plan == nullptr) {
    if (dtype != Dtype::kFloat) return Unimplemented("no product of ", DtypeName(dtype));
    RETURN_IF_ERROR(nn::MatMulReference(p, a, b, false, false, out));
    nn::ApplyFusedOps(fused, args, out->rank() - 1, out);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const FusedPointers pointers, FusedPointers::Make(inside, args, allocator));
  ASSIGN_OR_RETURN(const auto weights, plans_.Weights(plan, b, constant_b, allocator));
  RETURN_IF_ERROR(plan->Run(pointers.Tensors(a.raw(), weights->raw(), out->raw()), allocator));
  if (!behind.empty()) nn::ApplyFusedOps(behind, args, out->rank() - 1, out);
  return OkStatus();
}

}  // namespace smelt::onednn
