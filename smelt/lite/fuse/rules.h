// Fusions written as text: what a user adds with `smelt lite --fusions FILE`, and most of our own.
// docs/lite_fusions.md says the whole form; in short:
//
//   let sixth = 0.16666667~1e-4;              # a number, and how far off it may be
//   let clamped(x) = relu6(add(x, 3));
//   fusion FuseHardSwish "x * relu6(x + 3) / 6 is hard_swish(x)" {
//     mul(x, clamped(x), sixth) -> hard_swish(x);
//     maximum(x, mul(x, a:number)) -> leaky_relu(x){alpha=a} where a >= 0, a <= 1;
//   }
//
// A rule is tried at every operator. Operands of commutative operators match in any order, sums
// and products of three and more however they are nested. What the rule takes away must have no
// activation but those that the rule states; what others read stays for them, and the rule is
// applied then only where more operators go than come. Thread safe once parsed.
#ifndef SMELT_LITE_FUSE_RULES_H_
#define SMELT_LITE_FUSE_RULES_H_

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

class Fuser;

// Arithmetic over matched values: "a * 2", "rank(x)", "last_axis(axes, x)".
struct RuleExpr {
  enum Kind { kNumber, kName, kCall };
  Kind kind = kNumber;
  double number = 0;
  bool whole = false;  // a number without a point
  std::string name;    // of a matched value or option; "+", "neg", "rank"... of a call
  std::vector<RuleExpr> args;
};
struct RuleCondition {
  RuleExpr left, right;
  std::string compare;  // "==", "<"...; empty: `left` is not 0
  std::string text;     // as the file has it
};

// What an option must be, or the name under which it is kept.
struct RuleOption {
  std::string name;
  Attr value;        // a bool, a string; or
  std::string keep;  // "?k": k; or
  RuleExpr number;   // where neither is said
  bool is_number = false;
};

struct RulePattern {
  enum Kind {
    kAnything,   // _
    kValue,      // x
    kConstant,   // c:const
    kNumber,     // a:number, a float that all elements are
    kLiteral,    // 3
    kOperator,   // add(...)
    kOneOf,      // ( ... | ... ), and e@exp(...) of one
    kReference,  // of a let that is not expanded yet
  };
  Kind kind = kAnything;
  std::string name;  // the value's; of a reference the let's
  double number = 0, tolerance = 0;
  OpName op;  // tfl.custom has its code in `custom`
  std::string custom;
  std::vector<std::shared_ptr<const RulePattern>> args;
  std::vector<RuleOption> options;
  int port = -1;  // "[1]": the result of an operator of several; -1: its only one
  int size = 1;   // of patterns, this and those inside
};

struct RuleReplacement {
  enum Kind { kValue, kConstant, kOperator };
  Kind kind = kValue;
  std::string name;
  RuleExpr constant;  // computed of constants, element by element
  OpName op;
  std::string custom;
  std::vector<RuleReplacement> args;
  std::vector<RuleOption> options;
};

struct FusionRule {
  std::shared_ptr<const RulePattern> pattern;
  RuleReplacement replacement;
  std::vector<RuleCondition> conditions;
  OpSet roots{};  // ops of the node that the pattern may begin at
};

struct RuleFusion {
  std::string name, what;
  bool late = false;  // tried when others have found what they look for
  bool ours = false;  // comes with the program: others are told of wrong operators, too
  OpSet ops{};        // of all rules
  std::set<std::string, std::less<>> customs;  // codes of custom operators in patterns
  std::vector<FusionRule> rules;
};

// INVALID_ARGUMENT "line:column: ..." for what does not parse: operators, options and names that
// there are not, too. Text is untrusted: what rules expand to is bounded.
StatusOr<std::vector<RuleFusion>> ParseFusions(absl::string_view text);

// Tries the rules at the node. False where none matches; with notes to be taken, Fuser::Declined
// says what was missing of one that nearly did. Errors are those of kernels that compute constants.
StatusOr<bool> ApplyRules(const RuleFusion& fusion, Node& n, Fuser& f);

// Does the result have the shape that its operands have when they are broadcast, or that its first
// operand has?
bool KeepsShape(OpName op);

// Our own, as text.
absl::string_view BuiltinFusionText();

}  // namespace smelt

#endif  // SMELT_LITE_FUSE_RULES_H_
