// Revert: what a conversion put around a function comes off again. Batching and accelerator calls
// become plain calls, the bodies lose their bridge ops and move back into the functions that they
// came from, and the forms in which tensors crossed are folded away (transfer/undo.cc). bfloat16
// goes back to float32 (bfloat16/undo.cc).
#include "smelt/convert/revert.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/convert/function_wrapper.h"
#include "smelt/convert/stages.h"

namespace smelt {
namespace {

bool IsSelector(const Node& n) { return n.Is("TPUOrdinalSelector") || n.Is("TPURoundRobin"); }

// The node as a plain call of the function `f` on `inputs`.
Status MakePlainCall(Graph& g, Node* n, std::vector<Dtype> types) {
  AttrMap attrs;
  attrs.Set("f", FuncAttr{n->Func("f")->name, nullptr});
  attrs.Set("Tin", TypeList(std::move(types)));
  attrs.Set("Tout", *n->Find("Tout"));
  g.SetOp(n, "StatefulPartitionedCall");
  n->AttrsToChange() = std::move(attrs);
  return g.ResolveTypes(n);
}

class Reverter {
 public:
  explicit Reverter(Conversion& c) : c_(c) {}

  Status Run() {
    RETURN_IF_ERROR(Each([&](Graph& g) { return PlainCalls(g); }));
    if (moved_back_.empty()) {
      return InvalidArgument(
          "there is nothing to revert: the model has neither TPUPartitionedCall "
          "nor BatchFunction ops");
    }
    RETURN_IF_ERROR(Each([&](Graph& g) { return PlainBody(g); }));
    for (Function* f : c_.library().Functions()) {
      if (f->body == nullptr || moved_back_.contains(f->name())) continue;
      const std::vector<std::string> callees = CalledFunctions(*f->body);
      if (std::ranges::none_of(callees, [&](const auto& n) { return moved_back_.contains(n); })) {
        continue;
      }
      // What moves back is what the conversion moved, not another implementation of it.
      RETURN_IF_ERROR(InlineCalls(
          *f, "", [&](const Function& callee) { return moved_back_.contains(callee.name()); }));
      changed_.push_back(f);
    }
    RETURN_IF_ERROR(RemoveUnusedFunctions(c_));
    RETURN_IF_ERROR(UndoBfloat16(c_));
    const ModelShapes shapes = InferModelShapes(*c_.meta->graph, XlaShapeRules());
    for (Function* f : changed_) {
      if (auto it = shapes.functions.find(f->name()); it != shapes.functions.end()) {
        UndoTransferForms(*f, it->second);
      }
    }
    c_.records.AddNote("revert", absl::StrCat(calls_,
                                              " calls of the accelerator or of batches made "
                                              "plain"));
    return OkStatus();
  }

 private:
  Status Each(const std::function<Status(Graph&)>& visit) {
    RETURN_IF_ERROR(visit(*c_.meta->graph));
    for (Function* f : c_.library().Functions()) {
      if (f->body == nullptr) continue;
      Status s = visit(*f->body);
      if (!s.ok()) return Prefix(s, absl::StrCat("In function '", f->name(), "': "));
    }
    return OkStatus();
  }

  Status PlainCalls(Graph& g) {
    for (Node* n : g.Nodes()) {
      const bool tpu = n->Is("TPUPartitionedCall");
      if ((!tpu && !n->Is("BatchFunction")) || n->Func("f") == nullptr) continue;
      moved_back_.insert(n->Func("f")->name);
      auto types = n->Get<std::vector<Dtype>>("Tin", {});
      if (tpu) {
        // The last input is the core's number.
        g.SetInputs(n, std::span<const Endpoint>(n->inputs()).first(n->inputs().size() - 1));
      } else {
        const auto captured = n->Get<std::vector<Dtype>>("Tcaptured", {});
        types.insert(types.end(), captured.begin(), captured.end());
      }
      RETURN_IF_ERROR(MakePlainCall(g, n, std::move(types)));
      ++calls_;
    }
    for (Node* n : g.Nodes()) {
      if (IsSelector(*n) && n->uses().empty()) g.Remove(n);
    }
    return OkStatus();
  }

  Status PlainBody(Graph& g) {
    std::vector<Node*> gone;
    for (Node* n : g.Nodes()) {
      for (absl::string_view attr :
           {absl::string_view(kClusterAttr), absl::string_view("_tpu_input_identity"),
            absl::string_view("_tpu_output_identity"), absl::string_view("_replication_info"),
            absl::string_view("_xla_compile_device_type")}) {
        n->EraseAttr(attr);
      }
      if (n->Is("TPUReplicatedInput") || n->Is("TPUReplicatedOutput")) {
        const int64_t replicas = n->Is("TPUReplicatedInput") ? n->Int("N") : n->Int("num_replicas");
        if (replicas != 1) {
          return Unimplemented("node '", n->name(), "' (", n->op(), ") is of ", replicas,
                               " replicas");
        }
        AttrMap attrs;
        attrs.Set("T", n->input_types[0]);
        g.SetOp(n, "Identity");
        n->AttrsToChange() = std::move(attrs);
        RETURN_IF_ERROR(g.ResolveTypes(n));
      } else if (n->Is("TPUReplicateMetadata") || n->Is("TPUCompilationResult")) {
        gone.push_back(n);
      }
    }
    for (Node* n : gone) {
      if (std::ranges::any_of(n->uses(), [](const Use& use) { return !use.is_control(); })) {
        return Unimplemented("node '", n->name(), "' (", n->op(), ") is read by another node");
      }
      g.ReplaceControlUses(n, nullptr);
    }
    g.Remove(gone);
    return OkStatus();
  }

  Conversion& c_;
  absl::flat_hash_set<std::string> moved_back_;  // functions that wrappers called, to be inlined
  std::vector<Function*> changed_;
  int calls_ = 0;
};

}  // namespace

Status Revert(Conversion& c) { return Reverter(c).Run(); }

}  // namespace smelt
