#include "smelt/analysis/handle_flow.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/analysis/captured.h"
#include "smelt/graph/function_ops.h"

namespace smelt {

void HandleFlow::Hold(int handle, Function* function, Endpoint e) {
  if (holds_[{e.node, e.port}].insert(handle).second) queue_.push_back({handle, function, e});
}

const std::set<int>& HandleFlow::Of(Endpoint e) const {
  static const std::set<int> nothing;
  auto it = holds_.find({e.node, e.port});
  return it == holds_.end() ? nothing : it->second;
}

// What one Follow learns of functions; passes may change them before the next.
class HandleFlow::Walk {
 public:
  explicit Walk(HandleFlow& flow) : flow_(flow) {}

  void Follow(const Item& item, absl::FunctionRef<void(int handle, const HandleUse&)> use) {
    if (item.function != nullptr) Return(item);
    for (const Use& edge : item.e.node->OrderedUses()) {
      if (edge.port() != item.e.port) continue;
      if (edge.node->Is("Identity") || edge.node->Is("IdentityN")) {
        flow_.Hold(item.handle, item.function, {edge.node, edge.input});
        continue;
      }
      if (edge.input == 0 && edge.node->Is({"Enter", "Switch"})) {
        for (int port = 0; port < edge.node->num_outputs(); ++port) {
          flow_.Hold(item.handle, item.function, {edge.node, port});
        }
        continue;
      }
      const HandleUse found{item.function, edge.node, edge.input};
      if (!EnterCall(item, found)) use(item.handle, found);
    }
  }

 private:
  struct CallSite {
    Function* caller;
    Node* node;
  };

  // False when the node is no call, or one whose function is not known.
  bool EnterCall(const Item& item, const HandleUse& use) {
    const Graph& graph = use.function ? *use.function->body : flow_.main_;
    int arg = 0;
    const std::vector<std::string> names = CalleesOfInput(graph, *use.node, use.input, &arg);
    std::vector<Function*> callees;
    for (const std::string& name : names) {
      Function* callee = graph.library()->Find(name);
      if (callee == nullptr || callee->body == nullptr) return false;
      callees.push_back(callee);
    }
    if (callees.empty() || arg < 0) return false;
    for (Function* callee : callees) {
      const std::vector<Endpoint>& args = ArgumentsOf(callee);
      if (arg < static_cast<int>(args.size())) flow_.Hold(item.handle, callee, args[arg]);
      AddSite(callee, {use.function, use.node});
    }
    // A loop that never runs its body returns what it was given.
    if (IsLoop(*use.node)) flow_.Hold(item.handle, use.function, {use.node, use.input});
    return true;
  }

  void AddSite(Function* callee, const CallSite& site) {
    if (!known_sites_.insert({callee, site.node}).second) return;
    sites_[callee].push_back(site);
    // What the body is known to return by now; the rest comes with Return.
    const std::vector<Endpoint> results = callee->FlatResults();
    for (size_t i = 0; i < results.size(); ++i) {
      const std::set<int> handles = flow_.Of(results[i]);
      for (const int handle : handles) HoldResult(handle, site, i);
    }
  }

  void Return(const Item& item) {
    auto sites = sites_.find(item.function);
    if (sites == sites_.end()) return;
    const std::vector<Endpoint> results = item.function->FlatResults();
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i] != item.e) continue;
      for (const CallSite& site : sites->second) HoldResult(item.handle, site, i);
    }
  }

  void HoldResult(int handle, const CallSite& site, size_t result) {
    const int port = static_cast<int>(result);
    if (port < site.node->num_outputs()) flow_.Hold(handle, site.caller, {site.node, port});
  }

  const std::vector<Endpoint>& ArgumentsOf(const Function* f) {
    auto [it, added] = arguments_.try_emplace(f);
    if (added) it->second = f->FlatArguments();
    return it->second;
  }

  HandleFlow& flow_;
  absl::flat_hash_map<const Function*, std::vector<Endpoint>> arguments_;
  absl::flat_hash_map<const Function*, std::vector<CallSite>> sites_;
  absl::flat_hash_set<std::pair<const Function*, const Node*>> known_sites_;
};

void HandleFlow::Follow(absl::FunctionRef<void(int handle, const HandleUse&)> use) {
  Walk walk(*this);
  while (!queue_.empty()) {
    const Item item = queue_.back();
    queue_.pop_back();
    walk.Follow(item, use);
  }
}

}  // namespace smelt
