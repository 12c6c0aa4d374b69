#include "smelt/optimize/onednn.h"

#include <cstdlib>

#include "absl/strings/match.h"

namespace smelt {

bool IsForOneDnn() {
  const char* value = std::getenv("TF_ENABLE_ONEDNN_OPTS");
  return value != nullptr &&
         (absl::string_view(value) == "1" || absl::EqualsIgnoreCase(value, "true"));
}

}  // namespace smelt
