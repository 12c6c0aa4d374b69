// The text of converter options before protobuf's parser sees it.
#ifndef SMELT_WIRE_OPTIONS_OPTIONS_TEXT_H_
#define SMELT_WIRE_OPTIONS_OPTIONS_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace smelt {

// Strict text format of what shell examples hold and of what editors write: a byte-order mark of
// UTF-8 is dropped, a backslash before a line end becomes a blank, `=` becomes `:`, True and False
// become true and false. Strings, comments, lines and columns stay, so that errors name the user's
// own.
// INVALID_ARGUMENT for UTF-16 and UTF-32, for a ${VARIABLE} that the shell did not expand, and,
// with line and column, for a brace or bracket without its other half.
StatusOr<std::string> StrictOptionsText(absl::string_view text);

}  // namespace smelt

#endif  // SMELT_WIRE_OPTIONS_OPTIONS_TEXT_H_
