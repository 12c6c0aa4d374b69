// Loops that are scans become _Scan nodes.
#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/copy_node.h"
#include "smelt/graph/function_ops.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/values.h"
#include "smelt/optimize/pipeline.h"
#include "smelt/optimize/scan/copy_value.h"
#include "smelt/optimize/scan/hoist.h"
#include "smelt/optimize/scan/loop.h"
#include "smelt/optimize/scan/raised_loop.h"

namespace smelt {
namespace {

using Kind = LoopVariable::Kind;
constexpr absl::string_view kRule = "LoopToScan";

class ScanBuilder {
 public:
  ScanBuilder(Graph& graph, Loop& loop)
      : graph_(graph), loop_(loop), node_(*loop.node), parts_{graph,
                                                              *loop.body,
                                                              loop.node->name(),
                                                              loop.node->control_inputs(),
                                                              {},
                                                              {}} {}

  // The loop's node is gone afterwards. `number`: of the body.
  Status Build(int64_t number) {
    RETURN_IF_ERROR(TakeRows());
    RETURN_IF_ERROR(TakeRest());
    ReturnValues();
    RETURN_IF_ERROR(AddGoesOn());
    RETURN_IF_ERROR(Hoist(parts_));
    RETURN_IF_ERROR(TakeStates());
    RETURN_IF_ERROR(MakeResults());
    NumberArguments();
    ASSIGN_OR_RETURN(const Endpoint steps, CountSteps());
    ASSIGN_OR_RETURN(Node * scan, AddScan(number, steps));
    RETURN_IF_ERROR(ReplaceOutputs(scan, steps));
    graph_.ReplaceControlUses(loop_.node, scan);
    graph_.Remove(loop_.node);
    return OkStatus();
  }

 private:
  Graph& body() { return *loop_.body; }
  size_t Count() const { return loop_.variables.size(); }
  Node* Arg(size_t i) const { return loop_.args[i]; }
  std::string Name(absl::string_view what) const { return absl::StrCat(node_.name(), "/", what); }

  StatusOr<Endpoint> Add(absl::string_view what, absl::string_view op,
                         std::initializer_list<Endpoint> inputs, AttrMap attrs) {
    ASSIGN_OR_RETURN(Node * n, graph_.Add(Name(what), op, inputs, std::move(attrs)));
    graph_.SetControlInputs(n, parts_.waits);
    return Endpoint{n, 0};
  }

  // `e`, whose shape behind the first dimension has to be what `shape` says, where that is known.
  StatusOr<Endpoint> OfElements(Endpoint e, Endpoint shape) {
    const auto stated = ConstantTensor(*BehindIdentities(shape).node);
    if (!stated || stated->rank() != 1) return e;
    const auto dims = IntVectorOf(*stated);
    if (!dims) return e;
    PartialShape of = PartialShape::UnknownOfRank(1);
    for (const int64_t d : dims->values) of.Add(std::max<int64_t>(d, -1));
    AttrMap attrs;
    attrs.Set("T", e.node->output_types[static_cast<size_t>(e.port)]);
    attrs.Set("shape", of);
    return Add("elements", "EnsureShape", {e}, std::move(attrs));
  }

  Status TakeRows() {
    for (size_t i = 0; i < Count(); ++i) {
      const LoopVariable& v = loop_.variables[i];
      if (v.kind != Kind::kRows || v.reads.empty()) continue;
      ASSIGN_OR_RETURN(const Endpoint from,
                       OfElements(v.list.node->input(0), v.list.node->input(1)));
      ASSIGN_OR_RETURN(Node * arg, AddScanArg(body(), from));
      for (Node* read : v.reads) {
        body().ReplaceAllUses({read, 0}, {arg, 0});
        body().ReplaceControlUses(read, nullptr);
        body().Remove(read);
      }
      parts_.rows.push_back({arg, from});
    }
    return OkStatus();
  }

  Status TakeRest() {
    for (size_t i = 0; i < Count(); ++i) {
      if (loop_.variables[i].kind != Kind::kInvariant || Arg(i) == nullptr) continue;
      const Endpoint from = node_.input(static_cast<int>(i));
      if (node_.input_types[i] == Dtype::kResource) {
        RETURN_IF_ERROR(ReadOnce(Arg(i), from));
      } else {
        parts_.rest.push_back({Arg(i), from});
      }
    }
    return OkStatus();
  }

  // Variables that the body reads are read before the loop: nobody writes them meanwhile, but who
  // would race with the loop as well.
  Status ReadOnce(Node* handle, Endpoint from) {
    std::vector<Node*> reads;
    for (Node* n : body().Nodes()) {
      if (n->Is("ReadVariableOp") && BehindIdentities(n->input(0)).node == handle)
        reads.push_back(n);
    }
    for (Node* read : reads) {
      AttrMap attrs;
      attrs.Set("dtype", read->output_types[0]);
      ASSIGN_OR_RETURN(const Endpoint value,
                       Add("read", "ReadVariableOp", {from}, std::move(attrs)));
      ASSIGN_OR_RETURN(Node * arg, AddScanArg(body(), value));
      body().ReplaceAllUses({read, 0}, {arg, 0});
      body().ReplaceControlUses(read, nullptr);
      body().Remove(read);
      parts_.rest.push_back({arg, value});
    }
    return OkStatus();
  }

  // An iteration gives the values that it writes in place of the lists.
  void ReturnValues() {
    for (size_t i = 0; i < Count(); ++i) {
      Node* result = loop_.results[i];
      const LoopVariable& v = loop_.variables[i];
      if (v.kind == Kind::kArray) body().SetInput(result, 0, v.write->input(2));
    }
    // The lists go.
    std::vector<Node*> kept = loop_.results;
    std::ranges::copy_if(loop_.args, std::back_inserter(kept),
                         [](Node* n) { return n != nullptr; });
    for (const auto* list : {&parts_.rows, &parts_.rest}) {
      for (const ScanInput& in : *list) kept.push_back(in.arg);
    }
    body().Prune(kept);
  }

  bool until() const { return loop_.goes_on.node != nullptr; }

  // An iteration says whether there is another one, of what it made.
  Status AddGoesOn() {
    if (!until()) return OkStatus();
    const auto arg = [&](const Node& n) -> StatusOr<Endpoint> {
      const auto i = static_cast<size_t>(n.Int("index"));
      if (loop_.variables[i].kind != Kind::kInvariant || Arg(i) != nullptr) {
        return loop_.results[i]->input(0);
      }
      const Endpoint from = node_.input(static_cast<int>(i));
      ASSIGN_OR_RETURN(Node * added, AddScanArg(body(), from));
      parts_.rest.push_back({added, from});
      return Endpoint{added, 0};
    };
    const auto name = [](const Node& n) { return n.name(); };
    ASSIGN_OR_RETURN(const Endpoint goes_on,
                     CopyValue(body(), *loop_.cond, loop_.goes_on, arg, name, {}));
    AttrMap attrs;
    attrs.Set("T", Dtype::kBool);
    attrs.Set("index", int64_t{0});
    ASSIGN_OR_RETURN(goes_on_, body().Add("_scan_goes_on", "_Retval", {goes_on}, std::move(attrs)));
    return OkStatus();
  }

  // A counter is a state where it is computed with, or says how often the body ran.
  Status TakeStates() {
    std::vector<Endpoint> todo;
    for (size_t i = 0; i < Count(); ++i) {
      const Kind kind = loop_.variables[i].kind;
      if (kind == Kind::kState || kind == Kind::kArray) todo.push_back(loop_.results[i]->input(0));
    }
    absl::flat_hash_set<const Node*> seen;
    while (!todo.empty()) {
      const Node* n = todo.back().node;
      todo.pop_back();
      if (!seen.insert(n).second) continue;
      todo.insert(todo.end(), n->inputs().begin(), n->inputs().end());
    }
    for (size_t i = 0; i < Count(); ++i) {
      const Kind kind = loop_.variables[i].kind;
      if (kind == Kind::kState ||
          (kind == Kind::kCounter && (until() || (Arg(i) != nullptr && seen.contains(Arg(i)))))) {
        states_.push_back(i);
      } else if (kind == Kind::kArray) {
        arrays_.push_back(i);
      }
    }
    return OkStatus();
  }

  Status MakeResults() {
    int64_t index = 0;
    std::vector<Node*> results;
    for (const auto* list : {&states_, &arrays_}) {
      for (const size_t i : *list) {
        const Endpoint e = loop_.results[i]->input(0);
        AttrMap attrs;
        attrs.Set("T", BaseType(e.node->output_types[static_cast<size_t>(e.port)]));
        attrs.Set("index", index++);
        ASSIGN_OR_RETURN(Node * r, body().Add("_scan_result", "_Retval", {e}, std::move(attrs)));
        results.push_back(r);
      }
    }
    for (const size_t i : states_) {
      if (Arg(i) != nullptr) {
        state_args_.push_back(Arg(i));
        continue;
      }
      ASSIGN_OR_RETURN(Node * arg, AddScanArg(body(), node_.input(static_cast<int>(i))));
      state_args_.push_back(arg);
    }
    std::vector<Node*> kept = results;
    if (until()) {
      goes_on_->AttrsToChange().Set("index", index);
      kept.push_back(goes_on_);
    }
    kept.insert(kept.end(), state_args_.begin(), state_args_.end());
    for (size_t i = states_.size(); i < results.size(); ++i) {
      array_types_.push_back(results[i]->input_types[0]);
    }
    body().Prune(kept);
    const auto nodes = body().Nodes();
    const absl::flat_hash_set<const Node*> live(nodes.begin(), nodes.end());
    const auto gone = [&](const ScanInput& in) { return !live.contains(in.arg); };
    std::erase_if(parts_.rows, gone);
    std::erase_if(parts_.rest, gone);
    return OkStatus();
  }

  void NumberArguments() {
    int64_t index = 0;
    for (Node* arg : state_args_) arg->AttrsToChange().Set("index", index++);
    for (const auto* list : {&parts_.rows, &parts_.rest}) {
      for (const ScanInput& in : *list) in.arg->AttrsToChange().Set("index", index++);
    }
  }

  // How often the body runs: bounds are compared before each iteration.
  StatusOr<Endpoint> CountSteps() {
    Endpoint steps;
    if (until()) {
      const auto number = [&](int64_t n) {
        return Endpoint{graph_.AddConst(Name("steps"), Tensor::Scalar<int64_t>(n)), 0};
      };
      AttrMap attrs;
      attrs.Set("T", Dtype::kInt64);
      return Add("steps", "SelectV2",
                 {loop_.begins, number(std::numeric_limits<int64_t>::max()), number(0)},
                 std::move(attrs));
    }
    for (const Loop::Bound& bound : loop_.bounds) {
      const auto counter = static_cast<size_t>(bound.counter);
      const Dtype type = node_.input_types[counter];
      AttrMap attrs;
      attrs.Set("T", type);
      const Endpoint start = node_.input(bound.counter);
      ASSIGN_OR_RETURN(Endpoint n, Add("bound", "Maximum", {bound.below, start}, attrs));
      if (loop_.variables[counter].start != 0) {
        ASSIGN_OR_RETURN(n, Add("steps", "Sub", {n, start}, attrs));
      }
      if (steps.node != nullptr) {
        ASSIGN_OR_RETURN(n, Add("steps", "Minimum", {steps, n}, attrs));
      }
      steps = n;
    }
    return steps;
  }

  // How many rows an array has behind the loop.
  StatusOr<Endpoint> LengthOf(const LoopVariable& v, Endpoint steps) {
    const Endpoint reserved = v.list.node->input(1);
    if (!v.grows) return reserved;
    Endpoint written = steps;
    const Dtype type = steps.node->output_types[static_cast<size_t>(steps.port)];
    if (type != Dtype::kInt32) {
      AttrMap cast;
      cast.Set("SrcT", type);
      cast.Set("DstT", Dtype::kInt32);
      ASSIGN_OR_RETURN(written, Add("written", "Cast", {steps}, std::move(cast)));
    }
    AttrMap attrs;
    attrs.Set("T", Dtype::kInt32);
    return Add("length", "Maximum", {reserved, written}, std::move(attrs));
  }

  StatusOr<Node*> AddScan(int64_t number, Endpoint steps) {
    std::vector<Endpoint> inputs = {steps};
    std::vector<Dtype> states, rows, rest;
    std::vector<bool> last;
    for (const size_t i : states_) {
      inputs.push_back(node_.input(static_cast<int>(i)));
      states.push_back(node_.input_types[i]);
    }
    const auto take = [&](const std::vector<ScanInput>& list, std::vector<Dtype>* types) {
      for (const ScanInput& in : list) {
        inputs.push_back(in.from);
        types->push_back(in.arg->output_types[0]);
      }
    };
    take(parts_.rows, &rows);
    for (const size_t i : arrays_) {
      ASSIGN_OR_RETURN(const Endpoint length, LengthOf(loop_.variables[i], steps));
      inputs.push_back(length);
      last.push_back(loop_.variables[i].last);
    }
    take(parts_.rest, &rest);
    AttrMap attrs;
    attrs.Set("Tsteps", steps.node->output_types[static_cast<size_t>(steps.port)]);
    attrs.Set("Tstates", states);
    attrs.Set("Trows", rows);
    attrs.Set("Trest", rest);
    attrs.Set("Tarrays", array_types_);
    attrs.Set("num_arrays", static_cast<int64_t>(arrays_.size()));
    attrs.Set("last", last);
    AddRowShapes(&attrs);
    attrs.Set("body", number);
    if (until()) attrs.Set("until", true);
    ASSIGN_OR_RETURN(Node * scan, graph_.Add(Name("scan"), "_Scan", inputs, std::move(attrs)));
    graph_.SetControlInputs(scan, parts_.waits);
    scan->device = node_.device;
    return scan;
  }

  // What is stated of rows where no iteration tells their shape.
  void AddRowShapes(AttrMap* attrs) const {
    std::vector<std::string> stacked_by, arrays_of;
    std::vector<PartialShape> shapes;
    for (const size_t i : arrays_) {
      const Node* stack = nullptr;
      for (const Use& use : loop_.node->OrderedUses()) {
        if (!use.is_control() && use.port() == static_cast<int>(i)) stack = use.node;
      }
      const auto of_list = StatedShape(loop_.variables[i].list.node->input(0));
      const auto of_stack = stack == nullptr ? std::nullopt : StatedShape(stack->input(1));
      // Shapes that contradict each other are an error of another check.
      const auto both = of_list && of_stack ? PartialShape::Merge(*of_list, *of_stack)
                                            : StatusOr<PartialShape>(Unimplemented(""));
      const bool open = both.ok() && !both->fully_known();
      shapes.push_back(open ? *both : PartialShape());
      stacked_by.push_back(open ? stack->String(kStackedBy, stack->name()) : "");
      arrays_of.push_back(open ? stack->String(kArrayStacked) : "");
    }
    if (std::ranges::all_of(stacked_by, &std::string::empty)) return;
    attrs->Set("stacked_by", std::move(stacked_by));
    attrs->Set("row_shapes", std::move(shapes));
    attrs->Set("arrays_of", std::move(arrays_of));
  }

  // Of an element shape as ops of lists take it; nullopt: a run says it.
  static std::optional<PartialShape> StatedShape(Endpoint e) {
    const auto stated = ConstantTensor(*BehindIdentities(e).node);
    const auto dims = stated ? IntVectorOf(*stated) : std::nullopt;
    if (!dims || !dims->complete()) return std::nullopt;
    if (dims->scalar) return PartialShape();
    PartialShape shape = PartialShape::UnknownOfRank(0);
    for (const int64_t d : dims->values) shape.Add(std::max<int64_t>(d, -1));
    return shape;
  }

  Status ReplaceOutputs(Node* scan, Endpoint steps) {
    for (size_t i = 0; i < Count(); ++i) {
      const LoopVariable& v = loop_.variables[i];
      const Endpoint output = {loop_.node, static_cast<int>(i)};
      if (loop_.node->NumUses(output.port) == 0) continue;
      const Endpoint input = node_.input(output.port);
      Endpoint value;
      const auto state = std::ranges::find(states_, i);
      if (state != states_.end()) {
        value = {scan, static_cast<int>(state - states_.begin())};
      } else if (v.kind == Kind::kArray) {
        RETURN_IF_ERROR(ReplaceStacks(i, scan));
        continue;
      } else if (v.kind == Kind::kCounter) {
        AttrMap attrs;
        attrs.Set("T", node_.input_types[i]);
        Endpoint n = steps;
        if (node_.input_types[i] != steps.node->output_types[static_cast<size_t>(steps.port)]) {
          AttrMap cast;
          cast.Set("SrcT", steps.node->output_types[static_cast<size_t>(steps.port)]);
          cast.Set("DstT", node_.input_types[i]);
          ASSIGN_OR_RETURN(n, Add("steps", "Cast", {steps}, std::move(cast)));
        }
        ASSIGN_OR_RETURN(value, Add("count", "AddV2", {input, n}, std::move(attrs)));
      } else {
        value = input;
      }
      graph_.ReplaceAllUses(output, value);
    }
    return OkStatus();
  }

  Status ReplaceStacks(size_t i, Node* scan) {
    const auto array = std::ranges::find(arrays_, i) - arrays_.begin();
    const Endpoint values = {scan, static_cast<int>(states_.size()) + static_cast<int>(array)};
    ASSIGN_OR_RETURN(const Endpoint written,
                     OfElements(values, loop_.variables[i].list.node->input(0)));
    for (const Use& use : loop_.node->OrderedUses()) {
      if (use.is_control() || use.port() != static_cast<int>(i)) continue;
      Node* stack = use.node;
      ASSIGN_OR_RETURN(const Endpoint e, OfElements(written, stack->input(1)));
      graph_.ReplaceAllUses({stack, 0}, e);
      graph_.ReplaceControlUses(stack, e.node);
      graph_.Remove(stack);
    }
    return OkStatus();
  }

  Graph& graph_;
  Loop& loop_;
  const Node& node_;
  ScanParts parts_;
  std::vector<size_t> states_, arrays_;  // variables
  std::vector<Dtype> array_types_;
  std::vector<Node*> state_args_;
  Node* goes_on_ = nullptr;  // the body's result that says so
};

// One of a loop's functions as a graph of its own; nullptr: it is not at hand.
StatusOr<std::unique_ptr<Graph>> GraphOf(const Graph& graph, const Node& node,
                                         absl::string_view what) {
  const FuncAttr* f = node.Func(what);
  const Function* function = f == nullptr ? nullptr : graph.library()->Find(f->name);
  if (function == nullptr) return nullptr;
  return Instantiate(*function, f->attrs.get());
}

// Optimizes the body with what the caller knows of its arguments.
Status PrepareBody(Graph& graph, const Node& node, const PassContext& context) {
  const auto given = [&](const Node& arg) -> const Node* {
    const auto i = static_cast<size_t>(arg.Int("index", -1));
    return i < node.inputs().size() ? BehindIdentities(node.inputs()[i]).node : nullptr;
  };
  // What changes is no constant, whatever it is at first.
  for (Node* result : graph.Nodes()) {
    if (!result->Is("_Retval")) continue;
    Node* arg = BehindIdentities(result->input(0)).node;
    if (!arg->Is("_Arg") || arg->Int("index") != result->Int("index")) continue;
    const Node* from = given(*arg);
    if (from == nullptr || !from->Is("Const")) continue;
    ASSIGN_OR_RETURN(Node * c, AddCopy(graph, *from, from->name()));
    for (const Use& use : arg->OrderedUses()) {
      if (!use.is_control()) graph.SetInput(use.node, use.input, {c, 0});
    }
    graph.SetInput(result, 0, {arg, 0});
  }
  PassContext inside = context;
  inside.scan_bodies = nullptr;
  inside.log = nullptr;
  // Fused nodes are harder to read.
  inside.config.remapping = Toggle::kOff;
  inside.frozen_value = [&](const Node& variable) -> std::optional<Tensor> {
    const Node* from = variable.Is("_Arg") ? given(variable) : nullptr;
    return from != nullptr && context.frozen_value ? context.frozen_value(*from) : std::nullopt;
  };
  return Optimize(graph, inside);
}

class LoopScanner {
 public:
  LoopScanner(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  Status Run() {
    ASSIGN_OR_RETURN(const bool plain, ScanFrames());
    // What runs frames runs kernels alone.
    if (!plain) return OkStatus();
    std::vector<Node*> loops;
    for (Node* n : graph_.Nodes()) {
      if (IsLoop(*n) && !IsFed(*n)) loops.push_back(n);
    }
    // A While is a root for what its body may do; one that computes numbers alone need not be.
    for (Node* node : loops) {
      ASSIGN_OR_RETURN(const auto cond, GraphOf(graph_, *node, "cond"));
      ASSIGN_OR_RETURN(auto body, GraphOf(graph_, *node, "body"));
      if (cond == nullptr || body == nullptr) continue;
      RETURN_IF_ERROR(PrepareBody(*body, *node, context_));
      std::string why;
      ASSIGN_OR_RETURN(const auto loop, ReadLoop(graph_, node, *cond, std::move(body), &why));
      if (loop == nullptr) {
        Decline(node, why);
        continue;
      }
      RETURN_IF_ERROR(Build(*loop));
    }
    return ScanUnrolled();
  }

 private:
  void Decline(Node* node, absl::string_view why) {
    context_.Declined(kRule, *node, why);
    node->AttrsToChange().Set(kNoScan, why);
  }

  Status Build(Loop& loop) {
    context_.Fired(kRule, *loop.node);
    const auto number = static_cast<int64_t>(context_.scan_bodies->size());
    RETURN_IF_ERROR(ScanBuilder(graph_, loop).Build(number));
    PassContext inside = context_;
    inside.scan_bodies = nullptr;
    inside.log = nullptr;
    inside.frozen_value = nullptr;
    RETURN_IF_ERROR(Optimize(*loop.body, inside));
    context_.scan_bodies->push_back(std::move(loop.body));
    return OkStatus();
  }

  // Loops of version 1 all become scans, or none does. False: control flow of version 1 stays.
  StatusOr<bool> ScanFrames() {
    if (std::ranges::none_of(graph_.Nodes(), [](const Node* n) { return n->Is(kControlFlow); }))
      return true;
    Node* where = nullptr;
    std::string why;
    ASSIGN_OR_RETURN(std::vector<RaisedLoop> frames, RaiseFrames(graph_, &where, &why));
    std::vector<std::unique_ptr<Loop>> loops;
    for (RaisedLoop& frame : frames) {
      RETURN_IF_ERROR(PrepareBody(*frame.body, *frame.node, context_));
      ASSIGN_OR_RETURN(auto loop,
                       ReadLoop(graph_, frame.node, *frame.cond, std::move(frame.body), &why));
      if (loop == nullptr) {
        where = frame.where;
        Undo(graph_, frames);
        break;
      }
      loops.push_back(std::move(loop));
    }
    if (frames.empty()) {
      if (where != nullptr) Decline(where, why);
      return false;
    }
    TakePlaces(graph_, frames);
    for (const auto& loop : loops) RETURN_IF_ERROR(Build(*loop));
    return true;
  }

  // What one loop gives may be what the next one reads.
  Status ScanUnrolled() {
    for (;;) {
      std::vector<RaisedLoop> rolled(1);
      Node* where = nullptr;
      std::string why;
      ASSIGN_OR_RETURN(rolled[0], RollUp(graph_, &where, &why));
      if (rolled[0].node == nullptr) {
        if (where != nullptr) context_.Declined(kRule, *where, why);
        return OkStatus();
      }
      ASSIGN_OR_RETURN(const auto loop, ReadLoop(graph_, rolled[0].node, *rolled[0].cond,
                                                 std::move(rolled[0].body), &why));
      if (loop == nullptr) {
        context_.Declined(kRule, *rolled[0].where, why);
        Undo(graph_, rolled);
        return OkStatus();
      }
      TakePlaces(graph_, rolled);
      RETURN_IF_ERROR(Build(*loop));
    }
  }

  Graph& graph_;
  const PassContext& context_;
};

}  // namespace

Status ScanLoops(Graph& graph, const PassContext& context) {
  if (context.scan_bodies == nullptr) return OkStatus();
  return LoopScanner(graph, context).Run();
}

}  // namespace smelt
