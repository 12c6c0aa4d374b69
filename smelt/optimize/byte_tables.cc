// Functions of one number of 8 bits, however many nodes compute them, as x * sigmoid(x) on its
// scales: all 256 values are computed here, and a table is what runs.
#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/constant/evaluate.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

// Of one element at a time, beside kElementwiseOps, where all other inputs are scalars.
constexpr OpSet kOfNumbers = {"_Int8Quantize",   "_Int8Dequantize",
                              "tfl.abs",         "tfl.add",
                              "tfl.dequantize",  "tfl.elu",
                              "tfl.exp",         "tfl.gelu",
                              "tfl.hard_swish",  "tfl.leaky_relu",
                              "tfl.log",         "tfl.logistic",
                              "tfl.maximum",     "tfl.minimum",
                              "tfl.mul",         "tfl.quantize",
                              "tfl.relu",        "tfl.relu6",
                              "tfl.relu_0_to_1", "tfl.relu_n1_to_1",
                              "tfl.rsqrt",       "tfl.sqrt",
                              "tfl.square",      "tfl.sub",
                              "tfl.tanh",        "tfl.squared_difference"};
constexpr int64_t kNumbers = 256;

bool IsByte(Dtype type) { return type == Dtype::kInt8 || type == Dtype::kUint8; }

bool IsScalarConstant(const Node& n) {
  if (!n.Is("Const") || IsFed(n) || !n.control_inputs().empty()) return false;
  // Its shape alone: large ones that state few values would be made whole.
  const TensorValue* stated = StatedConstant(n);
  return stated != nullptr && stated->shape.known_rank() && stated->shape.rank() == 0 &&
         ConstantTensor(n).has_value();
}

// All numbers of the type, in the order of their bits.
StatusOr<Tensor> AllNumbers(Dtype type) {
  ASSIGN_OR_RETURN(Tensor all, Tensor::Make(type, Shape({kNumbers}), HeapAllocator()));
  auto* bytes = static_cast<uint8_t*>(all.raw());
  std::iota(bytes, bytes + kNumbers, uint8_t{0});
  return all;
}

class ByteTables {
 public:
  ByteTables(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  Status Run() {
    const auto has_bytes = [](const Node* n) {
      return n->num_outputs() == 1 && IsByte(n->output_types[0]);
    };
    if (std::ranges::none_of(graph_.Nodes(), has_bytes)) return OkStatus();
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    for (Node* n : order) FindSource(*n);
    // From the results back, so that what only tables read is not made one itself.
    for (auto n = order.rbegin(); n != order.rend(); ++n) {
      RETURN_IF_ERROR(Visit(**n));
    }
    return OkStatus();
  }

 private:
  // What the node computes a function of, if it is of one number of 8 bits.
  void FindSource(const Node& n) {
    if (n.num_outputs() != 1 || !(n.Is(kElementwiseOps) || n.Is(kOfNumbers)) || IsRoot(n) ||
        IsFed(n) || !n.control_inputs().empty() || !Evaluator::MayEvaluate(n)) {
      return;
    }
    // Either the last number of 8 bits on the way, or the first.
    std::optional<Endpoint> near, far;
    bool one_near = true, one_far = true;
    for (const Endpoint& e : n.inputs()) {
      if (IsScalarConstant(*e.node)) continue;
      const auto of = sources_.find(e.node);
      const Endpoint first = of != sources_.end() ? of->second : e;
      one_near = one_near && (!near || *near == e);
      one_far = one_far && (!far || *far == first);
      if (!near) near = e, far = first;
    }
    const auto takes = [](bool one, const std::optional<Endpoint>& e) {
      return one && e && IsByte(e->node->output_types[static_cast<size_t>(e->port)]);
    };
    if (takes(one_far, far)) {
      sources_.emplace(&n, *far);
    } else if (takes(one_near, near)) {
      sources_.emplace(&n, *near);
    }
  }

  Status Visit(Node& n) {
    const auto source = sources_.find(&n);
    if (source != sources_.end() && !needed_.contains(&n)) {
      graph_.Remove(&n);  // so were its readers
      return OkStatus();
    }
    if (source != sources_.end() && IsByte(n.output_types[0])) {
      const bool direct = std::ranges::all_of(n.inputs(), [&](const Endpoint& e) {
        return e == source->second || IsScalarConstant(*e.node);
      });
      if (!direct) {
        ASSIGN_OR_RETURN(const bool made, Replace(n, source->second));
        if (made) {
          needed_.insert(source->second.node);
          graph_.Remove(&n);
          return OkStatus();
        }
      }
    }
    for (const Endpoint& e : n.inputs()) needed_.insert(e.node);
    for (const Node* before : n.control_inputs()) needed_.insert(before);
    return OkStatus();
  }

  // Values of the node for all numbers of the source; none where one is an error, which the run
  // would tell. `all`: those numbers.
  std::optional<Tensor> ValuesOf(const Node& n, Endpoint source, const Tensor& all) {
    if (const auto known = values_.find(&n); known != values_.end()) return known->second;
    std::vector<Tensor> inputs;
    for (const Endpoint& e : n.inputs()) {
      std::optional<Tensor> value;
      if (e == source) {
        value = all;
      } else {
        value =
            IsScalarConstant(*e.node) ? ConstantTensor(*e.node) : ValuesOf(*e.node, source, all);
      }
      if (!value) return std::nullopt;
      inputs.push_back(*std::move(value));
    }
    const auto outputs = evaluator_.Evaluate(n, std::move(inputs));
    std::optional<Tensor> out;
    if (outputs.ok() && (*outputs)[0].shape() == Shape({kNumbers})) out = (*outputs)[0];
    values_.emplace(&n, out);
    return out;
  }

  StatusOr<bool> Replace(Node& n, Endpoint source) {
    values_.clear();  // they are of one source
    const Dtype type = source.node->output_types[static_cast<size_t>(source.port)];
    ASSIGN_OR_RETURN(const Tensor all, AllNumbers(type));
    const std::optional<Tensor> values = ValuesOf(n, source, all);
    if (!values) return false;
    ASSIGN_OR_RETURN(Tensor bytes, Tensor::Make(Dtype::kUint8, Shape({kNumbers}), HeapAllocator()));
    std::copy_n(static_cast<const uint8_t*>(values->raw()), kNumbers, bytes.data<uint8_t>());
    Node* table = graph_.AddConst(graph_.FreeName(n.name() + "/numbers"), bytes);
    AttrMap attrs;
    attrs.Set("T", type);
    attrs.Set("Tout", n.output_types[0]);
    ASSIGN_OR_RETURN(Node * looked_up,
                     graph_.Add(graph_.FreeName(n.name() + "/table"), "_ByteTable",
                                {source, {table, 0}}, std::move(attrs)));
    looked_up->device = n.device;
    context_.Fired("FunctionOfByte", n);
    graph_.ReplaceAllUses({&n, 0}, {looked_up, 0});
    graph_.ReplaceControlUses(&n, looked_up);
    return true;
  }

  Graph& graph_;
  const PassContext& context_;
  Evaluator evaluator_;
  absl::flat_hash_map<const Node*, Endpoint> sources_;
  absl::flat_hash_map<const Node*, std::optional<Tensor>> values_;
  absl::flat_hash_set<const Node*> needed_;
};

}  // namespace

Status MakeByteTables(Graph& graph, const PassContext& context) {
  return ByteTables(graph, context).Run();
}

}  // namespace smelt
