#include "smelt/lite/prepare/updates.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/lite/common/attributes.h"

namespace smelt {
namespace {

// What computes the new value, or what is read, of the whole value.
struct UpdateRow {
  OpName op;
  absl::string_view by;
  enum Kind { kReads, kScatters, kScattersRows, kWrites, kShape } kind;
};
constexpr UpdateRow kUpdateRows[] = {
    {"ResourceGather", "GatherV2", UpdateRow::kReads},
    {"ResourceGatherNd", "GatherNd", UpdateRow::kReads},
    {"ResourceScatterNdUpdate", "TensorScatterUpdate", UpdateRow::kScatters},
    {"ResourceScatterNdAdd", "TensorScatterAdd", UpdateRow::kScatters},
    {"ResourceScatterNdSub", "TensorScatterSub", UpdateRow::kScatters},
    {"ResourceScatterNdMax", "TensorScatterMax", UpdateRow::kScatters},
    {"ResourceScatterNdMin", "TensorScatterMin", UpdateRow::kScatters},
    {"ResourceScatterUpdate", "TensorScatterUpdate", UpdateRow::kScattersRows},
    {"ResourceScatterAdd", "TensorScatterAdd", UpdateRow::kScattersRows},
    {"ResourceScatterSub", "TensorScatterSub", UpdateRow::kScattersRows},
    {"ResourceScatterMax", "TensorScatterMax", UpdateRow::kScattersRows},
    {"ResourceScatterMin", "TensorScatterMin", UpdateRow::kScattersRows},
    {"ResourceStridedSliceAssign", "TensorStridedSliceUpdate", UpdateRow::kWrites},
    {"VariableShape", "Shape", UpdateRow::kShape},
};

const UpdateRow* FindUpdateRow(const Node& n) {
  for (const UpdateRow& row : kUpdateRows) {
    if (n.Is(row.op)) return &row;
  }
  return nullptr;
}

// TensorScatter wants one update for each index; a scalar that stands for all is left.
bool IsSpread(const Node& n, const ShapeTable& shapes) {
  const PartialShape &indices = shapes.of(n.input(1)), &updates = shapes.of(n.input(2));
  return !indices.known_rank() || !updates.known_rank() || updates.rank() < indices.rank() ||
         updates.rank() == 0;
}

// As its handle says it, which becomes an operator that does not.
void StateVariableShape(Node& n) {
  const Node& handle = *BehindIdentities(n.input(0)).node;
  const Attr* shape = handle.Is("VarHandleOp") ? handle.attrs().Find("shape") : nullptr;
  if (shape != nullptr) n.AttrsToChange().Set(kVariableShape, *shape);
}

class UpdateSpelling {
 public:
  UpdateSpelling(Graph& graph, Node* n) : graph_(graph), n_(n) {}

  // The shape of what is read; of what type that is, its handle alone says.
  Status SpellShape() {
    const Node& handle = *BehindIdentities(n_->input(0)).node;
    if (!handle.Is("VarHandleOp")) return OkStatus();
    const Dtype type = handle.Type("dtype");
    ASSIGN_OR_RETURN(Node * read, Add("read", "ReadVariableOp", {n_->input(0)}, {{"dtype", type}}));
    graph_.SetControlInputs(read, n_->control_inputs());
    ASSIGN_OR_RETURN(Node * shape, Add("value", "Shape", {{read, 0}},
                                       {{"T", type}, {"out_type", n_->output_types[0]}}));
    graph_.ReplaceAllUses({n_, 0}, {shape, 0});
    graph_.ReplaceControlUses(n_, shape);
    graph_.Remove(n_);
    return OkStatus();
  }

  Status Spell(const UpdateRow& row) {
    if (row.kind == UpdateRow::kShape) return SpellShape();
    const Dtype type = n_->Type(
        row.kind == UpdateRow::kReads || row.kind == UpdateRow::kScattersRows ? "dtype" : "T");
    ASSIGN_OR_RETURN(Node * read, Add("read", "ReadVariableOp", {n_->input(0)}, {{"dtype", type}}));
    // All that is made waits for what the node waited for, by what it reads.
    graph_.SetControlInputs(read, n_->control_inputs());
    std::vector<Endpoint> inputs = {{read, 0}};
    inputs.insert(inputs.end(), n_->inputs().begin() + 1, n_->inputs().end());
    const Dtype index = n_->input_types[1];
    if (row.kind == UpdateRow::kScattersRows) {
      ASSIGN_OR_RETURN(Node * places, Add("places", "ExpandDims", {inputs[1], Int(-1)},
                                          {{"T", index}, {"Tdim", Dtype::kInt32}}));
      inputs[1] = {places, 0};
    }
    const bool reads = row.kind == UpdateRow::kReads, writes = row.kind == UpdateRow::kWrites;
    Attrs attrs = {{reads ? "Tparams" : "T", type}, {writes ? "Index" : "Tindices", index}};
    if (n_->Is("ResourceGather")) {
      inputs.push_back(Int(0));
      attrs.emplace_back("Taxis", Dtype::kInt32);
      attrs.emplace_back("batch_dims", n_->Int("batch_dims", 0));
    }
    if (writes) {
      for (const absl::string_view mask :
           {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
        attrs.emplace_back(mask, n_->Int(mask, 0));
      }
    }
    ASSIGN_OR_RETURN(Node * value, Add("value", row.by, inputs, attrs));
    Node* last = value;
    if (reads) {
      graph_.ReplaceAllUses({n_, 0}, {value, 0});
    } else {
      ASSIGN_OR_RETURN(
          last, Add("write", "AssignVariableOp", {n_->input(0), {value, 0}}, {{"dtype", type}}));
    }
    graph_.ReplaceControlUses(n_, last);
    graph_.Remove(n_);
    return OkStatus();
  }

 private:
  using Attrs = std::vector<std::pair<absl::string_view, Attr>>;

  StatusOr<Node*> Add(absl::string_view what, absl::string_view op, std::vector<Endpoint> inputs,
                      const Attrs& values) {
    AttrMap attrs;
    for (const auto& [name, value] : values) attrs.Set(name, value);
    return graph_.Add(absl::StrCat(n_->name(), "/", what), op, std::move(inputs), std::move(attrs));
  }
  Endpoint Int(int32_t value) {
    return {graph_.AddConst(absl::StrCat(n_->name(), "/const"), Tensor::Scalar(value)), 0};
  }

  Graph& graph_;
  Node* n_;
};

}  // namespace

Status SpellUpdates(Graph& graph) {
  std::vector<std::pair<Node*, const UpdateRow*>> found;
  for (Node* n : graph.Nodes()) {
    if (absl::StartsWith(n->op(), "ResourceSparseApply")) StateVariableShape(*n);
    if (const UpdateRow* row = FindUpdateRow(*n)) found.emplace_back(n, row);
  }
  if (found.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const ShapeTable shapes, InferShapes(graph, {}));
  for (const auto& [n, row] : found) {
    if (row->kind == UpdateRow::kScattersRows && IsSpread(*n, shapes)) continue;
    RETURN_IF_ERROR(UpdateSpelling(graph, n).Spell(*row));
  }
  return OkStatus();
}

}  // namespace smelt
