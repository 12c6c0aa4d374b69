// Rules tried at an operator: a search over the ways in which a pattern may lie on the graph.
#include <algorithm>
#include <cmath>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/fuse/fusion.h"
#include "smelt/lite/fuse/rules.h"
#include "smelt/lite/fuse/rules_apply.h"
#include "smelt/wire/tflite/flex.h"

namespace smelt {
namespace {

// How many patterns are looked at for one node and rule; patterns of our own need a few dozen.
constexpr int kMostSteps = 20000;

using Continue = absl::FunctionRef<bool()>;
using PatternPtr = std::shared_ptr<const RulePattern>;

constexpr OpSet kCommutative = {
    "tfl.add",   "tfl.mul",         "tfl.maximum",    "tfl.minimum",  "tfl.squared_difference",
    "tfl.equal", "tfl.logical_and", "tfl.logical_or", "tfl.not_equal"};
constexpr OpSet kNested = {"tfl.add",     "tfl.mul",         "tfl.maximum",
                           "tfl.minimum", "tfl.logical_and", "tfl.logical_or"};

absl::string_view ActivationOf(OpName op) {
  if (op == OpName("tfl.relu")) return "RELU";
  if (op == OpName("tfl.relu6")) return "RELU6";
  if (op == OpName("tfl.relu_n1_to_1")) return "RELU_N1_TO_1";
  return "";
}

// As patterns name the operator.
std::string PatternName(absl::string_view op, const Node& n) {
  if (op == "_Arg") return "an input";
  if (op == "Const") return "a constant";
  if (op == "tfl.custom") return n.String("custom_code");
  absl::ConsumePrefix(&op, "tfl.");
  return std::string(op);
}

class Matcher {
 public:
  // With `explain`, constants that are others than wanted are looked past, one of them; with
  // `operators`, an operator and all that it reads, too.
  Matcher(const FusionRule& rule, Node& root, bool explain, bool operators)
      : rule_(rule), root_(root), explain_(explain), operators_(operators) {}

  bool Match() {
    return Value(*rule_.pattern, {&root_, 0}, [&]() { return Accept(); });
  }
  const RuleMatch& match() const { return match_; }
  // Why the pattern that was found does not hold.
  const std::string& why_not() const { return why_not_; }

 private:
  bool Value(const RulePattern& p, Endpoint e, Continue next) {
    if (++steps_ > kMostSteps) return false;
    return Kind(p, e, next);
  }

  bool Kind(const RulePattern& p, Endpoint e, Continue next) {
    switch (p.kind) {
      case RulePattern::kAnything:
        return next();
      case RulePattern::kValue:
        return Bind(p.name, e, next);
      case RulePattern::kConstant:
        if (StatedConstant(*e.node) != nullptr) return Bind(p.name, e, next);
        return Miss(3, absl::StrCat("'", e.node->name(), "' is no constant"), next);
      case RulePattern::kNumber:
        if (Fuser::Number(e)) return Bind(p.name, e, next);
        return Miss(StatedConstant(*e.node) != nullptr ? 2 : 3,
                    absl::StrCat("'", e.node->name(), "' is no constant of one number"), next);
      case RulePattern::kLiteral:
        return Literal(p, e, next);
      case RulePattern::kOneOf:
        return Bind(p.name, e, [&]() {
          return std::ranges::any_of(p.args,
                                     [&](const PatternPtr& one) { return Kind(*one, e, next); });
        });
      case RulePattern::kOperator:
        return Operator(p, e, next);
      case RulePattern::kReference:
        return false;  // the parser leaves none
    }
    return false;
  }

  bool Bind(const std::string& name, Endpoint e, Continue next) {
    if (name.empty()) return next();
    const auto it = match_.values.find(name);
    if (it != match_.values.end()) {
      if (it->second == e) return next();
      return Miss(3,
                  absl::StrCat("'", it->second.node->name(), "' and '", e.node->name(),
                               "' are not the same"),
                  next);
    }
    match_.values.emplace(name, e);
    if (next()) return true;
    match_.values.erase(name);
    return false;
  }

  bool Literal(const RulePattern& p, Endpoint e, Continue next) {
    const std::optional<float> is = Fuser::Number(e);
    const double wanted = p.number;
    if (!is) {
      return Miss(3, absl::StrCat("'", e.node->name(), "' is no constant, and not ", wanted), next);
    }
    const double off = p.tolerance * std::max(std::abs(wanted), 1e-30);
    if (*is == wanted || (std::isfinite(wanted) && std::abs(*is - wanted) <= off)) return next();
    return Miss(2, absl::StrCat("the constant '", e.node->name(), "' is ", *is, ", not ", wanted),
                next);
  }

  // Looks past one thing that is not as wanted, to say so if all else is: in a pattern of `least`
  // operators or more, for in smaller ones too much is nearly so.
  bool Miss(size_t least, std::string why, Continue next) {
    if (!explain_ || !wrong_.empty()) return false;
    wrong_ = std::move(why);
    least_ = least;
    const bool ok = next();
    wrong_.clear();
    least_ = 2;
    return ok;
  }

  bool Operator(const RulePattern& p, Endpoint e, Continue next) {
    Node& n = *e.node;
    const absl::string_view activation = ActivationOf(p.op);
    if (!activation.empty() && p.args.size() == 1 && !n.Is(p.op)) {
      // The clamp may stand in the operator before it.
      const RulePattern& before = *p.args[0];
      return n.String("fused_activation_function") == activation &&
             before.kind == RulePattern::kOperator && before.options.empty() &&
             OneOperator(before, e, /*activation=*/true, next);
    }
    return OneOperator(p, e, /*activation=*/false, next);
  }

  bool OneOperator(const RulePattern& p, Endpoint e, bool activation, Continue next) {
    Node& n = *e.node;
    const bool is_it = n.Is(p.op) && e.port == std::max(p.port, 0) &&
                       (p.port >= 0 || n.num_outputs() == 1) &&
                       (p.custom.empty() || n.String("custom_code") == p.custom);
    if (!is_it) {
      if (!operators_ || inner_.empty()) return false;
      std::string why = absl::StrCat("'", n.name(), "' is ", PatternName(n.op(), n), ", not ",
                                     p.custom.empty() ? PatternName(p.op.text(), n) : p.custom);
      if (n.Is(p.op) && p.custom.empty()) why = absl::StrCat("'", n.name(), "' is another result");
      return Miss(2, std::move(why), next);
    }
    const bool said = std::ranges::any_of(
        p.options, [](const RuleOption& o) { return o.name == "fused_activation_function"; });
    inner_.push_back(&n);
    const auto rest = [&]() { return Operands(p, n, e, next); };
    const bool fits = activation || said || !HasActivation(n);
    const bool ok =
        fits ? rest() : Miss(2, absl::StrCat("'", n.name(), "' has an activation"), rest);
    inner_.pop_back();
    return ok;
  }

  bool Operands(const RulePattern& p, Node& n, Endpoint e, Continue next) {
    return Options(p, n, 0, [&]() {
      return Bind(p.name, e, [&]() {
        if (n.Is(kCommutative) && p.args.size() >= 2 && n.num_inputs() == 2) {
          return Commutative(p, p.args, n, next);
        }
        return InOrder(p, n, 0, next);
      });
    });
  }

  static bool HasActivation(const Node& n) {
    return n.String("fused_activation_function", "NONE") != "NONE";
  }

  // Of custom operators what their FlexBuffer states, where a truth may be a number.
  static std::optional<Attr> OptionOf(const RulePattern& p, const Node& n, const RuleOption& o) {
    if (p.custom.empty()) {
      const Attr* value = n.Find(o.name);
      return value == nullptr ? std::nullopt : std::optional(*value);
    }
    const auto stated = ReadFlexMap(n.String("custom_options"));
    if (!stated.ok()) return std::nullopt;
    for (const auto& [name, value] : *stated) {
      if (name != o.name) continue;
      const auto* number = value.get<int64_t>();
      const bool truth = o.keep.empty() && !o.is_number && o.value.get<bool>() != nullptr;
      return truth && number != nullptr ? Attr(*number != 0) : value;
    }
    return std::nullopt;
  }

  bool Options(const RulePattern& p, const Node& n, size_t i, Continue next) {
    if (i == p.options.size()) return next();
    const RuleOption& o = p.options[i];
    const std::optional<Attr> value = OptionOf(p, n, o);
    if (!value && p.custom.empty()) return false;
    if (!value) {
      return Miss(2, absl::StrCat("'", n.name(), "' has no option ", o.name),
                  [&]() { return o.keep.empty() && Options(p, n, i + 1, next); });
    }
    if (!o.keep.empty()) {
      const auto [it, is_new] = match_.options.emplace(o.keep, *value);
      if (!is_new) return it->second == *value && Options(p, n, i + 1, next);
      if (Options(p, n, i + 1, next)) return true;
      match_.options.erase(o.keep);
      return false;
    }
    if (o.is_number) {
      const auto* f = value->get<float>();
      const auto* whole = value->get<int64_t>();
      const double is = f != nullptr ? *f : whole != nullptr ? static_cast<double>(*whole) : NAN;
      const double wanted = o.number.number;
      if (std::abs(is - wanted) <= 1e-6 * std::abs(wanted)) return Options(p, n, i + 1, next);
    } else if (*value == o.value) {
      return Options(p, n, i + 1, next);
    }
    return Miss(2, absl::StrCat("option ", o.name, " of '", n.name(), "' is another"),
                [&]() { return Options(p, n, i + 1, next); });
  }

  bool InOrder(const RulePattern& p, const Node& n, size_t i, Continue next) {
    if (i < p.args.size()) {
      const int input = static_cast<int>(i);
      if (input >= n.num_inputs()) return false;
      return Value(*p.args[i], n.input(input), [&]() { return InOrder(p, n, i + 1, next); });
    }
    // Inputs that are left out need not be named.
    for (int k = static_cast<int>(i); k < n.num_inputs(); ++k) {
      if (!n.input(k).node->Is("tfl.no_value")) return false;
    }
    return next();
  }

  // Splits the operands between both inputs in every way.
  bool Commutative(const RulePattern& p, const std::vector<PatternPtr>& args, const Node& n,
                   Continue next) {
    const size_t all = (size_t{1} << args.size()) - 1;
    if (args.size() > 2 && (args.size() > 8 || !n.Is(kNested))) return false;
    for (size_t left = 1; left < all; ++left) {
      if (Side(p, Chosen(args, left), n, 0,
               [&]() { return Side(p, Chosen(args, all & ~left), n, 1, next); })) {
        return true;
      }
    }
    return false;
  }
  static std::vector<PatternPtr> Chosen(const std::vector<PatternPtr>& args, size_t bits) {
    std::vector<PatternPtr> out;
    for (size_t i = 0; i < args.size(); ++i) {
      if ((bits >> i & 1) != 0) out.push_back(args[i]);
    }
    return out;
  }
  bool Side(const RulePattern& p, const std::vector<PatternPtr>& args, const Node& n, int input,
            Continue next) {
    const Endpoint e = n.input(input);
    if (args.size() == 1) return Value(*args[0], e, next);
    if (++steps_ > kMostSteps) return false;
    Node& inner = *e.node;
    if (!inner.Is(p.op) || inner.num_inputs() != 2) return false;
    inner_.push_back(&inner);
    const auto rest = [&]() { return Commutative(p, args, inner, next); };
    const bool ok = !HasActivation(inner)
                        ? rest()
                        : Miss(2, absl::StrCat("'", inner.name(), "' has an activation"), rest);
    inner_.pop_back();
    return ok;
  }

  // Everything lies in place: does it hold?
  bool Accept() {
    std::string why = wrong_;
    if (why.empty()) why = NotWorthIt();
    if (why.empty()) {
      for (const RuleCondition& c : rule_.conditions) {
        if (Holds(c, match_)) continue;
        why = absl::StrCat("it is not that ", c.text);
        break;
      }
    }
    if (why.empty() && !KeepsRootShape(rule_.replacement, match_, {&root_, 0})) {
      why = "the result would have another shape";
    }
    const auto by = match_.values.find(rule_.replacement.name);
    if (why.empty() && rule_.replacement.kind == RuleReplacement::kValue &&
        by != match_.values.end() && Fuser::type(by->second) != root_.output_types[0]) {
      why = "the result would be of another type";
    }
    if (why.empty()) return true;
    // A single operator with another constant is no near match of anything.
    if (why_not_.empty() && inner_.size() >= least_) why_not_ = std::move(why);
    return false;
  }

  // Others may read what the rule would take away: it stays for them, and the rule is worth it only
  // where more operators go than come.
  std::string NotWorthIt() const {
    const std::vector<const Node*> alone = ReadBy({&root_}, /*with_values=*/true);
    const auto stays = std::ranges::find_if(
        inner_, [&](const Node* n) { return std::ranges::find(alone, n) == alone.end(); });
    if (stays == inner_.end()) return "";
    const size_t gone = ReadBy({&root_}, /*with_values=*/false).size();
    return gone > OperatorsIn(rule_.replacement)
               ? ""
               : absl::StrCat("others read '", (*stays)->name(), "'");
  }
  // These, and operators of the pattern that only they read; with or without those that the
  // replacement reads.
  std::vector<const Node*> ReadBy(std::vector<const Node*> these, bool with_values) const {
    for (size_t before = 0; before != these.size();) {
      before = these.size();
      for (const Node* n : inner_) {
        const auto is_one = [&](const Node* one) {
          return std::ranges::find(these, one) != these.end();
        };
        if (is_one(n) || (!with_values && Stands(rule_.replacement, n))) continue;
        if (std::ranges::all_of(n->uses(), [&](const Use& u) { return is_one(u.node); })) {
          these.push_back(n);
        }
      }
    }
    return these;
  }
  static size_t OperatorsIn(const RuleReplacement& r) {
    size_t out = r.kind == RuleReplacement::kOperator ? 1 : 0;
    for (const RuleReplacement& arg : r.args) out += OperatorsIn(arg);
    return out;
  }
  // Is it a value that the replacement reads?
  bool Stands(const RuleReplacement& r, const Node* n) const {
    if (r.kind == RuleReplacement::kValue) {
      const auto it = match_.values.find(r.name);
      if (it != match_.values.end() && it->second.node == n) return true;
    }
    return std::ranges::any_of(r.args, [&](const RuleReplacement& arg) { return Stands(arg, n); });
  }

  const FusionRule& rule_;
  Node& root_;
  bool explain_, operators_;
  int steps_ = 0;
  RuleMatch match_;
  std::vector<Node*> inner_;  // nodes that operators of the pattern lie on
  std::string wrong_, why_not_;
  size_t least_ = 2;  // operators of a pattern that nearly matches
};

}  // namespace

StatusOr<bool> ApplyRules(const RuleFusion& fusion, Node& n, Fuser& f) {
  std::string why_not;
  for (const FusionRule& rule : fusion.rules) {
    if (!n.Is(rule.roots)) continue;
    Matcher m(rule, n, f.takes_notes(), f.takes_notes() && !fusion.ours);
    if (!m.Match()) {
      if (why_not.empty()) why_not = m.why_not();
      continue;
    }
    return BuildReplacement(rule.replacement, m.match(), n, f);
  }
  return why_not.empty() ? false : f.Declined(n, why_not);
}

}  // namespace smelt
