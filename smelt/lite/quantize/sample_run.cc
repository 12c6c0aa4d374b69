#include "smelt/lite/quantize/sample_run.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/lower/lowering.h"

namespace smelt {
namespace {

// What is kept between runs is what it begins with: real zero.
Status FixStates(Graph& graph) {
  for (Node* n : graph.Nodes()) {
    if (!n->Is("tfl.variable")) continue;
    const PartialShape shape = n->Get<PartialShape>("shape", {});
    if (!shape.fully_known()) {
      return InvalidArgument("'", n->name(), "', kept between runs, has no fixed shape");
    }
    ASSIGN_OR_RETURN(Tensor zeros, Tensor::Zeros(n->output_types[0], shape.ToShape()));
    AttrMap attrs;
    for (const absl::string_view name : {kScales, kZeroPoints}) {
      if (const Attr* value = n->attrs().Find(name)) attrs.Set(name, *value);
    }
    const std::vector<int64_t> points = n->Ints(kZeroPoints);
    if (zeros.dtype() == Dtype::kInt8 && !points.empty()) {
      std::ranges::fill(zeros.flat<int8_t>(), static_cast<int8_t>(points[0]));
    }
    attrs.Set("dtype", zeros.dtype());
    attrs.Set("value", zeros);
    ASSIGN_OR_RETURN(Node * constant,
                     graph.Add(absl::StrCat(n->name(), "/begin"), "Const", {}, std::move(attrs)));
    graph.ReplaceAllUses({n, 0}, {constant, 0});
    graph.ReplaceControlUses(n, nullptr);
    graph.Remove(n);
  }
  return OkStatus();
}

StatusOr<Node*> AddBegin(Graph& graph, const LiteResources::State& s) {
  ASSIGN_OR_RETURN(const Tensor begin, s.Begin());
  AttrMap handle, assign;
  handle.Set("shared_name", s.name);
  handle.Set("dtype", s.type);
  handle.Set("shape", PartialShape(s.shape));
  assign.Set("dtype", s.type);
  ASSIGN_OR_RETURN(Node * variable, graph.Add("state", "VarHandleOp", {}, std::move(handle)));
  Node* value = graph.AddConst("begin", begin);
  return graph.Add("assign", "AssignVariableOp", {{variable, 0}, {value, 0}}, std::move(assign));
}

// Nodes of the lowered graph that fill the variables of it and of what it calls.
class VariableFiller {
 public:
  explicit VariableFiller(Graph& graph) : graph_(graph) {}

  Status Fill() {
    for (Node* n : graph_.Nodes()) RETURN_IF_ERROR(FillOne(*n));
    // A variable that a branch alone reads has its handle there.
    for (const Function* f : graph_.library()->Functions()) {
      if (f->body == nullptr) continue;
      for (Node* n : f->body->Nodes()) RETURN_IF_ERROR(FillOne(*n));
    }
    return OkStatus();
  }
  std::vector<std::string> Take() { return std::move(assigns_); }

 private:
  Status FillOne(const Node& n) {
    const Attr* begin = n.Is("VarHandleOp") ? n.attrs().Find(kVariableBegin) : nullptr;
    if (begin == nullptr) return OkStatus();
    const std::string container(n.String("container")), name(n.String("shared_name"));
    if (!filled_.emplace(container, name).second) return OkStatus();
    const auto* tensor = begin->get<std::shared_ptr<const TensorValue>>();
    if (tensor == nullptr) return Internal("variable '", n.name(), "' begins with no tensor");
    ASSIGN_OR_RETURN(const Tensor first, (*tensor)->Materialize());
    AttrMap handle, assign;
    for (const absl::string_view attr : {"container", "shared_name", "dtype", "shape"}) {
      if (const Attr* value = n.attrs().Find(attr)) handle.Set(attr, *value);
    }
    ASSIGN_OR_RETURN(Node * variable, graph_.Add("filled", "VarHandleOp", {}, std::move(handle)));
    assign.Set("dtype", first.dtype());
    Node* value = graph_.AddConst("begin", first);
    ASSIGN_OR_RETURN(Node * node, graph_.Add("assign", "AssignVariableOp",
                                             {{variable, 0}, {value, 0}}, std::move(assign)));
    assigns_.push_back(node->name());
    return OkStatus();
  }

  Graph& graph_;
  std::set<std::pair<std::string, std::string>> filled_;  // by container and name
  std::vector<std::string> assigns_;
};

}  // namespace

StatusOr<std::unique_ptr<SampleRun>> SampleRun::Make(std::shared_ptr<Graph> graph,
                                                     std::span<const Endpoint> asked,
                                                     States states) {
  std::unique_ptr<SampleRun> out(new SampleRun());
  Graph& g = *graph;
  for (const Endpoint& e : asked) {
    AttrMap attrs;
    attrs.Set("T", e.node->output_types[static_cast<size_t>(e.port)]);
    ASSIGN_OR_RETURN(Node * n, g.Add("asked", "Identity", {e}, std::move(attrs)));
    out->fetches_.push_back(n->name());
  }
  if (states == States::kBeginAnew) RETURN_IF_ERROR(FixStates(g));
  LiteResources resources;
  FindVariableTypes(g, resources);
  RETURN_IF_ERROR(Lower(g, "main", resources));
  if (states == States::kKept) {
    for (const Node* n : g.Nodes()) {
      if (n->Is("AssignVariableOp")) out->always_.push_back(n->name());
    }
  }
  out->anew_ = states == States::kBeginAnew;
  VariableFiller filler(g);
  RETURN_IF_ERROR(filler.Fill());
  out->first_ = filler.Take();
  for (const LiteResources::State& s : resources.states) {
    ASSIGN_OR_RETURN(Node * assign, AddBegin(g, s));
    out->first_.push_back(assign->name());
  }
  std::vector<Node*> args;
  for (Node* n : g.Nodes()) {
    if (n->Is("_Retval")) {
      g.Remove(n);
    } else if (n->Is("_Arg")) {
      args.push_back(n);
    }
  }
  out->feeds_.resize(args.size());
  for (Node* arg : args) {
    AttrMap placeholder;
    placeholder.Set("dtype", arg->output_types[0]);
    placeholder.Set("shape", PartialShape::Unknown());
    ASSIGN_OR_RETURN(Node * fed, g.Add("feed", "Placeholder", {}, std::move(placeholder)));
    out->feeds_[static_cast<size_t>(arg->Int("index"))] = fed->name();
    g.ReplaceAllUses({arg, 0}, {fed, 0});
    g.ReplaceControlUses(arg, nullptr);
    g.Remove(arg);
  }
  SessionOptions options;
  options.compile = false;
  out->session_ = std::make_unique<Session>(std::move(graph), options);
  return out;
}

StatusOr<std::vector<Tensor>> SampleRun::Run(const LiteSample& sample) {
  if (sample.size() != feeds_.size()) {
    return InvalidArgument("it has ", sample.size(), " inputs, not ", feeds_.size());
  }
  std::vector<std::pair<std::string, Tensor>> feeds;
  for (size_t i = 0; i < feeds_.size(); ++i) feeds.emplace_back(feeds_[i], sample[i]);
  if (!first_.empty()) {
    RETURN_IF_ERROR(session_->Run({}, {}, first_).status());
    if (!anew_) first_.clear();
  }
  return session_->Run(feeds, fetches_, always_);
}

StatusOr<std::shared_ptr<Variable>> SampleRun::AddVariable(const std::string& name, Dtype type) {
  const auto make = [&]() -> StatusOr<std::shared_ptr<Resource>> {
    return std::make_shared<Variable>(name, type);
  };
  ASSIGN_OR_RETURN(const auto variable,
                   session_->resources().FindOrCreate("localhost", Variable::kKind, name, make));
  return std::static_pointer_cast<Variable>(variable);
}

}  // namespace smelt
