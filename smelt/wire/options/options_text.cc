#include "smelt/wire/options/options_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace smelt {
namespace {

bool IsWordChar(char c) { return absl::ascii_isalnum(c) || c == '_'; }

std::string MendOptionsText(absl::string_view text) {
  std::string out;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      out.push_back(c);
      if (c == '\\' && i + 1 < text.size()) {
        out.push_back(text[++i]);
      } else if (c == quote) {
        quote = 0;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      out.push_back(c);
    } else if (c == '#') {
      while (i < text.size() && text[i] != '\n') out.push_back(text[i++]);
      if (i < text.size()) out.push_back('\n');
    } else if (c == '\\') {
      size_t end = i + 1;
      while (end < text.size() && (text[end] == ' ' || text[end] == '\t' || text[end] == '\r')) {
        ++end;
      }
      // A continuation of the shell; anything else is left for the parser to refuse.
      out.push_back(end == text.size() || text[end] == '\n' ? ' ' : c);
    } else if (c == '=') {
      out.push_back(':');
    } else if (IsWordChar(c) && (i == 0 || !IsWordChar(text[i - 1]))) {
      size_t end = i;
      while (end < text.size() && IsWordChar(text[end])) ++end;
      const absl::string_view word = text.substr(i, end - i);
      absl::StrAppend(&out, word == "True" ? "true" : word == "False" ? "false" : word);
      i = end - 1;
    } else {
      out.push_back(c);
    }
  }
  return out;
}

Status CheckExpanded(absl::string_view text) {
  const size_t start = text.find("${");
  if (start == absl::string_view::npos) return OkStatus();
  const size_t end = text.find('}', start);
  if (end == absl::string_view::npos) return OkStatus();
  const absl::string_view variable = text.substr(start, end - start + 1);
  return InvalidArgument("the converter options hold ", variable,
                         ", which the shell did not expand: it stands inside single quotes. Write "
                         "the value, or close the quotes around it: '...'\"",
                         variable, "\"'...'");
}

// How far the string or comment at `at` goes: behind its end, or `at` when there is none. npos for
// a string that its line does not end.
size_t BehindQuoted(absl::string_view text, size_t at) {
  const char quote = text[at];
  if (quote == '#') return std::min(text.find('\n', at), text.size());
  if (quote != '"' && quote != '\'') return at;
  for (++at; at < text.size() && text[at] != '\n'; ++at) {
    if (text[at] == quote) return at + 1;
    if (text[at] == '\\' && at + 1 < text.size() && text[at + 1] != '\n') ++at;
  }
  return absl::string_view::npos;
}

// Where a brace stands alone, protobuf's parser names the end of the text, or nothing.
Status CheckPairs(absl::string_view text) {
  constexpr absl::string_view kOpen = "{[<", kClose = "}]>";
  struct Place {
    char bracket;
    int line, column;
  };
  const auto message = [](const Place& p, absl::string_view what) {
    return InvalidArgument("the converter options do not parse: line ", p.line, ", column ",
                           p.column, ": '", std::string(1, p.bracket), "' ", what);
  };
  std::vector<Place> open;
  int line = 1;
  size_t line_start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t behind = BehindQuoted(text, i);
    if (behind == absl::string_view::npos) return OkStatus();  // the parser says so
    if (behind > i) {
      i = behind - 1;
      continue;
    }
    const char c = text[i];
    const Place here = {c, line, static_cast<int>(i - line_start) + 1};
    if (c == '\n') {
      ++line;
      line_start = i + 1;
    } else if (kOpen.find(c) != absl::string_view::npos) {
      open.push_back(here);
    } else if (const size_t kind = kClose.find(c); kind != absl::string_view::npos) {
      if (open.empty()) return message(here, "closes nothing");
      const Place& opened = open.back();
      if (opened.bracket != kOpen[kind]) {
        return message(here, absl::StrCat("does not close the '", std::string(1, opened.bracket),
                                          "' of line ", opened.line, ", column ", opened.column));
      }
      open.pop_back();
    }
  }
  return open.empty() ? OkStatus() : message(open.back(), "is not closed");
}

Status CheckEncoding(absl::string_view text) {
  constexpr absl::string_view kUtf32Little("\xff\xfe\0\0", 4), kUtf32Big("\0\0\xfe\xff", 4);
  const bool utf32 = absl::StartsWith(text, kUtf32Little) || absl::StartsWith(text, kUtf32Big);
  if (utf32 || absl::StartsWith(text, "\xff\xfe") || absl::StartsWith(text, "\xfe\xff")) {
    return InvalidArgument("the converter options are encoded as ", utf32 ? "UTF-32" : "UTF-16",
                           ": save them as UTF-8");
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::string> StrictOptionsText(absl::string_view text) {
  RETURN_IF_ERROR(CheckEncoding(text));
  text = absl::StripPrefix(text, "\xef\xbb\xbf");
  RETURN_IF_ERROR(CheckExpanded(text));
  std::string strict = MendOptionsText(text);
  RETURN_IF_ERROR(CheckPairs(strict));
  return strict;
}

}  // namespace smelt
