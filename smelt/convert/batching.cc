// Batching: requests that arrive at the same time run as one. The chosen functions keep name and
// interface; what they did moves to a function of its own, which a BatchFunction calls on the rows
// of several requests. What is captured from the model is passed on, everything else is joined
// along dimension 0. What cannot be joined is refused here, before a server finds out, and so is
// what cannot be proved to compute each row by itself: requests would change each other's answers.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "smelt/analysis/captured.h"
#include "smelt/analysis/rows/proof.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/convert/function_wrapper.h"
#include "smelt/convert/stages.h"
#include "smelt/convert/variables.h"
#include "smelt/graph/shape/infer.h"

namespace smelt {
namespace {

// The batch size that shape inference is tried with: divisible by whatever models split batches
// into, and not to be met as any other dimension.
constexpr int64_t kProbe = 55440, kFewRows = 5040;
// What other unknown dimensions are tried as, -1: left unknown. Positions of texts are mostly fewer
// than the last of the numbers, images mostly larger than the first.
constexpr int64_t kOtherSizes[] = {64, 960, -1};

constexpr char kAdvice[] =
    " Batch another function or signature, or export it with an input_signature whose shapes begin "
    "with None.";

void SetOptions(const BatchOption& o, AttrMap* attrs) {
  attrs->Set("num_batch_threads", o.num_batch_threads);
  attrs->Set("max_batch_size", o.max_batch_size);
  attrs->Set("batch_timeout_micros", o.batch_timeout_micros);
  std::vector<int64_t> sizes(o.allowed_batch_sizes.begin(), o.allowed_batch_sizes.end());
  attrs->Set("allowed_batch_sizes", sizes.empty() ? Attr(EmptyList{}) : Attr(std::move(sizes)));
  if (o.max_enqueued_batches > 0) attrs->Set("max_enqueued_batches", o.max_enqueued_batches);
  attrs->Set("enable_large_batch_splitting", !o.disable_large_batch_splitting);
}

class Batcher {
 public:
  Batcher(Conversion& c, const BatchOption& options) : c_(c), options_(options) {}

  Status Run() {
    ASSIGN_OR_RETURN(const std::vector<std::string> targets, Targets());
    shapes_ = InferModelShapes(*c_.meta->graph, XlaShapeRules());
    captured_ = std::make_unique<CapturedArguments>(*c_.meta->graph);
    const absl::flat_hash_set<std::string> inside = InsideBatches();
    for (const std::string& name : targets) {
      if (UpdateWithin(name)) continue;
      if (inside.contains(name)) {
        if (options_.component == BatchOption::Component::kAllTpuFunctions) continue;
        return InvalidArgument("function '", name, "' runs within a BatchFunction already");
      }
      assumed_.clear();
      Status s = CheckShapes(*c_.library().Find(name));
      if (!s.ok()) return Prefix(s, absl::StrCat("In function '", name, "': "));
      RETURN_IF_ERROR(Wrap(*c_.library().Find(name)));
    }
    if (options_.component == BatchOption::Component::kAllTpuFunctions) UpdateAll();
    if (c_.records.batches.empty()) {
      return InvalidArgument(
          "batch_options are given, but the model has neither TPU functions nor BatchFunction ops: "
          "give tpu_functions, or name what to batch in experimental { ... }");
    }
    RunOnHost(c_, wrapped_);
    return OkStatus();
  }

 private:
  StatusOr<std::vector<std::string>> Targets() {
    std::string name;
    switch (options_.component) {
      case BatchOption::Component::kAllTpuFunctions: {
        std::vector<std::string> all;
        for (const TpuPlacement& p : c_.placements) all.push_back(p.function);
        return all;
      }
      case BatchOption::Component::kAlias: {
        ASSIGN_OR_RETURN(name, FunctionByAlias(c_, options_.component_name));
        break;
      }
      case BatchOption::Component::kConcreteName: {
        ASSIGN_OR_RETURN(name, FunctionByConcreteName(c_, options_.component_name));
        break;
      }
      case BatchOption::Component::kSignature: {
        RETURN_IF_ERROR(CheckSignature());
        ASSIGN_OR_RETURN(name, FunctionBySignature(c_, options_.component_name));
        break;
      }
    }
    const std::vector<std::string> served = ServedFunctions(*c_.meta);
    if (std::ranges::find(served, name) == served.end()) {
      return InvalidArgument("function '", name, "' (\"", options_.component_name,
                             "\" of batch_options) is not called on the CPU by any signature, and "
                             "BatchFunction runs nowhere else");
    }
    return std::vector<std::string>{name};
  }

  // Sparse tensors are three tensors of different sizes; shapes are what the signature says.
  Status CheckSignature() {
    auto it = c_.meta->signatures.find(options_.component_name);
    if (it == c_.meta->signatures.end()) return OkStatus();  // said where the name is resolved
    for (const auto* side : {&it->second.inputs, &it->second.outputs}) {
      for (const auto& [key, info] : *side) {
        if (info.kind == TensorInfo::Kind::kDense) {
          if (side == &it->second.inputs) {
            RETURN_IF_ERROR(CheckRows(info.shape, absl::StrCat("input '", key, "' of signature \"",
                                                               options_.component_name, "\"")));
          }
          continue;
        }
        return InvalidArgument("signature \"", options_.component_name,
                               "\" cannot be batched: BatchFunction does not support "
                               "SparseTensors, and '",
                               key,
                               "' is sparse or composite. Batch a function behind it that "
                               "takes dense tensors.");
      }
    }
    return OkStatus();
  }

  std::string Called(const Function& f) const {
    auto it = c_.meta->function_aliases.find(f.name());
    return it == c_.meta->function_aliases.end() ? absl::StrCat("'", f.name(), "'")
                                                 : absl::StrCat("\"", it->second, "\"");
  }

  static Status CheckRows(const PartialShape& shape, const std::string& what) {
    if (!shape.known_rank()) return OkStatus();
    if (shape.dims().empty()) {
      return InvalidArgument("Batching input tensors must have at least one dimension: ", what,
                             " is a scalar. Make it a vector with one element per row.", kAdvice);
    }
    if (shape.dims()[0] >= 0) {
      return InvalidArgument("requests cannot be joined along dimension 0 of ", what,
                             ": its size is fixed, in shape ", shape.ToString(), ".", kAdvice);
    }
    return OkStatus();
  }

  static PartialShape WithBatch(const PartialShape& shape) {
    if (!shape.known_rank() || shape.dims().empty()) return shape;
    std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
    dims[0] = kProbe;
    return PartialShape::Of(dims);
  }

  // The shape of a captured argument, as InferShapes takes it. A variable that the graph leaves
  // without a shape has the checkpoint's when the model only ever restores it.
  StatusOr<PartialShape> CapturedShape(const Function& f, Endpoint arg) {
    const auto table = shapes_.functions.find(f.name());
    PartialShape shape =
        table == shapes_.functions.end() ? PartialShape() : table->second.AsArgument(arg);
    if (arg.node->output_types[arg.port] != Dtype::kResource || shape.fully_known()) return shape;
    ASSIGN_OR_RETURN(ModelVariables * variables, c_.Variables());
    const std::vector<ModelVariable*> held = variables->Of(arg);
    if (held.size() != 1) return shape;
    const bool constant = held[0]->initializers.empty() && held[0]->others.empty();
    return constant ? variables->StoredShape(*held[0]) : held[0]->shape;
  }

  Status CheckShapes(const Function& f) {
    const auto table = shapes_.functions.find(f.name());
    std::vector<PartialShape> probe;
    std::vector<bool> rows;
    int batched = 0, number = 0;
    for (size_t i = 0; i < f.args.size(); ++i) {
      for (int port = 0; port < f.args[i]->num_outputs(); ++port) {
        const Dtype t = f.args[i]->output_types[port];
        const PartialShape shape =
            table == shapes_.functions.end() ? PartialShape() : table->second.of({f.args[i], port});
        const bool captured = captured_->IsCaptured(f, number++);
        rows.push_back(!captured);
        if (captured) {
          ASSIGN_OR_RETURN(PartialShape always, CapturedShape(f, {f.args[i], port}));
          probe.push_back(std::move(always));
          continue;
        }
        probe.push_back(WithBatch(shape));
        ++batched;
        const std::string what =
            absl::StrCat("input '", f.signature.inputs[i].name, "' of function ", Called(f));
        if (t == Dtype::kVariant || IsRef(t)) {
          return InvalidArgument("BatchFunction cannot take ", DtypeName(t), " inputs: ", what, ".",
                                 kAdvice);
        }
        RETURN_IF_ERROR(CheckRows(shape, what));
      }
    }
    if (batched == 0 || f.results.empty()) {
      return InvalidArgument("function ", Called(f), batched == 0 ? " takes" : " gives",
                             " no tensors, so there are no rows to batch.");
    }
    RETURN_IF_ERROR(CheckOutputs(f, probe));
    return CheckRowsApart(f, probe, rows);
  }

  // Dimension 0 of every result must follow that of the inputs.
  Status CheckOutputs(const Function& f, const std::vector<PartialShape>& probe) {
    auto shapes = InferShapes(*f.body, XlaShapeRules(), probe);
    if (!shapes.ok()) {
      return Prefix(shapes.status(), absl::StrCat("with any batch size (tried ", kProbe, "): "));
    }
    for (size_t i = 0; i < f.results.size(); ++i) {
      for (const Endpoint& e : f.results[i]) {
        const PartialShape& shape = shapes->of(e);
        if (!shape.known_rank()) continue;
        const std::string what =
            absl::StrCat("output '", f.signature.outputs[i].name, "' of function ", Called(f));
        if (shape.dims().empty()) {
          return InvalidArgument("Batched output tensor has 0 dimensions: ", what, ".");
        }
        RETURN_IF_ERROR(CheckOtherDims(shape, what));
        const int64_t rows = shape.dims()[0];
        if (rows < 0 || rows == kProbe) continue;
        return InvalidArgument(
            "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension "
            "sizes of the input tensors: ",
            what, " has ",
            rows % kProbe == 0 ? absl::StrCat(rows / kProbe, " rows for each row of the inputs")
                               : absl::StrCat(rows, " rows whatever the batch"),
            ". Batch a function that does not return it.");
      }
    }
    return OkStatus();
  }

  // Each row of the results must be computed from that row of the inputs alone.
  Status CheckRowsApart(const Function& f, const std::vector<PartialShape>& probe,
                        const std::vector<bool>& rows) {
    RowQuestion q{.graph = f.body.get(),
                  .function = f.name(),
                  .args = f.FlatArguments(),
                  .results = f.FlatResults(),
                  .rows = rows,
                  .few = kFewRows,
                  .many = kProbe};
    std::string first;
    for (int64_t other : kOtherSizes) {
      q.shapes = probe;
      for (size_t i = 0; i < rows.size(); ++i) {
        for (int d = 1; rows[i] && d < q.shapes[i].rank(); ++d) {
          if (q.shapes[i][d] < 0) q.shapes[i].Set(d, other);
        }
      }
      const std::string why = WhyRowsMeet(f, q);
      if (why.empty()) return OkStatus();
      if (first.empty()) first = why;
    }
    if (options_.assume_independent_rows) {
      assumed_ = first;
      return OkStatus();
    }
    return InvalidArgument(
        "requests of one batch would change each other's answers: ", first,
        ". Batch a function without it; if each row of the results does depend on that row of the "
        "inputs alone, set experimental { assume_independent_rows: true } in batch_options.");
  }

  std::string WhyRowsMeet(const Function& f, const RowQuestion& q) const {
    const RowAnswer answer = FollowRows(q);
    if (!answer.proved()) return answer.why_not;
    size_t number = 0;
    for (size_t i = 0; i < f.results.size(); ++i) {
      for (size_t k = 0; k < f.results[i].size(); ++k) {
        const RowState& s = answer.results[number++];
        if (s == RowState::Rows(0)) continue;
        return absl::StrCat("output '", f.signature.outputs[i].name, "' of function ", Called(f),
                            " holds ", RowStateText(s), " where its own rows are expected");
      }
    }
    return "";
  }

  // Rows against rows (similarities of all pairs): a request would get a column for every other
  // request of its batch, and for what pads it.
  static Status CheckOtherDims(const PartialShape& shape, absl::string_view what) {
    for (size_t d = 1; d < shape.dims().size(); ++d) {
      const int64_t size = shape.dims()[d];
      if (size <= 0 || size % kProbe != 0) continue;
      return InvalidArgument("Batched output tensor's size depends on the batch in dimension ", d,
                             " as well: ", what,
                             " compares rows with rows. Batch a function that does not return it.");
    }
    return OkStatus();
  }

  // Updates the BatchFunctions in the function and in what it calls; false when there are none.
  bool UpdateWithin(const std::string& name) {
    bool found = false;
    absl::flat_hash_set<std::string> seen{name};
    std::vector<std::string> stack{name};
    while (!stack.empty()) {
      Function* f = c_.library().Find(stack.back());
      stack.pop_back();
      if (f == nullptr || f->body == nullptr) continue;
      for (Node* n : f->body->Nodes()) {
        if (n->Is("BatchFunction")) found = true, Update(n, f->name());
      }
      for (const std::string& callee : CalledFunctions(*f->body)) {
        if (seen.insert(callee).second) stack.push_back(callee);
      }
    }
    return found;
  }

  // Functions that run within a BatchFunction of the model as it was.
  absl::flat_hash_set<std::string> InsideBatches() {
    std::vector<std::string> stack;
    const auto collect = [&](const Graph& graph) {
      for (const Node* n : graph.Nodes()) {
        if (const FuncAttr* f = n->Is("BatchFunction") ? n->Func("f") : nullptr) {
          stack.push_back(f->name);
        }
      }
    };
    collect(*c_.meta->graph);
    for (const Function* f : c_.library().Functions()) {
      if (f->body != nullptr) collect(*f->body);
    }
    absl::flat_hash_set<std::string> inside;
    while (!stack.empty()) {
      const std::string name = stack.back();
      stack.pop_back();
      const Function* f = c_.library().Find(name);
      if (f == nullptr || f->body == nullptr || !inside.insert(name).second) continue;
      for (std::string& callee : CalledFunctions(*f->body)) stack.push_back(std::move(callee));
    }
    return inside;
  }

  void UpdateAll() {
    for (Node* n : c_.meta->graph->Nodes()) {
      if (n->Is("BatchFunction")) Update(n, n->name());
    }
    for (Function* f : c_.library().Functions()) {
      if (f->body == nullptr) continue;
      for (Node* n : f->body->Nodes()) {
        if (n->Is("BatchFunction")) Update(n, f->name());
      }
    }
  }

  void Update(Node* n, const std::string& where) {
    if (!done_.insert(n).second) return;
    SetOptions(options_, &n->AttrsToChange());
    c_.records.batches.push_back({where, true, ""});
  }

  // The function under a new name with what is joined first and what is captured last, as
  // BatchFunction calls it.
  StatusOr<std::string> MoveBody(const Function& f, const std::vector<bool>& captures) {
    const std::string name = c_.library().FreeName(f.name() + "_batched");
    ASSIGN_OR_RETURN(auto batched, f.Clone(name));
    std::vector<size_t> order(f.args.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_partition(order.begin(), order.end(), [&](size_t i) { return !captures[i]; });
    std::vector<Node*> args;
    std::vector<ArgDef> inputs;
    std::map<int, AttrMap> arg_attrs;
    for (size_t i = 0; i < order.size(); ++i) {
      args.push_back(batched->args[order[i]]);
      args.back()->AttrsToChange().Set("index", static_cast<int64_t>(i));
      inputs.push_back(batched->signature.inputs[order[i]]);
      if (auto it = batched->arg_attrs.find(static_cast<int>(order[i]));
          it != batched->arg_attrs.end()) {
        arg_attrs[static_cast<int>(i)] = it->second;
      }
    }
    batched->args = std::move(args);
    batched->signature.inputs = std::move(inputs);
    batched->arg_attrs = std::move(arg_attrs);
    if (Attr* shapes = batched->attrs.FindToChange("_input_shapes")) {
      auto* list = std::get_if<std::vector<PartialShape>>(&shapes->value());
      if (list != nullptr && list->size() == order.size()) {
        const std::vector<PartialShape> old = *list;
        for (size_t i = 0; i < order.size(); ++i) (*list)[i] = old[order[i]];
      }
    }
    RETURN_IF_ERROR(c_.library().Add(std::move(batched)));
    return name;
  }

  // Which arguments are captured. The elements of a list must agree.
  StatusOr<std::vector<bool>> Captures(const Function& f) {
    std::vector<bool> out;
    int number = 0;
    for (const Node* a : f.args) {
      int captured = 0;
      for (int i = 0; i < a->num_outputs(); ++i) captured += captured_->IsCaptured(f, number++);
      if (captured != 0 && captured != a->num_outputs()) {
        return Unimplemented("function '", f.name(),
                             "' takes tensors of requests and of the model in one list");
      }
      out.push_back(captured != 0);
    }
    return out;
  }

  Status Wrap(Function& f) {
    ASSIGN_OR_RETURN(const std::vector<bool> captures, Captures(f));
    ASSIGN_OR_RETURN(const std::string moved, MoveBody(f, captures));
    ASSIGN_OR_RETURN(FunctionWrapper wrapper, FunctionWrapper::Around(f));
    std::vector<Endpoint> joined, captured;
    for (size_t i = 0; i < captures.size(); ++i) {
      const std::vector<Endpoint> argument = wrapper.Argument(i);
      auto& to = captures[i] ? captured : joined;
      to.insert(to.end(), argument.begin(), argument.end());
    }
    AttrMap attrs;
    attrs.Set("f", FuncAttr{moved, nullptr});
    attrs.Set("Tin", TypesOf(joined));
    attrs.Set("Tcaptured", TypeList(TypesOf(captured)));
    attrs.Set("Tout", TypeList(wrapper.result_types()));
    // A queue of its own: nodes of other functions have the same name.
    attrs.Set("shared_name", f.name());
    SetOptions(options_, &attrs);
    joined.insert(joined.end(), captured.begin(), captured.end());
    ASSIGN_OR_RETURN(Node * batch, wrapper.graph().Add("BatchFunction", "BatchFunction",
                                                       std::move(joined), std::move(attrs)));
    done_.insert(batch);
    std::vector<Endpoint> results;
    for (int i = 0; i < batch->num_outputs(); ++i) results.push_back({batch, i});
    RETURN_IF_ERROR(std::move(wrapper).Finish(batch, results));
    wrapped_.insert(f.name());
    c_.records.batches.push_back({f.name(), false, assumed_});
    if (!assumed_.empty()) {
      c_.records.AddNote("batching",
                         absl::StrCat("function ", Called(f),
                                      " is batched though its rows are only assumed to be "
                                      "independent (assume_independent_rows): ",
                                      assumed_),
                         f.name());
    }
    return OkStatus();
  }

  Conversion& c_;
  const BatchOption& options_;
  ModelShapes shapes_;
  std::unique_ptr<CapturedArguments> captured_;  // of the model before anything was wrapped
  absl::flat_hash_set<const Node*> done_;
  absl::flat_hash_set<std::string> wrapped_;
  std::string assumed_;  // of the function at hand: why its rows could not be proved independent
};

}  // namespace

Status AddBatching(Conversion& c) { return Batcher(c, c.options.batch_options[0]).Run(); }

}  // namespace smelt
