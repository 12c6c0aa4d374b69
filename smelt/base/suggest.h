// Hints for names that mean nothing: the nearest that mean something. Thread safe.
#ifndef SMELT_BASE_SUGGEST_H_
#define SMELT_BASE_SUGGEST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace smelt {

// Up to three of `names` that are close to `name`, the nearest first. Of long lists and long names
// only the beginning is looked at.
std::vector<std::string> Nearest(absl::string_view name, const std::vector<std::string>& names);
// ` (did you mean "a" or "b"?)`; empty for no names.
std::string DidYouMean(const std::vector<std::string>& names);
// Both at once.
std::string Suggest(absl::string_view name, const std::vector<std::string>& names);

}  // namespace smelt

#endif  // SMELT_BASE_SUGGEST_H_
