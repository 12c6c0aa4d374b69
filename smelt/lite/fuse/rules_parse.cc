// The text of fusions, read.
#include <limits>
#include <map>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "smelt/lite/common/operand_counts.h"
#include "smelt/lite/fuse/rules.h"
#include "smelt/lite/fuse/rules_lexer.h"

namespace smelt {
namespace {

using PatternPtr = std::shared_ptr<const RulePattern>;
constexpr int kMostDepth = 60;        // of what is nested in the text
constexpr int kMostExpanded = 20000;  // patterns that the lets of one rule become
// Nearly equal: a few roundings of a float.
constexpr double kTolerance = 1e-6;

const std::map<absl::string_view, size_t, std::less<>>& Functions() {
  static const auto* functions = new std::map<absl::string_view, size_t, std::less<>>{
      {"rank", 1},       {"elements", 1}, {"dim", 2},         {"last_axis", 2}, {"is_float", 1},
      {"abs", 1},        {"is_bool", 1},  {"sqrt", 1},        {"min", 2},       {"max", 2},
      {"same_shape", 2}, {"fits", 2},     {"is_imaginary", 1}};
  return *functions;
}

struct Let {
  std::vector<std::string> params;
  PatternPtr body;
};

class FusionParser {
 public:
  explicit FusionParser(absl::string_view text) : lex_(text) {}

  StatusOr<std::vector<RuleFusion>> Parse() {
    std::vector<RuleFusion> out;
    std::set<std::string> names;
    while (lex_.kind() != RuleLexer::kEnd) {
      if (lex_.IsName("let")) {
        RETURN_IF_ERROR(ParseLet());
        continue;
      }
      ASSIGN_OR_RETURN(RuleFusion fusion, ParseFusion());
      if (!names.insert(fusion.name).second) {
        return lex_.Error(absl::StrCat("there are two fusions ", fusion.name));
      }
      out.push_back(std::move(fusion));
    }
    return out;
  }

 private:
  Status ParseLet() {
    lex_.Next();
    ASSIGN_OR_RETURN(const std::string name, lex_.Name("a name"));
    Let let;
    if (lex_.Accept("(")) {
      do {
        ASSIGN_OR_RETURN(let.params.emplace_back(), lex_.Name("a name"));
        if (lets_.contains(let.params.back())) return lex_.Error("a let has that name");
      } while (lex_.Accept(","));
      RETURN_IF_ERROR(lex_.Expect(")"));
    }
    RETURN_IF_ERROR(lex_.Expect("="));
    ASSIGN_OR_RETURN(let.body, ParsePattern(0));
    if (!lets_.emplace(name, std::move(let)).second) {
      return lex_.Error(absl::StrCat("there are two lets ", name));
    }
    return lex_.Expect(";");
  }

  StatusOr<RuleFusion> ParseFusion() {
    RuleFusion out;
    if (lex_.IsName("late")) {
      out.late = true;
      lex_.Next();
    }
    if (!lex_.IsName("fusion")) return lex_.Expected("'let', 'late' or 'fusion'");
    lex_.Next();
    ASSIGN_OR_RETURN(out.name, lex_.Name("the fusion's name"));
    if (lex_.kind() != RuleLexer::kString) return lex_.Expected("what it does, in quotes");
    out.what = std::string(lex_.text());
    lex_.Next();
    lex_.Within(out.name);
    RETURN_IF_ERROR(lex_.Expect("{"));
    while (!lex_.Is("}")) {
      ASSIGN_OR_RETURN(FusionRule rule, ParseRule());
      for (int i = 0; i < kNumOps; ++i) {
        if (rule.roots.Contains(OpName::OfNumber(i))) out.ops.Add(OpName::OfNumber(i));
      }
      AddCustoms(*rule.pattern, out.customs);
      out.rules.push_back(std::move(rule));
    }
    lex_.Next();
    lex_.Within("");
    return out;
  }

  StatusOr<FusionRule> ParseRule() {
    FusionRule rule;
    ASSIGN_OR_RETURN(const PatternPtr written, ParsePattern(0));
    expanded_ = 0;
    ASSIGN_OR_RETURN(rule.pattern, Expand(written, nullptr, 0));
    RETURN_IF_ERROR(AddRoots(*rule.pattern, rule.roots));
    known_.clear();
    kept_.clear();
    AddNames(*rule.pattern);
    RETURN_IF_ERROR(lex_.Expect("->"));
    ASSIGN_OR_RETURN(rule.replacement, ParseReplacement(0));
    if (lex_.IsName("where")) {
      do {
        lex_.Next();
        ASSIGN_OR_RETURN(rule.conditions.emplace_back(), ParseCondition());
      } while (lex_.Is(","));
    }
    RETURN_IF_ERROR(lex_.Expect(";"));
    return rule;
  }

  // ---- patterns

  StatusOr<PatternPtr> ParsePattern(int depth) {
    if (depth > kMostDepth) return lex_.Error("it is nested too deep");
    ASSIGN_OR_RETURN(PatternPtr first, ParseTerm(depth));
    if (!lex_.Is("|")) return first;
    auto choice = std::make_shared<RulePattern>();
    choice->kind = RulePattern::kOneOf;
    choice->args.push_back(std::move(first));
    while (lex_.Accept("|")) {
      ASSIGN_OR_RETURN(choice->args.emplace_back(), ParseTerm(depth));
    }
    return choice;
  }

  StatusOr<PatternPtr> ParseTerm(int depth) {
    auto p = std::make_shared<RulePattern>();
    if (lex_.Accept("(")) {
      ASSIGN_OR_RETURN(PatternPtr inner, ParsePattern(depth + 1));
      RETURN_IF_ERROR(lex_.Expect(")"));
      return inner;
    }
    if (lex_.kind() == RuleLexer::kNumber || lex_.Is("-")) {
      p->kind = RulePattern::kLiteral;
      ASSIGN_OR_RETURN(p->number, ParseNumber());
      p->tolerance = kTolerance;
      if (lex_.Accept("~")) {
        ASSIGN_OR_RETURN(p->tolerance, ParseNumber());
      }
      return p;
    }
    if (lex_.kind() == RuleLexer::kString) return ParseOperator(std::move(p), depth);
    if (lex_.IsName("_")) {
      lex_.Next();
      return p;
    }
    ASSIGN_OR_RETURN(const std::string name, lex_.Name("a pattern"));
    if (lex_.Is("(")) {
      p->name = name;
      return ParseOperator(std::move(p), depth);
    }
    if (lex_.Accept("@")) {
      auto inner = std::make_shared<RulePattern>();
      if (lex_.kind() != RuleLexer::kString) {
        ASSIGN_OR_RETURN(inner->name, lex_.Name("an operator"));
      }
      ASSIGN_OR_RETURN(p->args.emplace_back(), ParseOperator(std::move(inner), depth));
      p->kind = RulePattern::kOneOf;
      p->name = name;
      return p;
    }
    p->name = name;
    p->kind = lets_.contains(name) ? RulePattern::kReference : RulePattern::kValue;
    if (!lex_.Accept(":")) return p;
    ASSIGN_OR_RETURN(const std::string kind, lex_.Name("'const' or 'number'"));
    if (kind != "const" && kind != "number") return lex_.Error("expected 'const' or 'number'");
    p->kind = kind == "const" ? RulePattern::kConstant : RulePattern::kNumber;
    return p;
  }

  // p->name holds the operator's or let's name, or the token is the code of a custom operator.
  StatusOr<PatternPtr> ParseOperator(std::shared_ptr<RulePattern> p, int depth) {
    const std::string name = std::exchange(p->name, "");
    if (lets_.contains(name)) {
      p->kind = RulePattern::kReference;
      p->name = name;
    } else {
      p->kind = RulePattern::kOperator;
      RETURN_IF_ERROR(ReadOperatorName(name, p->op, p->custom));
    }
    RETURN_IF_ERROR(lex_.Expect("("));
    while (!lex_.Is(")")) {
      ASSIGN_OR_RETURN(p->args.emplace_back(), ParsePattern(depth + 1));
      if (!lex_.Accept(",")) break;
    }
    RETURN_IF_ERROR(lex_.Expect(")"));
    if (p->kind != RulePattern::kOperator) return p;
    ASSIGN_OR_RETURN(p->options, ParseOptions(p->op, p->custom, true));
    RETURN_IF_ERROR(ParsePort(*p));
    return p;
  }

  // Which result of an operator that has several.
  Status ParsePort(RulePattern& p) {
    const OperandCounts* counts = FindOperandCounts(p.op);
    const bool stated = lex_.Accept("[");
    if (!stated) {
      if (counts == nullptr || counts->outputs.least <= 1) return OkStatus();
      return lex_.Error(absl::StrCat(p.op.text(), " has several results: [0] is the first"));
    }
    if (lex_.kind() != RuleLexer::kNumber || !absl::SimpleAtoi(lex_.text(), &p.port)) {
      return lex_.Expected("the number of a result");
    }
    if (counts != nullptr && p.port >= counts->outputs.most) {
      return lex_.Error(absl::StrCat(p.op.text(), " has no result ", p.port));
    }
    lex_.Next();
    return lex_.Expect("]");
  }

  Status ReadOperatorName(const std::string& name, OpName& op, std::string& custom) {
    if (name.empty()) {
      op = "tfl.custom";
      custom = std::string(lex_.text());
      if (custom.empty()) return lex_.Error("a custom operator has a name");
      lex_.Next();
      return OkStatus();
    }
    op = OpName::Of(absl::StrCat("tfl.", name));
    // Ops that have no operator keep the name that TensorFlow gives them.
    if (op.unknown()) op = OpName::Of(name);
    if (op.unknown()) return lex_.Error(absl::StrCat("there is no operator ", name));
    return OkStatus();
  }

  StatusOr<std::vector<RuleOption>> ParseOptions(OpName op, const std::string& custom,
                                                 bool pattern) {
    std::vector<RuleOption> out;
    if (!lex_.Accept("{")) return out;
    do {
      RuleOption option;
      ASSIGN_OR_RETURN(option.name, lex_.Name("an option"));
      const OpDef* def = DefinitionOf(op);
      if (custom.empty() && (def == nullptr || def->FindAttr(option.name) == nullptr)) {
        return lex_.Error(absl::StrCat(op.text(), " has no option ", option.name));
      }
      RETURN_IF_ERROR(lex_.Expect("="));
      if (pattern && lex_.Accept("?")) {
        ASSIGN_OR_RETURN(option.keep, lex_.Name("a name"));
      } else if (lex_.IsName("true") || lex_.IsName("false")) {
        option.value = Attr(lex_.IsName("true"));
        lex_.Next();
      } else if (lex_.kind() == RuleLexer::kString) {
        option.value = Attr(lex_.text());
        lex_.Next();
      } else if (pattern) {
        option.is_number = true;
        ASSIGN_OR_RETURN(option.number.number, ParseNumber());
      } else {
        option.is_number = true;
        ASSIGN_OR_RETURN(option.number, ParseSum(0));
      }
      out.push_back(std::move(option));
    } while (lex_.Accept(","));
    RETURN_IF_ERROR(lex_.Expect("}"));
    return out;
  }

  // Lets become what they stand for.
  using Arguments = std::map<std::string, PatternPtr>;
  StatusOr<PatternPtr> Expand(const PatternPtr& p, const Arguments* arguments, int depth) {
    if (depth > kMostDepth || ++expanded_ > kMostExpanded) {
      return lex_.Error("the lets of a rule become too much");
    }
    if (p->kind == RulePattern::kValue && arguments != nullptr) {
      const auto it = arguments->find(p->name);
      if (it != arguments->end()) {
        expanded_ += it->second->size;
        return it->second;
      }
    }
    auto out = std::make_shared<RulePattern>(*p);
    out->size = 1;
    for (PatternPtr& arg : out->args) {
      ASSIGN_OR_RETURN(arg, Expand(arg, arguments, depth + 1));
      out->size += arg->size;
      if (expanded_ > kMostExpanded) return lex_.Error("the lets of a rule become too much");
    }
    if (p->kind != RulePattern::kReference) return out;
    const Let& let = lets_.at(p->name);
    if (let.params.size() != out->args.size()) {
      return lex_.Error(absl::StrCat(p->name, " takes ", let.params.size(), " arguments"));
    }
    Arguments inner;
    for (size_t i = 0; i < let.params.size(); ++i) inner[let.params[i]] = out->args[i];
    return Expand(let.body, &inner, depth + 1);
  }

  Status AddRoots(const RulePattern& p, OpSet& roots) {
    if (p.kind == RulePattern::kOneOf) {
      for (const PatternPtr& arg : p.args) RETURN_IF_ERROR(AddRoots(*arg, roots));
      return OkStatus();
    }
    if (p.kind != RulePattern::kOperator) return lex_.Error("a rule begins with an operator");
    if (p.port >= 0) return lex_.Error("a rule begins with an operator of one result");
    roots.Add(p.op);
    // The operator before may have it as its activation.
    const bool activation = p.op == OpName("tfl.relu") || p.op == OpName("tfl.relu6") ||
                            p.op == OpName("tfl.relu_n1_to_1");
    for (const PatternPtr& arg : p.args) {
      if (activation && arg->kind == RulePattern::kOperator) roots.Add(arg->op);
    }
    return OkStatus();
  }

  static void AddCustoms(const RulePattern& p, std::set<std::string, std::less<>>& out) {
    if (!p.custom.empty()) out.insert(p.custom);
    for (const PatternPtr& arg : p.args) AddCustoms(*arg, out);
  }

  void AddNames(const RulePattern& p) {
    if (!p.name.empty()) known_.insert(p.name);
    for (const RuleOption& o : p.options) {
      if (o.keep.empty()) continue;
      known_.insert(o.keep);
      const AttrDef* def = DefinitionOf(p.op)->FindAttr(o.name);
      if (def != nullptr) kept_.emplace(o.keep, def->type);
    }
    for (const PatternPtr& arg : p.args) AddNames(*arg);
  }

  // ---- replacements

  StatusOr<RuleReplacement> ParseReplacement(int depth) {
    if (depth > kMostDepth) return lex_.Error("it is nested too deep");
    RuleReplacement r;
    if (lex_.Accept("{")) {
      r.kind = RuleReplacement::kConstant;
      ASSIGN_OR_RETURN(r.constant, ParseSum(0));
      RETURN_IF_ERROR(lex_.Expect("}"));
      return r;
    }
    if (lex_.kind() == RuleLexer::kNumber || lex_.Is("-")) {
      r.kind = RuleReplacement::kConstant;
      ASSIGN_OR_RETURN(r.constant.number, ParseNumber());
      return r;
    }
    std::string name;
    if (lex_.kind() != RuleLexer::kString) {
      ASSIGN_OR_RETURN(name, lex_.Name("what stands instead"));
    }
    if (!name.empty() && !lex_.Is("(")) {
      if (!known_.contains(name)) return lex_.Error(absl::StrCat("nothing is named ", name));
      r.name = name;
      return r;
    }
    r.kind = RuleReplacement::kOperator;
    RETURN_IF_ERROR(ReadOperatorName(name, r.op, r.custom));
    RETURN_IF_ERROR(CheckCanStand(r.op));
    if (depth > 0 && !KeepsShape(r.op)) {
      return lex_.Error("only operators of one element at a time can be inside of another");
    }
    RETURN_IF_ERROR(lex_.Expect("("));
    while (!lex_.Is(")")) {
      ASSIGN_OR_RETURN(r.args.emplace_back(), ParseReplacement(depth + 1));
      if (!lex_.Accept(",")) break;
    }
    RETURN_IF_ERROR(lex_.Expect(")"));
    if (r.args.empty()) return lex_.Error("the operator has no operand");
    RETURN_IF_ERROR(CheckOperands(r));
    ASSIGN_OR_RETURN(r.options, ParseOptions(r.op, r.custom, false));
    for (const RuleOption& o : r.options) RETURN_IF_ERROR(CheckOption(r.op, o));
    return r;
  }

  // Can the operator be what a rule makes?
  Status CheckCanStand(OpName op) {
    if (!absl::StartsWith(op.text(), "tfl.")) {
      return lex_.Error(absl::StrCat("no file has an operator ", op.text()));
    }
    constexpr OpSet kNeverMade = {"tfl.no_value", "tfl.variable"};
    bool calls = false;
    for (const AttrDef& a : DefinitionOf(op)->attrs)
      calls = calls || absl::StrContains(a.type, "func");
    if (op != OpName("tfl.custom") && (calls || kNeverMade.Contains(op))) {
      return lex_.Error(absl::StrCat("no rule can make ", op.text()));
    }
    return OkStatus();
  }

  Status CheckOperands(const RuleReplacement& r) {
    if (!r.custom.empty()) return OkStatus();
    const OperandCounts* counts = FindOperandCounts(r.op);
    if (counts == nullptr) return lex_.Error(absl::StrCat("no file has an operator ", r.op.text()));
    // As many as an option says is not known to be one.
    if (!counts->outputs.Has(1) || counts->outputs.most == CountBounds::kAny) {
      return lex_.Error(absl::StrCat(r.op.text(), " has other results than one"));
    }
    const auto is = static_cast<int>(r.args.size());
    if (counts->inputs.Has(is)) return OkStatus();
    return lex_.Error(
        absl::StrCat(r.op.text(), " takes ", counts->inputs.ToString(), " operands, not ", is));
  }

  // Is the option of the type that the operator's is?
  Status CheckOption(OpName op, const RuleOption& o) {
    const AttrDef* def = DefinitionOf(op)->FindAttr(o.name);
    if (def == nullptr || op == OpName("tfl.custom")) return OkStatus();
    std::string is = o.is_number ? "number" : o.value.get<bool>() != nullptr ? "bool" : "string";
    if (o.is_number && o.number.kind == RuleExpr::kName && kept_.contains(o.number.name)) {
      is = kept_.at(o.number.name);
    }
    const auto counts = [](absl::string_view type) {
      return type == "number" || type == "int" || type == "float";
    };
    if (is == def->type || (counts(is) && counts(def->type))) {
      const bool named = def->type != "string" || def->allowed_strings.empty() || o.is_number ||
                         absl::c_linear_search(def->allowed_strings, *o.value.get<std::string>());
      if (named) return OkStatus();
      return lex_.Error(absl::StrCat("option ", o.name, " of ", op.text(), " is none of ",
                                     absl::StrJoin(def->allowed_strings, ", ")));
    }
    return lex_.Error(absl::StrCat("option ", o.name, " of ", op.text(), " is of type ", def->type,
                                   ", not ", is));
  }

  // ---- expressions

  StatusOr<RuleCondition> ParseCondition() {
    RuleCondition c;
    const size_t begin = lex_.offset();
    ASSIGN_OR_RETURN(c.left, ParseSum(0));
    for (const absl::string_view mark : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!lex_.Accept(mark)) continue;
      c.compare = std::string(mark);
      ASSIGN_OR_RETURN(c.right, ParseSum(0));
      break;
    }
    c.text = std::string(lex_.whole().substr(begin, lex_.last_end() - begin));
    return c;
  }

  StatusOr<RuleExpr> ParseSum(int depth) {
    if (depth > kMostDepth) return lex_.Error("it is nested too deep");
    ASSIGN_OR_RETURN(RuleExpr left, ParseProduct(depth));
    while (lex_.Is("+") || lex_.Is("-")) {
      ASSIGN_OR_RETURN(left, ParseBinary(std::move(left), depth, &FusionParser::ParseProduct));
    }
    return left;
  }
  StatusOr<RuleExpr> ParseProduct(int depth) {
    ASSIGN_OR_RETURN(RuleExpr left, ParseFactor(depth));
    while (lex_.Is("*") || lex_.Is("/")) {
      ASSIGN_OR_RETURN(left, ParseBinary(std::move(left), depth, &FusionParser::ParseFactor));
    }
    return left;
  }
  StatusOr<RuleExpr> ParseBinary(RuleExpr left, int depth,
                                 StatusOr<RuleExpr> (FusionParser::*next)(int)) {
    RuleExpr e;
    e.kind = RuleExpr::kCall;
    e.name = std::string(lex_.text());
    lex_.Next();
    ASSIGN_OR_RETURN(RuleExpr right, (this->*next)(depth));
    e.args.push_back(std::move(left));
    e.args.push_back(std::move(right));
    return e;
  }
  StatusOr<RuleExpr> ParseFactor(int depth) {
    if (depth > kMostDepth) return lex_.Error("it is nested too deep");
    RuleExpr e;
    if (lex_.Accept("(")) {
      ASSIGN_OR_RETURN(e, ParseSum(depth + 1));
      RETURN_IF_ERROR(lex_.Expect(")"));
      return e;
    }
    if (lex_.Accept("-")) {
      e.kind = RuleExpr::kCall;
      e.name = "neg";
      ASSIGN_OR_RETURN(e.args.emplace_back(), ParseFactor(depth + 1));
      return e;
    }
    if (lex_.kind() == RuleLexer::kNumber) {
      e.whole = lex_.text().find_first_of(".eE") == absl::string_view::npos;
      ASSIGN_OR_RETURN(e.number, ParseNumber());
      return e;
    }
    ASSIGN_OR_RETURN(e.name, lex_.Name("a number or a name"));
    if (!lex_.Accept("(")) {
      e.kind = RuleExpr::kName;
      if (!known_.contains(e.name)) return lex_.Error(absl::StrCat("nothing is named ", e.name));
      return e;
    }
    e.kind = RuleExpr::kCall;
    do {
      ASSIGN_OR_RETURN(e.args.emplace_back(), ParseSum(depth + 1));
    } while (lex_.Accept(","));
    RETURN_IF_ERROR(lex_.Expect(")"));
    const auto it = Functions().find(e.name);
    if (it == Functions().end() || it->second != e.args.size()) {
      return lex_.Error(absl::StrCat("there is no function ", e.name, " of ", e.args.size()));
    }
    return e;
  }

  StatusOr<double> ParseNumber() {
    const bool minus = lex_.Accept("-");
    if (minus && lex_.IsName("inf")) {
      lex_.Next();
      return -std::numeric_limits<double>::infinity();
    }
    double value = 0;
    if (lex_.kind() != RuleLexer::kNumber || !absl::SimpleAtod(lex_.text(), &value)) {
      return lex_.Expected("a number");
    }
    lex_.Next();
    return minus ? -value : value;
  }

  RuleLexer lex_;
  std::map<std::string, Let, std::less<>> lets_;
  int expanded_ = 0;
  std::set<std::string, std::less<>> known_;              // names of the rule that is read
  std::map<std::string, std::string, std::less<>> kept_;  // types of options that it keeps
};

}  // namespace

StatusOr<std::vector<RuleFusion>> ParseFusions(absl::string_view text) {
  return FusionParser(text).Parse();
}

}  // namespace smelt
