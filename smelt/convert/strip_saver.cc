#include "smelt/convert/strip_saver.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/strip.h"
#include "smelt/analysis/handle_flow.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"

namespace smelt {
namespace {

// Inputs of SaveV2 before the tensors: prefix, names, slices.
constexpr int kSaveTensors = 3;

std::optional<std::vector<std::string>> SaverStrings(Endpoint e) {
  const std::optional<Tensor> tensor = ConstantTensor(*BehindIdentities(e).node);
  if (!tensor || tensor->dtype() != Dtype::kString) return std::nullopt;
  const auto values = tensor->flat<std::string>();
  return std::vector<std::string>(values.begin(), values.end());
}

template <typename T>
std::vector<T> SaverWithout(const std::vector<T>& from, const std::set<int>& gone) {
  std::vector<T> out;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!gone.contains(static_cast<int>(i))) out.push_back(from[i]);
  }
  return out;
}

// What a variable's leaving takes out of the saver.
struct SaverParts {
  struct Saved {
    HandleUse save;  // the tensor's input of SaveV2
    bool operator<(const Saved& o) const {
      return std::pair(save.node, save.input) < std::pair(o.save.node, o.save.input);
    }
  };
  std::set<std::string> keys;
  std::set<Saved> saved;
  std::set<std::pair<Function*, Node*>> nodes;  // that go, but for RestoreV2 and SaveV2
  std::set<std::pair<Function*, Node*>> restores;
  bool understood = true;
};

bool IsResult(const Function& f, const Node* n) {
  return std::ranges::any_of(f.FlatResults(), [&](const Endpoint& e) { return e.node == n; });
}

class SaverStripper {
 public:
  SaverStripper(MetaGraph& meta, const std::set<std::string>& kept) : meta_(meta), kept_(kept) {}

  Status Run(const std::vector<Node*>& variables, const absl::flat_hash_set<const Node*>& needed,
             const std::function<bool(const std::string&)>& stays) {
    FindSaver();
    HandleFlow flow(*meta_.graph);
    for (size_t i = 0; i < variables.size(); ++i) {
      flow.Hold(static_cast<int>(i), nullptr, {variables[i], 0});
    }
    std::vector<SaverParts> parts(variables.size());
    flow.Follow([&](int v, const HandleUse& use) {
      if (InSaver(use)) Take(use, parts[static_cast<size_t>(v)]);
    });
    std::vector<const SaverParts*> gone, left;
    for (size_t i = 0; i < parts.size(); ++i) {
      const SaverParts& p = parts[i];
      const bool leaves =
          p.understood && !needed.contains(variables[i]) && std::ranges::none_of(p.keys, stays);
      (leaves ? gone : left).push_back(&p);
    }
    KeepShared(gone, left);
    KeepOneOfEach(gone);
    return Remove(gone);
  }

 private:
  Graph& GraphOf(Function* f) const { return f != nullptr ? *f->body : *meta_.graph; }

  void FindSaver() {
    std::vector<const Node*> stack;
    const auto visit = [&](const Node* n) {
      if (nodes_.insert(n).second) stack.push_back(n);
    };
    for (const Node* n : SaverNodes(meta_)) visit(n);
    while (!stack.empty()) {
      const Node* n = stack.back();
      stack.pop_back();
      for (const Endpoint& e : n->inputs()) visit(e.node);
      for (const Node* c : n->control_inputs()) visit(c);
    }
    const FunctionLibrary& library = *meta_.graph->library();
    std::vector<std::string> callees;
    for (const Node* n : nodes_) {
      ForEachCallee(library, *n, [&](absl::string_view f) { callees.emplace_back(f); });
    }
    while (!callees.empty()) {
      const Function* f = library.Find(callees.back());
      callees.pop_back();
      if (f == nullptr || f->body == nullptr || kept_.contains(f->name())) continue;
      if (!functions_.insert(f->name()).second) continue;
      for (const std::string& callee : CalledFunctions(*f->body)) callees.push_back(callee);
    }
  }

  bool InSaver(const HandleUse& use) const {
    return use.function ? functions_.contains(use.function->name()) : nodes_.contains(use.node);
  }

  void Take(const HandleUse& use, SaverParts& out) const {
    Node* n = use.node;
    if (n->Is("DisableCopyOnRead")) {
      out.nodes.insert({use.function, n});
    } else if (n->Is("ReadVariableOp")) {
      out.nodes.insert({use.function, n});
      TakeSaved(use.function, n, out);
    } else if (n->Is("SaveV2")) {
      TakeSave(use, out);
    } else if ((n->Is("Assign") || n->Is("AssignVariableOp")) && use.input == 0) {
      TakeRestored(use.function, n, out);
    } else {
      out.understood = false;
    }
  }

  void TakeSave(const HandleUse& use, SaverParts& out) const {
    const auto names = SaverStrings(use.node->input(1)), slices = SaverStrings(use.node->input(2));
    const size_t i = static_cast<size_t>(use.input - kSaveTensors);
    if (use.input < kSaveTensors || !names || !slices || i >= names->size() ||
        names->size() != slices->size()) {
      out.understood = false;
      return;
    }
    out.keys.insert((*names)[i]);
    out.saved.insert({use});
  }

  // What the node calls, where only the saver does.
  Function* SaverCallee(const Node& n) const {
    const FuncAttr* f = IsPartitionedCall(n) ? n.Func("f") : nullptr;
    const bool saver = f != nullptr && functions_.contains(f->name);
    return saver ? meta_.graph->library()->Find(f->name) : nullptr;
  }

  // Where the read value goes: through identities, and as an argument, to SaveV2.
  void TakeSaved(Function* f, Node* from, SaverParts& out) const {
    for (const Use& use : from->OrderedUses()) {
      if (use.is_control()) continue;
      if (use.node->Is("SaveV2")) {
        TakeSave({f, use.node, use.input}, out);
      } else if (use.node->Is("Identity")) {
        out.nodes.insert({f, use.node});
        TakeSaved(f, use.node, out);
      } else if (Function* callee = SaverCallee(*use.node); callee != nullptr) {
        const std::vector<Endpoint> args = callee->FlatArguments();
        if (use.input < std::ssize(args)) {
          TakeSaved(callee, args[static_cast<size_t>(use.input)].node, out);
        }
      } else {
        out.understood = false;
      }
    }
    if (f != nullptr && IsResult(*f, from)) out.understood = false;
  }

  void TakeRestored(Function* f, Node* assign, SaverParts& out) const {
    out.nodes.insert({f, assign});
    const auto read = [](const Use& use) { return !use.is_control(); };
    out.understood = out.understood && std::ranges::none_of(assign->uses(), read);
    Endpoint from = assign->input(1);
    for (; from.node->Is("Identity"); from = from.node->input(0)) {
      // An identity that others read stays, and with it what it reads.
      const bool alone = std::ranges::all_of(from.node->uses(), [&](const Use& use) {
        return use.is_control() || out.nodes.contains({f, use.node});
      });
      if (alone) out.nodes.insert({f, from.node});
    }
    const Node* restore = from.node;
    const auto names = restore->Is("RestoreV2") ? SaverStrings(restore->input(1)) : std::nullopt;
    const auto slices = restore->Is("RestoreV2") ? SaverStrings(restore->input(2)) : std::nullopt;
    if (!names || !slices || std::ssize(*names) != restore->num_outputs() ||
        names->size() != slices->size()) {
      out.understood = false;
      return;
    }
    out.keys.insert((*names)[static_cast<size_t>(from.port)]);
    out.restores.insert({f, from.node});
  }

  // A function that is called with several variables serves those that stay.
  static void KeepShared(std::vector<const SaverParts*>& gone,
                         const std::vector<const SaverParts*>& left) {
    std::set<std::pair<Function*, Node*>> nodes;
    std::set<SaverParts::Saved> saved;
    const auto add = [&](const SaverParts* p) {
      nodes.insert(p->nodes.begin(), p->nodes.end());
      saved.insert(p->saved.begin(), p->saved.end());
    };
    for (const SaverParts* p : left) add(p);
    const auto shares = [&](const SaverParts* p) {
      return std::ranges::any_of(p->nodes, [&](const auto& n) { return nodes.contains(n); }) ||
             std::ranges::any_of(p->saved, [&](const auto& s) { return saved.contains(s); });
    };
    while (true) {
      const auto it = std::ranges::find_if(gone, shares);
      if (it == gone.end()) return;
      add(*it);
      gone.erase(it);
    }
  }

  // SaveV2 and RestoreV2 take no empty list: what would leave one empty stays.
  static void KeepOneOfEach(std::vector<const SaverParts*>& gone) {
    while (true) {
      std::map<const Node*, int> left;
      for (const SaverParts* p : gone) {
        for (const auto& s : p->saved) {
          left.try_emplace(s.save.node, s.save.node->num_inputs() - kSaveTensors);
          --left[s.save.node];
        }
      }
      const auto empties = [&](const SaverParts* p) {
        return std::ranges::any_of(p->saved, [&](const auto& s) { return left[s.save.node] <= 0; });
      };
      const auto it = std::ranges::find_if(gone, empties);
      if (it == gone.end()) return;
      gone.erase(it);
    }
  }

  Status Remove(const std::vector<const SaverParts*>& gone) {
    std::map<std::pair<Function*, Node*>, std::set<int>> saved;
    std::set<std::pair<Function*, Node*>> restores;
    std::map<Function*, std::set<Node*>> nodes;
    for (const SaverParts* p : gone) {
      for (const auto& s : p->saved) {
        saved[{s.save.function, s.save.node}].insert(s.save.input - kSaveTensors);
      }
      restores.insert(p->restores.begin(), p->restores.end());
      for (const auto& [f, n] : p->nodes) nodes[f].insert(n);
    }
    for (const auto& [at, inputs] : saved) RETURN_IF_ERROR(ShrinkSave(at.first, at.second, inputs));
    for (auto& [f, set] : nodes) RemoveNodes(f, set);
    for (const auto& [f, n] : restores) RETURN_IF_ERROR(ShrinkRestore(f, n));
    for (const std::string& f : functions_) RETURN_IF_ERROR(DropUnusedArguments(f));
    return OkStatus();
  }

  // Replaces a list of names, whose node goes where it was the only reader.
  Status ReplaceStrings(Graph& graph, Node* n, int input, const std::set<int>& gone) {
    Node* old = n->input(input).node;
    const auto values = SaverStrings(n->input(input));
    if (!values) return Internal("node '", n->name(), "' has no constant names");
    const std::vector<std::string> left = SaverWithout(*values, gone);
    graph.SetInput(n, input, {graph.AddConst(old->name(), Tensor::Vector<std::string>(left)), 0});
    if (old->uses().empty() && old->Is("Const")) graph.Remove(old);
    return OkStatus();
  }

  Status ShrinkSave(Function* f, Node* save, const std::set<int>& gone) {
    Graph& graph = GraphOf(f);
    RETURN_IF_ERROR(ReplaceStrings(graph, save, 1, gone));
    RETURN_IF_ERROR(ReplaceStrings(graph, save, 2, gone));
    std::vector<Endpoint> inputs(save->inputs().begin(), save->inputs().begin() + kSaveTensors);
    const std::vector<Endpoint> tensors(save->inputs().begin() + kSaveTensors,
                                        save->inputs().end());
    for (const Endpoint& e : SaverWithout(tensors, gone)) inputs.push_back(e);
    save->AttrsToChange().Set("dtypes",
                              SaverWithout(save->Get<std::vector<Dtype>>("dtypes", {}), gone));
    graph.SetInputs(save, inputs);
    return graph.ResolveTypes(save);
  }

  void RemoveNodes(Function* f, std::set<Node*>& set) {
    Graph& graph = GraphOf(f);
    // Reference variables and their reads have readers outside of the saver.
    if (f == nullptr) {
      const auto read = [&](const Node* n) {
        return std::ranges::any_of(n->uses(), [&](const Use& use) {
          return !use.is_control() && !set.contains(use.node);
        });
      };
      while (std::erase_if(set, read) > 0) {
      }
    }
    for (Node* n : set) graph.ReplaceControlUses(n, nullptr);
    if (f != nullptr) {
      for (const auto& [name, n] : f->control_results) {
        if (set.contains(n)) std::erase(f->signature.control_outputs, name);
      }
      std::erase_if(f->control_results, [&](const auto& c) { return set.contains(c.second); });
    }
    graph.Remove(std::vector<Node*>(set.begin(), set.end()));
  }

  Status ShrinkRestore(Function* f, Node* restore) {
    Graph& graph = GraphOf(f);
    std::set<int> gone;
    std::vector<int> number;
    for (int port = 0; port < restore->num_outputs(); ++port) {
      bool used = restore->NumUses(port) > 0;
      if (f != nullptr) {
        const std::vector<Endpoint> results = f->FlatResults();
        used |= std::ranges::find(results, Endpoint{restore, port}) != results.end();
      }
      number.push_back(port - static_cast<int>(gone.size()));
      if (!used) gone.insert(port);
    }
    if (std::ssize(gone) == restore->num_outputs()) {
      graph.ReplaceControlUses(restore, nullptr);
      if (f != nullptr) {
        std::erase_if(f->control_results, [&](const auto& c) { return c.second == restore; });
      }
      graph.Remove(restore);
      return OkStatus();
    }
    RETURN_IF_ERROR(ReplaceStrings(graph, restore, 1, gone));
    RETURN_IF_ERROR(ReplaceStrings(graph, restore, 2, gone));
    // Ports move down, in ascending order: none meets one that is still to move.
    for (const Use& use : restore->OrderedUses()) {
      if (use.is_control()) continue;
      graph.SetInput(use.node, use.input, {restore, number[static_cast<size_t>(use.port())]});
    }
    if (f != nullptr) {
      for (auto& result : f->results) {
        for (Endpoint& e : result) {
          if (e.node == restore) e.port = number[static_cast<size_t>(e.port)];
        }
      }
    }
    restore->AttrsToChange().Set(
        "dtypes", SaverWithout(restore->Get<std::vector<Dtype>>("dtypes", {}), gone));
    restore->EraseAttr("_output_shapes");
    return graph.ResolveTypes(restore);
  }

  // Arguments that the function reads no more, where all that names it is calls.
  Status DropUnusedArguments(const std::string& name) {
    FunctionLibrary& library = *meta_.graph->library();
    Function* f = library.Find(name);
    std::set<int> gone;
    for (int i = 0; i < std::ssize(f->args); ++i) {
      const Node* arg = f->args[static_cast<size_t>(i)];
      if (arg->num_outputs() != 1) continue;
      if (arg->uses().empty() && !IsResult(*f, arg)) gone.insert(i);
    }
    if (gone.empty() || f->FlatArguments().size() != f->args.size()) return OkStatus();
    std::vector<std::pair<Graph*, Node*>> calls;
    const auto find = [&](Graph& graph) {
      bool only_calls = true;
      for (Node* n : graph.Nodes()) {
        bool named = n->op() == name;
        ForEachFunc(n->attrs(), [&](const FuncAttr& a) { named |= a.name == name; });
        if (!named) continue;
        only_calls = only_calls && IsPartitionedCall(*n);
        calls.emplace_back(&graph, n);
      }
      return only_calls;
    };
    if (!find(*meta_.graph)) return OkStatus();
    for (Function* other : library.Functions()) {
      if (other->body != nullptr && !find(*other->body)) return OkStatus();
    }
    for (const auto& [graph, call] : calls) {
      const std::vector<Endpoint> inputs(call->inputs().begin(), call->inputs().end());
      call->AttrsToChange().Set("Tin",
                                SaverWithout(call->Get<std::vector<Dtype>>("Tin", {}), gone));
      graph->SetInputs(call, SaverWithout(inputs, gone));
      RETURN_IF_ERROR(graph->ResolveTypes(call));
    }
    std::map<int, AttrMap> arg_attrs;
    std::vector<Node*> args;
    for (int i = 0; i < std::ssize(f->args); ++i) {
      Node* arg = f->args[static_cast<size_t>(i)];
      if (gone.contains(i)) {
        f->body->ReplaceControlUses(arg, nullptr);
        f->body->Remove(arg);
        continue;
      }
      const int index = static_cast<int>(args.size());
      if (const auto it = f->arg_attrs.find(i); it != f->arg_attrs.end()) {
        arg_attrs[index] = it->second;
      }
      arg->AttrsToChange().Set("index", index);
      args.push_back(arg);
    }
    f->args = std::move(args);
    f->arg_attrs = std::move(arg_attrs);
    f->signature.inputs = SaverWithout(f->signature.inputs, gone);
    if (Attr* shapes = f->attrs.FindToChange("_input_shapes")) {
      if (auto* list = std::get_if<std::vector<PartialShape>>(&shapes->value())) {
        *list = SaverWithout(*list, gone);
      }
    }
    return OkStatus();
  }

  MetaGraph& meta_;
  const std::set<std::string>& kept_;
  absl::flat_hash_set<const Node*> nodes_;  // that the saver runs, of the main graph
  std::set<std::string> functions_;         // that only the saver calls
};

}  // namespace

absl::string_view NodeOfTensor(absl::string_view tensor) {
  absl::ConsumePrefix(&tensor, "^");
  return tensor.substr(0, tensor.find(':'));
}

std::vector<Node*> SaverNodes(const MetaGraph& meta) {
  std::vector<Node*> nodes;
  if (!meta.saver) return nodes;
  for (const std::string& name : {meta.saver->filename_tensor_name, meta.saver->save_tensor_name,
                                  meta.saver->restore_op_name}) {
    if (Node* n = meta.graph->Find(NodeOfTensor(name)); n != nullptr) nodes.push_back(n);
  }
  return nodes;
}

Status StripSaver(MetaGraph& meta, const std::vector<Node*>& variables,
                  const absl::flat_hash_set<const Node*>& needed, const std::set<std::string>& kept,
                  const std::function<bool(const std::string& key)>& stays) {
  return SaverStripper(meta, kept).Run(variables, needed, stays);
}

bool RestoredKeys(const Graph& graph, std::set<std::string>* keys) {
  bool known = true;
  const auto add = [&](const Graph& g) {
    for (const Node* n : g.Nodes()) {
      if (!n->Is("RestoreV2")) continue;
      const auto names = SaverStrings(n->input(1));
      known = known && names.has_value();
      if (names) keys->insert(names->begin(), names->end());
    }
  };
  add(graph);
  for (const Function* f : graph.library()->Functions()) {
    if (f->body != nullptr) add(*f->body);
  }
  return known;
}

}  // namespace smelt
