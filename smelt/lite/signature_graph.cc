#include "smelt/lite/signature_graph.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "smelt/analysis/handle_flow.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/verify.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/composites/composite.h"
#include "smelt/lite/prepare/bodies.h"
#include "smelt/lite/prepare/callable.h"
#include "smelt/lite/prepare/functional.h"
#include "smelt/lite/prepare/known.h"
#include "smelt/lite/prepare/ref_variables.h"
#include "smelt/lite/recurrences/recurrence.h"
#include "smelt/optimize/pipeline.h"
#include "smelt/runtime/callable_graph.h"

namespace smelt {
namespace {

// By the names of pipeline.h. What only this program's kernels run is not among them.
constexpr absl::string_view kPasses[] = {
    "function_optimizer",           // one plain graph
    "call_modules",                 // JAX exports become calls
    "function_optimizer",           // of what they were lowered to
    "freeze_variables",             // weights become constants
    "dependency_optimizer",         // reads of variables leave identities
    "common_subgraph_elimination",  // what is there once is folded once
    "debug_stripper",               // checks stand between constants
    "constant_folding",             // shapes, axes, and what is made of weights
    "arithmetic_optimizer",         // neighbors that undo each other
    "constant_folding",             // what that brought together
    "loop_optimizer",               // what tests that are known by now never choose
    "dependency_optimizer",         // and the identities that it left
};

StatusOr<std::vector<Pass>> Passes(bool keep_asserts) {
  std::vector<Pass> out;
  for (const absl::string_view name : kPasses) {
    if (keep_asserts && name == "debug_stripper") continue;
    const Pass* pass = FindPass(name);
    if (pass == nullptr) return Internal("there is no pass ", name);
    out.push_back(*pass);
  }
  return out;
}

// "StatefulPartitionedCall/model/dense/MatMul" was "model/dense/MatMul" in the function that was
// inlined: the name that users know.
Status DropCallNames(Graph& graph) {
  for (Node* n : graph.Nodes()) {
    std::vector<absl::string_view> parts = absl::StrSplit(n->name(), '/');
    size_t first = 0;
    while (first + 1 < parts.size() && absl::StrContains(parts[first], "PartitionedCall")) ++first;
    if (first == 0) continue;
    const std::string name =
        absl::StrJoin(parts.begin() + static_cast<ptrdiff_t>(first), parts.end(), "/");
    if (graph.Find(name) == nullptr) RETURN_IF_ERROR(graph.Rename(n, name));
  }
  return OkStatus();
}

std::vector<std::string> Names(const std::vector<LiteSlot>& slots) {
  std::vector<std::string> out;
  for (const LiteSlot& s : slots) out.push_back(s.tensor);
  return out;
}

// What the signature's graph is cut from: NOT_FOUND where there is none.
StatusOr<std::unique_ptr<Graph>> Cut(LoadedModel& model, const std::string& key,
                                     SignatureGraph* out) {
  ASSIGN_OR_RETURN(const Signature* signature, model.FindSignature(key));
  for (const auto* infos : {&signature->inputs, &signature->outputs}) {
    for (const auto& [name, info] : *infos) {
      if (info.kind == TensorInfo::Kind::kDense) continue;
      return Unimplemented("its ", infos == &signature->inputs ? "input" : "output", " '", name,
                           "' is ", info.kind == TensorInfo::Kind::kSparse ? "sparse" : "composite",
                           ", which a .tflite file has no type for");
    }
  }
  out->key = key;
  const auto inputs = LoadedModel::Slots(signature->inputs);
  const auto outputs = LoadedModel::Slots(signature->outputs);
  for (const auto& [name, slot] : inputs) out->inputs.push_back({name, slot.tensor});
  for (const auto& [name, slot] : outputs) out->outputs.push_back({name, slot.tensor});
  const Graph& from = model.session().graph();
  if (out->outputs.empty()) return std::make_unique<Graph>(from.library());
  // Two keys may name one tensor; the first is fed.
  std::vector<std::string> fed = Names(out->inputs);
  std::sort(fed.begin(), fed.end());
  const auto twice = std::adjacent_find(fed.begin(), fed.end());
  if (twice != fed.end()) return Unimplemented("two of its inputs are the tensor '", *twice, "'");
  return CutCallable(from, Names(out->inputs), Names(out->outputs), {});
}

}  // namespace

StatusOr<VariableNames> WrittenVariables(LoadedModel& model, const std::vector<std::string>& keys) {
  VariableNames out;
  for (const std::string& key : keys) {
    SignatureGraph signature;
    auto graph = Cut(model, key, &signature);
    // GraphOfSignature says why.
    if (absl::IsUnimplemented(graph.status())) continue;
    RETURN_IF_ERROR(graph.status());
    std::vector<ResourceName> names;
    HandleFlow flow(**graph);
    const auto hold = [&](const Graph& in, Function* function) {
      for (Node* n : in.Nodes()) {
        if (!n->Is("VarHandleOp")) continue;
        flow.Hold(static_cast<int>(names.size()), function, {n, 0});
        names.emplace_back(*n);
      }
    };
    hold(**graph, nullptr);
    for (Function* f : (*graph)->library()->Functions()) {
      if (f->body != nullptr) hold(*f->body, f);
    }
    flow.Follow([&](int handle, const HandleUse& use) {
      if (use.node->Is(kReadsVariable) || use.node->Is({"VarIsInitializedOp", "_Retval"})) return;
      const ResourceName& at = names[static_cast<size_t>(handle)];
      out.insert({at.container, at.name});
    });
    for (const Node* n : (*graph)->Nodes()) {
      if (!IsRefVariable(*n)) continue;
      const ResourceName at(*n);
      for (const Use& use : n->uses()) {
        if (use.is_control() || !IsRef(use.node->input_types[static_cast<size_t>(use.input)])) {
          continue;
        }
        out.insert({at.container, at.name});
      }
    }
  }
  return out;
}

StatusOr<SignatureGraph> GraphOfSignature(LoadedModel& model, const std::string& key,
                                          const VariableNames& written, InputPinner& pinner,
                                          const SignatureOptions& options) {
  SignatureGraph out;
  ASSIGN_OR_RETURN(out.graph, Cut(model, key, &out));
  ASSIGN_OR_RETURN(const Signature* signature, model.FindSignature(key));
  std::vector<CallableArgument> arguments;
  for (const auto& [name, slot] : LoadedModel::Slots(signature->inputs)) {
    ASSIGN_OR_RETURN(const PartialShape shape, pinner.Pin(name, slot.tensor, slot.shape));
    arguments.push_back({slot.dtype, shape});
  }
  for (Node* n : out.graph->Nodes()) {
    if (!n->Is("_Arg")) continue;
    const auto index = static_cast<size_t>(n->Int("index"));
    n->AttrsToChange().Set(kOutputShapes, std::vector<PartialShape>{arguments[index].shape});
  }
  RETURN_IF_ERROR(VerifyChanges(*out.graph));
  TakeDefaults(*out.graph);
  const auto is_written = [&](const Node& variable) {
    const ResourceName at(variable);
    return written.contains({at.container, at.name});
  };
  RETURN_IF_ERROR(NameRefVariables(*out.graph, is_written));
  PassContext context;
  context.lower_control_flow = false;
  const ResourceManager& resources = model.session().resources();
  context.frozen_value = [&](const Node& node) -> std::optional<Tensor> {
    if (node.Is("_Arg") || is_written(node)) return std::nullopt;
    const ResourceName at(node);
    const auto variable =
        std::dynamic_pointer_cast<Variable>(resources.Find(at.container, Variable::kKind, at.name));
    if (variable == nullptr) return std::nullopt;
    const Tensor value = variable->Read();
    return value.valid() ? std::optional<Tensor>(value) : std::nullopt;
  };
  ASSIGN_OR_RETURN(const std::vector<Pass> passes, Passes(options.keep_asserts));
  // Only when all else is known can a call be looked at; those that do not fit become bodies, where
  // there may be others.
  CompositeNames declined, told;
  context.keep_call = [&](const Function& f) {
    const std::string why = WhyNoComposite(f, options.composites);
    if (!why.empty() && told.insert(f.name()).second) {
      out.composites.push_back(
          {absl::StrCat("composite ", WhatItImplements(f)->name), f.name(), why});
    }
    return IsKeptComposite(f, declined, options.composites);
  };
  const auto optimize = [&](Graph& graph) -> Status {
    for (bool more = true; more;) {
      RETURN_IF_ERROR(RunPasses(passes, graph, context));
      ASSIGN_OR_RETURN(const bool known, FoldKnown(graph));
      if (known) continue;
      ASSIGN_OR_RETURN(more,
                       ChooseComposites(graph, options.composites, declined, &out.composites));
    }
    return OkStatus();
  };
  RETURN_IF_ERROR(optimize(*out.graph));
  RETURN_IF_ERROR(TakeLoops(out.graph, context, options.composites.off, &out.composites));
  RETURN_IF_ERROR(MakeFunctional(*out.graph));
  RETURN_IF_ERROR(OwnBodies(*out.graph, optimize));
  RETURN_IF_ERROR(RestoreArguments(*out.graph, arguments));
  RETURN_IF_ERROR(DropCallNames(*out.graph));
  return out;
}

}  // namespace smelt
