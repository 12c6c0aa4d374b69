// Shapes that one pass found, for the next that asks while the graph is still the same.
#ifndef SMELT_OPTIMIZE_REWRITE_KEPT_SHAPES_H_
#define SMELT_OPTIMIZE_REWRITE_KEPT_SHAPES_H_

#include "smelt/graph/shape/infer.h"

namespace smelt {

struct KeptShapes {
  ShapeTable table;
  int64_t version = -1;  // of the graph, as the table has it; -1: there is none
  bool trust_feeds = false;
};

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_REWRITE_KEPT_SHAPES_H_
