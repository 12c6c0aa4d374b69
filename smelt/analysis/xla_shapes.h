// Shapes of XLA's products, convolutions and gathers, whose attributes are serialized messages,
// which graph/ does not read. Thread safe.
#ifndef SMELT_ANALYSIS_XLA_SHAPES_H_
#define SMELT_ANALYSIS_XLA_SHAPES_H_

#include "smelt/graph/shape/infer.h"

namespace smelt {

// What InferShapes and its kin take as `more`.
MoreShapeRules XlaShapeRules();

}  // namespace smelt

#endif  // SMELT_ANALYSIS_XLA_SHAPES_H_
