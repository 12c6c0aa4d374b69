// One direction of an LSTM of TensorFlow Lite on floats, with weights of float or of int8.
#ifndef SMELT_KERNELS_LITE_LSTM_CELL_H_
#define SMELT_KERNELS_LITE_LSTM_CELL_H_

#include <memory>
#include <optional>

#include "smelt/kernels/lite/gate_product.h"
#include "smelt/kernels/lite/recurrence.h"

namespace smelt::lite {

// Which inputs of the operator a direction reads; gates are in the order input, forget, cell,
// output. -1: the operator has no such input.
struct LstmPlaces {
  int weights, recurrent, peephole, bias, projection, projection_bias, state, cell;
  int norm = -1;  // layer normalization of the gates
  int aux = -1;   // weights of the auxiliary input
};

// An input that was left out is a vector of no elements (Lowering::Keep).
inline bool IsLeftOut(const Tensor& t) { return t.rank() == 1 && t.num_elements() == 0; }

struct LstmOptions {
  RecurrentActivation activation = RecurrentActivation::kTanh;
  float cell_clip = 0, proj_clip = 0;
  bool asymmetric = false;
};

// Least and greatest of what was computed in between: of the gates before they are normalized, of
// what is before the projection, and of the cell.
struct LstmRanges {
  static constexpr int kHidden = 4, kCell = 5, kCount = 6;
  float low[kCount], high[kCount];
  LstmRanges();
  void Note(int which, const float* values, int64_t n);
};

// The weights of a direction, checked. Immutable.
class LstmCell {
 public:
  static StatusOr<std::shared_ptr<const LstmCell>> Make(const OpContext& ctx, const LstmPlaces& p,
                                                        const LstmOptions& options);

  int64_t inputs() const { return x_.depth(); }
  int64_t outputs() const { return outputs_; }
  int64_t cells() const { return cells_; }
  // Depth of the auxiliary input; 0: it takes none.
  int64_t aux_inputs() const { return aux_ ? aux_->depth() : 0; }

  // What a run reads and writes. Rows of a step are `batch`; row b of step t of x stands at
  // x + (t * x_step + b * x_row) * inputs(), and so do rows of aux and out.
  struct Sequence {
    const float* x;
    const float* aux;  // nullptr: none
    float* out;
    int64_t steps, batch, step_rows, batch_rows;
    int64_t out_width;             // of a row of out, from whose begin outputs() are written
    bool backwards;                // the last step first
    float* state;                  // [batch, outputs()], read and written
    float* cell;                   // [batch, cells()]
    LstmRanges* ranges = nullptr;  // to be widened
  };
  // CANCELLED or DEADLINE_EXCEEDED between two steps of the sequence, as `step` says.
  Status Run(const Sequence& s, const smelt::Step& step) const;

 private:
  void Step(float* gates, int64_t batch, float* state, float* cell, LstmRanges* ranges) const;
  void FinishGate(int gate, const float* cell, float* values, LstmRanges* ranges) const;

  LstmOptions options_;
  int first_ = 0;  // 1: the input gate is what the forget gate leaves
  int64_t cells_ = 0, outputs_ = 0;
  GateProduct x_, h_;
  std::optional<GateProduct> aux_, projection_;
  std::vector<float> projection_bias_;
  std::vector<float> peephole_[4], bias_[4], norm_[4];  // of a gate; empty: none
};

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_LSTM_CELL_H_
