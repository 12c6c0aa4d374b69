// Names of nodes for what files name by any text.
#ifndef SMELT_LITE_COMMON_NODE_NAMES_H_
#define SMELT_LITE_COMMON_NODE_NAMES_H_

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace smelt {

// The text with what no name may have as '_'; `before` in front of one that begins as none does.
inline std::string LegalNodeName(absl::string_view text, absl::string_view before) {
  std::string name(text);
  for (char& c : name) {
    const bool legal = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ||
                       c == '-' || c == '/' || c == '>';
    if (!legal) c = '_';
  }
  const bool begins =
      !name.empty() && (absl::ascii_isalnum(static_cast<unsigned char>(name[0])) || name[0] == '.');
  return begins ? name : absl::StrCat(before, name);
}

}  // namespace smelt

#endif  // SMELT_LITE_COMMON_NODE_NAMES_H_
