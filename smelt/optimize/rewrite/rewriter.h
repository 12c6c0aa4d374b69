// Rewrite rules: each looks at one node and rewrites what it stands in. A pass that is made of
// rules is a table of them (Rule) and RunRules.
//
// Rules are tried in the order of the table, as TensorFlow's optimizer stages are: the first that
// replaces the node ends its turn. Nodes are visited from the results backwards; what a rule
// touched is visited again. Nodes that a rule leaves without readers go at once, unless they are
// roots or have an effect.
#ifndef SMELT_OPTIMIZE_REWRITE_REWRITER_H_
#define SMELT_OPTIMIZE_REWRITE_REWRITER_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "smelt/graph/shape/infer.h"
#include "smelt/optimize/passes.h"

namespace smelt {

// What a rule did with its node.
struct Rewritten {
  enum class Kind {
    kNot,       // nothing; the next rule is tried
    kInPlace,   // the node, or others, were changed where they stand; the next rule is tried
    kReplaced,  // every reader of output 0, and everyone who waits, takes `by` instead, and waits
                // for what the node waited for
  };
  Kind kind = Kind::kNot;
  Endpoint by;
};

// What rules work with: the graph, and what is known of it. One for each run of a pass.
class Rewriter {
 public:
  // `scope`: the optimizer's name in those of new nodes ("ArithmeticOptimizer"). Shapes are
  // inferred when the first rule asks; with `trust_feeds` those of fed nodes are what these say,
  // else a request may feed any.
  Rewriter(Graph& graph, const PassContext& context, absl::string_view scope, bool trust_feeds);
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;
  // Leaves the shapes to the next pass, where the graph is as they say.
  ~Rewriter();

  Graph& graph() { return graph_; }
  const PassContext& context() const { return context_; }

  // ---- asking

  // Sizes that are not known are symbols. Unknown for nodes made since, unless SetShape said so.
  const PartialShape& shape(Endpoint e);
  // Does a node of the graph write into memory that others may still read?
  bool WritesInPlace();
  // The tensor of a Const node that is not fed; nothing for any other. Inputs are untrusted: a
  // constant may have any type and shape.
  std::optional<Tensor> Constant(Endpoint e) const;
  // The same without making a tensor of what states fewer values than elements; nullptr: no Const.
  const TensorValue* ConstantValue(Endpoint e) const;
  // Are there nodes that may not run, or run more than once (Switch, Enter, ...)?
  bool HasControlFlow();
  // Does the node run on a CPU? In a user's graph its device must say so.
  bool OnCpu(const Node& node) const;
  // Integers of a constant scalar or vector of int32 or int64.
  std::optional<std::vector<int64_t>> Integers(Endpoint e) const;

  // ---- making

  // "SCOPE/<optimizer>/<rule>_[before]NAME[_suffix]" as TensorFlow names what a stage makes of
  // `node`; with "_unique0" and so on behind it where that is taken.
  std::string Name(const Node& node, absl::string_view suffix = "",
                   absl::string_view before = "") const;
  // Is there a node that Name would be for? TensorFlow's stages take a node once where they ask.
  bool IsMade(const Node& node, absl::string_view before) const;
  // "<optimizer>/NAME<suffix>", as TensorFlow's constant folding does.
  std::string PrefixedName(const Node& node, absl::string_view suffix) const;
  // A node on the device of `like`.
  StatusOr<Node*> Add(absl::string_view name, absl::string_view op,
                      std::span<const Endpoint> inputs, AttrMap attrs, const Node& like);
  StatusOr<Node*> Add(absl::string_view name, absl::string_view op,
                      std::initializer_list<Endpoint> inputs, AttrMap attrs, const Node& like) {
    return Add(name, op, std::span<const Endpoint>(inputs.begin(), inputs.size()), std::move(attrs),
               like);
  }
  Node* AddConst(absl::string_view name, const Tensor& value, const Node& like);
  // A copy of the node, its edges and attributes (marks left out), under a new name.
  StatusOr<Node*> Copy(const Node& node, absl::string_view name);
  // Of a node that is new or gives something else than before: what it stated of its shapes goes.
  void SetShape(Endpoint e, const PartialShape& shape);
  void CopyShape(Endpoint from, Endpoint to) { SetShape(to, PartialShape(shape(from))); }
  // Makes the node another op, with these attributes and its own marks; inputs and outputs must
  // fit.
  Status Become(Node* node, absl::string_view op, AttrMap attrs);
  // Makes `node` wait for `before`, unless they are one or it does already. A node that waits for
  // a Switch waits for an Identity of that output.
  Status Wait(Node* node, Endpoint before);
  // Makes `node` wait for all that `other` waits for.
  Status WaitAs(Node* node, const Node& other);
  // The node is visited again.
  void Visit(Node* node);

  // ---- ending a rule

  static Rewritten ReplaceBy(Endpoint by) { return {Rewritten::Kind::kReplaced, by}; }
  static Rewritten InPlace() { return {Rewritten::Kind::kInPlace, {}}; }
  // The rule is not for this node.
  static Rewritten No() { return {}; }
  // The rule nearly fired: `why` is the condition that failed, as it reads after "did not fire:".
  Rewritten No(absl::string_view why);

 private:
  friend class RuleRunner;

  std::string NameFor(const Node& node, absl::string_view suffix, absl::string_view before) const;

  Graph& graph_;
  const PassContext& context_;
  const std::string scope_;
  const bool trust_feeds_;
  std::optional<bool> writes_in_place_;
  absl::string_view rule_;  // that runs
  const Node* node_ = nullptr;
  std::optional<ShapeTable> shapes_;
  int64_t shapes_version_ = -1;  // of the graph when they were inferred
  std::optional<bool> has_control_flow_;
  std::vector<int> stack_;  // ids of nodes to visit
  std::vector<bool> queued_;
};

struct Rule {
  absl::string_view name;  // TensorFlow's, without "Stage"
  OpSet ops;               // the nodes that it is asked about
  StatusOr<Rewritten> (*apply)(Node& node, Rewriter& rewriter);
  absl::string_view what;  // "Neg(Neg(x)) -> x"
  // Whether the rule is part of the list under this context.
  bool (*wanted)(const PassContext& context) = nullptr;  // nullptr: always
};

// Runs the rules until none fires, with a bound on the work per node. Errors are those of rules.
// `toggle` is the optimizer's: the shapes that fed nodes state are trusted where it is AGGRESSIVE.
Status RunRules(std::span<const Rule* const> rules, absl::string_view optimizer, Toggle toggle,
                Graph& graph, const PassContext& context);
// The same in several runs over one graph, with one Rewriter. Nodes for which `skipped` is true are
// left as they are. Did a rule fire?
StatusOr<bool> RunRules(std::span<const Rule* const> rules, Rewriter& rewriter,
                        bool (*skipped)(const Node& node) = nullptr);

// ---- what rules ask of nodes

// Nothing waits for the node, and it waits for nothing.
bool IsOutOfOrder(const Node& n);
bool HasControlInputs(const Node& n);
bool HasControlUses(const Node& n);
// Who reads a node has no need to wait for it, but for a Merge, which takes one of its inputs, and
// calls, whose bodies may read less.
void DropNeedlessWaits(Graph& graph, Node* node);
// Does `n`, or a node that it reads, read `before` or wait for it? `n` runs after itself. False
// where that is not found out in a few steps.
bool RunsAfter(const Node& n, const Node& before);
// How many data inputs read any output of the node.
int NumDataUses(const Node& n);
// Is the one reader of the node's data `reader`?
bool OnlyReadBy(const Node& n, const Node& reader);
// Does the definition of the op, whose first type attribute is "T", take the type?
bool TakesType(OpName op, Dtype type);
// Does the endpoint give a reference? A rule that reads it elsewhere would read it at another time.
bool GivesReference(Endpoint e);
// Every size is a number or a symbol.
bool IsSymbolic(const PartialShape& s);
// Are the shapes equal whatever their symbols turn out to be?
bool SameSymbolicShape(const PartialShape& a, const PartialShape& b);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_REWRITE_REWRITER_H_
