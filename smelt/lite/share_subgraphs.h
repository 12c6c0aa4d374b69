// Subgraphs that do the same become one.
#ifndef SMELT_LITE_SHARE_SUBGRAPHS_H_
#define SMELT_LITE_SHARE_SUBGRAPHS_H_

#include "smelt/wire/tflite/tflite.h"

namespace smelt {

// Keras saves a function under two signatures: one subgraph answers both. A loop in a loop has a
// subgraph of its own for what both do the same way: runtimes keep the tensors of the outer one.
void ShareSubgraphs(LiteModel& model);

}  // namespace smelt

#endif  // SMELT_LITE_SHARE_SUBGRAPHS_H_
