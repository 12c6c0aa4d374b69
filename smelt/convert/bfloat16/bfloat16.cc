// The bfloat16 stage: what of the model it looks at, in which order, and what it says of it.
#include "smelt/convert/bfloat16/bfloat16.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "smelt/analysis/captured.h"
#include "smelt/analysis/cost.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/base/suggest.h"

namespace smelt {
namespace {

constexpr char kStageName[] = "bfloat16";
// A chain of so many roundings may be off by more than 2% of an output's range.
constexpr int kManyRoundings = 32;

bool HasBfloat16(const Node& n) {
  const auto is = [](Dtype t) { return BaseType(t) == Dtype::kBfloat16; };
  return std::ranges::any_of(n.input_types, is) || std::ranges::any_of(n.output_types, is) ||
         std::ranges::any_of(n.attrs(), [&](const auto& attr) {
           const Dtype* t = attr.second.template get<Dtype>();
           return t != nullptr && is(*t);
         });
}

std::string Size(int64_t bytes) {
  const auto b = static_cast<double>(bytes);
  return bytes < 1'000'000 ? absl::StrFormat("%.1f KB", b / 1e3)
                           : absl::StrFormat("%.1f MB", b / 1e6);
}

class Bfloat16Stage {
 public:
  explicit Bfloat16Stage(Conversion& c) : c_(c) {
    if (c.options.bfloat16_optimization_options)
      options_ = *c.options.bfloat16_optimization_options;
    filter_ = std::make_unique<Bf16Filter>(options_);
  }

  Status Run() {
    Gather();
    if (!options_.skip_safety_checks) RETURN_IF_ERROR(RefuseBfloat16());
    CheckFilterlist();
    InferShapesOfAll();
    CountCalls();
    FindLoops();
    for (FloatGraph* g : InOrder()) Decide(*g);
    RETURN_IF_ERROR(StoreBf16Variables(c_, pointers_, served_));
    // Before names and types change.
    for (const FloatGraph* g : pointers_) Record(*g);
    for (const FloatGraph* g : pointers_) {
      if (Roundings here = LongestRoundings(*g); here.count > roundings_.count) {
        roundings_ = std::move(here);
      }
    }
    for (FloatGraph* g : pointers_) RETURN_IF_ERROR(Prefix(RewritePrecision(*g), g->path + ": "));
    Summarize();
    Warn();
    return OkStatus();
  }

 private:
  void Gather() {
    absl::flat_hash_set<std::string> placed, taken;
    for (const TpuPlacement& p : c_.placements) {
      placed.insert(p.function);
      if (p.existing) {
        if (taken.insert(p.body).second) AddExisting(p);
        continue;
      }
      for (Function* f : FunctionsOnTpu(c_, p)) {
        const std::string path = f->name() == p.body ? absl::StrCat("function '", p.function, "'")
                                                     : absl::StrCat("function '", f->name(),
                                                                    "' within '", p.function, "'");
        Add(f, path)->on_tpu = true;
        served_.insert(f->name());
        taken.insert(f->name());
      }
    }
    std::vector<std::string> host = ServedFunctions(*c_.meta, placed);
    served_.insert(host.begin(), host.end());
    if (!options_.scope_all) return;
    for (const std::string& name : host) {
      if (placed.contains(name) || taken.contains(name) || ExistingBodies().contains(name))
        continue;
      Add(c_.library().Find(name), absl::StrCat("function '", name, "'"));
    }
    FloatGraph* main = Add(nullptr, "the main graph");
    absl::flat_hash_set<const Node*> inside;
    for (const Node* n : ServedNodes(*c_.meta)) inside.insert(n);
    for (const Node* n : main->graph->Nodes()) {
      if (!inside.contains(n)) main->outside.insert(n);
    }
  }

  // A body that the input model runs on the TPU: its bridge ops have rows, as what passes tensors
  // on.
  void AddExisting(const TpuPlacement& p) {
    Function* body = c_.library().Find(p.body);
    served_.insert(p.body);
    if (std::ranges::any_of(body->body->Nodes(), [](const Node* n) { return HasBfloat16(*n); })) {
      c_.records.AddNote(kStageName,
                         absl::StrCat("'", p.label, "' was on the TPU before this conversion and ",
                                      "is bfloat16 already; it stays as it is"),
                         p.label);
      return;
    }
    Add(body, absl::StrCat("function '", p.body, "' within '", p.function, "'"))->on_tpu = true;
  }

  FloatGraph* Add(Function* f, std::string path) {
    FloatGraph* g = graphs_.emplace_back(std::make_unique<FloatGraph>()).get();
    g->function = f;
    g->graph = f != nullptr ? f->body.get() : c_.meta->graph.get();
    g->path = std::move(path);
    pointers_.push_back(g);
    if (f != nullptr) by_name_[f->name()] = g;
    return g;
  }

  // Functions that TPUPartitionedCalls of the input model run, directly or not: they are not the
  // host's, which scope ALL adds.
  const absl::flat_hash_set<std::string>& ExistingBodies() {
    if (existing_) return *existing_;
    existing_.emplace();
    std::vector<std::string> stack;
    const auto visit = [&](const std::string& name) {
      if (c_.library().Find(name) != nullptr && existing_->insert(name).second) {
        stack.push_back(name);
      }
    };
    const auto look = [&](const Graph& g) {
      for (const Node* n : g.Nodes()) {
        const FuncAttr* f = n->Is("TPUPartitionedCall") ? n->Func("f") : nullptr;
        if (f != nullptr) visit(f->name);
      }
    };
    look(*c_.meta->graph);
    for (const Function* f : c_.library().Functions()) look(*f->body);
    while (!stack.empty()) {
      const Function* f = c_.library().Find(stack.back());
      stack.pop_back();
      for (const std::string& callee : CalledFunctions(*f->body)) visit(callee);
    }
    return *existing_;
  }

  Status RefuseBfloat16() {
    for (const FloatGraph* g : pointers_) {
      for (const Node* n : g->graph->Nodes()) {
        if (g->outside.contains(n) || !HasBfloat16(*n)) continue;
        return InvalidArgument(
            "node '", n->name(), "' (", n->op(), ") of ", g->path,
            " is bfloat16 already; the bfloat16 optimization expects a float32 model. Set "
            "bfloat16_optimization: DISABLED, or skip_safety_checks: true in "
            "bfloat16_optimization_options to convert the rest of the model all the same");
      }
    }
    return OkStatus();
  }

  void CheckFilterlist() {
    for (const std::string& name : filter_->Unused(pointers_)) {
      c_.records.AddNote(
          kStageName,
          absl::StrCat("node_filterlist: no node that is converted has the name \"", name, "\""));
    }
    if (options_.filterlist.empty()) return;
    std::set<std::string> ops;
    for (const FloatGraph* g : pointers_) {
      for (const Node* n : g->graph->Nodes()) ops.emplace(n->op());
    }
    for (const std::string& op : options_.filterlist) {
      if (ops.contains(op)) continue;
      c_.records.AddNote(
          kStageName, absl::StrCat("filterlist: nothing that is converted has an op \"", op, "\"",
                                   Suggest(op, std::vector<std::string>(ops.begin(), ops.end()))));
    }
  }

  // Nothing calls the bodies before the stubs stage: during inference each takes the place of its
  // placed function.
  void InferShapesOfAll() {
    const auto exchange = [&] {
      for (const TpuPlacement& p : c_.placements) {
        if (p.existing) continue;
        Function* f = c_.library().Find(p.function);
        Function* body = c_.library().Find(p.body);
        std::swap(f->body, body->body);
        std::swap(f->args, body->args);
        std::swap(f->results, body->results);
        std::swap(f->arg_attrs, body->arg_attrs);
      }
    };
    exchange();
    shapes_ = InferModelShapes(*c_.meta->graph, XlaShapeRules());
    exchange();
    for (FloatGraph* g : pointers_) g->shapes = &no_shapes_;
    for (auto& [name, g] : by_name_) {
      if (auto it = shapes_.functions.find(name); it != shapes_.functions.end()) {
        g->shapes = &it->second;
      }
    }
    for (const TpuPlacement& p : c_.placements) {
      auto it = shapes_.functions.find(p.function);
      if (!p.existing && it != shapes_.functions.end()) by_name_[p.body]->shapes = &it->second;
    }
    for (FloatGraph* g : pointers_) {
      if (g->function == nullptr) g->shapes = &shapes_.graph;
    }
  }

  void CountCalls() {
    const auto count = [&](const Graph& g) {
      for (const Node* n : g.Nodes()) {
        ForEachCallee(c_.library(), *n, [&](absl::string_view name) { ++calls_[name]; });
      }
    };
    count(*c_.meta->graph);
    for (const Function* f : c_.library().Functions()) count(*f->body);
  }

  void FindLoops() {
    for (FloatGraph* g : pointers_) {
      for (const Node* n : g->graph->Nodes()) {
        if (!IsLoop(*n)) continue;
        const FuncAttr *body = n->Func("body"), *cond = n->Func("cond");
        auto in_body = body == nullptr ? by_name_.end() : by_name_.find(body->name);
        if (in_body == by_name_.end()) continue;
        in_body->second->loop_body = true;
        auto in_cond = cond == nullptr ? by_name_.end() : by_name_.find(cond->name);
        if (in_cond == by_name_.end()) continue;
        in_cond->second->loop_condition = true;
        const absl::flat_hash_set<int> tested = TestedArgs(*in_cond->second->function);
        in_body->second->tested.insert(tested.begin(), tested.end());
        g->tested_inputs[n] = tested;
      }
    }
  }

  // Callees before callers.
  std::vector<FloatGraph*> InOrder() {
    std::vector<FloatGraph*> order;
    absl::flat_hash_set<FloatGraph*> seen;
    struct Frame {
      FloatGraph* g;
      std::vector<std::string> callees;
    };
    for (FloatGraph* root : pointers_) {
      if (!seen.insert(root).second) continue;
      std::vector<Frame> stack;
      stack.push_back({root, CalledFunctions(*root->graph)});
      while (!stack.empty()) {
        if (stack.back().callees.empty()) {
          order.push_back(stack.back().g);
          stack.pop_back();
          continue;
        }
        const std::string name = stack.back().callees.back();
        stack.back().callees.pop_back();
        auto it = by_name_.find(name);
        if (it == by_name_.end() || !seen.insert(it->second).second) continue;
        stack.push_back({it->second, CalledFunctions(*it->second->graph)});
      }
    }
    return order;
  }

  void Decide(FloatGraph& g) {
    CarriedElements carried;
    for (const Node* n : g.graph->Nodes()) Carry(*n, &carried);
    MakeFloatUnits(g, *filter_, carried);
    if (g.function == nullptr) KeepNamed(g);
    KeepSensitive(g, *filter_);
    ChoosePrecision(g);
    decided_.insert(&g);
  }

  // Adds to `carried` what the call, loop or branch may take and give as bfloat16.
  void Carry(const Node& n, CarriedElements* carried) {
    const bool loop = IsLoop(n);
    const bool branch = IsBranch(n);
    if (!loop && !branch && !IsPartitionedCall(n)) return;
    if (!filter_->Why(n).empty()) return;
    std::vector<FloatGraph*> callees;
    bool ours = true;
    // A function that is called may be one that the object graph holds: only copies may change.
    ForEachFunc(n.attrs(), [&](const FuncAttr& f) {
      auto it = by_name_.find(f.name);
      ours = ours && it != by_name_.end() && calls_[f.name] == 1 && decided_.contains(it->second) &&
             (f.attrs == nullptr || f.attrs->empty()) &&
             (!IsPartitionedCall(n) || it->second->on_tpu);
      if (ours) callees.push_back(it->second);
    });
    if (!ours || callees.empty()) return;
    if (loop) {
      const FuncAttr *body = n.Func("body"), *cond = n.Func("cond");
      if (body == nullptr || cond == nullptr) return;
      CarryLoop(*by_name_[body->name], *by_name_[cond->name], &(*carried)[{&n, "T"}]);
    } else {
      absl::flat_hash_set<int> inputs, outputs;
      CarryCall(std::move(callees), &inputs, &outputs);
      (*carried)[{&n, "Tin"}] = std::move(inputs);
      (*carried)[{&n, "Tout"}] = std::move(outputs);
    }
  }

  // Tensors of the main graph that signatures name keep their type.
  void KeepNamed(FloatGraph& g) {
    absl::flat_hash_set<const Node*> named;
    for (const auto& [key, signature] : c_.meta->signatures) {
      for (const auto* infos : {&signature.inputs, &signature.outputs}) {
        for (const auto& [name, info] : *infos) {
          for (const std::string& tensor : TensorNames(info)) {
            if (auto e = g.graph->FindEndpoint(tensor); e.ok()) named.insert(e->node);
          }
        }
      }
    }
    for (FloatUnit& u : g.units) {
      if (!named.contains(u.node) || !u.keep.empty()) continue;
      u.keep = "named by a signature";
      u.fixed = false;
    }
  }

  void Record(const FloatGraph& g) {
    std::map<int, std::pair<bool, std::string>> by_node;  // by id: converted, reason
    for (const FloatUnit& u : g.units) {
      // A call is recorded by the ops of its function.
      if (u.row == nullptr && !u.node->Is("IdentityN")) continue;
      auto& [converted, reason] = by_node[u.node->id()];
      converted = converted || u.bf16;
      if (!u.bf16 && reason.empty()) reason = u.keep;
    }
    const auto is_float = [](Dtype t) { return BaseType(t) == Dtype::kFloat; };
    const std::string where = g.function == nullptr ? "" : g.function->name();
    for (const Node* n : g.graph->Nodes()) {
      auto it = by_node.find(n->id());
      if (it != by_node.end()) {
        const auto& [converted, reason] = it->second;
        c_.records.precision.push_back({where, n->name(), std::string(n->op()), converted,
                                        converted ? "" : reason,
                                        CostModel::OfNodeAlone(*n, *g.shapes)});
      } else if (n->def() != nullptr && !IsFloatSource(*n) && !g.outside.contains(n) &&
                 !CallsFunctions(c_.library(), *n) && !n->Is("Cast") &&
                 (std::ranges::any_of(n->output_types, is_float))) {
        const Bf16Op* row = FindBf16Op(n->op_name());
        std::string why(row != nullptr && !row->why.empty() ? row->why
                                                            : "no bfloat16 form is known");
        c_.records.precision.push_back({where, n->name(), std::string(n->op()), false,
                                        std::move(why), CostModel::OfNodeAlone(*n, *g.shapes)});
      }
    }
  }

  // One line for all, and one for each reason.
  void Summarize() {
    int converted = 0, all = 0;
    std::map<std::string, std::map<std::string, int>> kept;  // reason -> op -> nodes
    std::map<std::string, std::string> example;
    for (const PrecisionChoice& p : c_.records.precision) {
      if (p.op == "variable") {
        // Grouped without the reader's name, which the records have.
        const std::string reason =
            absl::StrCat("stored as float32: ", p.reason.substr(0, p.reason.find(" by '")));
        ++kept[reason]["variable"];
        example[reason] = p.node;
        continue;
      }
      ++all;
      converted += p.converted;
      if (p.converted) continue;
      ++kept[p.reason][p.op];
      example[p.reason] = p.node;
    }
    int64_t before = 0, after = 0, stored = 0;
    for (const StoredVariable& v : c_.records.variables) {
      if (v.after != Dtype::kBfloat16) continue;
      ++stored;
      before += v.bytes_before;
      after += v.bytes;
    }
    std::string text = absl::StrFormat("bfloat16: %d of %d float ops", converted, all);
    if (stored > 0) {
      absl::StrAppendFormat(&text, ", %d variable%s stored as bfloat16 (%s -> %s)", stored,
                            stored == 1 ? "" : "s", Size(before), Size(after));
    }
    c_.records.AddNote(kStageName, std::move(text));
    for (const auto& [reason, ops] : kept) {
      std::vector<std::string> parts;
      int nodes = 0;
      for (const auto& [op, n] : ops) {
        parts.push_back(absl::StrCat(n, " ", op));
        nodes += n;
      }
      std::string line =
          absl::StrCat("bfloat16: kept float32 (", reason, "): ", absl::StrJoin(parts, ", "));
      if (nodes == 1) absl::StrAppend(&line, " '", example[reason], "'");
      c_.records.AddNote(kStageName, std::move(line));
    }
  }

  // Whether a deep model bears its roundings shows in its answers, not in its ops.
  void Warn() {
    if (roundings_.count < kManyRoundings) return;
    std::vector<std::pair<int, std::string>> ops;
    for (const auto& [op, n] : roundings_.ops) ops.emplace_back(-n, op);
    std::ranges::sort(ops);
    std::vector<std::string> parts;
    for (const auto& [n, op] : ops) parts.push_back(absl::StrCat(-n, " ", op));
    c_.records.AddNote(
        kStageName,
        absl::StrCat(
            "bfloat16: check the answers with --verify or --verify_log: ", roundings_.count,
            " roundings follow one another in ", roundings_.path, " (", absl::StrJoin(parts, ", "),
            "), and their errors add up. Op types in the filterlist stay float32"));
  }

  Conversion& c_;
  Bfloat16Option options_;
  std::unique_ptr<Bf16Filter> filter_;
  std::vector<std::unique_ptr<FloatGraph>> graphs_;
  std::vector<FloatGraph*> pointers_;
  std::map<std::string, FloatGraph*> by_name_;
  absl::flat_hash_set<std::string> served_;
  absl::flat_hash_set<const FloatGraph*> decided_;
  absl::flat_hash_map<std::string, int> calls_;
  std::optional<absl::flat_hash_set<std::string>> existing_;
  Roundings roundings_;
  ModelShapes shapes_;
  ShapeTable no_shapes_;
};

}  // namespace

Status ConvertToBfloat16(Conversion& c) { return Bfloat16Stage(c).Run(); }

}  // namespace smelt
