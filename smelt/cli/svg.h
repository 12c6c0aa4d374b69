// What pictures in SVG share.
#ifndef SMELT_CLI_SVG_H_
#define SMELT_CLI_SVG_H_

#include <string>

#include "absl/strings/string_view.h"

namespace smelt {

// As character data: UTF-8, with <, >, & and " escaped, and a blank for each control character.
std::string SvgText(absl::string_view text);
// A document without scripts, on white.
std::string SvgDocument(double width, double height, absl::string_view shapes);

}  // namespace smelt

#endif  // SMELT_CLI_SVG_H_
