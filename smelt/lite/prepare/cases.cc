#include "smelt/lite/prepare/cases.h"

#include "absl/strings/str_replace.h"
#include "smelt/graph/function_ops.h"
#include "smelt/lite/prepare/callable.h"

namespace smelt {
namespace {

class Splitter {
 public:
  Splitter(Graph& graph, Node* node) : graph_(graph), node_(node) {
    for (int i = 1; i < node->num_inputs(); ++i)
      types_.push_back(BaseType(node->input_types[static_cast<size_t>(i)]));
    for (const Dtype type : node->output_types) out_.push_back(BaseType(type));
    library_ = graph.library();
  }

  Status Split(const std::vector<FuncAttr>& branches) {
    std::vector<Endpoint> inputs(node_->inputs().begin() + 1, node_->inputs().end());
    const Endpoint index = node_->input(0);
    Node* zero = graph_.AddConst(node_->name() + "/first", Tensor::Scalar(int32_t{0}));
    AttrMap equal;
    equal.Set("T", Dtype::kInt32);
    ASSIGN_OR_RETURN(Node * chosen, graph_.Add(node_->name() + "/chosen", "Equal",
                                               {index, Endpoint{zero, 0}}, std::move(equal)));
    FuncAttr then = branches[0], otherwise = branches.back();
    if (branches.size() > 2) {
      inputs.push_back(index);
      ASSIGN_OR_RETURN(then, AddCall(branches[0]));
      ASSIGN_OR_RETURN(otherwise, AddRest({branches.begin() + 1, branches.end()}));
    }
    inputs.insert(inputs.begin(), Endpoint{chosen, 0});
    DtypeVector in = types_;
    if (branches.size() > 2) in.push_back(Dtype::kInt32);
    AttrMap attrs = node_->attrs();
    attrs.Erase("branches");
    attrs.Set("Tcond", Dtype::kBool);
    attrs.Set("Tin", in);
    attrs.Set("Tout", out_);
    attrs.Set("then_branch", std::move(then));
    attrs.Set("else_branch", std::move(otherwise));
    ASSIGN_OR_RETURN(Node * made,
                     graph_.Add(node_->name(), node_->Is("Case") ? "If" : "StatelessIf", inputs,
                                std::move(attrs)));
    graph_.SetControlInputs(made, node_->control_inputs());
    for (int i = 0; i < node_->num_outputs(); ++i) graph_.ReplaceAllUses({node_, i}, {made, i});
    graph_.ReplaceControlUses(node_, made);
    graph_.Remove(node_);
    return OkStatus();
  }

 private:
  // A graph with the arguments, and the index behind them.
  StatusOr<std::unique_ptr<Graph>> Start(std::vector<Endpoint>* args) const {
    auto body = std::make_unique<Graph>(library_);
    DtypeVector types = types_;
    types.push_back(Dtype::kInt32);
    for (size_t i = 0; i < types.size(); ++i) {
      AttrMap attrs;
      attrs.Set("T", types[i]);
      attrs.Set("index", static_cast<int64_t>(i));
      ASSIGN_OR_RETURN(Node * arg, body->Add("argument", "_Arg", {}, std::move(attrs)));
      args->push_back({arg, 0});
    }
    return body;
  }
  StatusOr<FuncAttr> Finish(std::unique_ptr<Graph> body, Node* results) const {
    for (int i = 0; i < results->num_outputs(); ++i) {
      AttrMap attrs;
      attrs.Set("T", out_[static_cast<size_t>(i)]);
      attrs.Set("index", static_cast<int64_t>(i));
      RETURN_IF_ERROR(
          body->Add("result", "_Retval", {Endpoint{results, i}}, std::move(attrs)).status());
    }
    const std::string name =
        library_->FreeName(absl::StrReplaceAll(node_->name() + "_branch", {{"/", "_"}}));
    ASSIGN_OR_RETURN(auto function, FunctionOf(std::move(body), name));
    RETURN_IF_ERROR(library_->Add(std::move(function)));
    return FuncAttr{name, nullptr};
  }
  AttrMap CallAttrs() const {
    AttrMap attrs;
    attrs.Set("Tin", types_);
    attrs.Set("Tout", out_);
    return attrs;
  }

  // The function, without the index.
  StatusOr<FuncAttr> AddCall(const FuncAttr& branch) const {
    std::vector<Endpoint> args;
    ASSIGN_OR_RETURN(auto body, Start(&args));
    args.pop_back();
    AttrMap attrs = CallAttrs();
    attrs.Set("f", branch);
    const bool stateful = node_->Is("Case");
    ASSIGN_OR_RETURN(Node * call,
                     body->Add("call", stateful ? "StatefulPartitionedCall" : "PartitionedCall",
                               args, std::move(attrs)));
    return Finish(std::move(body), call);
  }
  // A Case of these, by the index minus one.
  StatusOr<FuncAttr> AddRest(std::vector<FuncAttr> branches) const {
    std::vector<Endpoint> args;
    ASSIGN_OR_RETURN(auto body, Start(&args));
    Node* one = body->AddConst("one", Tensor::Scalar(int32_t{1}));
    AttrMap sub;
    sub.Set("T", Dtype::kInt32);
    ASSIGN_OR_RETURN(Node * index,
                     body->Add("index", "Sub", {args.back(), Endpoint{one, 0}}, std::move(sub)));
    args.pop_back();
    args.insert(args.begin(), Endpoint{index, 0});
    AttrMap attrs = CallAttrs();
    attrs.Set("branches", std::move(branches));
    ASSIGN_OR_RETURN(Node * rest, body->Add("rest", node_->op(), args, std::move(attrs)));
    return Finish(std::move(body), rest);
  }

  Graph& graph_;
  Node* node_;
  std::shared_ptr<FunctionLibrary> library_;
  DtypeVector types_, out_;
};

}  // namespace

Status CasesToIfs(Graph& graph) {
  for (Node* n : graph.Nodes()) {
    if (!IsCase(*n)) continue;
    const auto branches = n->Get<std::vector<FuncAttr>>("branches", {});
    if (!branches.empty()) RETURN_IF_ERROR(Splitter(graph, n).Split(branches));
  }
  return OkStatus();
}

}  // namespace smelt
