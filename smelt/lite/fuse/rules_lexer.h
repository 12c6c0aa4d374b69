// Tokens of the text of fusions (rules.h). The text must outlive the lexer.
#ifndef SMELT_LITE_FUSE_RULES_LEXER_H_
#define SMELT_LITE_FUSE_RULES_LEXER_H_

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace smelt {

class RuleLexer {
 public:
  enum Kind { kEnd, kName, kNumber, kString, kMark };

  explicit RuleLexer(absl::string_view text) : text_(text) { Next(); }

  Kind kind() const { return kind_; }
  // Of a string: what stands between the quotes, which has no escapes.
  absl::string_view text() const { return token_; }
  bool Is(absl::string_view mark) const { return kind_ == kMark && token_ == mark; }
  bool IsName(absl::string_view name) const { return kind_ == kName && token_ == name; }
  // Where the token begins, and where the one before ended.
  size_t offset() const { return begin_; }
  size_t last_end() const { return last_end_; }
  absl::string_view whole() const { return text_; }

  void Next() {
    last_end_ = at_;
    SkipBlanks();
    begin_ = at_;
    const char c = Peek(0);
    if (at_ == text_.size()) {
      kind_ = kEnd;
    } else if (Letter(c)) {
      kind_ = kName;
      while (Letter(Peek(0)) || Digit(Peek(0))) ++at_;
    } else if (Digit(c) || (c == '.' && Digit(Peek(1)))) {
      kind_ = kNumber;
      LexNumber();
    } else if (c == '"') {
      kind_ = kString;
      const size_t end = text_.find('"', at_ + 1);
      at_ = end == absl::string_view::npos ? text_.size() : end + 1;
      token_ = text_.substr(begin_ + 1, at_ - begin_ - (end == absl::string_view::npos ? 1 : 2));
      return;
    } else {
      kind_ = kMark;
      const absl::string_view two = text_.substr(at_, 2);
      const bool pair = two == "->" || two == "==" || two == "!=" || two == "<=" || two == ">=";
      at_ += pair ? 2 : 1;
    }
    token_ = text_.substr(begin_, at_ - begin_);
  }

  bool Accept(absl::string_view mark) {
    if (!Is(mark)) return false;
    Next();
    return true;
  }
  Status Expect(absl::string_view mark) {
    return Accept(mark) ? OkStatus() : Expected(absl::StrCat("'", mark, "'"));
  }
  StatusOr<std::string> Name(absl::string_view what) {
    if (kind_ != kName) return Expected(what);
    std::string out(token_);
    Next();
    return out;
  }
  Status Expected(absl::string_view what) const {
    if (kind_ == kEnd) return Error(absl::StrCat("expected ", what, ", not the end"));
    return Error(absl::StrCat("expected ", what, ", not '", token_.substr(0, 60), "'"));
  }
  Status Error(absl::string_view message) const {
    const absl::string_view before = text_.substr(0, begin_);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const size_t start = before.rfind('\n');
    const size_t column = start == absl::string_view::npos ? begin_ + 1 : begin_ - start;
    return InvalidArgument(line, ":", column, ": ", within_, within_.empty() ? "" : ": ", message);
  }
  // Errors name the fusion that is read; empty: none is.
  void Within(std::string fusion) { within_ = std::move(fusion); }

 private:
  char Peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  static bool Digit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
  static bool Letter(char c) {
    return c == '_' || absl::ascii_isalpha(static_cast<unsigned char>(c));
  }
  void SkipBlanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
      } else {
        return;
      }
    }
  }
  void LexNumber() {
    while (Digit(Peek(0)) || Peek(0) == '.') ++at_;
    const size_t sign = Peek(1) == '-' || Peek(1) == '+' ? 2 : 1;
    if ((Peek(0) == 'e' || Peek(0) == 'E') && Digit(Peek(sign))) {
      at_ += sign;
      while (Digit(Peek(0))) ++at_;
    }
  }

  absl::string_view text_, token_;
  std::string within_;
  size_t at_ = 0, begin_ = 0, last_end_ = 0;
  Kind kind_ = kEnd;
};

}  // namespace smelt

#endif  // SMELT_LITE_FUSE_RULES_LEXER_H_
