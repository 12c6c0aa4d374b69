#include "smelt/graph/text_lexer.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

namespace smelt::text {
namespace {

bool IsWordChar(char c) { return IsNameChar(c) || c == '+'; }

constexpr absl::string_view kPunctuation = "=(){}[],:;^@$*?";

}  // namespace

bool IsNameChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' ||
         c == '/' || c == '>';
}

bool IsBareName(absl::string_view name) {
  return !name.empty() && name[0] != '-' && std::all_of(name.begin(), name.end(), IsNameChar);
}

Reader::Reader(absl::string_view text) : text_(text) { Advance(); }

void Reader::Advance() { tok_ = Lex(&pos_); }

Token Reader::Peek() const {
  size_t pos = pos_;
  return Lex(&pos);
}

Token Reader::Lex(size_t* pos) const {
  Token t;
  size_t i = *pos;
  t.starts_line = i == 0;
  while (i < text_.size()) {
    const char c = text_[i];
    if (c == '#') {
      while (i < text_.size() && text_[i] != '\n') ++i;
    } else if (c == '\n') {
      t.starts_line = true;
      ++i;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++i;
    } else {
      break;
    }
  }
  t.offset = i;
  if (i == text_.size()) {
    *pos = i;
    return t;
  }
  size_t end = i;
  if (IsWordChar(text_[i])) {
    while (end < text_.size() && IsWordChar(text_[end])) ++end;
    t.kind = Token::kWord;
    t.text = text_.substr(i, end - i);
  } else if (text_[i] == '"') {
    for (end = i + 1; end < text_.size() && text_[end] != '"' && text_[end] != '\n'; ++end) {
      if (text_[end] == '\\') ++end;
    }
    t.kind = Token::kBad;
    if (end < text_.size() && text_[end] == '"') {
      t.kind = Token::kString;
      t.text = text_.substr(i + 1, end - i - 1);
      ++end;
    }
    end = std::min(end, text_.size());
  } else {
    ++end;
    t.kind = kPunctuation.find(text_[i]) != absl::string_view::npos ? Token::kPunct : Token::kBad;
    t.text = text_.substr(i, 1);
  }
  *pos = end;
  return t;
}

bool Reader::Accept(char punct) {
  if (!tok_.Is(punct)) return false;
  Advance();
  return true;
}

bool Reader::AcceptWord(absl::string_view word) {
  if (!tok_.IsWord(word)) return false;
  Advance();
  return true;
}

Status Reader::Expect(char punct) {
  if (Accept(punct)) return OkStatus();
  return Expected(absl::StrCat("'", absl::string_view(&punct, 1), "'"));
}

Token Reader::AfterBraces() const {
  int64_t depth = 1;
  size_t pos = pos_;
  while (depth > 0) {
    const Token t = Lex(&pos);
    if (t.kind == Token::kEnd) return t;
    depth += t.Is('{') ? 1 : t.Is('}') ? -1 : 0;
  }
  return Lex(&pos);
}

Status Reader::ErrorAt(size_t offset, absl::string_view message) const {
  const absl::string_view before = text_.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column = start == absl::string_view::npos ? offset + 1 : offset - start;
  return InvalidArgument(line, ":", column, ": ", context_, message);
}

Status Reader::Expected(absl::string_view what) const {
  switch (tok_.kind) {
    case Token::kEnd:
      return Error(absl::StrCat("expected ", what, ", not the end of the text"));
    case Token::kBad:
      return Error(tok_.text.empty() ? "the string is not closed on its line"
                                     : absl::StrCat("expected ", what, ", not the byte '",
                                                    absl::CHexEscape(tok_.text), "'"));
    default: {
      // An untrusted word may be long.
      const absl::string_view shown = tok_.text.substr(0, 60);
      return Error(absl::StrCat("expected ", what, ", not '", shown,
                                shown.size() < tok_.text.size() ? "..." : "", "'"));
    }
  }
}

StatusOr<std::string> Reader::ReadString(absl::string_view what) {
  if (tok_.kind != Token::kString) return Expected(what);
  std::string out, problem;
  if (!absl::CUnescape(tok_.text, &out, &problem)) {
    return Error(absl::StrCat("escapes of ", what, ": ", problem));
  }
  Advance();
  return out;
}

StatusOr<std::string> Reader::ReadName(absl::string_view what) {
  if (tok_.kind == Token::kString) return ReadString(what);
  if (tok_.kind != Token::kWord) return Expected(what);
  if (!IsBareName(tok_.text)) return Expected(absl::StrCat(what, " (quoted if odd)"));
  std::string out(tok_.text);
  Advance();
  return out;
}

StatusOr<int64_t> Reader::ReadInt(absl::string_view what) {
  int64_t v = 0;
  const absl::string_view w = tok_.text;
  if (tok_.kind == Token::kWord) {
    const auto r = std::from_chars(w.data(), w.data() + w.size(), v);
    if (r.ec == std::errc() && r.ptr == w.data() + w.size()) {
      Advance();
      return v;
    }
  }
  return Expected(what);
}

}  // namespace smelt::text
