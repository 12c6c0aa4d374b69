// One direction of an LSTM of TensorFlow Lite on int8, with a cell state of int16.
#ifndef SMELT_KERNELS_LITE_INTEGER_LSTM_H_
#define SMELT_KERNELS_LITE_INTEGER_LSTM_H_

#include <memory>
#include <vector>

#include "smelt/kernels/lite/fixed_functions.h"
#include "smelt/kernels/lite/lstm_cell.h"

namespace smelt::lite {

// The weights of a direction with their factors, checked. Immutable. The node says how its
// intermediate numbers are quantized (_intermediate_scales, _intermediate_zero_points): those of
// the four gates before layer normalization, and what is before the projection.
class IntegerLstm {
 public:
  // INVALID_ARGUMENT where inputs do not fit each other, or scales are left out that it needs;
  // UNIMPLEMENTED for a cell state whose scale is no power of two that LiteRT takes.
  static StatusOr<std::shared_ptr<const IntegerLstm>> Make(const OpContext& ctx,
                                                           const LstmPlaces& p);

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  int64_t cells() const { return cells_; }

  // As LstmCell::Sequence.
  struct Sequence {
    const int8_t* x;
    int8_t* out;
    int64_t steps, batch, step_rows, batch_rows;
    bool together;  // LiteRT takes the rows of a step together, or one sequence after the other
    int8_t* state;  // [batch, outputs()], read and written
    int16_t* cell;  // [batch, cells()]
  };
  // CANCELLED or DEADLINE_EXCEEDED between two steps of the sequence, as `step` says.
  Status Run(const Sequence& s, const smelt::Step& step) const;

 private:
  // Rows of int8 times a weight matrix, in steps of the gate.
  struct Product {
    Tensor weights;             // [rows, depth]
    std::vector<int32_t> sums;  // what each row begins with
    Factor factor;
  };
  struct Gate {
    Product x, h;
    Tensor peephole, norm;  // of int16; may be left out
    Factor of_peephole, of_norm;
    std::vector<int32_t> norm_bias;
    int32_t least_variance = 1;
  };

  Status MakeGate(const OpContext& ctx, const LstmPlaces& p, int gate);
  StatusOr<Product> MakeProduct(const OpContext& ctx, int weights, int bias, int64_t rows,
                                int64_t depth, int32_t zero, double factor) const;
  static void Add(const Product& p, const int8_t* row, int16_t* to);
  // A row among those that are taken together.
  struct Row {
    int64_t number, count;
    const int8_t* x;
    int8_t* state;
    int16_t* cell;
  };
  void Compute(const Gate& g, const Row& row, const FixedTable& activation, int16_t* to) const;
  void AddPeephole(const Gate& g, const Row& row, int16_t* to) const;
  void Normalize(const Gate& g, int16_t* values) const;
  void Step(const Row& row, std::vector<int16_t>* gates, std::vector<int8_t>& hidden) const;

  int first_ = 0;  // 1: the input gate is what the forget gate leaves
  int64_t inputs_ = 0, cells_ = 0, outputs_ = 0;
  Gate gates_[4];
  bool projects_ = false;
  Product projection_;
  int32_t state_zero_ = 0, hidden_zero_ = 0;
  Factor of_hidden_;
  int cell_power_ = 0;  // the cell state's scale is 2 to this
  int16_t cell_clip_ = 0;
  int8_t proj_clip_ = 0;
};

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_INTEGER_LSTM_H_
