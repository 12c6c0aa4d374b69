// Inputs made up for a signature: to warm a server up, and to compare two models.
#ifndef SMELT_MODEL_RANDOM_INPUTS_H_
#define SMELT_MODEL_RANDOM_INPUTS_H_

#include <cstdint>

#include "smelt/model/loaded_model.h"

namespace smelt {

// The same seed gives the same inputs everywhere. Not thread safe.
class RandomInputs {
 public:
  explicit RandomInputs(uint64_t seed) : state_(seed) {}

  // Values for each input: numbers in [-1, 1), integers 0 to 3, short words. Dimension 0 is
  // `batch` where it is not stated, other such dimensions 1 to 3, the same for all inputs; with
  // batch 0 it is 1 to 3, too. UNIMPLEMENTED for inputs without a known rank, and of types that
  // have no such values.
  StatusOr<NamedTensors> Make(const Signature& signature, int64_t batch);

 private:
  uint64_t Next();
  StatusOr<Tensor> Value(Dtype dtype, const Shape& shape);

  uint64_t state_;
};

}  // namespace smelt

#endif  // SMELT_MODEL_RANDOM_INPUTS_H_
