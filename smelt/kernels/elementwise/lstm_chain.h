// A chain that is a step of an LSTM's cells, which one loop does (IsaTable::lstm_cell).
#ifndef SMELT_KERNELS_ELEMENTWISE_LSTM_CHAIN_H_
#define SMELT_KERNELS_ELEMENTWISE_LSTM_CHAIN_H_

#include <optional>

#include "smelt/kernels/elementwise/chain.h"

namespace smelt {

// Operands of the chain, and outputs of the bound kernel.
struct LstmChain {
  int i = -1, f = -1, g = -1, o = -1, before = -1;
  int c = -1, h = -1;
};

// nullopt: the chain's steps are others, or not all that they make but c and h stays inside.
std::optional<LstmChain> FindLstm(const Chain& chain);

}  // namespace smelt

#endif  // SMELT_KERNELS_ELEMENTWISE_LSTM_CHAIN_H_
