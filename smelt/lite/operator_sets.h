// Which operators an export may have.
#ifndef SMELT_LITE_OPERATOR_SETS_H_
#define SMELT_LITE_OPERATOR_SETS_H_

#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace smelt {

// What custom codes of operators of the Flex delegate begin with; the op's name is behind it.
inline constexpr absl::string_view kFlexPrefix = "Flex";

struct OperatorSets {
  bool builtins = true;  // false: every op becomes a select op
  bool select = false, custom = false;
  // Select ops beside those of TensorFlow's converter: all, or ops that users' programs define.
  bool any_select = false;
  std::set<std::string, std::less<>> user_select;
};

}  // namespace smelt

#endif  // SMELT_LITE_OPERATOR_SETS_H_
