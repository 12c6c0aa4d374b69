// What the random ops share: where their generator comes from, and filling tensors from one.
#ifndef SMELT_KERNELS_RANDOM_RANDOM_H_
#define SMELT_KERNELS_RANDOM_RANDOM_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/common/philox.h"
#include "smelt/kernels/kernel.h"

namespace smelt {

// The generator of a stateful op: attributes seed and seed2 start it, every run takes its next
// blocks. Thread safe.
struct SeededState final : KernelState {
  absl::Mutex mutex;
  Philox gen ABSL_GUARDED_BY(mutex);
  // Both seeds are 0: the generator starts at random, or from Step::random_seed where that is set.
  bool unseeded = false;
  uint64_t node_hash = 0;
  uint64_t runs ABSL_GUARDED_BY(mutex) = 0;

  // The generator for one run, which may take up to `blocks` blocks of it.
  Philox Reserve(const Step& step, uint64_t blocks);
};
// A SeededState of the node's attributes.
StatusOr<std::unique_ptr<KernelState>> PrepareSeeded(const Node& node);

// The shape whose sizes a vector of int32 or int64 holds; INVALID_ARGUMENT for other tensors.
StatusOr<Shape> ShapeInput(const Tensor& t);

// Check the shapes of a stateless op's seed, or of its key, counter and algorithm from input
// `first` on. Their values are left to the two functions below, as TensorFlow ignores them for an
// output without elements.
Status CheckStatelessSeed(const Tensor& seed);
Status CheckKeyCounter(const OpContext& ctx, int first);
// The scrambled generator of a stateless op's seed (two integers). INVALID_ARGUMENT for another
// shape.
StatusOr<Philox> StatelessGenerator(const Tensor& seed);
// The generator of inputs key, counter and algorithm, from input `first` on.
StatusOr<Philox> KeyCounterGenerator(const OpContext& ctx, int first);

// Fill a tensor of half, bfloat16, float or double: uniform in [0, 1), or standard normal.
void FillUniform(const Philox& gen, Tensor* out);
void FillNormal(const Philox& gen, Tensor* out);
// Standard normal within two standard deviations.
void FillTruncatedNormal(const Philox& gen, Tensor* out);
// INVALID_ARGUMENT unless both are scalars and low < high.
Status CheckUniformRange(const Tensor& low, const Tensor& high);
// Fill a tensor of int32, int64, uint32 or uint64: uniform in [low, high), scalars of the same
// type, or over all values. INVALID_ARGUMENT unless low < high; an empty `out` is not checked for
// that.
Status FillUniformInt(const Philox& gen, const Tensor& low, const Tensor& high, Tensor* out);
void FillFullInt(const Philox& gen, Tensor* out);

// Blocks that a run moves its generator on by for n elements: TensorFlow's number, at least what
// any of the functions above takes.
inline uint64_t ReservedBlocks(int64_t n) { return static_cast<uint64_t>(n) * 256; }

// What one block makes: kBlockValues<T> uniforms in [0, 1), or normals. T: Half, float, double.
template <typename T>
inline constexpr int kBlockValues = sizeof(T) == 8 ? 2 : 4;
template <typename T>
void BlockUniforms(const Philox::Block& x, T* out);
template <typename T>
void BlockNormals(const Philox::Block& x, T* out);
// Two normals of a block.
void PhiloxNormals(const Philox::Block& x, double* out);

}  // namespace smelt

#endif  // SMELT_KERNELS_RANDOM_RANDOM_H_
