// Scatters of XLA, as JAX writes x.at[...].set(...), in TensorFlow's ops.
#ifndef SMELT_LITE_PREPARE_XLA_SCATTERS_H_
#define SMELT_LITE_PREPARE_XLA_SCATTERS_H_

#include "smelt/graph/graph.h"

namespace smelt {

// An XlaScatter becomes a TensorScatter op where each index names a place of some dimensions and
// updates are whole in all others, and a slice that is computed and written back where one constant
// index alone says where it lies. What XLA leaves out, as it does not fit, is written beside what
// is kept. All others stay, for the legalizer to refuse.
//
// REQUIRES: a graph of TensorFlow's ops, with its calls inlined.
Status SpellXlaScatters(Graph& graph);

}  // namespace smelt

#endif  // SMELT_LITE_PREPARE_XLA_SCATTERS_H_
