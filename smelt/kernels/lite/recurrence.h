// What recurrent operators of TensorFlow Lite share. Private to this folder.
#ifndef SMELT_KERNELS_LITE_RECURRENCE_H_
#define SMELT_KERNELS_LITE_RECURRENCE_H_

#include <memory>

#include "absl/synchronization/mutex.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/kernel.h"

namespace smelt::lite {

enum class RecurrentActivation : uint8_t { kNone, kRelu, kReluN1To1, kRelu6, kTanh, kSignBit };
// That of the node; `decline` has asked DeclineFloatCell.
RecurrentActivation RecurrentActivationOf(const Node& node);
// For `decline` of cells of floats: other inputs and results, states among them, and activations
// that there are not.
std::string DeclineFloatCell(const Node& node);
// y = activation(x), which may be the same; kSignBit is 1 for what has a sign, else 0.
void Activate(RecurrentActivation activation, const float* x, float* y, int64_t n);

// A cell that is made of weights: once where they are constants, else for each run.
template <typename Cell>
class KeptCell {
 public:
  // `constant`: what `make` reads is the same on every run. make() returns
  // StatusOr<std::shared_ptr<const Cell>>. Thread safe.
  template <typename F>
  StatusOr<std::shared_ptr<const Cell>> Get(bool constant, F&& make) {
    if (!constant) return make();
    absl::MutexLock lock(&mutex_);
    if (cell_ == nullptr) {
      ASSIGN_OR_RETURN(cell_, make());
    }
    return cell_;
  }

 private:
  absl::Mutex mutex_;
  std::shared_ptr<const Cell> cell_ ABSL_GUARDED_BY(mutex_);
};

// Are all inputs from `first` on, but those in `states`, constants?
bool WeightsAreConstant(const Node& node, int first, std::initializer_list<int> states);

// Rows of a sequence: [steps, batch, depth], or [batch, steps, depth] where not `time_major`.
struct SequenceShape {
  int64_t steps, batch, depth;
  int64_t step_rows, batch_rows;  // how far rows lie apart
};
StatusOr<SequenceShape> SequenceOf(const Shape& x, bool time_major);

// x with another last dimension.
StatusOr<Shape> WithWidth(const Shape& x, int64_t width);

// A copy of input i, a state of the shape [batch, n], as output `to`, to be changed.
StatusOr<Tensor*> CopyState(OpContext& ctx, int i, Dtype type, int64_t batch, int64_t n, int to);
template <typename T>
StatusOr<T*> TakeState(OpContext& ctx, int i, int64_t batch, int64_t n, int to) {
  ASSIGN_OR_RETURN(Tensor * copy, CopyState(ctx, i, kDtypeOf<T>, batch, n, to));
  return copy->data<T>();
}

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_RECURRENCE_H_
