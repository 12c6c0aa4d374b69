// What a rule of text matched, and what is made of it.
#ifndef SMELT_LITE_FUSE_RULES_APPLY_H_
#define SMELT_LITE_FUSE_RULES_APPLY_H_

#include <map>
#include <string>

#include "smelt/lite/fuse/fusion.h"
#include "smelt/lite/fuse/rules.h"

namespace smelt {

// Values and options by the names that the rule gives them.
struct RuleMatch {
  std::map<std::string, Endpoint, std::less<>> values;
  std::map<std::string, Attr, std::less<>> options;
};

// False also where a value that it names is no number.
bool Holds(const RuleCondition& condition, const RuleMatch& match);
// Has what stands instead the shape that is stated of `root`? True where nothing can be said: of
// operators that do not keep a shape, whose rules have conditions.
bool KeepsRootShape(const RuleReplacement& r, const RuleMatch& match, Endpoint root);
// Puts the replacement in the place of `root`. False where its constants cannot be computed.
StatusOr<bool> BuildReplacement(const RuleReplacement& r, const RuleMatch& match, Node& root,
                                Fuser& f);

}  // namespace smelt

#endif  // SMELT_LITE_FUSE_RULES_APPLY_H_
