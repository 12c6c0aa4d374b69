// Values that are known before anything runs.
#include "smelt/analysis/captured.h"
#include "smelt/convert/quantize/quantize.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/kernels/run_op.h"
#include "smelt/wire/saved_model/object_graph.h"

namespace smelt::quantize {
namespace {

// Chains of computed constants that are longer are not followed.
constexpr int kMaxDepth = 64;
constexpr int kMaxCalls = 16;  // within each other

bool MayEvaluate(const Node& n) {
  if (n.def() == nullptr || n.def()->stateful || n.num_inputs() == 0 || n.num_outputs() == 0) {
    return false;
  }
  static constexpr OpSet kNever = {"Switch",
                                   "Merge",
                                   "Enter",
                                   "Exit",
                                   "NextIteration",
                                   "LoopCond",
                                   "PlaceholderWithDefault",
                                   "StatelessIf",
                                   "StatelessWhile",
                                   "StatelessCase",
                                   "PartitionedCall",
                                   "_Arg"};
  return !n.Is(kNever);
}

}  // namespace

KnownValues::KnownValues(Conversion& c, ModelVariables& variables) : variables_(variables) {
  const std::vector<std::string> names = ServedFunctions(*c.meta);
  const absl::flat_hash_set<absl::string_view> served(names.begin(), names.end());
  const std::vector<Node*> nodes = ServedNodes(*c.meta);
  const absl::flat_hash_set<const Node*> served_nodes(nodes.begin(), nodes.end());
  const auto is_served = [&](const HandleUse& use) {
    return use.function ? served.contains(use.function->name()) : served_nodes.contains(use.node);
  };
  for (const auto& v : variables.all()) {
    bool changes = v->key.empty();
    for (const HandleUse& use : v->initializers) changes |= is_served(use);
    for (const HandleUse& use : v->others) changes |= is_served(use);
    for (const HandleUse& use : v->restores) changes |= use.function && is_served(use);
    if (changes) change_.insert(v.get());
  }
  // Whoever loads the object graph may call its functions with anything but what they captured;
  // where it cannot be read, that may be any function.
  if (!c.meta->object_graph.empty()) {
    const auto objects = ParseObjectGraph(c.meta->object_graph);
    if (!objects.ok()) return;
    for (const auto& [name, concrete] : objects->concrete_functions) {
      const Function* f = c.library().Find(name);
      if (f == nullptr || f->body == nullptr) continue;
      const std::vector<Endpoint> args = f->FlatArguments();
      const size_t bound = std::min(args.size(), concrete.bound_inputs.size());
      for (size_t i = 0; i < args.size(); ++i) {
        Passed passed;
        if (i >= args.size() - bound) {
          const int object = concrete.bound_inputs[i - (args.size() - bound)];
          Node* constant = c.meta->graph->Find(objects->nodes[object].operation);
          if (constant != nullptr) passed.value = {constant, 0};
        }
        AddCall(args[i], passed);
      }
    }
  }
  FindCalls(nullptr, *c.meta->graph);
  for (Function* f : c.library().Functions()) {
    if (f->body != nullptr) FindCalls(f, *f->body);
  }
}

void KnownValues::FindCalls(Function* caller, const Graph& graph) {
  for (const Node* n : graph.Nodes()) {
    if (!CallsFunctions(*graph.library(), *n)) continue;
    absl::flat_hash_set<absl::string_view> entered;
    for (int i = 0; i < n->num_inputs(); ++i) {
      int position = 0;
      for (const std::string& name : CalleesOfInput(graph, *n, i, &position)) {
        const Function* f = graph.library()->Find(name);
        if (f == nullptr || f->body == nullptr) continue;
        entered.insert(f->name());
        if (position < 0) continue;
        const std::vector<Endpoint> args = f->FlatArguments();
        if (position >= std::ssize(args)) continue;
        const Endpoint arg = args[position];
        // A loop's body may hand its next round something else.
        bool kept = true;
        if (IsLoop(*n)) {
          const FuncAttr* body_name = n->Func("body");
          const Function* body = body_name ? graph.library()->Find(body_name->name) : nullptr;
          kept = body != nullptr && body->body != nullptr;
          if (kept) {
            const std::vector<Endpoint> in = body->FlatArguments(), out = body->FlatResults();
            kept = position < std::ssize(in) && position < std::ssize(out) &&
                   BehindIdentities(out[position]) == in[position];
          }
        }
        const Passed passed = kept ? Passed{caller, n->inputs()[i]} : Passed{};
        AddCall(arg, passed);
      }
    }
    // Functions that the node runs with arguments that are not its inputs (a dataset's, a
    // gradient).
    ForEachCallee(*graph.library(), *n, [&](absl::string_view name) {
      const Function* f = graph.library()->Find(name);
      if (f == nullptr || f->body == nullptr || entered.contains(f->name())) return;
      for (const Endpoint& arg : f->FlatArguments()) AddCall(arg, {});
    });
  }
}

void KnownValues::AddCall(Endpoint argument, Passed passed) {
  passed_[{argument.node, argument.port}].push_back(passed);
}

KnownValues::Passed KnownValues::Origin(Passed passed, int depth) const {
  passed.value = BehindIdentities(passed.value);
  if (!passed.value.node->Is("_Arg")) return passed;
  const std::optional<Passed> outside = PassedAs(passed.value, depth + 1);
  return outside ? Origin(*outside, depth + 1) : passed;
}

std::optional<KnownValues::Passed> KnownValues::PassedAs(Endpoint argument, int depth) const {
  const auto it = passed_.find({argument.node, argument.port});
  if (it == passed_.end() || depth > kMaxCalls) return std::nullopt;
  const std::vector<Passed>& calls = it->second;
  for (const Passed& p : calls) {
    if (p.value.node == nullptr) return std::nullopt;
  }
  if (calls.size() == 1) return calls[0];
  const Passed first = Origin(calls[0], depth);
  for (const Passed& p : calls) {
    if (Origin(p, depth).value != first.value) return std::nullopt;
  }
  return first;
}

ModelVariable* KnownValues::ReadOnlyVariable(const Scope& scope, Endpoint handle) const {
  handle = BehindIdentities(handle);
  const std::vector<ModelVariable*> found = variables_.Of(handle);
  if (found.size() != 1 || change_.contains(found[0])) return nullptr;
  return found[0];
}

std::optional<Tensor> KnownValues::Of(const Scope& scope, Endpoint e, int depth) const {
  const Node& n = *e.node;
  if (depth > kMaxDepth || e.port < 0) return std::nullopt;
  if (n.Is("Const")) return ConstantTensor(n);
  if (n.Is("_Arg")) {
    const auto passed = PassedAs(e);
    return passed ? Of(scope, passed->value, depth + 1) : std::nullopt;
  }
  if (n.Is("ReadVariableOp")) {
    const ModelVariable* v = ReadOnlyVariable(scope, n.inputs()[0]);
    if (v == nullptr) return std::nullopt;
    auto t = variables_.Value(*v);
    if (!t.ok() || t->dtype() != n.Type("dtype")) return std::nullopt;
    return *std::move(t);
  }
  if (!MayEvaluate(n)) return std::nullopt;
  // Each node is computed once: shared terms would otherwise multiply.
  auto [it, added] = computed_.try_emplace(&n);
  if (added) {
    std::vector<Tensor> outputs = Compute(scope, n, depth);
    computed_[&n] = std::move(outputs);
  }
  const std::vector<Tensor>& outputs = computed_[&n];
  if (e.port >= static_cast<int>(outputs.size())) return std::nullopt;
  return outputs[e.port];
}

std::vector<Tensor> KnownValues::Compute(const Scope& scope, const Node& n, int depth) const {
  std::vector<Tensor> inputs;
  for (const Endpoint& in : n.inputs()) {
    auto t = Of(scope, in, depth + 1);
    if (!t) return {};
    inputs.push_back(*std::move(t));
  }
  Step step;
  ResourceManager none, none_of_step;
  step.resources = &none;
  step.step_resources = &none_of_step;
  auto outputs = RunOp(n, std::move(inputs), step);
  return outputs.ok() ? *std::move(outputs) : std::vector<Tensor>();
}

}  // namespace smelt::quantize
