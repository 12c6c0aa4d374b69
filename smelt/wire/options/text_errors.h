// What protobuf's text parser complains of.
#ifndef SMELT_WIRE_OPTIONS_TEXT_ERRORS_H_
#define SMELT_WIRE_OPTIONS_TEXT_ERRORS_H_

#include <google/protobuf/io/tokenizer.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace smelt {

// Keeps the first complaint of the parser.
class FirstOptionError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (message_.empty()) {
      message_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
    }
  }
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

}  // namespace smelt

#endif  // SMELT_WIRE_OPTIONS_TEXT_ERRORS_H_
