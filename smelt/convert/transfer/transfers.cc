// IO shapes: tensors cross between host and accelerator in the form that fills its tiles best. The
// host's half of the change stands before the crossing, the accelerator's half after it; both lie
// in the body, so callers see the shapes that they knew.
#include <algorithm>

#include "smelt/analysis/xla_shapes.h"
#include "smelt/convert/stages.h"
#include "smelt/convert/transfer/stated_shapes.h"
#include "smelt/convert/transfer/transfer_form.h"
#include "smelt/graph/shape/infer.h"

namespace smelt {
namespace {

using StatedShapes = std::map<std::pair<std::string, int>, PartialShape>;

class BorderShaper {
 public:
  BorderShaper(Conversion& c, const TpuPlacement& p, const ShapeTable& shapes,
               const StatedShapes& stated)
      : c_(c), placement_(p), body_(*c.library().Find(p.body)), shapes_(shapes), stated_(stated) {}

  Status Run(bool change) {
    Graph& g = *body_.body;
    for (Node* n : g.Nodes()) {
      if (n->Is("TPUReplicateMetadata")) metadata_ = n;
    }
    if (metadata_ == nullptr) return OkStatus();  // nothing on the accelerator
    for (Node* n : g.Nodes()) {
      if (n->Is("TPUReplicatedInput")) RETURN_IF_ERROR(Input(n, change));
    }
    for (Node* n : g.Nodes()) {
      if (n->Is("TPUReplicatedOutput")) RETURN_IF_ERROR(Output(n, change));
    }
    return OkStatus();
  }

 private:
  StatusOr<Node*> AddConst(const std::string& name, const std::vector<int64_t>& values,
                           bool on_tpu) {
    Tensor t = *Tensor::Make(Dtype::kInt32, Shape({static_cast<int64_t>(values.size())}));
    std::ranges::copy(values, t.data<int32_t>());
    Node* n = body_.body->AddConst(name, t);
    if (on_tpu) {
      n->AttrsToChange().Set(kClusterAttr, metadata_->String(kClusterAttr));
      body_.body->AddControlInput(n, metadata_);
    }
    return n;
  }

  // `from` through a Transpose or Reshape by `argument`, on the side that `on_tpu` says.
  StatusOr<Endpoint> Change(Endpoint from, const std::string& name, absl::string_view op,
                            const std::vector<int64_t>& argument, bool on_tpu) {
    ASSIGN_OR_RETURN(Node * to,
                     AddConst(name + (op == "Reshape" ? "/shape" : "/perm"), argument, on_tpu));
    AttrMap attrs;
    attrs.Set("T", from.node->output_types[from.port]);
    attrs.Set(op == "Reshape" ? "Tshape" : "Tperm", Dtype::kInt32);
    if (on_tpu) attrs.Set(kClusterAttr, metadata_->String(kClusterAttr));
    ASSIGN_OR_RETURN(Node * n, body_.body->Add(name, op, {from, {to, 0}}, std::move(attrs)));
    return Endpoint{n, 0};
  }

  StatusOr<Endpoint> Forward(Endpoint e, const TransferForm& form, const std::string& name,
                             bool on_tpu) {
    if (form.kind == TransferForm::Kind::kFlatten) return Change(e, name, "Reshape", {-1}, on_tpu);
    return Change(e, name, "Transpose", {form.perm.begin(), form.perm.end()}, on_tpu);
  }

  StatusOr<Endpoint> Back(Endpoint e, const TransferForm& form, const PartialShape& shape,
                          const std::string& name, bool on_tpu) {
    if (form.kind == TransferForm::Kind::kFlatten) {
      std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
      return Change(e, name, "Reshape", dims, on_tpu);
    }
    std::vector<int64_t> inverse(form.perm.size());
    for (size_t i = 0; i < form.perm.size(); ++i) inverse[form.perm[i]] = static_cast<int64_t>(i);
    return Change(e, name, "Transpose", inverse, on_tpu);
  }

  void Record(bool input, const Node& crossing, Dtype before, const PartialShape& shape,
              const TransferForm& form, int index, const std::string& name) {
    TransferredTensor t;
    t.function = placement_.function;
    t.input = input;
    t.index = index;
    t.name = name;
    t.dtype_before = before;
    t.dtype = crossing.output_types[0];
    t.shape = shape;
    t.form = form.ToString();
    t.bytes = form.bytes;
    // For the reports alone: what a signature promises is not what an op is known to make.
    const auto stated = stated_.find({placement_.function, index});
    if (!input && !shape.known_rank() && stated != stated_.end()) {
      t.shape = stated->second;
      t.bytes = PaddedBytes(t.shape, t.dtype);
    }
    t.bytes_before = PaddedBytes(t.shape, before);
    c_.records.transfers.push_back(std::move(t));
  }

  TransferForm FormOf(const PartialShape& shape, Dtype dtype, bool change) const {
    if (change) return BestTransferForm(shape, dtype);
    TransferForm keep;
    keep.bytes = PaddedBytes(shape, dtype);
    return keep;
  }

  // Behind the casts and forms that an earlier conversion, or this one, put beside the crossings.
  static Endpoint BehindForms(Endpoint e) {
    static constexpr OpSet kForms = {"Cast", "Identity", "Reshape", "Transpose", "EnsureShape"};
    while (e.node->Is(kForms)) e = e.node->input(0);
    return e;
  }

  Status Input(Node* crossing, bool change) {
    const Endpoint from = crossing->inputs()[0];
    const PartialShape shape = shapes_.of(from);
    const TransferForm form = FormOf(shape, crossing->output_types[0], change);
    const Dtype before =
        from.node->Is("Cast") ? from.node->Type("SrcT") : crossing->output_types[0];
    const Endpoint arg = BehindForms(from);
    Record(true, *crossing, before, shape, form, body_.FlatPosition(arg), arg.node->name());
    if (form.kind == TransferForm::Kind::kKeep) return OkStatus();
    Graph& g = *body_.body;
    ASSIGN_OR_RETURN(const Endpoint back,
                     Back({crossing, 0}, form, shape, crossing->name() + "/back", true));
    g.ReplaceOtherUses({crossing, 0}, back);
    ASSIGN_OR_RETURN(const Endpoint formed, Forward(from, form, crossing->name() + "/form", false));
    g.SetInput(crossing, 0, formed);
    return OkStatus();
  }

  Status Output(Node* crossing, bool change) {
    const Endpoint from = crossing->inputs()[0];
    const PartialShape shape = shapes_.of(from);
    const TransferForm form = FormOf(shape, crossing->output_types[0], change);
    Dtype before = crossing->output_types[0];
    std::string name;
    int index = -1, position = 0;
    for (size_t i = 0; i < body_.results.size(); ++i) {
      for (const Endpoint& e : body_.results[i]) {
        const int here = position++;
        if (BehindForms(e).node != crossing) continue;
        index = here;
        name = body_.signature.outputs[i].name;
        before = e.node->output_types[e.port];
      }
    }
    Record(false, *crossing, before, shape, form, index, name);
    if (form.kind == TransferForm::Kind::kKeep) return OkStatus();
    Graph& g = *body_.body;
    ASSIGN_OR_RETURN(const Endpoint back,
                     Back({crossing, 0}, form, shape, crossing->name() + "/back", false));
    g.ReplaceOtherUses({crossing, 0}, back);
    for (auto& result : body_.results) {
      for (Endpoint& e : result) {
        if (e == Endpoint{crossing, 0}) e = back;
      }
    }
    ASSIGN_OR_RETURN(const Endpoint formed, Forward(from, form, crossing->name() + "/form", true));
    g.SetInput(crossing, 0, formed);
    return OkStatus();
  }

  Conversion& c_;
  const TpuPlacement& placement_;
  Function& body_;
  const ShapeTable& shapes_;
  const StatedShapes& stated_;
  Node* metadata_ = nullptr;
};

// TensorFlow infers no shapes through TPUPartitionedCall: an EnsureShape in the stub states what is
// known of each result.
Status StateShapes(Conversion& c, const TpuPlacement& p, const ShapeTable& body_shapes) {
  Function& stub = *c.library().Find(p.function);
  const std::vector<Endpoint> inside = c.library().Find(p.body)->FlatResults();
  size_t i = 0;
  for (auto& result : stub.results) {
    for (Endpoint& e : result) {
      const PartialShape& shape = body_shapes.of(inside[i++]);
      if (!shape.known_rank() || !e.node->Is("Identity")) continue;
      AttrMap attrs;
      attrs.Set("T", e.node->output_types[0]);
      attrs.Set("shape", shape);
      ASSIGN_OR_RETURN(Node * n, stub.body->Add(e.node->name() + "/shape", "EnsureShape", {e},
                                                std::move(attrs)));
      e = {n, 0};
    }
  }
  return OkStatus();
}

}  // namespace

Status LayOutTransfers(Conversion& c) {
  const ModelShapes shapes = InferModelShapes(*c.meta->graph, XlaShapeRules());
  const StatedShapes stated = StatedResultShapes(*c.meta);
  int64_t before = 0, after = 0;
  for (const TpuPlacement& p : c.placements) {
    auto it = shapes.functions.find(p.body);
    const ShapeTable none;
    const ShapeTable& table = it == shapes.functions.end() ? none : it->second;
    const bool change = c.IoShapes() && !p.existing;
    if (change) RETURN_IF_ERROR(StateShapes(c, p, table));
    Status s = BorderShaper(c, p, table, stated).Run(change);
    if (!s.ok()) return Prefix(s, absl::StrCat("In function '", p.function, "': "));
  }
  for (const TransferredTensor& t : c.records.transfers) {
    if (t.bytes_before == 0 || t.bytes == 0) continue;
    before += t.bytes_before;
    after += t.bytes;
  }
  if (before != after) {
    c.records.AddNote("io_shape",
                      absl::StrCat("bytes between CPU and TPU for each request: ", before, " -> ",
                                   after, " (in tiles, one row of an unknown batch)"));
  }
  return OkStatus();
}

}  // namespace smelt
