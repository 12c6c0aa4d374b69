#include "smelt/lite/common/xla_function.h"

#include "absl/container/flat_hash_map.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/lite/common/evaluate.h"

namespace smelt {
namespace {

// JAX's comparators have some thirty ops.
constexpr size_t kMostSteps = 200;
// Constants of functions of scalars are scalars; a tensor is none of theirs.
constexpr int64_t kMostElements = 16;

class ScalarRun {
 public:
  explicit ScalarRun(std::span<const Tensor> arguments) : arguments_(arguments) {}

  std::optional<Tensor> Of(Endpoint e) {
    const Node& n = *e.node;
    if (e.port != 0) return std::nullopt;
    if (const auto it = made_.find(&n); it != made_.end()) return it->second;
    if (++steps_ > kMostSteps) return std::nullopt;
    std::optional<Tensor> value = Compute(n);
    if (value && value->num_elements() > kMostElements) return std::nullopt;
    if (value) made_.emplace(&n, *value);
    return value;
  }

 private:
  std::optional<Tensor> Compute(const Node& n) {
    if (n.Is("_Arg")) {
      const auto index = static_cast<size_t>(n.Int("index"));
      return index < arguments_.size() ? std::optional<Tensor>(arguments_[index]) : std::nullopt;
    }
    if (n.Is("Const")) return ConstantTensor(n);
    if (!n.Is(kElementwiseOps) && !n.Is({"Identity", "Bitcast"})) return std::nullopt;
    std::vector<Tensor> inputs;
    for (const Endpoint& input : n.inputs()) {
      std::optional<Tensor> value = Of(input);
      if (!value) return std::nullopt;
      inputs.push_back(*std::move(value));
    }
    auto outputs = Evaluate(n.op_name(), std::move(inputs), n.attrs());
    if (!outputs.ok() || outputs->size() != 1) return std::nullopt;
    return std::move(outputs->front());
  }

  const std::span<const Tensor> arguments_;
  absl::flat_hash_map<const Node*, Tensor> made_;
  size_t steps_ = 0;
};

}  // namespace

OpName OpOfTwo(const FunctionLibrary& library, const FuncAttr* f) {
  const Function* function = f == nullptr ? nullptr : library.Find(f->name);
  if (function == nullptr || function->body == nullptr || function->args.size() != 2) return {};
  const std::vector<Endpoint> results = function->FlatResults();
  if (results.size() != 1) return {};
  const Node& op = *BehindIdentities(results[0]).node;
  if (op.Is("_Arg")) return op.Int("index") == 1 ? op.op_name() : OpName();
  if (op.num_inputs() != 2) return {};
  const Node *a = BehindIdentities(op.input(0)).node, *b = BehindIdentities(op.input(1)).node;
  return a->Is("_Arg") && b->Is("_Arg") && a != b ? op.op_name() : OpName();
}

std::optional<std::vector<Tensor>> AnswersOf(const FunctionLibrary& library, const FuncAttr* f,
                                             std::span<const Tensor> arguments) {
  const Function* function = f == nullptr ? nullptr : library.Find(f->name);
  if (function == nullptr || function->body == nullptr ||
      function->args.size() != arguments.size()) {
    return std::nullopt;
  }
  ScalarRun run(arguments);
  std::vector<Tensor> answers;
  for (const Endpoint& e : function->FlatResults()) {
    std::optional<Tensor> value = run.Of(e);
    if (!value) return std::nullopt;
    answers.push_back(*std::move(value));
  }
  return answers;
}

}  // namespace smelt
