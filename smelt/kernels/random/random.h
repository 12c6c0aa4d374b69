// What the random ops share: where their generator comes from, and filling tensors from one.
#ifndef SMELT_KERNELS_RANDOM_RANDOM_H_
#define SMELT_KERNELS_RANDOM_RANDOM_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/common/philox.h"
#include "smelt/kernels/kernel.h"

namespace smelt {

// The generator of a stateful op: attributes seed and seed2 start it, every run takes a stretch.
// Thread safe.
struct SeededState final : KernelState {
  absl::Mutex mutex;
  Philox gen ABSL_GUARDED_BY(mutex);
  // Both seeds are 0: runs differ, unless the step brings a seed.
  bool unseeded = false;
  uint64_t node_hash = 0;
  uint64_t runs ABSL_GUARDED_BY(mutex) = 0;

  // The generator for one run, which may take up to so many blocks of it.
  Philox Reserve(const Step& step, uint64_t blocks);
};
StatusOr<std::unique_ptr<KernelState>> PrepareSeeded(const Node& node);

// The shape that a vector of int32 or int64 says.
StatusOr<Shape> ShapeInput(const Tensor& t);

// The shapes of a stateless op's seed, or of its key, counter and algorithm from input `first` on;
// what they hold is only looked at for an output with elements.
Status CheckStatelessSeed(const Tensor& seed);
Status CheckKeyCounter(const OpContext& ctx, int first);
// The scrambled generator of a stateless op's seed (two integers). INVALID_ARGUMENT for another
// shape.
StatusOr<Philox> StatelessGenerator(const Tensor& seed);
// The generator of inputs key, counter and algorithm, from input `first` on.
StatusOr<Philox> KeyCounterGenerator(const OpContext& ctx, int first);

// Distributions over a tensor of dtype half, bfloat16, float or double.
void FillUniform(const Philox& gen, Tensor* out);
void FillNormal(const Philox& gen, Tensor* out);
// Within two standard deviations.
void FillTruncatedNormal(const Philox& gen, Tensor* out);
// Integers in [low, high) of int32 or int64; or any of the type's values (also unsigned).
// INVALID_ARGUMENT unless low < high.
Status FillUniformInt(const Philox& gen, const Tensor& low, const Tensor& high, Tensor* out);
void FillFullInt(const Philox& gen, Tensor* out);

// Blocks that any of these takes for n elements, and then some: what TensorFlow reserves.
inline uint64_t ReservedBlocks(int64_t n) { return static_cast<uint64_t>(n) * 256; }

// What one block makes: kBlockValues<T> uniforms in [0, 1), or normals. T: Half, float, double.
template <typename T>
inline constexpr int kBlockValues = sizeof(T) == 8 ? 2 : 4;
template <typename T>
void BlockUniforms(const Philox::Block& x, T* out);
template <typename T>
void BlockNormals(const Philox::Block& x, T* out);
// A double in [0, 1) of two words.
double PhiloxDouble(uint32_t x0, uint32_t x1);
// Two normals of a block.
void PhiloxNormals(const Philox::Block& x, double* out);

}  // namespace smelt

#endif  // SMELT_KERNELS_RANDOM_RANDOM_H_
