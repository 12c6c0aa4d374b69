// LSTM operators and their weights.
#ifndef SMELT_LITE_COMPOSITES_LSTM_H_
#define SMELT_LITE_COMPOSITES_LSTM_H_

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "smelt/lite/legalizer.h"

namespace smelt {

// Part of a tensor, or its transposition (of a matrix): computed where it is constant.
StatusOr<Endpoint> LitePart(Endpoint e, std::vector<int64_t> begin, std::vector<int64_t> sizes,
                            Legalizer& l);
StatusOr<Endpoint> LiteTransposed(Endpoint e, Legalizer& l);
// As many rows as `parts` in each part. REQUIRES: the first size is known, and divisible.
StatusOr<std::vector<Endpoint>> LiteRowBlocks(Endpoint e, int64_t parts, Legalizer& l);

// Gates stand in the order input, forget, cell, output.
struct SequenceLstm {
  Endpoint input;  // [batch, time, inputs], or [time, batch, inputs]
  bool time_major = false;
  std::array<Endpoint, 4> weights;       // [units, inputs]
  std::array<Endpoint, 4> recurrent;     // [units, units]; [units] where diagonal
  std::array<Endpoint, 4> bias;          // [units]
  Endpoint hidden, cell;                 // [batch, units], at first
  std::string_view activation = "TANH";  // of candidates, and of the cell on its way out
  float cell_clip = 0;                   // 0: nothing is clipped
  bool diagonal = false;
  LiteOutput output;  // all steps
};
// Copies of states in variables, by operators that run before each time.
StatusOr<std::vector<Endpoint>> VariableStates(std::span<const Endpoint> states, Legalizer& l);
// The operator's output. It writes its states into what it reads them from, and these tensors must
// be variables; they are made by operators that run before it each time, so that each run begins
// with the states that are given.
StatusOr<Endpoint> AddSequenceLstm(const SequenceLstm& lstm, Legalizer& l);

}  // namespace smelt

#endif  // SMELT_LITE_COMPOSITES_LSTM_H_
