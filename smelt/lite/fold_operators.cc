#include "smelt/lite/fold_operators.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "smelt/graph/copy_node.h"
#include "smelt/graph/op_facts.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/quantize/sample_run.h"

namespace smelt {
namespace {

// Bytes that a constant may take beyond those that it is made of.
constexpr size_t kMostGrowth = 1024;

// What states a range is read by the quantizer.
constexpr OpSet kStays = {"tfl.no_value", "tfl.quantize", "tfl.dequantize", "tfl.fake_quant",
                          "tfl.custom"};

bool IsPlainOperator(const Node& n) {
  if (!absl::StartsWith(n.op(), "tfl.") || n.Is(kStays) || n.num_inputs() == 0) return false;
  if (!IsFreeOfSideEffect(n) || n.def()->outputs.empty() || n.Find(kOwnOutputs) != nullptr) {
    return false;
  }
  return std::ranges::none_of(
      n.attrs(), [](const auto& attr) { return attr.second.template get<FuncAttr>() != nullptr; });
}

class Folder {
 public:
  explicit Folder(Graph& graph)
      : graph_(graph), copied_(std::make_shared<Graph>(std::make_shared<FunctionLibrary>())) {}

  Status Run() {
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    for (Node* n : order) {
      if (MayFold(*n)) RETURN_IF_ERROR(Copy(*n));
    }
    for (Node* n : order) Ask(n);
    if (asked_.empty()) return OkStatus();
    ASSIGN_OR_RETURN(const auto run, SampleRun::Make(copied_, asked_));
    const auto values = run->Run({});
    if (!values.ok()) return OkStatus();
    for (size_t i = 0; i < values->size(); ++i) {
      Node* n = graph_.AddConst(of_[i].node->name(), (*values)[i]);
      graph_.ReplaceAllUses(of_[i], {n, 0});
    }
    return OkStatus();
  }

 private:
  bool MayFold(Node& n) {
    if (!IsPlainOperator(n)) return false;
    size_t most = kMostGrowth;
    for (const Endpoint& e : n.inputs()) {
      const TensorValue* value = StatedConstant(*e.node);
      if (value == nullptr && !bytes_.contains(e.node)) return false;
      most += value != nullptr ? value->values.bytes() : bytes_[e.node];
    }
    size_t makes = 0;
    for (int i = 0; i < n.num_outputs(); ++i) {
      const PartialShape shape = StatedShape({&n, i});
      if (!shape.fully_known()) return false;
      makes += static_cast<size_t>(shape.ToShape().num_elements()) *
               DtypeSize(n.output_types[static_cast<size_t>(i)]);
    }
    bytes_[&n] = makes;
    return makes <= most || bytes_.erase(&n) == 0;
  }

  Status Copy(const Node& n) {
    ASSIGN_OR_RETURN(Node * copy, AddCopy(*copied_, n, n.name()));
    for (const Endpoint& e : n.inputs()) {
      Node*& from = copies_[e.node];
      if (from == nullptr) {
        ASSIGN_OR_RETURN(from, AddCopy(*copied_, *e.node, e.node->name()));
      }
      copied_->AddInput(copy, {from, e.port});
    }
    copies_[&n] = copy;
    return OkStatus();
  }

  // What others read.
  void Ask(Node* n) {
    if (!bytes_.contains(n)) return;
    for (int i = 0; i < n->num_outputs(); ++i) {
      const bool read = std::ranges::any_of(n->uses(), [&](const Use& use) {
        return !use.is_control() && use.port() == i && !bytes_.contains(use.node);
      });
      if (!read) continue;
      of_.push_back({n, i});
      asked_.push_back({copies_[n], i});
    }
  }

  Graph& graph_;
  std::shared_ptr<Graph> copied_;
  absl::flat_hash_map<const Node*, Node*> copies_;
  absl::flat_hash_map<const Node*, size_t> bytes_;  // of the outputs of what is folded
  std::vector<Endpoint> of_, asked_;
};

}  // namespace

Status FoldOperators(Graph& graph) { return Folder(graph).Run(); }

}  // namespace smelt
