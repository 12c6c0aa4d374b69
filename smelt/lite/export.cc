#include "smelt/lite/export.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "smelt/graph/constant.h"
#include "smelt/io/staged_file.h"
#include "smelt/lite/check_own_fusions.h"
#include "smelt/lite/emit.h"
#include "smelt/lite/file_metadata.h"
#include "smelt/lite/finite_constants.h"
#include "smelt/lite/flex/select_ops.h"
#include "smelt/lite/fold_operators.h"
#include "smelt/lite/init_graph.h"
#include "smelt/lite/prepare/callable.h"
#include "smelt/lite/prepare/effects.h"
#include "smelt/lite/quantize/declared_ranges.h"
#include "smelt/lite/quantize/variables.h"
#include "smelt/lite/share_subgraphs.h"
#include "smelt/lite/shifted_states.h"
#include "smelt/lite/signature_graph.h"
#include "smelt/lite/sparse.h"
#include "smelt/lite/subgraph_names.h"
#include "smelt/lite/versions.h"
#include "smelt/optimize/passes.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt {
namespace {

// The functions of the model that hold a node of that name and op, which were inlined.
std::vector<std::string> FunctionsWith(const LoadedModel& model, const Refusal& r) {
  std::vector<std::string> out;
  for (const Function* f :
       const_cast<LoadedModel&>(model).session().graph().library()->Functions()) {
    const Node* n = f->body == nullptr ? nullptr : f->body->Find(r.node);
    if (n != nullptr && n->op() == r.op) out.push_back(f->name());
  }
  return out;
}

bool HasFreeSizes(const Node& n) {
  for (const Endpoint& e : n.inputs()) {
    const PartialShape shape = StatedShape(e);
    if (!shape.known_rank()) return true;
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] < 0) return true;
    }
  }
  return false;
}

StatusOr<std::vector<std::string>> Signatures(const LoadedModel& model, const LiteFlags& flags) {
  if (!flags.signatures.empty()) return flags.signatures;
  std::vector<std::string> out;
  for (const auto& [key, signature] : model.meta().signatures) {
    if (key != kInitSignature) out.push_back(key);
  }
  if (out.empty()) return InvalidArgument("the model has no signature");
  // Who asks for no signature gets the first subgraph.
  std::stable_partition(out.begin(), out.end(),
                        [](const std::string& k) { return k == "serving_default"; });
  return out;
}

// What gives no result and has no effect goes.
void PruneUnread(Graph& graph, Effects& effects) {
  std::vector<Node*> roots;
  for (Node* n : graph.Nodes()) {
    if (n->Is("_Arg") || n->Is("_Retval") || effects.Changes(*n)) roots.push_back(n);
  }
  graph.Prune(roots);
}

// A sample's value of an argument. Rows of arrays come with a dimension in front (samples.h), which
// is none of an argument that has all of the others. Sizes may differ: samples resize inputs.
StatusOr<Tensor> AsArgument(const Tensor& value, const Node& arg) {
  if (value.dtype() != arg.output_types[0]) {
    return InvalidArgument("is ", DtypeName(value.dtype()), ", not ",
                           DtypeName(arg.output_types[0]));
  }
  const PartialShape stated = StatedShape({const_cast<Node*>(&arg), 0});
  if (!stated.known_rank() || value.rank() == stated.rank()) return value;
  if (value.rank() == stated.rank() + 1 && value.dim(0) == 1) {
    const Shape all(value.shape().dims().subspan(1));
    if (stated.Matches(all)) return value.WithShape(all);
  }
  return InvalidArgument("has the shape ", value.shape().ToString(), ", not ", stated.ToString());
}

// The samples of a signature by its arguments, which `graph` has.
StatusOr<std::vector<std::vector<Tensor>>> SamplesOf(const SignatureGraph& g, const Graph& graph,
                                                     const LiteFlags& flags) {
  std::vector<std::vector<Tensor>> out;
  std::map<int64_t, const Node*> nodes;
  for (const Node* n : graph.Nodes()) {
    if (n->Is("_Arg")) nodes[n->Int("index")] = n;
  }
  auto it = flags.samples.find(g.key);
  if (it == flags.samples.end()) it = flags.samples.find(kAnySignature);
  if (it == flags.samples.end() || it->second.empty()) {
    return InvalidArgument("there are no samples to calibrate with");
  }
  for (const auto& sample : it->second) {
    std::vector<Tensor>& args = out.emplace_back();
    for (const LiteSlot& slot : g.inputs) {
      const auto value = sample.find(slot.key);
      if (value == sample.end()) {
        return InvalidArgument("sample ", out.size() - 1, " has no input '", slot.key, "'");
      }
      args.push_back(value->second);
      const auto arg = nodes.find(static_cast<int64_t>(args.size()) - 1);
      if (arg == nodes.end()) continue;  // that nothing reads
      auto fit = AsArgument(value->second, *arg->second);
      if (!fit.ok()) {
        return Prefix(fit.status(),
                      absl::StrCat("sample ", out.size() - 1, ": input '", slot.key, "' "));
      }
      args.back() = *std::move(fit);
    }
  }
  return out;
}

// What integers of the inputs stand for, by argument.
Status ReadInputStats(const SignatureGraph& g, const Graph& graph, LiteFlags& flags) {
  std::vector<size_t> floats;
  for (const Node* n : graph.Nodes()) {
    if (n->Is("_Arg") && n->output_types[0] == Dtype::kFloat) {
      floats.push_back(static_cast<size_t>(n->Int("index")));
    }
  }
  auto& params = flags.integer.input_params;
  for (const LiteInputStats& stats : flags.input_stats) {
    const Params p = {static_cast<float>(1 / stats.deviation), static_cast<int64_t>(stats.mean)};
    if (stats.name.empty()) {
      if (floats.size() != 1 || flags.input_stats.size() != 1) {
        return InvalidArgument("--mean_values are of ", floats.size(),
                               " inputs: name them in --input_arrays");
      }
      params[static_cast<int64_t>(floats[0])] = p;
      continue;
    }
    const auto at = std::ranges::find_if(g.inputs, [&](const LiteSlot& slot) {
      return slot.key == stats.name || slot.tensor == stats.name ||
             slot.tensor == absl::StrCat(stats.name, ":0");
    });
    if (at == g.inputs.end()) {
      return InvalidArgument("--mean_values: there is no input '", stats.name, "'");
    }
    params[at - g.inputs.begin()] = p;
  }
  if (flags.integer.input_type == Dtype::kFloat || !flags.metadata.version_one) return OkStatus();
  for (const size_t index : floats) {
    if (params.contains(static_cast<int64_t>(index))) continue;
    return InvalidArgument("input '", g.inputs[index].key,
                           "' has neither --mean_values nor --std_dev_values");
  }
  return OkStatus();
}

Status Quantize(const SignatureGraph& g, LiteGraphs& graphs, LiteFlags flags, LiteReport* report) {
  const bool declares =
      std::ranges::any_of(graphs.All(), [](const Graph* of) { return HasDeclaredRanges(*of); });
  if (flags.integer.low_bits && !declares) {
    return InvalidArgument("--low_bit_qat is for models that were trained with FakeQuant");
  }
  if (flags.integer.only_stated && !declares) {
    return InvalidArgument(
        "--qdq_conversion_mode: the model states no ranges (FakeQuant) of activations");
  }
  if (flags.by_ranges) {
    if (!declares && !flags.integer.default_range) {
      return InvalidArgument(
          "the model states no ranges (FakeQuant): --default_ranges_min and --default_ranges_max "
          "say what they are, --quantize int8 takes those of samples");
    }
    flags.integer.stated_ranges = true;
    RETURN_IF_ERROR(ReadInputStats(g, *graphs.main, flags));
  }
  std::vector<LiteSample> samples;
  if (!flags.samples.empty() && !flags.by_ranges) {
    ASSIGN_OR_RETURN(samples, SamplesOf(g, *graphs.main, flags));
  }
  QuantizeGraphsFlags by = {flags.quantize, flags.integer, flags.dynamic, flags.float_layers};
  by.by_ranges = flags.by_ranges;
  by.calibrate_only = flags.calibrate_only;
  ASSIGN_OR_RETURN(auto layers, QuantizeGraphs(graphs, samples, by));
  if (layers) report->float_layers.emplace_back(g.key, *std::move(layers));
  return OkStatus();
}

std::vector<std::string> TensorNames(const std::vector<LiteSlot>& slots) {
  std::vector<std::string> out;
  for (const LiteSlot& s : slots) out.push_back(s.tensor);
  return out;
}

LiteSignature SignatureOf(const SignatureGraph& g, const LiteSubgraph& subgraph, uint32_t number) {
  LiteSignature s;
  s.key = g.key;
  s.subgraph = number;
  for (size_t i = 0; i < g.inputs.size(); ++i) {
    s.inputs.emplace_back(g.inputs[i].key, subgraph.inputs[i]);
  }
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    s.outputs.emplace_back(g.outputs[i].key, subgraph.outputs[i]);
  }
  return s;
}

// One subgraph of the file.
struct ExportedGraph {
  std::string name;
  std::vector<std::string> inputs, outputs;  // names of tensors
  std::unique_ptr<Graph> graph;
};

// What the signature's refusals come to, in one line.
std::string WhyRefused(const LiteReport& report, const std::string& key) {
  std::set<std::string> reasons;
  for (const LiteReport::Refused& r : report.refused) {
    if (r.signature == key) reasons.insert(absl::StrCat(r.refusal.op, ": ", r.refusal.why));
  }
  return absl::StrJoin(reasons, "; ");
}

bool HasSelectOps(const LiteGraphs& graphs) {
  return std::ranges::any_of(graphs.All(), [](const Graph* graph) {
    return std::ranges::any_of(graph->Nodes(), [](const Node* n) {
      return n->Is("tfl.custom") && absl::StartsWith(n->String("custom_code"), kFlexPrefix);
    });
  });
}

// What an export that ended early says of the next one.
struct ExportTry {
  bool few = false;        // what would be many operators is a select op, where it can be
  CompositeNames untaken;  // composite functions that rules name, and no rule takes
};

class Exporter {
 public:
  Exporter(LoadedModel& model, const LiteFlags& flags, const ExportTry& now, LiteReport* report)
      : model_(model),
        flags_(flags),
        now_(now),
        next_(now),
        report_(report),
        pinner_(flags.shapes) {
    composites_.off = flags.fusions.off;
    composites_.untaken = now.untaken;
    for (const RuleFusion& own : flags.fusions.own) {
      if (!flags.fusions.off.contains(own.name))
        composites_.by_rules.merge(CompositeNames(own.customs));
    }
  }

  // Run() ended early: it is to be made again, as the second says.
  bool ended_early() const { return ended_early_; }
  const ExportTry& next() const { return next_; }

  // `failed`: signatures that cannot be exported, and why. The file is whole where there are none.
  StatusOr<LiteModel> Run(const std::vector<std::string>& keys,
                          std::map<std::string, Status>* failed) {
    ASSIGN_OR_RETURN(const VariableNames written, WrittenVariables(model_, keys));
    if (!flags_.resource_variables && !written.empty()) {
      return InvalidArgument("a signature writes the variable '", written.begin()->second,
                             "', and resource variables are not wanted");
    }
    for (const std::string& key : keys) {
      const size_t refused = report_->refused.size();
      const Status added = AddSignature(key, written);
      if (absl::IsUnimplemented(added)) {
        (*failed)[key] = added;
      } else if (!added.ok()) {
        return Prefix(added, absl::StrCat("signature '", key, "': "));
      } else if (report_->refused.size() > refused) {
        (*failed)[key] = Unimplemented(WhyRefused(*report_, key));
      }
    }
    if (!failed->empty()) return LiteModel();
    RETURN_IF_ERROR(pinner_.CheckAllUsed());
    RETURN_IF_ERROR(CheckPatterns());
    for (ExportedGraph& g : bodies_) subgraphs_.push_back(std::move(g));
    RETURN_IF_ERROR(CheckVariablesAgree(Graphs()));
    ASSIGN_OR_RETURN(auto init, InitGraph(model_.session().resources(), Graphs()));
    if (init != nullptr)
      subgraphs_.push_back({std::string(kInitSubgraph), {}, {}, std::move(init)});
    PhaseOver();
    return Emit();
  }

 private:
  Status AddSignature(const std::string& key, const VariableNames& written) {
    ASSIGN_OR_RETURN(SignatureGraph g, GraphOfSignature(model_, key, written, pinner_,
                                                        {composites_, flags_.keep_asserts}));
    PhaseOver();
    report_->fusions.insert(report_->fusions.end(), g.composites.begin(), g.composites.end());
    const bool declares_ranges =
        !flags_.calibrate_only &&
        (flags_.quantize == LiteQuantize::kInt8 || flags_.quantize == LiteQuantize::kDynamic);
    ASSIGN_OR_RETURN(LiteGraphs graphs, CollectGraphs(std::move(g.graph), [&](Graph& graph) {
                       return Convert(key, graph, declares_ranges);
                     }));
    if (!now_.few && HasSelectOps(graphs)) {
      next_.few = true;
      return EndEarly("there are select ops");
    }
    // An infinity is refused by name where numbers get scales, and not taken for a large number.
    if (report_->refused.empty()) {
      for (Graph* graph : graphs.All()) StateBegins(*graph);
      RETURN_IF_ERROR(Quantize(g, graphs, flags_, report_));
    }
    RETURN_IF_ERROR(FillEmptyStates(graphs));
    RETURN_IF_ERROR(CopyShiftedStates(graphs));
    for (Graph* graph : graphs.All()) RETURN_IF_ERROR(Finish(*graph));
    subgraphs_.push_back({signatures_.empty() ? "main" : key, TensorNames(g.inputs),
                          TensorNames(g.outputs), std::move(graphs.main)});
    for (LiteBody& body : graphs.bodies) {
      if (!bodies_seen_.insert(body.function).second) continue;
      bodies_.push_back(ExportedBody(std::move(body)));
    }
    signatures_.push_back(std::move(g));
    return OkStatus();
  }

  // Runs of samples begin with what variables hold.
  void StateBegins(Graph& graph) const {
    if (flags_.samples.empty()) return;
    for (Node* n : graph.Nodes()) {
      if (!n->Is("tfl.var_handle")) continue;
      const auto variable = std::dynamic_pointer_cast<Variable>(model_.session().resources().Find(
          n->String("container"), Variable::kKind, n->String("shared_name")));
      const Tensor value = variable == nullptr ? Tensor() : variable->Read();
      if (value.valid()) n->AttrsToChange().Set(kVariableBegin, value);
    }
  }

  // Each pattern of float layers is of some.
  Status CheckPatterns() const {
    NodeNames matched;
    for (const auto& [key, layers] : report_->float_layers) {
      matched.insert(layers.matched.begin(), layers.matched.end());
    }
    for (const std::string& pattern : flags_.float_layers.patterns) {
      if (report_->refused.empty() && !matched.contains(pattern)) {
        return NotFound("no layer that is quantized has the name '", pattern, "'");
      }
    }
    return OkStatus();
  }

  static ExportedGraph ExportedBody(LiteBody body) {
    ExportedGraph out;
    out.name = std::move(body.function);
    out.graph = std::move(body.graph);
    for (const Node* arg : ArgumentsOf(*out.graph, 0)) out.inputs.push_back(arg->name());
    for (const Node* result : ResultsOf(*out.graph)) out.outputs.push_back(result->name());
    return out;
  }

  // Ops become operators, which are then fused.
  Status Convert(const std::string& key, Graph& graph, bool declares_ranges) {
    Effects effects(*graph.library(), flags_.keep_asserts);
    RETURN_IF_ERROR(DropIdleOrder(graph, effects));
    if (now_.few) PreferSelectOps(graph);
    ASSIGN_OR_RETURN(std::vector<Refusal> refused,
                     Legalize(graph, &model_.session().resources(),
                              {flags_.operators.builtins, flags_.keep_asserts,
                               &model_.session().options().files, declares_ranges}));
    PruneUnread(graph, effects);
    PhaseOver();
    FusionChoice fusions = flags_.fusions;
    // Products have kernels of integers, powers have none.
    const bool integers =
        flags_.quantize == LiteQuantize::kInt8 || flags_.quantize == LiteQuantize::kInt16x8;
    if (integers) fusions.off.insert("FuseCube");
    fusions.coarse_weights = integers || flags_.quantize == LiteQuantize::kDynamic;
    RETURN_IF_ERROR(FuseChecked(graph, fusions, &report_->fusions));
    for (const Node* n : graph.Nodes()) {
      if (n->Find(kByRule) != nullptr) next_.untaken.insert(n->String("custom_code"));
    }
    if (next_.untaken.size() > now_.untaken.size()) return EndEarly("no rule takes a function");
    ASSIGN_OR_RETURN(const bool late, LegalizeLate(graph, refused));
    if (late) RETURN_IF_ERROR(FuseChecked(graph, fusions, nullptr));
    RETURN_IF_ERROR(FoldOperators(graph));
    PruneUnread(graph, effects);
    // A constant that states the shape it has anyway is the same as one that does not.
    for (Node* n : graph.Nodes()) {
      if (n->Is("Const")) n->EraseAttr(kOutputShapes);
    }
    // Sizes, most of all: each row computes those that it needs.
    RETURN_IF_ERROR(EliminateCommonSubgraphs(graph, PassContext()));
    DropFused(graph, refused);
    RETURN_IF_ERROR(ReplaceRefused(graph, flags_.operators, refused));
    const size_t known = refused.size();
    ASSIGN_OR_RETURN(const bool fitted, FitOperators(graph, refused));
    RETURN_IF_ERROR(ReplaceUnfit(graph, flags_.operators, known, refused));
    if (fitted) {
      PruneUnread(graph, effects);
      RETURN_IF_ERROR(EliminateCommonSubgraphs(graph, PassContext()));
    }
    for (Refusal& r : refused) {
      std::vector<std::string> functions = FunctionsWith(model_, r);
      // A row that looked at the sizes may want to know them.
      const bool free_sizes =
          FindExportRow(OpName::Of(r.op)) != nullptr && HasFreeSizes(*graph.Find(r.node));
      report_->refused.push_back({key, std::move(r), std::move(functions), free_sizes});
    }
    return OkStatus();
  }

  Status EndEarly(absl::string_view why) {
    ended_early_ = true;
    return absl::AbortedError(why);
  }

  // What every graph gets at last.
  Status Finish(Graph& graph) const {
    return flags_.finite_constants ? MakeFinite(graph) : OkStatus();
  }

  std::vector<Graph*> Graphs() const {
    std::vector<Graph*> out;
    for (const ExportedGraph& g : subgraphs_) out.push_back(g.graph.get());
    return out;
  }

  void PhaseOver() const {
    if (flags_.phase_over) flags_.phase_over();
  }

  StatusOr<LiteModel> Emit() {
    std::map<std::string, int64_t, std::less<>> numbers;
    for (size_t i = signatures_.size(); i < subgraphs_.size(); ++i) {
      numbers[subgraphs_[i].name] = static_cast<int64_t>(i);
    }
    const auto subgraph_of = [&](absl::string_view function) -> StatusOr<int64_t> {
      const auto at = numbers.find(function);
      if (at == numbers.end()) return Internal("there is no subgraph of function '", function, "'");
      return at->second;
    };
    LiteModel out;
    out.description = "smelt";
    out.buffers.emplace_back();
    for (size_t i = 0; i < subgraphs_.size(); ++i) {
      const ExportedGraph& g = subgraphs_[i];
      if (i < signatures_.size() && numbers.contains(kInitSubgraph)) {
        RETURN_IF_ERROR(CallInitFirst(*g.graph));
      }
      LiteTensorPlaces places;
      ASSIGN_OR_RETURN(LiteSubgraph subgraph, EmitSubgraph(*g.graph, g.name, g.inputs, g.outputs,
                                                           subgraph_of, out, &places));
      if (i < signatures_.size()) Place(signatures_[i].key, places);
      if (i < signatures_.size()) {
        out.signatures.push_back(SignatureOf(signatures_[i], subgraph, static_cast<uint32_t>(i)));
      }
      out.subgraphs.push_back(std::move(subgraph));
    }
    ShareSubgraphs(out);
    if (flags_.sparse) RETURN_IF_ERROR(EncodeSparse(out));
    SetVersions(out);
    return out;
  }

  // Which tensors of the file the results of measured layers are.
  void Place(const std::string& key, const LiteTensorPlaces& places) {
    for (auto& [of, layers] : report_->float_layers) {
      if (of != key) continue;
      for (LayerError& l : layers.before.layers) {
        for (ResultStatistics& r : l.results) {
          const auto at = places.find({l.node, r.output});
          if (at != places.end()) r.tensor = at->second;
        }
      }
    }
  }

  LoadedModel& model_;
  const LiteFlags& flags_;
  const ExportTry now_;
  ExportTry next_;
  bool ended_early_ = false;
  CompositeChoice composites_;
  LiteReport* report_;
  InputPinner pinner_;
  std::vector<SignatureGraph> signatures_;
  std::vector<ExportedGraph> subgraphs_;  // those of signatures first
  std::vector<ExportedGraph> bodies_;
  std::set<std::string> bodies_seen_;
};

// What rules said of composite functions that are none when it is exported again.
void KeepNearMisses(const LiteFlags& flags, const LiteReport& report,
                    std::vector<FusionNote>& near) {
  for (const FusionNote& note : report.fusions) {
    const bool own = std::ranges::any_of(
        flags.fusions.own, [&](const RuleFusion& f) { return f.name == note.fusion; });
    if (own && !note.why_not.empty()) near.push_back(note);
  }
}

// What was left out stays so.
void StartAgain(LiteReport* report) {
  report->refused.clear();
  report->fusions.clear();
  report->float_layers.clear();
}

}  // namespace

StatusOr<LiteModel> ExportLite(LoadedModel& model, const LiteFlags& flags, LiteReport* report) {
  ASSIGN_OR_RETURN(std::vector<std::string> keys, Signatures(model, flags));
  std::vector<FusionNote> near;
  for (ExportTry now;;) {
    std::map<std::string, Status> failed;
    Exporter exporter(model, flags, now, report);
    StatusOr<LiteModel> out = exporter.Run(keys, &failed);
    if (exporter.ended_early()) {
      if (exporter.next().untaken.size() > now.untaken.size()) KeepNearMisses(flags, *report, near);
      now = exporter.next();
      StartAgain(report);
      continue;
    }
    report->fusions.insert(report->fusions.end(), near.begin(), near.end());
    RETURN_IF_ERROR(out.status());
    if (failed.empty()) {
      RETURN_IF_ERROR(AddFileMetadata(model, flags, *out));
      return out;
    }
    const bool may_leave_out =
        flags.signatures.empty() && keys[0] == "serving_default" && !failed.contains(keys[0]);
    if (!may_leave_out) {
      for (const std::string& key : keys) {
        const auto why = failed.find(key);
        if (why == failed.end() || !WhyRefused(*report, key).empty()) continue;
        return Prefix(why->second, absl::StrCat("signature '", key, "': "));
      }
      return Unimplemented(report->refused.size(),
                           " nodes have no builtin operator of TensorFlow Lite");
    }
    // Once more without them: what they alone write is constant for the others.
    for (const auto& [key, why] : failed) {
      report->left_out.push_back({key, std::string(why.message())});
      std::erase(keys, key);
    }
    StartAgain(report);
  }
}

StatusOr<uint64_t> WriteLiteFile(const LiteModel& model, const std::string& path,
                                 bool buffers_outside) {
  ASSIGN_OR_RETURN(const auto file, StagedFile::Make(path, OtherWriter::kWait));
  uint64_t size = 0;
  RETURN_IF_ERROR(WriteTflite(model, buffers_outside, [&](absl::string_view bytes) {
    size += bytes.size();
    return file->Write(bytes);
  }));
  RETURN_IF_ERROR(file->Publish());
  return size;
}

}  // namespace smelt
