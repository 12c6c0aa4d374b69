// Finds what an accelerator cannot compile: one walk in topological order, which carries along what
// is known of each tensor when the program is compiled. Shapes are known then, values of arguments
// and variables are not; a size that is counted at run time (Where, Unique) is known by its bound.
#include "smelt/analysis/incompatible.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/analysis/captured.h"
#include "smelt/analysis/compile_time.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/device/device.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/infer.h"

namespace smelt {
namespace {

constexpr int kMaxCallDepth = 48;
// A function is walked for this many combinations of argument facts; for all further ones its
// arguments count as known at run time only.
constexpr size_t kMaxCallVariants = 8;

// When a value is known: at compile time, at compile time as an upper bound, or at run time. A
// result is known when the latest of its inputs is.
enum class When : char { kCompile, kBound, kRun };

struct TensorFacts {
  When value = When::kRun;
  bool counted = false;  // its shape is only known by a bound
};

using Facts = std::vector<TensorFacts>;

// Ops that are gone before the compiler looks for kernels: arguments, results, constants, and the
// control flow of TensorFlow 1, which TensorFlow's bridge turns into functions.
bool NeedsNoKernel(const Node& n) { return n.Is(kStructuralOps) || n.Is(kControlFlow); }

// Ops whose results have as many elements as the values of their inputs decide.
bool CountsElements(const Node& n) {
  return n.Is("Where") || n.Is("Unique") || n.Is("UniqueV2") || n.Is("DynamicPartition") ||
         n.Is("NonMaxSuppressionV3");
}

class CompatibilityWalk {
 public:
  explicit CompatibilityWalk(const FunctionLibrary& library) : library_(library) {}

  // Fills `facts` with those of all nodes' outputs. `args` are the facts of the graph's arguments;
  // `function` and `at` are what Incompatible says of the nodes.
  void WalkGraph(const Graph& graph, absl::FunctionRef<bool(const Node*)> inside, const Facts& args,
                 const std::string& function, const Node* at, int depth,
                 absl::flat_hash_map<const Node*, Facts>* facts) {
    auto order = graph.TopologicalOrder();
    if (!order.ok()) return;
    auto shapes = InferShapes(graph, XlaShapeRules());
    for (const Node* n : *order) {
      Facts out(n->num_outputs());
      if (n->Is("_Arg")) {
        const size_t index = n->Int("index");
        for (size_t i = 0; i < out.size() && index + i < args.size(); ++i) out[i] = args[index + i];
      } else if (n->Is("Const")) {
        out.assign(out.size(), {When::kCompile, false});
      }
      if (!inside(n) || n->Is("_Arg")) {
        (*facts)[n] = std::move(out);
        continue;
      }
      const Node* top = at != nullptr ? at : n;
      CheckOp(*n, function, top);
      Facts in;
      for (const Endpoint& e : n->inputs()) {
        const Facts& from = (*facts)[e.node];
        in.push_back(e.port < static_cast<int>(from.size()) ? from[e.port] : TensorFacts());
      }
      CheckInputs(*n, in, *facts, function, top);
      if (!n->Is("Const") && !Call(*n, in, top, depth, &out)) Compute(*n, in, &out);
      for (int p = 0; p < n->num_outputs(); ++p) {
        if (shapes.ok() && shapes->of({const_cast<Node*>(n), p}).fully_known()) {
          out[p].counted = false;
        }
      }
      (*facts)[n] = std::move(out);
    }
  }

  std::vector<Incompatible> found;

 private:
  void Add(Incompatible::Kind kind, const Node& n, const std::string& function, const Node* at,
           std::string text) {
    if (!seen_.insert({&n, static_cast<int>(kind)}).second) return;
    found.push_back({kind, &n, function, at, std::move(text)});
  }

  void CheckOp(const Node& n, const std::string& function, const Node* at) {
    const auto refuse = [&](Incompatible::Kind kind, absl::string_view why) {
      Add(kind, n, function, at,
          absl::StrCat("'tf.", n.op(), "' op isn't compilable for TPU device. ",
                       "enable soft_device_placement option to run on CPU", why));
    };
    if (!NeedsNoKernel(n) && library_.Find(n.op()) == nullptr && !IsTpuCompilable(n.op())) {
      return refuse(Incompatible::Kind::kOp, n.def() == nullptr ? " (an op of unknown kind)" : "");
    }
    for (int p = 0; p < n.num_outputs(); ++p) {
      const Dtype t = BaseType(n.output_types[p]);
      // A string constant is judged by its readers: the compiler drops the texts of assertions.
      if ((t != Dtype::kString || n.Is("Const")) && t != Dtype::kComplex128) continue;
      return refuse(Incompatible::Kind::kType,
                    absl::StrCat(" (output ", p, " is a ", DtypeName(t), ")"));
    }
    if (n.Is("Where") || n.Is("Unique") || n.Is("UniqueV2")) {
      Add(Incompatible::Kind::kDynamic, n, function, at,
          absl::StrCat("'tf.", n.op(),
                       "' has a result whose size depends on values; a TPU pads it ",
                       "to the largest size that it can have"));
    }
  }

  void RefuseInput(const Node& n, int input, const std::string& function, const Node* at) {
    Add(Incompatible::Kind::kConstant, n, function, at,
        absl::StrCat("Input ", input, " to node `", n.name(), "` with op ", n.op(),
                     " must be a compile-time constant. XLA compilation requires that operator ",
                     "arguments that represent shapes or dimensions be evaluated to concrete ",
                     "values at compile time; this one depends on a value that is known at run ",
                     "time only"));
  }

  void CheckInputs(const Node& n, const Facts& in,
                   const absl::flat_hash_map<const Node*, Facts>& facts,
                   const std::string& function, const Node* at) {
    for (int i : CompileTimeInputs(n)) {
      if (in[i].value == When::kRun) return RefuseInput(n, i, function, at);
    }
    if (n.Is("StridedSlice") && n.num_inputs() == 4) CheckSlice(n, in, facts, function, at);
  }

  // Begin and end may be run-time values at axes where the slice's size is known without them: one
  // element is taken (shrink_axis_mask), or the mask says that the bound is the axis's own.
  void CheckSlice(const Node& n, const Facts& in,
                  const absl::flat_hash_map<const Node*, Facts>& facts, const std::string& function,
                  const Node* at) {
    if (in[3].value == When::kRun) return RefuseInput(n, 3, function, at);
    const int64_t one = n.Int("shrink_axis_mask");
    for (int i : {1, 2}) {
      if (in[i].value != When::kRun) continue;
      const int64_t masked = one | n.Int(i == 1 ? "begin_mask" : "end_mask");
      const Node* pack = n.inputs()[i].node;
      if (!pack->Is("Pack")) {
        // How many axes the vector stands for is not known here; one is the usual number.
        if ((masked & 1) == 0) return RefuseInput(n, i, function, at);
        continue;
      }
      for (int k = 0; k < pack->num_inputs() && k < 63; ++k) {
        auto it = facts.find(pack->input(static_cast<int>(k)).node);
        const bool late =
            it == facts.end() ||
            pack->input(static_cast<int>(k)).port >= static_cast<int>(it->second.size()) ||
            it->second[pack->input(static_cast<int>(k)).port].value == When::kRun;
        if (late && (masked >> k & 1) == 0) return RefuseInput(n, i, function, at);
      }
    }
  }

  void Compute(const Node& n, const Facts& in, Facts* out) {
    bool counted = false;
    When value = When::kCompile;
    for (const TensorFacts& f : in) {
      counted = counted || f.counted;
      value = std::max(value, f.value);
    }
    if (n.Is(kReadsShapes)) {
      value = counted && !n.Is("Rank") ? When::kBound : When::kCompile;
      counted = false;
    } else if (n.def() == nullptr || n.def()->stateful || n.Is("Merge") || n.Is("Switch")) {
      value = When::kRun;
    }
    out->assign(out->size(), {value, counted});
    if (CountsElements(n)) {
      for (TensorFacts& f : *out) f.counted = true;
    }
  }

  // Walks the functions that the node runs; their results' facts become `out`, but those of
  // branches stay unknown. False when it runs none.
  bool Call(const Node& n, const Facts& in, const Node* at, int depth, Facts* out) {
    if (IsLoop(n)) {
      Facts inputs = in;
      // A loop variable that the body passes on unchanged keeps its facts; others change each step.
      const Function* body = Callee(n, "body");
      for (size_t i = 0; body != nullptr && i < inputs.size(); ++i) {
        if (!PassesOn(*body, i)) inputs[i].value = When::kRun;
      }
      for (absl::string_view attr : {"cond", "body"}) {
        if (const Function* f = Callee(n, attr)) WalkFunction(*f, inputs, at, depth);
      }
      for (size_t i = 0; i < out->size() && i < inputs.size(); ++i) (*out)[i] = inputs[i];
      return true;
    }
    std::vector<const Function*> callees;
    Facts inputs = in;
    bool branches = false;
    if (IsBranch(n)) {
      branches = true;
      if (!inputs.empty()) inputs.erase(inputs.begin());
    }
    ForEachCallee(library_, n, [&](absl::string_view name) {
      if (const Function* callee = library_.Find(name)) callees.push_back(callee);
    });
    for (const Function* f : callees) {
      const Facts results = WalkFunction(*f, inputs, at, depth);
      if (branches || callees.size() > 1) continue;
      for (size_t i = 0; i < out->size() && i < results.size(); ++i) (*out)[i] = results[i];
    }
    return !callees.empty();
  }

  const Function* Callee(const Node& n, absl::string_view attr) const {
    const FuncAttr* f = n.Func(attr);
    return f ? library_.Find(f->name) : nullptr;
  }

  static bool PassesOn(const Function& body, size_t i) {
    const std::vector<Endpoint> results = body.FlatResults();
    if (i >= results.size() || i >= body.args.size()) return false;
    return BehindIdentities(results[i]) == Endpoint{body.args[i], 0};
  }

  Facts WalkFunction(const Function& f, Facts args, const Node* at, int depth) {
    auto& variants = functions_[&f];
    if (variants.size() >= kMaxCallVariants) args.assign(args.size(), {});
    std::string key;
    for (const TensorFacts& a : args) {
      key += static_cast<char>('0' + static_cast<int>(a.value) * 2 + (a.counted ? 1 : 0));
    }
    auto [it, added] = variants.try_emplace(key);
    if (!added || f.body == nullptr || depth > kMaxCallDepth) return it->second;
    absl::flat_hash_map<const Node*, Facts> facts;
    WalkGraph(
        *f.body, [](const Node*) { return true; }, args, f.name(), at, depth + 1, &facts);
    Facts results;
    for (const Endpoint& e : f.FlatResults()) {
      const Facts& from = facts[e.node];
      results.push_back(e.port < static_cast<int>(from.size()) ? from[e.port] : TensorFacts());
    }
    // Not `it`: the walk may have added variants, which moves the entries.
    functions_[&f][key] = results;
    return results;
  }

  const FunctionLibrary& library_;
  absl::flat_hash_map<const Function*, absl::flat_hash_map<std::string, Facts>> functions_;
  absl::flat_hash_set<std::pair<const Node*, int>> seen_;
};

}  // namespace

std::vector<Incompatible> FindIncompatible(const Graph& graph,
                                           absl::FunctionRef<bool(const Node*)> inside) {
  CompatibilityWalk walk(*graph.library());
  absl::flat_hash_map<const Node*, Facts> facts;
  walk.WalkGraph(graph, inside, {}, "", nullptr, 0, &facts);
  std::vector<Incompatible> found = std::move(walk.found);
  std::ranges::stable_sort(found, {}, [](const Incompatible& i) { return i.at->id(); });
  return found;
}

}  // namespace smelt
