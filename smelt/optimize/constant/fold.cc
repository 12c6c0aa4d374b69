#include "smelt/optimize/constant/fold.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/constant/rules.h"

namespace smelt::constant {
namespace {

// A result that is larger than this, and than what it is computed of, stays computed: TensorFlow's
// limit for what optimizing may add to a graph.
constexpr int64_t kMaxConstantBytes = 100 << 10;
// A constant that states fewer values than it has elements is not written out beyond this.
constexpr int64_t kMaxExpandedBytes = 64 << 20;

constexpr OpSet kStandsForOthers = {"FakeParam",   "AccumulateNV2", "LoopCond",
                                    "Placeholder", "PlaceholderV2", "PlaceholderWithDefault"};

bool EmulatesQuantization(const Node& n) {
  return absl::StartsWith(n.op(), "QuantizeAndDequantize") ||
         absl::StartsWith(n.op(), "FakeQuantWithMinMax");
}

// TensorFlow goes by the names: these ops are read by tools that look for them.
bool NameSaysNo(absl::string_view op) {
  return absl::StrContains(op, "Save") || absl::StrContains(op, "Restore") ||
         absl::StrContains(op, "Reader") || absl::StrContains(op, "Quantized") ||
         absl::StartsWith(op, "Sparse");
}

int64_t KnownBytes(const PartialShape& shape, Dtype dtype) {
  if (!shape.fully_known()) return 0;
  int64_t bytes = static_cast<int64_t>(DtypeSize(BaseType(dtype)));
  for (const int64_t d : shape.dims()) {
    if (d != 0 && bytes > std::numeric_limits<int64_t>::max() / d) {
      return std::numeric_limits<int64_t>::max();
    }
    bytes *= d;
  }
  return bytes;
}

}  // namespace

bool Folder::MayFold(const Node& n) const {
  if (n.Is("Const") || n.num_inputs() == 0 || n.num_outputs() == 0 || IsFed(n)) return false;
  // What this program runs itself it need not keep for tools that look for it.
  if (r_.context().for_execution) {
    return !IsRoot(n) && (n.Is("Merge") || n.Is("Switch") || Evaluator::MayEvaluate(n));
  }
  if (IsMarkedForTpu(n)) return false;
  if (!IsFreeOfSideEffect(n) || n.Is(kStandsForOthers) || NameSaysNo(n.op())) return false;
  // What is asked for by its name must keep it: an output more would be another node.
  if (IsRoot(n) ? n.num_outputs() != 1 || n.Is("_Retval") : n.uses().empty()) return false;
  if (EmulatesQuantization(n) && r_.context().config.disable_folding_quantization_emulation) {
    return false;
  }
  if (n.Is("Merge") || n.Is("Switch")) return !IsRoot(n);
  return Evaluator::MayEvaluate(n);
}

bool Folder::IsFoldable(const Node& n) {
  if (given_up_.contains(n.id()) || !MayFold(n)) return false;
  bool merged = false;
  for (const Endpoint& e : n.inputs()) {
    if (IsConstant(e, r_)) {
      // Texts stay where tools that read checkpoints find them.
      const bool text = e.node->output_types[0] == Dtype::kString;
      if (text && !r_.context().for_execution) return false;
      merged |= !HasControlInputs(*e.node);
    } else if (!n.Is("Merge")) {
      return false;
    }
  }
  if (n.Is("Merge")) return merged;
  if (r_.context().for_execution) return true;
  const bool fills = n.Is("Fill") || n.Is("ZerosLike") || n.Is("OnesLike");
  if (fills && r_.context().config.disable_compressed_tensor_optimization) return false;
  return IsSmallEnough(n);
}

bool Folder::IsSmallEnough(const Node& n) {
  int64_t inputs = 0;
  for (int i = 0; i < n.num_inputs(); ++i) {
    const int64_t bytes = KnownBytes(r_.shape(n.input(i)), n.input_types[static_cast<size_t>(i)]);
    inputs = bytes > std::numeric_limits<int64_t>::max() - inputs
                 ? std::numeric_limits<int64_t>::max()
                 : inputs + bytes;
  }
  for (int i = 0; i < n.num_outputs(); ++i) {
    const int64_t bytes =
        KnownBytes(r_.shape({const_cast<Node*>(&n), i}), n.output_types[static_cast<size_t>(i)]);
    if (bytes > inputs && bytes > kMaxConstantBytes) return false;
  }
  return true;
}

std::optional<Tensor> Folder::Value(Endpoint e) const {
  const TensorValue* stated = r_.ConstantValue(e);
  if (stated == nullptr) return std::nullopt;
  const int64_t written = stated->values.valid() ? stated->values.num_elements() : 0;
  if (stated->num_elements() > written &&
      KnownBytes(stated->shape, stated->dtype) > kMaxExpandedBytes) {
    return std::nullopt;
  }
  return r_.Constant(e);
}

StatusOr<bool> Folder::Run() {
  bool any = false;
  const int first_new = r_.graph().max_id();
  // With inputs before readers one walk folds all.
  ASSIGN_OR_RETURN(const std::vector<Node*> order, r_.graph().TopologicalOrder());
  size_t turn = 0;
  for (Node* n : order) {
    if ((++turn & 1023) == 0 && absl::Now() > r_.context().deadline) {
      return absl::DeadlineExceededError("meta_optimizer exceeded deadline.");
    }
    if (!IsFoldable(*n)) continue;
    ASSIGN_OR_RETURN(const bool folded, n->Is("Merge")    ? FoldMerge(n)
                                        : n->Is("Switch") ? FoldSwitch(n)
                                                          : Fold(n));
    if (!folded) {
      given_up_.insert(n->id());
      continue;
    }
    any = true;
    r_.context().Fired("FoldGraph", *n);
  }
  // Constants whose readers were folded as well.
  for (int id = first_new; id < r_.graph().max_id(); ++id) {
    Node* made = r_.graph().NodeOf(id);
    if (made != nullptr && made->Is("Const") && made->uses().empty()) r_.graph().Remove(made);
  }
  return any;
}

// Makes floats of int8 weights (Cast, then Mul). Such results are folded whatever their size:
// computed anew, every request would pay for all of the weights.
bool Folder::Dequantizes(const Node& n) {
  if (n.Is("Cast") && n.Type("SrcT") == Dtype::kInt8) {
    from_int8_.insert(n.id());
    return true;
  }
  return n.Is("Mul") && std::ranges::any_of(n.inputs(), [&](const Endpoint& e) {
           return from_int8_.contains(e.node->id());
         });
}

StatusOr<bool> Folder::Fold(Node* node) {
  std::vector<Tensor> inputs;
  for (const Endpoint& e : node->inputs()) {
    std::optional<Tensor> t = Value(e);
    if (!t) return false;
    inputs.push_back(*std::move(t));
  }
  const int64_t bytes_before = TotalBytes(inputs);
  auto outputs = evaluator_.Evaluate(*node, std::move(inputs));
  if (!outputs.ok()) return false;
  const PassContext& context = r_.context();
  // What grows is computed anew rather than kept, unless it is small.
  const int64_t limit = context.for_execution ? context.max_folded_bytes : kMaxConstantBytes;
  const bool too_large = !(context.for_execution && Dequantizes(*node)) &&
                         std::ranges::any_of(*outputs, [&](const Tensor& t) {
                           const auto bytes = static_cast<int64_t>(t.bytes());
                           return bytes > bytes_before && bytes > limit;
                         });
  if (too_large || outputs->size() != node->output_types.size()) return false;
  return Replace(node, *std::move(outputs));
}

StatusOr<bool> Folder::Replace(Node* node, std::vector<Tensor> outputs) {
  Graph& graph = r_.graph();
  const std::vector<Node*> waits =
      WaitsOfResult(*node, [](Endpoint e) -> const Node* { return e.node; });
  if (outputs.size() == 1) {
    AttrMap attrs;
    const Dtype dtype = outputs[0].dtype();
    attrs.Set("dtype", dtype);
    attrs.Set("value", Attr(TensorValue::Of(std::move(outputs[0]))));
    graph.SetInputs(node, {});
    graph.SetOrderedControlInputs(node, waits);
    RETURN_IF_ERROR(r_.Become(node, "Const", std::move(attrs)));
    return true;
  }
  Node* last = nullptr;
  for (int port = 0; port < node->num_outputs(); ++port) {
    last = r_.AddConst(r_.PrefixedName(*node, absl::StrCat("-folded-", port)),
                       outputs[static_cast<size_t>(port)], *node);
    graph.SetOrderedControlInputs(last, waits);
    graph.ReplaceAllUses({node, port}, {last, 0});
  }
  graph.ReplaceControlUses(node, last);
  return true;
}

// A Merge gives what comes first. A constant that waits for nothing does; what else leads to the
// Merge still runs, since the constants that take its place wait for it.
StatusOr<bool> Folder::FoldMerge(Node* node) {
  if (NumDataUses(*node) == 0) return false;
  const auto first = std::ranges::find_if(node->inputs(), [&](const Endpoint& e) {
    return IsConstant(e, r_) && !HasControlInputs(*e.node);
  });
  if (first == node->inputs().end()) return false;
  const auto index = static_cast<int32_t>(first - node->inputs().begin());
  Graph& graph = r_.graph();
  if (graph.Find(absl::StrCat("ConstantFolding/", node->name(), "_const")) != nullptr ||
      graph.Find(absl::StrCat("ConstantFolding/", node->name(), "_index")) != nullptr) {
    return false;
  }
  const Node* from = first->node;
  if (node->NumUses(0) > 0) {
    ASSIGN_OR_RETURN(Node * value, r_.Copy(*from, r_.PrefixedName(*node, "_const")));
    value->device = node->device;
    graph.AddControlInput(value, node);
    graph.ReplaceAllUses({node, 0}, {value, 0});
  }
  if (node->NumUses(1) > 0) {
    Node* which =
        r_.AddConst(r_.PrefixedName(*node, "_index"), Tensor::Scalar<int32_t>(index), *node);
    graph.AddControlInput(which, node);
    graph.ReplaceAllUses({node, 1}, {which, 0});
  }
  return true;
}

// The output that a constant predicate chooses; the other one stays dead.
StatusOr<bool> Folder::FoldSwitch(Node* node) {
  const std::optional<Tensor> taken = r_.Constant(node->input(1));
  if (!taken || taken->dtype() != Dtype::kBool || taken->num_elements() != 1) return false;
  const int port = taken->data<bool>()[0] ? 1 : 0;
  if (node->NumUses(port) == 0) return false;
  const std::optional<Tensor> value = Value(node->input(0));
  if (!value) return false;
  Node* c = r_.AddConst(r_.PrefixedName(*node, absl::StrCat("-folded-", port)), *value, *node);
  r_.graph().SetOrderedControlInputs(
      c, WaitsOfResult(*node, [](Endpoint e) -> const Node* { return e.node; }));
  r_.graph().ReplaceAllUses({node, port}, {c, 0});
  return true;
}

}  // namespace smelt::constant
