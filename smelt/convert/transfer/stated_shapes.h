// Shapes that signatures state where no inference finds them.
#ifndef SMELT_CONVERT_TRANSFER_STATED_SHAPES_H_
#define SMELT_CONVERT_TRANSFER_STATED_SHAPES_H_

#include <map>
#include <string>
#include <utility>

#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {

// (function, position among its results, lists expanded) -> the shape that the signatures which
// return this result of a call state. A result for which two signatures state different shapes is
// left out.
std::map<std::pair<std::string, int>, PartialShape> StatedResultShapes(const MetaGraph& meta);

}  // namespace smelt

#endif  // SMELT_CONVERT_TRANSFER_STATED_SHAPES_H_
