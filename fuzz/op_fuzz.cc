// Kernels: op cases that TensorFlow wrote (tests/ops), bent out of shape. The bytes choose the
// case, then change attributes and inputs: other values, other shapes, other cases' tensors.
// Whatever comes, a kernel answers or gives an error; it never crashes and never takes more memory
// than the limit allows. Cases of several ops run as a graph, step after step, so that ops meet the
// resources, lists and data sets of others. With SMELT_FUZZ_SHOW set, each run is printed first.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "smelt/graph/text.h"
#include "smelt/graph/verify.h"
#include "smelt/kernels/run_op.h"
#include "tests/graph_runner.h"
#include "tests/op_case.h"

namespace smelt {
namespace {

constexpr int64_t kHeap = int64_t{256} << 20;

class FuzzBytes {
 public:
  FuzzBytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t Byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  size_t Below(size_t n) { return n == 0 ? 0 : (Byte() | size_t{Byte()} << 8) % n; }
  bool done() const { return size_ == 0; }
  int64_t Integer() {
    constexpr int64_t kOdd[] = {0,  1,    -1,        2,         -2,        3,         7,
                                64, 127,  -128,      255,       32768,     INT32_MAX, INT32_MIN,
                                65, 1000, INT64_MAX, INT64_MIN, 1LL << 32, 1LL << 40, 4};
    return kOdd[Below(std::size(kOdd))];
  }
  float Number() {
    constexpr float kOdd[] = {0.f, -0.f, 1.f, -1.f, 0.5f, 1e30f, -1e30f, 1e-40f, 3.4e38f, 255.f};
    const size_t i = Below(std::size(kOdd) + 3);
    if (i < std::size(kOdd)) return kOdd[i];
    using L = std::numeric_limits<float>;
    return i == std::size(kOdd) ? L::quiet_NaN() : i % 2 ? L::infinity() : -L::infinity();
  }
  std::string Text() {
    std::string s(Below(12), '\0');
    for (char& c : s) c = static_cast<char>(Byte());
    return s;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

struct FuzzStep {
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::vector<std::string> fetches, runs;
};

struct FuzzCase {
  std::string text;             // a graph; one op: with a node "tested"
  std::vector<Tensor> inputs;   // of one op
  std::vector<FuzzStep> steps;  // of several
};

// Ops that touch files are left out: the fuzzer would write where it runs.
bool TouchesFiles(absl::string_view text) {
  for (const absl::string_view word : {"File", "Save", "Checkpoint", "Summary", "Print", "Dump"}) {
    if (absl::StrContains(text, word)) return true;
  }
  return false;
}

StatusOr<FuzzCase> OneOp(const TestCase& c) {
  FuzzCase f;
  std::string args;
  for (size_t i = 0; i < c.ins.size(); ++i) {
    ASSIGN_OR_RETURN(Tensor t, ParseTensorText(c.ins[i]));
    absl::StrAppend(&f.text, "in", i, " = Placeholder {dtype=", DtypeName(t.dtype()),
                    ", shape=shape(?)}\n");
    absl::StrAppend(&args, i ? ", " : "", "in", i);
    f.inputs.push_back(std::move(t));
  }
  const size_t end = c.op.find_first_of(" {");
  absl::StrAppend(&f.text, "tested = ", c.op.substr(0, end),
                  args.empty() ? "" : absl::StrCat("(", args, ")"),
                  end == std::string::npos ? "" : c.op.substr(end), "\n");
  return f;
}

StatusOr<FuzzCase> SeveralOps(const TestCase& c) {
  FuzzCase f;
  f.text = c.graph;
  for (const TestStep& s : c.steps) {
    FuzzStep step;
    for (const auto& [name, literal] : s.feeds) {
      ASSIGN_OR_RETURN(Tensor t, ParseTensorText(literal));
      step.feeds.emplace_back(name, std::move(t));
    }
    for (const auto& [name, literal] : s.fetches) step.fetches.push_back(name);
    step.runs = s.runs;
    f.steps.push_back(std::move(step));
  }
  return f;
}

// Every case of the files; graphs and tensors of a case are parsed when it is chosen.
const std::vector<TestCase>& FuzzCases() {
  static const auto* all = [] {
    auto* cases = new std::vector<TestCase>;
    const char* folder = std::getenv("SMELT_OP_CASES");
    for (const auto& file : std::filesystem::directory_iterator(folder ? folder : "tests/ops")) {
      if (file.path().extension() != ".ops") continue;
      if (!ReadCases(file.path().string(), cases).ok()) std::abort();
    }
    std::erase_if(*cases,
                  [](const TestCase& c) { return TouchesFiles(c.is_graph ? c.graph : c.op); });
    // The order of files differs from machine to machine; bytes mean the same on all of them.
    std::ranges::stable_sort(*cases, {}, &TestCase::file);
    if (cases->empty()) std::abort();
    std::fprintf(stderr, "%zu op cases\n", cases->size());
    return cases;
  }();
  return *all;
}

// Element `at` becomes another value, often an extreme one.
void BendElement(FuzzBytes& in, Tensor& t, int64_t at) {
  switch (t.dtype()) {
    case Dtype::kFloat:
      t.data<float>()[at] = in.Number();
      break;
    case Dtype::kDouble:
      t.data<double>()[at] = in.Number();
      break;
    case Dtype::kInt32:
      t.data<int32_t>()[at] = static_cast<int32_t>(in.Integer());
      break;
    case Dtype::kInt64:
      t.data<int64_t>()[at] = in.Integer();
      break;
    case Dtype::kString:
      t.data<std::string>()[at] = in.Text();
      break;
    case Dtype::kBool:
      t.data<bool>()[at] = !t.data<bool>()[at];
      break;
    default:
      if (!IsPod(t.dtype())) break;
      auto* bytes = static_cast<uint8_t*>(t.raw());
      for (size_t i = 0; i < DtypeSize(t.dtype()); ++i) {
        bytes[static_cast<size_t>(at) * DtypeSize(t.dtype()) + i] = in.Byte();
      }
  }
}

// Another shape, the elements repeated or cut.
Tensor Reshaped(FuzzBytes& in, const Tensor& t) {
  Dims dims;
  for (size_t rank = in.Below(6); rank > 0; --rank) {
    dims.push_back(static_cast<int64_t>(in.Below(in.Byte() % 8 == 0 ? 40 : 5)));
  }
  // Shapes without elements, and sizes whose product overflows.
  if (!dims.empty() && in.Byte() % 8 == 0) {
    for (int64_t& d : dims) {
      if (in.Byte() % 2 == 0) d = in.Integer();
    }
    dims[in.Below(dims.size())] = 0;
  }
  auto shape = Shape::Make(dims);
  if (!shape.ok() || shape->num_elements() > 1 << 16) return t;
  auto out = Tensor::Make(t.dtype(), *shape);
  if (!out.ok()) return t;
  const int64_t n = t.num_elements();
  for (int64_t i = 0; i < out->num_elements(); ++i) {
    if (t.dtype() == Dtype::kString) {
      if (n > 0) out->data<std::string>()[i] = t.data<std::string>()[i % n];
    } else {
      const size_t size = DtypeSize(t.dtype());
      auto* to = static_cast<char*>(out->raw()) + static_cast<size_t>(i) * size;
      if (n == 0) {
        std::fill(to, to + size, '\0');
      } else {
        const auto* from = static_cast<const char*>(t.raw()) + static_cast<size_t>(i % n) * size;
        std::copy(from, from + size, to);
      }
    }
  }
  return *std::move(out);
}

void BendInput(FuzzBytes& in, Tensor& t) {
  if (!IsPod(t.dtype()) && t.dtype() != Dtype::kString) return;
  switch (in.Byte() % 4) {
    case 0:
      t = Reshaped(in, t);
      break;
    case 1: {
      const TestCase& other = FuzzCases()[in.Below(FuzzCases().size())];
      if (other.ins.empty()) break;
      auto from = ParseTensorText(other.ins[in.Below(other.ins.size())]);
      if (from.ok() && from->dtype() == t.dtype()) t = *std::move(from);
      break;
    }
    default:
      if (t.num_elements() == 0) break;
      auto copy = t.Clone();
      if (!copy.ok()) break;
      t = *std::move(copy);
      BendElement(in, t, static_cast<int64_t>(in.Below(static_cast<size_t>(t.num_elements()))));
  }
}

void BendAttr(FuzzBytes& in, Node& node) {
  if (node.def() == nullptr || node.def()->attrs.empty()) return;
  const AttrDef& def = node.def()->attrs[in.Below(node.def()->attrs.size())];
  const Attr* now = node.Find(def.name);
  if (now == nullptr) return;
  if (now->get<int64_t>() != nullptr) {
    node.AttrsToChange().Set(def.name, in.Integer());
  } else if (now->get<bool>() != nullptr) {
    node.AttrsToChange().Set(def.name, !*now->get<bool>());
  } else if (now->get<float>() != nullptr) {
    node.AttrsToChange().Set(def.name, in.Number());
  } else if (now->get<std::string>() != nullptr) {
    const auto& allowed = def.allowed_strings;
    node.AttrsToChange().Set(def.name,
                             allowed.empty() ? in.Text() : allowed[in.Below(allowed.size())]);
  } else if (const auto* numbers = now->get<std::vector<float>>()) {
    std::vector<float> values = *numbers;
    if (in.Byte() % 4 == 0) values.resize(in.Below(7));
    if (!values.empty()) values[in.Below(values.size())] = in.Number();
    node.AttrsToChange().Set(def.name, values);
  } else if (const auto* list = now->get<std::vector<int64_t>>()) {
    std::vector<int64_t> values = *list;
    if (in.Byte() % 4 == 0) values.resize(in.Below(7));
    if (!values.empty()) values[in.Below(values.size())] = in.Integer();
    node.AttrsToChange().Set(def.name, values);
  } else if (now->get<PartialShape>() != nullptr) {
    Dims dims;
    for (size_t rank = in.Below(5); rank > 0; --rank) dims.push_back(in.Integer());
    node.AttrsToChange().Set(def.name, PartialShape::Of(dims));
  }
}

void ShowRun(const Graph& graph, absl::string_view name, const Tensor& t) {
  static const bool show = std::getenv("SMELT_FUZZ_SHOW") != nullptr;
  if (!show) return;
  if (name.empty()) {
    std::fprintf(stderr, "%s", PrintGraph(graph).c_str());
    return;
  }
  const std::string text =
      t.num_elements() <= 64 && (IsPod(t.dtype()) || t.dtype() == Dtype::kString)
          ? PrintTensor(*TensorValue::Of(t))
          : absl::StrCat(DtypeName(t.dtype()), t.shape().ToString());
  std::fprintf(stderr, "%s %s\n", std::string(name).c_str(), text.c_str());
}

// A step and its resources. The deadline is short, as queues may wait and loops go on forever.
struct FuzzRun {
  FuzzRun() {
    cancellation.SetDeadline(absl::Now() + absl::Milliseconds(500));
    step.id = 1;
    step.resources = &resources;
    step.step_resources = &step_resources;
    step.cancellation = &cancellation;
  }
  ResourceManager resources, step_resources;
  Cancellation cancellation;
  Step step;
};

void BendOneOp(FuzzBytes& in, const FuzzCase& chosen, Graph& graph) {
  Node* node = graph.Find("tested");
  std::vector<Tensor> inputs = chosen.inputs;
  for (int i = 0; i < 6 && !in.done(); ++i) {
    if (inputs.empty() || in.Byte() % 3 == 0) {
      BendAttr(in, *node);
    } else {
      BendInput(in, inputs[in.Below(inputs.size())]);
    }
  }
  // Attributes may have changed what the node takes and gives; then it is refused here, as at load.
  if (!graph.ResolveTypes(node).ok() || !Verify(graph).ok()) return;
  ShowRun(graph, "", {});
  for (const Tensor& t : inputs) ShowRun(graph, "in", t);
  FuzzRun run;
  RunOp(*node, std::move(inputs), run.step).status().IgnoreError();
}

void BendGraph(FuzzBytes& in, const FuzzCase& chosen, Graph& graph) {
  std::vector<Node*> nodes = graph.Nodes();
  for (const Function* f : graph.library()->Functions()) {
    for (Node* node : f->body->Nodes()) nodes.push_back(node);
  }
  std::vector<FuzzStep> steps = chosen.steps;
  for (int i = 0; i < 6 && !in.done(); ++i) {
    auto& feeds = steps[in.Below(steps.size())].feeds;
    if (feeds.empty() || in.Byte() % 2 == 0) {
      Node* node = nodes[in.Below(nodes.size())];
      BendAttr(in, *node);
      if (!graph.ResolveTypes(node).ok()) return;
    } else {
      BendInput(in, feeds[in.Below(feeds.size())].second);
    }
  }
  if (!VerifyAll(graph).ok()) return;
  ShowRun(graph, "", {});
  FuzzRun run;
  GraphRunner runner(*graph.library());
  run.step.functions = &runner;
  for (FuzzStep& s : steps) {
    ResourceManager step_resources;
    run.step.step_resources = &step_resources;
    GraphRunner::Values values;
    std::vector<Endpoint> wanted;
    std::vector<Node*> also;
    for (auto& [name, tensor] : s.feeds) {
      auto e = graph.FindEndpoint(name);
      ShowRun(graph, name, tensor);
      if (e.ok()) values[{e->node, e->port}] = std::move(tensor);
    }
    for (const std::string& name : s.fetches) {
      auto e = graph.FindEndpoint(name);
      if (e.ok()) wanted.push_back(*e);
    }
    for (const std::string& name : s.runs) {
      Node* node = graph.Find(name);
      if (node != nullptr) also.push_back(node);
    }
    std::vector<Tensor> results;
    runner.Run(graph, std::move(values), wanted, also, &results, run.step).IgnoreError();
    ++run.step.id;
  }
}

}  // namespace
}  // namespace smelt

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace smelt;
  const std::vector<TestCase>& cases = FuzzCases();
  FuzzBytes in(data, size);
  const TestCase& c = cases[in.Below(cases.size())];
  SetHeapLimit(0);
  const auto chosen = c.is_graph ? SeveralOps(c) : OneOp(c);
  if (!chosen.ok()) return 0;
  auto graph = ParseGraph(chosen->text);
  if (!graph.ok()) return 0;
  SetHeapLimit(HeapLive() + kHeap);
  if (chosen->steps.empty()) {
    BendOneOp(in, *chosen, **graph);
  } else {
    BendGraph(in, *chosen, **graph);
  }
  return 0;
}
