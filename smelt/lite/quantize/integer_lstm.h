// LSTMs of floats as LSTMs of int8 with a cell state of int16.
#ifndef SMELT_LITE_QUANTIZE_INTEGER_LSTM_H_
#define SMELT_LITE_QUANTIZE_INTEGER_LSTM_H_

#include "smelt/lite/quantize/calibrate.h"

namespace smelt {

struct ScaleAndZero {
  float scale = 1;
  int64_t zero = 0;
};

// Is it an LSTM that has an integer kernel, and is all known that the kernel needs: constant
// weights, states of its own, and ranges of what it has in between?
bool IsIntegerLstm(const Node& n, const LiteRanges& ranges);

// `n` computes in integers: its input becomes `input`, of int8 under `from`; its result has the
// scale `to`; what it has in between was before the projection as `hidden` says. INVALID_ARGUMENT
// names the node whose weights are not finite. REQUIRES: IsIntegerLstm.
Status MakeIntegerLstm(Graph& graph, Node* n, const LiteRanges& ranges, Endpoint input,
                       ScaleAndZero from, ScaleAndZero to, ScaleAndZero hidden);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_INTEGER_LSTM_H_
