// Which composite functions an export wants (composites/composite.h).
#ifndef SMELT_LITE_COMPOSITE_CHOICE_H_
#define SMELT_LITE_COMPOSITE_CHOICE_H_

#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace smelt {

using CompositeNames = std::set<std::string, std::less<>>;
// Which composites are wanted.
struct CompositeChoice {
  CompositeNames off;  // names of rows
  // What rules of fusions take as an operator, whatever row there is: the code of a custom operator
  // of the rules' patterns. Such an operator has kByRule.
  CompositeNames by_rules;
  // Of these, what no rule took when it was tried.
  CompositeNames untaken;
};

// Of a call, and of the operator that it becomes: rules are to take it.
inline constexpr absl::string_view kByRule = "_by_rule";

}  // namespace smelt

#endif  // SMELT_LITE_COMPOSITE_CHOICE_H_
