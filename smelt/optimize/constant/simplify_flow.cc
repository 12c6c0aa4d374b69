// Constants in loops, branches and calls.
#include <algorithm>

#include "smelt/graph/op_facts.h"
#include "smelt/optimize/constant/rules.h"

namespace smelt::constant {
namespace {

// Who reads an invariant Enter of a constant reads a copy of the constant inside of the loop.
StatusOr<Rewritten> MoveConstantsPastEnter(Node& node, Rewriter& r) {
  const Endpoint c = node.input(0);
  if (!node.Bool("is_constant")) return r.No("what enters may change");
  if (!IsConstant(c, r)) return r.No("what enters is not constant");
  if (NumDataUses(node) == 0) return r.No();
  ASSIGN_OR_RETURN(Node * inside, r.Copy(*c.node, r.PrefixedName(*c.node, "_enter")));
  inside->device = node.device;
  r.graph().SetControlInputs(inside, {&node});
  r.graph().ReplaceAllUses({&node, 0}, {inside, 0});
  return r.InPlace();
}

// Switch(x, x): output 0 is false, and output 1 true.
StatusOr<Rewritten> SimplifySwitch(Node& node, Rewriter& r) {
  if (!(node.input(0) == node.input(1))) return r.No();
  bool changed = false;
  for (const int port : {0, 1}) {
    // The Identity that the constant waits for goes on reading the Switch.
    std::vector<Use> readers;
    bool behind_identity = false;
    for (const Use& use : node.OrderedUses()) {
      if (use.is_control() || use.port() != port) continue;
      const bool only_orders = use.node->Is("Identity") && NumDataUses(*use.node) == 0;
      if (!only_orders || IsRoot(*use.node)) readers.push_back(use);
      behind_identity |= use.node->Is("Identity") && !only_orders;
    }
    if (readers.empty()) continue;
    Node* c = r.AddConst(r.PrefixedName(node, port == 0 ? "_const_false" : "_const_true"),
                         Tensor::Scalar<bool>(port == 1), node);
    RETURN_IF_ERROR(r.Wait(c, {&node, port}));
    Node* anchor = c->control_inputs()[0];
    for (const Use& use : readers) {
      if (use.node == anchor) continue;
      r.graph().SetInput(use.node, use.input, {c, 0});
      r.Visit(use.node);
    }
    if (behind_identity && !IsRoot(*anchor)) {
      for (const Use& use : anchor->OrderedUses()) r.Visit(use.node);
      r.graph().ReplaceAllUses({anchor, 0}, {c, 0});
    }
    changed = true;
  }
  return changed ? r.InPlace() : r.No("nothing reads it");
}

// Constants pass by an IdentityN; who reads them waits for it.
StatusOr<Rewritten> PartialConstPropThroughIdentityN(Node& node, Rewriter& r) {
  if (HasControlInputs(node)) return r.No("it waits");
  std::vector<Node*> readers;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!IsConstant(node.input(i), r)) continue;
    for (const Use& use : node.OrderedUses()) {
      if (use.port() != i || use.node->Is("_Retval")) continue;
      r.graph().SetInput(use.node, use.input, node.input(i));
      readers.push_back(use.node);
    }
  }
  for (Node* reader : readers) {
    const bool reads =
        std::ranges::any_of(reader->inputs(), [&](const Endpoint& e) { return e.node == &node; });
    if (!reads) r.graph().AddControlInput(reader, &node);
    r.Visit(reader);
  }
  return readers.empty() ? r.No("no constant that is read goes through it") : r.InPlace();
}

bool MayHaveEffect(const FunctionLibrary& library, const std::string& name) {
  const Function* f = library.Find(name);
  return f == nullptr || f->signature.stateful;
}

// Case of a constant index -> a call of the branch
StatusOr<Rewritten> SimplifyCase(Node& node, Rewriter& r) {
  const std::optional<Tensor> index = r.Constant(node.input(0));
  if (!index || index->dtype() != Dtype::kInt32 || index->num_elements() != 1) {
    return r.No("the index is not constant");
  }
  const auto branches = node.Get<std::vector<FuncAttr>>("branches", {});
  const int32_t at = index->data<int32_t>()[0];
  if (at < 0 || at >= static_cast<int32_t>(branches.size())) return r.No("there is no such branch");
  const auto taken = static_cast<size_t>(at);
  AttrMap attrs = node.attrs();
  const auto shapes = node.Get<std::vector<PartialShape>>("output_shapes", {});
  if (taken < shapes.size()) {
    attrs.Set("_output_shapes", Attr(std::vector<PartialShape>{shapes[taken]}));
  }
  attrs.Erase("output_shapes");
  attrs.Erase("branches");
  attrs.Set("f", Attr(branches[taken]));
  // What the index waited for, the branch waited for.
  RETURN_IF_ERROR(r.WaitAs(&node, *node.input(0).node));
  const std::vector<Endpoint> inputs(node.inputs().begin() + 1, node.inputs().end());
  r.graph().SetInputs(&node, inputs);
  const bool effect = MayHaveEffect(*r.graph().library(), branches[taken].name);
  RETURN_IF_ERROR(
      r.Become(&node, effect ? "StatefulPartitionedCall" : "PartitionedCall", std::move(attrs)));
  return r.InPlace();
}

}  // namespace

const Rule kMoveConstantsPastEnter = {"MoveConstantsPastEnter",
                                      {"Enter"},
                                      MoveConstantsPastEnter,
                                      "an invariant Enter(c) -> c inside of the loop"};
const Rule kSimplifySwitch = {
    "SimplifySwitch", {"Switch"}, SimplifySwitch, "outputs of Switch(x, x) -> false, true"};
const Rule kPartialConstPropThroughIdentityN = {"PartialConstPropThroughIdentityN",
                                                {"IdentityN"},
                                                PartialConstPropThroughIdentityN,
                                                "constants pass by IdentityN"};
const Rule kSimplifyCase = {
    "SimplifyCase", {"Case"}, SimplifyCase, "Case of a constant index -> PartitionedCall"};

}  // namespace smelt::constant
