// TensorArrays as lists: the flow, which only orders what reads and writes an array, becomes the
// list itself.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/graph/shape/values.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/prepare/functional.h"

namespace smelt {
namespace {

// Pass on what they take.
constexpr OpSet kPassesArrays = {"Identity", "Enter", "Exit", "NextIteration", "Switch", "Merge"};
constexpr OpSet kArrayOps = {"TensorArrayReadV3",    "TensorArrayWriteV3", "TensorArrayGatherV3",
                             "TensorArrayScatterV3", "TensorArraySizeV3",  "TensorArrayCloseV3"};

using Ends = absl::flat_hash_set<std::pair<const Node*, int>>;

std::optional<int64_t> ArrayInt(Endpoint e) {
  const auto value = ConstantTensor(*BehindIdentities(e).node);
  if (!value || value->num_elements() != 1) return std::nullopt;
  if (value->dtype() != Dtype::kInt32 && value->dtype() != Dtype::kInt64) return std::nullopt;
  return IndexAt(*value, 0);
}

class ArrayLists {
 public:
  explicit ArrayLists(Graph& graph) : graph_(graph) {}

  // UNIMPLEMENTED: something else reads an array; nothing was changed then.
  Status Find() {
    for (Node* n : graph_.Nodes()) {
      if (!n->Is("TensorArrayV3")) continue;
      made_.push_back(n);
      RETURN_IF_ERROR(Follow(n));
    }
    if (made_.empty()) return OkStatus();
    ASSIGN_OR_RETURN(const ShapeTable shapes, InferShapes(graph_, {}));
    for (Node* n : accesses_) {
      const auto made = array_of_.find(n);
      if (n->Is("TensorArrayGatherV3") && made != array_of_.end() && CountsAll(*n, *made->second)) {
        gathers_all_.insert(n);
      }
      if (n->Is("TensorArrayScatterV3") && !WritesAll(*n, shapes.of(n->input(2)))) {
        return Unimplemented("'", n->name(), "' is not known to write all of its TensorArray");
      }
    }
    return OkStatus();
  }

  Status Replace() {
    for (Node* n : made_) {
      ASSIGN_OR_RETURN(const Endpoint shape, ElementShape(*n, *n));
      AttrMap attrs = ListAttrs(*n);
      attrs.Set("shape_type", Dtype::kInt32);
      ASSIGN_OR_RETURN(Node * list, Add(*n, "TensorListReserve", {shape, n->input(0)}, attrs));
      lists_.emplace_back(Endpoint{n, 1}, Endpoint{list, 0});
    }
    for (Node* n : accesses_) RETURN_IF_ERROR(ReplaceAccess(*n));
    for (const auto& [flow, list] : lists_) graph_.ReplaceAllUses(flow, list);
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    // What a Merge takes may come behind it.
    for (Node* n : order) {
      if (!n->Is(kPassesArrays) || !flows_.contains({n, 0})) continue;
      n->AttrsToChange().Set("T", Dtype::kVariant);
      n->EraseAttr(kOutputShapes);
      RETURN_IF_ERROR(graph_.ResolveTypes(n));
    }
    std::vector<Node*> gone = accesses_;
    gone.insert(gone.end(), made_.begin(), made_.end());
    gone.insert(gone.end(), handles_.begin(), handles_.end());
    for (Node* n : gone) graph_.ReplaceControlUses(n, nullptr);
    graph_.Remove(gone);
    return OkStatus();
  }

 private:
  Status Other(const Node& n, const Node& made) const {
    return Unimplemented("'", n.name(), "' (", n.op(), ") reads TensorArray '", made.name(), "'");
  }

  // Everything that the handle and the flow reach.
  Status Follow(Node* made) {
    std::vector<Endpoint> todo = {{made, 0}, {made, 1}};
    Ends seen = {{made, 0}, {made, 1}};
    const auto go = [&](Node* n, int port, bool flow) {
      if (flow) flows_.insert({n, port});
      if (seen.insert({n, port}).second) todo.push_back({n, port});
    };
    flows_.insert({made, 1});
    while (!todo.empty()) {
      const Endpoint e = todo.back();
      todo.pop_back();
      const bool flow = flows_.contains({e.node, e.port});
      for (const Use& use : e.node->OrderedUses()) {
        if (use.is_control() || use.port() != e.port) continue;
        Node* n = use.node;
        if (n->Is(kPassesArrays) && (n->Is("Merge") || use.input == 0)) {
          if (!flow) {
            if (n->Is("Merge")) return Other(*n, *made);
            if (std::ranges::find(handles_, n) == handles_.end()) handles_.push_back(n);
          }
          go(n, 0, flow);
          if (n->Is("Switch")) go(n, 1, flow);
          continue;
        }
        const int last = n->num_inputs() - 1;
        const bool known =
            n->Is(kArrayOps) && (flow ? use.input == last && last > 0 : use.input == 0);
        if (!known) return Other(*n, *made);
        if (!flow) array_of_[n] = made;
        if (std::ranges::find(accesses_, n) == accesses_.end()) accesses_.push_back(n);
        if (n->Is({"TensorArrayWriteV3", "TensorArrayScatterV3"})) go(n, 0, true);
      }
    }
    return OkStatus();
  }

  // Do the indices of a scatter count all rows of an array that is as long? It grows from nothing
  // to as many rows as are written.
  bool WritesAll(const Node& n, const PartialShape& written) const {
    const auto made = array_of_.find(&n);
    if (made == array_of_.end()) return false;
    if (CountsAll(n, *made->second)) return true;
    const Node& range = *BehindIdentities(n.input(1)).node;
    const auto size = ArrayInt(made->second->input(0));
    if (!CountsUp(range) || !size) return false;
    // There are as many indices as rows.
    return (made->second->Bool("dynamic_size") && *size == 0) ||
           (written.rank() > 0 && written[0] == *size);
  }
  static bool CountsUp(const Node& n) {
    return n.Is("Range") && ArrayInt(n.input(0)) == 0 && ArrayInt(n.input(2)) == 1;
  }
  // Are the indices of a gather or scatter all that the array has?
  bool CountsAll(const Node& access, const Node& made) const {
    const bool grows = made.Bool("dynamic_size");
    const Endpoint size = made.input(0);
    const Node& n = *BehindIdentities(access.input(1)).node;
    if (CountsUp(n)) {
      const Endpoint limit = BehindIdentities(n.input(1));
      const auto limit_is = ArrayInt(limit), size_is = ArrayInt(size);
      const auto of = array_of_.find(limit.node);
      const bool its_size =
          limit.node->Is("TensorArraySizeV3") && of != array_of_.end() && of->second == &made;
      if (grows) {
        return its_size &&
               BehindIdentities(limit.node->input(1)) == BehindIdentities(access.inputs().back());
      }
      return its_size || limit == BehindIdentities(size) || (limit_is && limit_is == size_is);
    }
    const auto value = ConstantTensor(n);
    if (grows || !value || ArrayInt(size) != value->num_elements()) return false;
    for (int64_t i = 0; i < value->num_elements(); ++i) {
      if (IndexAt(*value, i) != i) return false;
    }
    return true;
  }

  StatusOr<Node*> Add(const Node& n, OpName op, std::vector<Endpoint> inputs, AttrMap attrs) {
    ASSIGN_OR_RETURN(Node * made, graph_.Add(n.name(), op.text(), inputs, std::move(attrs)));
    for (Node* before : n.control_inputs()) graph_.AddControlInput(made, before);
    return made;
  }
  // Of the array, as an op of lists takes it, where `n` runs.
  StatusOr<Endpoint> ElementShape(const Node& made, const Node& n) {
    const PartialShape shape = made.Get<PartialShape>("element_shape", {});
    IntVector dims{.scalar = !shape.known_rank(), .values = {-1}};
    if (shape.known_rank()) dims.values.clear();
    for (int i = 0; shape.known_rank() && i < shape.rank(); ++i) {
      dims.values.push_back(std::max<int64_t>(shape[i], -1));
    }
    Node* value = graph_.AddConst(n.name() + "/element_shape", ToTensor(dims, Dtype::kInt32));
    for (Node* before : n.control_inputs()) graph_.AddControlInput(value, before);
    // In a frame it is made there.
    if (n.num_inputs() > 0 && &n != &made) graph_.AddControlInput(value, n.inputs().back().node);
    return Endpoint{value, 0};
  }
  static AttrMap ListAttrs(const Node& made) {
    AttrMap attrs;
    attrs.Set("element_dtype", made.Type("dtype"));
    return attrs;
  }

  Status ReplaceAccess(Node& n) {
    const auto at = array_of_.find(&n);
    if (at == array_of_.end()) return Internal("node '", n.name(), "' has no TensorArray");
    const Node& made = *at->second;
    const Endpoint list = n.inputs().back();
    AttrMap attrs = ListAttrs(made);
    Node* by = nullptr;
    if (n.Is("TensorArrayWriteV3")) {
      if (made.Bool("dynamic_size")) attrs.Set("resize_if_index_out_of_bounds", true);
      ASSIGN_OR_RETURN(by, Add(n, "TensorListSetItem", {list, n.input(1), n.input(2)}, attrs));
      lists_.emplace_back(Endpoint{&n, 0}, Endpoint{by, 0});
    } else if (n.Is("TensorArraySizeV3")) {
      ASSIGN_OR_RETURN(by, Add(n, "TensorListLength", {list}, {}));
    } else if (!n.Is("TensorArrayCloseV3")) {
      ASSIGN_OR_RETURN(const Endpoint shape, ElementShape(made, n));
      if (n.Is("TensorArrayReadV3")) {
        ASSIGN_OR_RETURN(by, Add(n, "TensorListGetItem", {list, n.input(1), shape}, attrs));
      } else if (n.Is("TensorArrayScatterV3")) {
        attrs.Set("shape_type", Dtype::kInt32);
        ASSIGN_OR_RETURN(by, Add(n, "TensorListFromTensor", {n.input(2), shape}, attrs));
        lists_.emplace_back(Endpoint{&n, 0}, Endpoint{by, 0});
      } else if (gathers_all_.contains(&n)) {
        ASSIGN_OR_RETURN(by, Add(n, "TensorListStack", {list, shape}, attrs));
      } else {
        ASSIGN_OR_RETURN(by, Add(n, "TensorListGather", {list, n.input(1), shape}, attrs));
      }
    }
    if (by != nullptr && !n.Is({"TensorArrayWriteV3", "TensorArrayScatterV3"})) {
      graph_.ReplaceAllUses({&n, 0}, {by, 0});
    }
    graph_.ReplaceControlUses(&n, by);
    return OkStatus();
  }

  Graph& graph_;
  std::vector<Node*> made_, accesses_;
  std::vector<Node*> handles_;  // what passes handles on
  Ends flows_;
  absl::flat_hash_set<const Node*> gathers_all_;
  absl::flat_hash_map<const Node*, Node*> array_of_;
  std::vector<std::pair<Endpoint, Endpoint>> lists_;  // a flow, and the list in its place
};

}  // namespace

Status ArraysToLists(Graph& graph) {
  ArrayLists lists(graph);
  const Status found = lists.Find();
  if (absl::IsUnimplemented(found)) {
    for (Node* n : graph.Nodes()) {
      if (n->Is("TensorArrayV3") || n->Is(kArrayOps)) {
        n->AttrsToChange().Set(kWhyNot, std::string(found.message()));
      }
    }
    return OkStatus();
  }
  RETURN_IF_ERROR(found);
  return lists.Replace();
}

}  // namespace smelt
