#include "smelt/cli/svg.h"

#include "absl/strings/str_format.h"
#include "smelt/io/utf8.h"

namespace smelt {

std::string SvgText(absl::string_view text) {
  std::string out;
  for (const char c : Utf8Text(text)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string SvgDocument(double width, double height, absl::string_view shapes) {
  return absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n%s</svg>\n",
      width, height, width, height, shapes);
}

}  // namespace smelt
