// Sessions: the bytes choose productions of a grammar of graphs, with functions that call each
// other and themselves, branches, loops of both kinds, variables, lists and queues; now and then an
// edge leads to any node at all. Whatever comes, a request answers or gives an error, in bounded
// memory and time; and it answers the same, with the same values left in its variables, in a
// session that optimizes, after all of smelt optimize's passes and after any one of them alone.
// Effects of one graph or body wait for each other, so that there is one order. With
// SMELT_FUZZ_SHOW set, each graph is printed first.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "smelt/graph/text.h"
#include "smelt/graph/verify.h"
#include "smelt/optimize/meta_optimizer.h"
#include "smelt/runtime/session.h"

namespace smelt {
namespace {

constexpr int64_t kHeap = int64_t{256} << 20;
constexpr absl::Duration kTimeout = absl::Milliseconds(200);
constexpr int kMaxNodes = 40, kMaxFunctions = 4, kVariables = 3;

class GraphBytes {
 public:
  GraphBytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  size_t Below(size_t n) {
    if (size_ == 0 || n < 2) return 0;
    --size_;
    return *data_++ % n;
  }
  bool OneIn(size_t n) { return Below(n) == n - 1; }
  bool done() const { return size_ == 0; }
  template <typename T, size_t N>
  const T& Of(const T (&choices)[N]) {
    return choices[Below(N)];
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

// What a function takes and gives: each of one type, so that calls often fit.
struct FuzzSignature {
  std::string type = "float";
  size_t args = 1;
  bool only_reads = false;  // variables, and calls nothing; of one that is written later: false
};

// Writes the nodes of one graph or body.
class GraphWriter {
 public:
  GraphWriter(GraphBytes& in, const std::vector<FuzzSignature>& functions, std::string prefix)
      : in_(in), functions_(functions), prefix_(std::move(prefix)) {}

  void Argument(const std::string& name, const std::string& type) {
    values_.emplace_back(name, type);
  }
  void Write() {
    const size_t nodes = 1 + in_.Below(kMaxNodes);
    for (size_t i = 0; i < nodes && !in_.done(); ++i) Production();
  }
  // A value of the type; a constant where there is none.
  std::string Value(const std::string& type) {
    std::vector<const std::string*> fit;
    for (const auto& [name, t] : values_) {
      if (t == type) fit.push_back(&name);
    }
    // Any node at all, also one that comes later, or none.
    if (in_.OneIn(48)) return absl::StrCat(prefix_, in_.Below(count_ + 3));
    if (fit.empty() || in_.OneIn(6)) return Constant(type);
    return *fit[in_.Below(fit.size())];
  }
  const std::vector<std::pair<std::string, std::string>>& values() const { return values_; }
  const std::string& text() const { return text_; }
  const std::string& last_effect() const { return last_effect_; }
  // Of variables, and calls nothing.
  bool only_reads() const { return only_reads_; }

  // Gives each variable a value before anything else, and its last one.
  void Begin() {
    for (int v = 0; v < kVariables; ++v) {
      AddEffect("AssignVariableOp", {Variable(v), Constant("float")}, "dtype=float", {});
    }
  }
  std::vector<std::string> End() {
    std::vector<std::string> values;
    for (int v = 0; v < kVariables; ++v) {
      values.push_back(AddEffect("ReadVariableOp", {Variable(v)}, "dtype=float", {}));
    }
    return values;
  }

 private:
  std::string Add(const std::string& op, const std::vector<std::string>& inputs,
                  const std::string& attrs, const std::vector<std::string>& outputs) {
    const std::string name = absl::StrCat(prefix_, count_++);
    std::vector<std::string> all = inputs;
    if (in_.OneIn(10) && count_ > 1)
      all.push_back(absl::StrCat("^", prefix_, in_.Below(count_ - 1)));
    absl::StrAppend(&text_, name, " = ", op, all.empty() ? "" : "(", absl::StrJoin(all, ", "),
                    all.empty() ? "" : ")", " {", attrs, "}\n");
    for (size_t i = 0; i < outputs.size(); ++i) {
      values_.emplace_back(i == 0 ? name : absl::StrCat(name, ":", i), outputs[i]);
    }
    return name;
  }

  // What waits for the effect before it.
  std::string AddEffect(const std::string& op, std::vector<std::string> inputs,
                        const std::string& attrs, const std::vector<std::string>& outputs) {
    if (!last_effect_.empty()) inputs.push_back("^" + last_effect_);
    only_reads_ = only_reads_ && op == "ReadVariableOp";
    return last_effect_ = Add(op, inputs, attrs, outputs);
  }

  std::string Variable(size_t v) {
    return Add("VarHandleOp", {},
               absl::StrCat("dtype=float, shape=shape(?), shared_name=\"v", v, "\""), {"resource"});
  }

  std::string Constant(const std::string& type) {
    constexpr const char* kFloats[] = {"float[]{0.5}",    "float[]{0}",
                                       "float[2]{1, -2}", "float[2,2]{1, 2, 3, -4}",
                                       "float[0]{}",      "float[]{3}"};
    constexpr const char* kInts[] = {"int32[]{0}",    "int32[]{1}",     "int32[]{2}",
                                     "int32[1]{0}",   "int32[2]{2, 2}", "int32[]{-1}",
                                     "int32[2]{1, 0}"};
    constexpr const char* kBools[] = {"bool[]{true}", "bool[]{false}", "bool[2]{true, false}"};
    constexpr const char* kStrings[] = {"string[]{\"a\"}", "string[2]{\"\", \"bc\"}"};
    if (type == "resource") {
      return Variable(in_.Below(kVariables));
    }
    if (type == "variant") {
      const std::string shape = Constant("int32"), size = Constant("int32");
      return Add("TensorListReserve", {shape, size}, "element_dtype=float, shape_type=int32",
                 {"variant"});
    }
    const std::string value = type == "float"   ? in_.Of(kFloats)
                              : type == "int32" ? in_.Of(kInts)
                              : type == "bool"  ? in_.Of(kBools)
                                                : in_.Of(kStrings);
    return Add("Const", {}, absl::StrCat("dtype=", type, ", value=", value), {type});
  }

  void Unary(const char* op, const std::string& type) {
    Add(op, {Value(type)}, absl::StrCat("T=", type), {type});
  }
  void Binary(const char* op, const std::string& type, const std::string& result) {
    const std::string a = Value(type), b = Value(type);
    Add(op, {a, b}, absl::StrCat("T=", type), {result});
  }

  void Arithmetic() {
    constexpr const char* kUnary[] = {
        "Neg",       "Abs",  "Square", "Identity", "Sqrt",     "Rsqrt", "Exp",     "StopGradient",
        "ZerosLike", "Tanh", "Relu",   "OnesLike", "Snapshot", "Floor", "Sigmoid", "Softmax"};
    constexpr const char* kBinary[] = {"AddV2",   "Sub", "Mul",     "RealDiv", "Maximum",
                                       "Minimum", "Pow", "BiasAdd", "MatMul",  "DivNoNan"};
    constexpr const char* kInts[] = {"AddV2", "Sub", "Mul", "FloorDiv", "FloorMod", "Maximum"};
    switch (in_.Below(6)) {
      case 0:
      case 1:
        return Unary(in_.Of(kUnary), "float");
      case 2:
      case 3:
        return Binary(in_.Of(kBinary), "float", "float");
      case 4:
        return Binary(in_.Of(kInts), "int32", "int32");
      default:
        return Binary(in_.OneIn(2) ? "Less" : "GreaterEqual", "float", "bool");
    }
  }

  void Shapes() {
    const std::string x = Value("float");
    switch (in_.Below(10)) {
      case 0:
        Add("Reshape", {x, Value("int32")}, "T=float, Tshape=int32", {"float"});
        break;
      case 1:
        Add("Shape", {x}, "T=float, out_type=int32", {"int32"});
        break;
      case 2:
        Add("Transpose", {x, Value("int32")}, "T=float, Tperm=int32", {"float"});
        break;
      case 3: {
        const std::string y = Value("float"), axis = Value("int32");
        Add("ConcatV2", {x, y, axis}, "N=2, T=float, Tidx=int32", {"float"});
        break;
      }
      case 4:
        Add("Sum", {x, Value("int32")}, "T=float, Tidx=int32, keep_dims=false", {"float"});
        break;
      case 5:
        Add("Fill", {Value("int32"), x}, "T=float, index_type=int32", {"float"});
        break;
      case 6: {
        const std::string indices = Value("int32"), axis = Value("int32");
        Add("GatherV2", {x, indices, axis},
            "Taxis=int32, Tindices=int32, Tparams=float, batch_dims=0", {"float"});
        break;
      }
      case 7:
        Add("Tile", {x, Value("int32")}, "T=float, Tmultiples=int32", {"float"});
        break;
      case 8:
        Add("Unpack", {x}, "T=float, axis=0, num=2", {"float", "float"});
        break;
      default:
        Add("ExpandDims", {x, Value("int32")}, "T=float, Tdim=int32", {"float"});
    }
  }

  void OtherTypes() {
    switch (in_.Below(7)) {
      case 0:
        Add("Cast", {Value("float")}, "DstT=int32, SrcT=float", {"int32"});
        break;
      case 1:
        Add("Cast", {Value("int32")}, "DstT=float, SrcT=int32", {"float"});
        break;
      case 2:
        Add("AsString", {Value("int32")}, "T=int32", {"string"});
        break;
      case 3: {
        const std::string a = Value("string"), b = Value("string");
        Add("StringJoin", {a, b}, "N=2", {"string"});
        break;
      }
      case 4:
        Add("LogicalNot", {Value("bool")}, "", {"bool"});
        break;
      case 5: {
        const std::string c = Value("bool"), a = Value("float"), b = Value("float");
        Add("SelectV2", {c, a, b}, "T=float", {"float"});
        break;
      }
      default:
        Add("StringLength", {Value("string")}, "", {"int32"});
    }
  }

  void State() {
    const std::string v = Value("resource");
    switch (in_.Below(6)) {
      case 0:
        AddEffect("AssignVariableOp", {v, Value("float")}, "dtype=float", {});
        break;
      case 1:
        AddEffect("AssignAddVariableOp", {v, Value("float")}, "dtype=float", {});
        break;
      case 2:
        AddEffect("RandomUniform", {Value("int32")}, "T=int32, dtype=float, seed=1, seed2=2",
                  {"float"});
        break;
      case 3: {
        const std::string q = AddEffect(
            "FIFOQueueV2", {}, "capacity=2, component_types=list(float), shapes=list()", {});
        AddEffect("QueueEnqueueV2", {q, Value("float")}, "Tcomponents=list(float)", {});
        AddEffect("QueueDequeueV2", {q}, "component_types=list(float)", {"float"});
        break;
      }
      default:
        AddEffect("ReadVariableOp", {v}, "dtype=float", {"float"});
    }
  }

  void Lists() {
    const std::string list = Value("variant");
    switch (in_.Below(4)) {
      case 0: {
        const std::string at = Value("int32"), x = Value("float");
        Add("TensorListSetItem", {list, at, x}, "element_dtype=float", {"variant"});
        break;
      }
      case 1: {
        const std::string at = Value("int32"), shape = Value("int32");
        Add("TensorListGetItem", {list, at, shape}, "element_dtype=float", {"float"});
        break;
      }
      case 2:
        Add("TensorListPushBack", {list, Value("float")}, "element_dtype=float", {"variant"});
        break;
      default:
        Add("TensorListStack", {list, Value("int32")}, "element_dtype=float, num_elements=-1",
            {"float"});
    }
  }

  // The arguments of function `f`, then its attributes.
  std::vector<std::string> Arguments(size_t f) {
    std::vector<std::string> args;
    for (size_t i = 0; i < functions_[f].args; ++i) args.push_back(Value(functions_[f].type));
    return args;
  }
  static std::string Types(const std::string& type, size_t n) {
    return absl::StrCat("list(", absl::StrJoin(std::vector<std::string>(n, type), ", "), ")");
  }

  void Calls() {
    if (functions_.empty()) return Arithmetic();
    const size_t f = in_.Below(functions_.size()), g = in_.Below(functions_.size());
    const FuzzSignature& s = functions_[f];
    std::vector<std::string> args = Arguments(f);
    const std::string types = Types(s.type, s.args);
    // What says that it has no effect may go where nobody reads its results.
    const bool stateful = in_.OneIn(2) || !s.only_reads || !functions_[g].only_reads;
    switch (in_.Below(4)) {
      case 0:
        AddEffect("PartitionedCall", args,
                  absl::StrCat("Tin=", types, ", Tout=", types, ", f=@f", f),
                  std::vector<std::string>(s.args, s.type));
        break;
      case 1:
        AddEffect("StatefulPartitionedCall", args,
                  absl::StrCat("Tin=", types, ", Tout=", types, ", f=@f", f),
                  std::vector<std::string>(s.args, s.type));
        break;
      case 2:
        args.insert(args.begin(), Value("bool"));
        AddEffect(stateful ? "If" : "StatelessIf", args,
                  absl::StrCat("Tcond=bool, Tin=", types, ", Tout=", types, ", else_branch=@f", g,
                               ", output_shapes=list(), then_branch=@f", f),
                  std::vector<std::string>(s.args, s.type));
        break;
      default:
        AddEffect(stateful ? "While" : "StatelessWhile", args,
                  absl::StrCat("T=", types, ", body=@f", f, ", cond=@f", g,
                               ", output_shapes=list(), parallel_iterations=10"),
                  std::vector<std::string>(s.args, s.type));
    }
  }

  void Dataflow() {
    switch (in_.Below(5)) {
      case 0: {
        const std::string x = Value("float"), p = Value("bool");
        Add("Switch", {x, p}, "T=float", {"float", "float"});
        break;
      }
      case 1: {
        // One side alone is alive: of two that are the first to come would win.
        const std::string x = Value("float"), p = Value("bool");
        const std::string s = Add("Switch", {x, p}, "T=float", {"float", "float"});
        const std::string y = Value("float"), op = in_.OneIn(2) ? "AddV2" : "Mul";
        const std::string a = Add(op, {s, y}, "T=float", {});
        const std::string b = in_.OneIn(2) ? absl::StrCat(s, ":1")
                                           : Add("Neg", {absl::StrCat(s, ":1")}, "T=float", {});
        Add("Merge", {a, b}, "N=2, T=float", {"float", "int32"});
        break;
      }
      case 2:
        Add("Exit", {Value("float")}, "T=float", {"float"});
        break;
      default:
        Loop();
    }
  }

  // A loop of version 1 whose body is whatever productions come, with one value that goes round.
  void Loop() {
    const std::string frame = absl::StrCat("T=float, frame_name=\"l", in_.Below(3),
                                           "\", is_constant=false, "
                                           "parallel_iterations=",
                                           1 + in_.Below(3));
    const std::string enter = Add("Enter", {Value("float")}, frame, {});
    const std::string next = absl::StrCat(prefix_, "next", count_);
    const std::string merge = Add("Merge", {enter, next}, "N=2, T=float", {"float", "int32"});
    const std::string limit = Add("Const", {}, "dtype=float, value=float[]{5}", {"float"});
    const std::string inside = Add("Enter", {limit}, absl::StrCat(frame), {"float"});
    const std::string less = Add("Less", {merge, inside}, "T=float", {"bool"});
    const std::string go = Add("LoopCond", {less}, "", {"bool"});
    const std::string both = Add("Switch", {merge, go}, "T=float", {"float", "float"});
    const size_t body = in_.Below(4);
    for (size_t i = 0; i < body; ++i) Arithmetic();
    const std::string x = in_.OneIn(3) ? Value("float") : absl::StrCat(both, ":1");
    const std::string y = Add("AddV2", {x, inside}, "T=float", {"float"});
    absl::StrAppend(&text_, next, " = NextIteration(", y, ") {T=float}\n");
    Add("Exit", {both}, "T=float", {"float"});
  }

  void Production() {
    switch (in_.Below(12)) {
      case 0:
      case 1:
      case 2:
        return Arithmetic();
      case 3:
      case 4:
        return Shapes();
      case 5:
        return OtherTypes();
      case 6:
        return State();
      case 7:
        return Lists();
      case 8:
      case 9:
        return Calls();
      case 10:
        return Dataflow();
      default:
        Constant(in_.OneIn(2) ? "float" : "int32");
    }
  }

  GraphBytes& in_;
  const std::vector<FuzzSignature>& functions_;
  const std::string prefix_;
  std::string text_;
  std::vector<std::pair<std::string, std::string>> values_;  // name, type
  size_t count_ = 0;
  std::string last_effect_;
  bool only_reads_ = true;
};

struct FuzzGraph {
  std::string text;
  std::vector<std::string> fetches;
};

FuzzGraph WriteGraph(GraphBytes& in) {
  constexpr const char* kTypes[] = {"float", "float",    "float",  "int32",
                                    "bool",  "resource", "variant"};
  FuzzGraph out;
  std::vector<FuzzSignature> functions(in.Below(kMaxFunctions + 1));
  for (FuzzSignature& f : functions) f = {in.Of(kTypes), 1 + in.Below(3), false};
  for (size_t i = 0; i < functions.size(); ++i) {
    FuzzSignature& f = functions[i];
    GraphWriter body(in, functions, "b");
    std::vector<std::string> args, types, results;
    for (size_t a = 0; a < f.args; ++a) {
      args.push_back(absl::StrCat("a", a, ": ", f.type));
      types.push_back(absl::StrCat("r", a, ": ", f.type));
      body.Argument(absl::StrCat("a", a), f.type);
    }
    body.Write();
    f.only_reads = body.only_reads();
    for (size_t a = 0; a < f.args; ++a) results.push_back(body.Value(f.type));
    absl::StrAppend(&out.text, "func f", i, "(", absl::StrJoin(args, ", "), ") -> (",
                    absl::StrJoin(types, ", "), ")",
                    body.last_effect().empty() ? "" : " where {control done}", " {\n", body.text(),
                    "return ");
    for (size_t a = 0; a < f.args; ++a) {
      const bool port = results[a].find(':') != std::string::npos;
      absl::StrAppend(&out.text, a ? ", " : "", "r", a, "=", results[a], port ? "" : ":0");
    }
    if (!body.last_effect().empty()) absl::StrAppend(&out.text, " ^done=", body.last_effect());
    out.text += "\n}\n";
  }
  GraphWriter main(in, functions, "n");
  main.Begin();
  main.Write();
  const auto& values = main.values();
  for (size_t i = 0; i < 3 && !values.empty(); ++i) {
    const auto& [name, type] = values[values.size() - 1 - in.Below(values.size())];
    if (type != "resource" && type != "variant") out.fetches.push_back(name);
  }
  for (const std::string& value : main.End()) out.fetches.push_back(value);
  out.text += main.text();
  return out;
}

StatusOr<std::vector<Tensor>> RunGraph(const FuzzGraph& g, std::unique_ptr<Graph> graph,
                                       bool optimize) {
  SessionOptions options;
  options.threads = 1;
  options.optimize = optimize;
  options.compile = optimize;
  options.passes.verify = VerifyPasses::kFail;
  Session session(std::shared_ptr<const Graph>(std::move(graph)), options);
  RunOptions run;
  run.timeout = kTimeout;
  return session.Run({}, g.fetches, {}, run);
}

// The graph after what smelt optimize does to it.
StatusOr<std::unique_ptr<Graph>> Rewritten(const FuzzGraph& g, const RewriterConfig& config) {
  GraphItem item;
  ASSIGN_OR_RETURN(item.graph, ParseGraph(g.text));
  item.fetches = g.fetches;
  // A variable is written for its sake, whoever reads it later.
  item.allow_pruning_stateful_and_dataset_ops = false;
  MetaOptions options;
  options.config = config;
  options.config.min_graph_nodes = -1;
  options.config.fail_on_optimizer_errors = true;
  ASSIGN_OR_RETURN(const auto report, OptimizeItem(item, options));
  RETURN_IF_ERROR(VerifyAll(*item.graph));
  return std::move(item.graph);
}

// All passes, all of them aggressively, or one alone.
RewriterConfig ConfigOf(size_t choice) {
  RewriterConfig config;
  std::vector<std::string> keys;
  for (const PassRow& row : AllPasses()) {
    const bool known = std::ranges::find(keys, row.key) != keys.end();
    // Replicas are another graph, and want variables that the init ops tell.
    const bool replicates = row.key == "autoparallel";
    if (row.key.empty() || row.use == PassUse::kExecution || known || replicates) continue;
    keys.emplace_back(row.key);
  }
  choice %= keys.size() + 2;
  if (choice == keys.size()) SetAggressive(config);
  // Zero times anything is zero there.
  config.constant_folding = Toggle::kDefault;
  if (choice < keys.size()) config.optimizers = {keys[choice]};
  return config;
}

// Sums in another order and products that are fused round otherwise.
bool Near(float a, float b) {
  return a == b || (std::isnan(a) && std::isnan(b)) ||
         std::abs(a - b) <= 1e-3f * std::max({1.0f, std::abs(a), std::abs(b)});
}

// What is fetched inside of a loop comes more than once, for which TensorFlow has INTERNAL, too.
bool IsBug(const Status& s) {
  return absl::IsInternal(s) && !absl::StrContains(s.message(), "has already been set");
}

// Time and memory may end either run.
bool Ended(const Status& s) { return absl::IsDeadlineExceeded(s) || absl::IsResourceExhausted(s); }

// What was rounded otherwise may turn a comparison or a cast: of other types only the form counts.
bool Alike(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() != Dtype::kFloat) return true;
  const auto x = a.flat<float>(), y = b.flat<float>();
  return std::equal(x.begin(), x.end(), y.begin(), Near);
}

}  // namespace
}  // namespace smelt

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace smelt;
  static const bool show = std::getenv("SMELT_FUZZ_SHOW") != nullptr;
  SetHeapLimit(kHeap);
  GraphBytes in(data, size);
  const FuzzGraph graph = WriteGraph(in);
  if (show) std::fprintf(stderr, "%s\n", graph.text.c_str());
  auto parsed = ParseGraph(graph.text);
  if (!parsed.ok() || !VerifyAll(**parsed).ok()) return 0;
  const auto plain = RunGraph(graph, *std::move(parsed), false);
  for (const bool in_session : {true, false}) {
    auto rewritten =
        in_session ? ParseGraph(graph.text) : Rewritten(graph, ConfigOf(graph.text.size()));
    const auto optimized =
        rewritten.ok() ? RunGraph(graph, *std::move(rewritten), in_session) : rewritten.status();
    const char* how = in_session ? "in a session" : "by smelt optimize";
    if (show) {
      std::fprintf(stderr, "# %s\n# optimized %s: %s\n", plain.status().ToString().c_str(), how,
                   optimized.status().ToString().c_str());
    }
    if (IsBug(plain.status()) || IsBug(optimized.status())) {
      std::fprintf(stderr, "%s\n%s\n", plain.status().ToString().c_str(),
                   optimized.status().ToString().c_str());
      std::abort();
    }
    if (!plain.ok()) return 0;
    if (Ended(optimized.status())) continue;
    if (!optimized.ok()) {
      std::fprintf(stderr, "%s\noptimized %s: %s\n", graph.text.c_str(), how,
                   optimized.status().ToString().c_str());
      std::abort();
    }
    for (size_t i = 0; i < plain->size(); ++i) {
      if (Alike((*plain)[i], (*optimized)[i])) continue;
      std::fprintf(stderr, "%s\n%s is another one optimized %s (%zu)\n", graph.text.c_str(),
                   graph.fetches[i].c_str(), how, graph.text.size());
      std::abort();
    }
  }
  return 0;
}
