// Random ops whose generator is a variable of int64 words: a 128-bit counter, then a 64-bit key.
#include "smelt/kernels/random/generator.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/variables.h"

namespace smelt {
namespace {

constexpr int kStateWords = 3;

Status CheckGeneratorScalar(const OpContext& ctx, int i) {
  if (ctx.input(i).rank() == 0) return OkStatus();
  return InvalidArgument("input ", i, " (0-based) must have shape [], not ",
                         ctx.input(i).shape().ToString());
}

// 1 is Philox, 2 is ThreeFry, 3 leaves the choice to the device (tf.random.Algorithm): Philox.
Status CheckAlgorithmId(int64_t algorithm) {
  if (algorithm >= 1 && algorithm <= 3) return OkStatus();
  return InvalidArgument("Unsupported algorithm id: ", algorithm);
}

Status CheckAlgorithm(int64_t algorithm, int64_t words, int64_t least) {
  RETURN_IF_ERROR(CheckAlgorithmId(algorithm));
  if (algorithm == 2) {
    return Unimplemented("Non-XLA devices don't support the ThreeFry algorithm.");
  }
  if (words < least) {
    return InvalidArgument("For the Philox algorithm, the size of state must be at least ", least,
                           "; got ", words);
  }
  return OkStatus();
}

Philox LoadGenerator(const int64_t* words) {
  uint32_t halves[2 * kStateWords];
  std::memcpy(halves, words, sizeof halves);
  return Philox({halves[0], halves[1], halves[2], halves[3]}, {halves[4], halves[5]});
}

void StoreCounter(const Philox& gen, int64_t* words) {
  std::memcpy(words, gen.counter().data(), sizeof gen.counter());
}

// UseGenerator; without an algorithm, the first word of the state is the algorithm.
Status UseGeneratorOf(const OpContext& ctx, std::optional<int64_t> algorithm, uint64_t blocks,
                      absl::FunctionRef<Status(const Philox&, const int64_t*)> use) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Variable> variable, FindVariable(ctx, 0));
  return variable->Update([&](Tensor& state) -> Status {
    if (!state.valid()) return UninitializedVariable(ctx, 0);
    if (state.dtype() != Dtype::kInt64) {
      return InvalidArgument("dtype of RNG state variable must be int64, not ",
                             DtypeName(state.dtype()));
    }
    if (state.rank() != 1) {
      return InvalidArgument("RNG state must have one and only one dimension, not ", state.rank());
    }
    int64_t* words = state.data<int64_t>();
    int64_t least = kStateWords;
    if (!algorithm) {
      if (state.dim(0) < 1) return InvalidArgument("Size of tensor must be > 0");
      algorithm = *words++;
      ++least;
    }
    RETURN_IF_ERROR(CheckAlgorithm(*algorithm, state.dim(0), least));
    Philox gen = LoadGenerator(words);
    RETURN_IF_ERROR(use(gen, words));
    gen.Skip(blocks);
    StoreCounter(gen, words);
    return OkStatus();
  });
}

}  // namespace

Status UseGenerator(const OpContext& ctx, int64_t algorithm, uint64_t blocks,
                    absl::FunctionRef<Status(const Philox&, const int64_t*)> use) {
  return UseGeneratorOf(ctx, algorithm, blocks, use);
}

namespace {

// Fills the output, of the shape that input `shape_input` states.
Status RunGenerator(OpContext& ctx, int shape_input, int64_t algorithm,
                    absl::FunctionRef<Status(const Philox&, Tensor*)> fill) {
  ASSIGN_OR_RETURN(const Shape shape, ShapeInput(ctx.input(shape_input)));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  return UseGenerator(ctx, algorithm, ReservedBlocks(out->num_elements()),
                      [&](const Philox& gen, const int64_t*) { return fill(gen, out); });
}

template <void (*kFill)(const Philox&, Tensor*)>
Status RunGeneratorFill(OpContext& ctx) {
  RETURN_IF_ERROR(CheckGeneratorScalar(ctx, 1));
  RETURN_IF_ERROR(CheckAlgorithmId(ctx.input(1).scalar<int64_t>()));
  return RunGenerator(ctx, 2, ctx.input(1).scalar<int64_t>(), [](const Philox& gen, Tensor* out) {
    kFill(gen, out);
    return OkStatus();
  });
}

// StatefulStandardNormal, which has no algorithm input: the state holds it.
Status RunGeneratorNormal(OpContext& ctx) {
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(IntsOf(ctx.input(1))));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  return UseGeneratorOf(ctx, std::nullopt, ReservedBlocks(out->num_elements()),
                        [&](const Philox& gen, const int64_t*) {
                          FillNormal(gen, out);
                          return OkStatus();
                        });
}

Status RunGeneratorInt(OpContext& ctx) {
  RETURN_IF_ERROR(CheckGeneratorScalar(ctx, 1));
  RETURN_IF_ERROR(CheckAlgorithmId(ctx.input(1).scalar<int64_t>()));
  RETURN_IF_ERROR(CheckUniformRange(ctx.input(3), ctx.input(4)));
  return RunGenerator(ctx, 2, ctx.input(1).scalar<int64_t>(), [&](const Philox& gen, Tensor* out) {
    return FillUniformInt(gen, ctx.input(3), ctx.input(4), out);
  });
}

// A skip by n moves the generator as far as filling n elements does (ReservedBlocks).
Status RunSkip(OpContext& ctx) {
  RETURN_IF_ERROR(CheckGeneratorScalar(ctx, 1));
  RETURN_IF_ERROR(CheckGeneratorScalar(ctx, 2));
  return UseGenerator(ctx, ctx.input(1).scalar<int64_t>(),
                      static_cast<uint64_t>(ctx.input(2).scalar<int64_t>()) * 256,
                      [](const Philox&, const int64_t*) { return OkStatus(); });
}

Status RunReadAndSkip(OpContext& ctx) {
  RETURN_IF_ERROR(CheckGeneratorScalar(ctx, 1));
  RETURN_IF_ERROR(CheckGeneratorScalar(ctx, 2));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({kStateWords})));
  return UseGenerator(ctx, ctx.input(1).scalar<int32_t>(), ctx.input(2).scalar<uint64_t>() * 256,
                      [&](const Philox&, const int64_t* words) {
                        std::copy_n(words, kStateWords, out->data<int64_t>());
                        return OkStatus();
                      });
}

// The op has no seeds: it starts at random, or from Step::random_seed where that is set.
Status RunNonDeterministicInts(OpContext& ctx) {
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(IntsOf(ctx.input(0))));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  FillFullInt(ctx.state<SeededState>().Reserve(ctx.step(), ReservedBlocks(out->num_elements())),
              out);
  return OkStatus();
}

constexpr DtypeSet kGeneratorFloats = kFloatTypes | kHalfTypes;
constexpr DtypeSet kGeneratorInts =
    Types(Dtype::kInt32, Dtype::kInt64, Dtype::kUint32, Dtype::kUint64);

constexpr Kernel kGeneratorTable[] = {
    {"StatefulStandardNormalV2", "dtype", kGeneratorFloats, "random:normal",
     RunGeneratorFill<FillNormal>},
    {"StatefulStandardNormal", "dtype", kGeneratorFloats, "random:normal", RunGeneratorNormal},
    {"StatefulTruncatedNormal", "dtype", kGeneratorFloats, "random:truncated_normal",
     RunGeneratorFill<FillTruncatedNormal>},
    {"StatefulUniform", "dtype", kGeneratorFloats, "random:uniform", RunGeneratorFill<FillUniform>},
    {"StatefulUniformFullInt", "dtype", kGeneratorInts, "random:full_int",
     RunGeneratorFill<FillFullInt>},
    {"StatefulUniformInt", "dtype", kIndexTypes, "random:uniform_int", RunGeneratorInt},
    {"RngSkip", "", kAnyType, "random:skip", RunSkip},
    {"RngReadAndSkip", "", kAnyType, "random:skip", RunReadAndSkip},
    {"NonDeterministicInts", "dtype", kGeneratorInts, "random:full_int", RunNonDeterministicInts,
     PrepareSeeded},
};

}  // namespace

extern constinit const std::span<const Kernel> kGeneratorKernels = kGeneratorTable;

}  // namespace smelt
