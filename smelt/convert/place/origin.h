// Where a node was before calls were inlined.
#ifndef SMELT_CONVERT_PLACE_ORIGIN_H_
#define SMELT_CONVERT_PLACE_ORIGIN_H_

#include <string>

#include "absl/strings/string_view.h"
#include "smelt/graph/graph.h"

namespace smelt {

struct Origin {
  std::string path;      // "outer > inner": through the calls
  std::string function;  // the last of them
  std::string node;
};

// Inlining names nodes CALL/NAME: follows the calls of `function`, which are not inlined. A name
// that leads nowhere is of the last function that it leads to.
Origin OriginOf(const FunctionLibrary& library, const Function& function, absl::string_view name);

}  // namespace smelt

#endif  // SMELT_CONVERT_PLACE_ORIGIN_H_
