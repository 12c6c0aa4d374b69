// smelt_case_tests lite FOLDER...: what becomes of graphs on their way to a .tflite file and back.
//
//   case NAME
//   do export [coarse_weights] [without FUSION...] [with FUSION...]
//   in
//   ...a callable graph: _Arg with _output_shapes, _Retval...
//   out
//   ...the nodes wanted, or the error...
//
// `do layers [auto=LOSS] [PATTERN...]`: operators in int8 on samples in [-1, 1]: `out` is which
// layer is the worst, and which stay float: "worst NODE", "float NODE".
//
// `do stated [bits=4]`: operators that are fused are in int8 by what FakeQuant nodes state of
// ranges, their weights in `bits`. `do dynamic [bits=4] [block=N]`: weights of operators that
// quantize floats as they come are integers, however few these are.
//
// `do quantize dynamic|float16|int8|int16x8 [bits=4] [block=N] [least=N] [op=NAME] [node=NAME]
// [float=PATTERN]`: the graph and the functions that its control flow calls, whose nodes print as
// "FUNCTION: NODE"; weights are quantized from `least` elements on, else all; the last three leave
// layers in float. int8 and int16x8 take samples in [-1, 1].
//
// `coarse_weights`: they will be integers. `with` names fusions that are tried on request alone.
// Before `in` may stand `fusions` and a text of fusions, which are tried first. `do explain`: as
// export, and `out` is what fired and what nearly did: "FUSION NODE: fused". `do legalize`: ops
// become operators; `do fuse`, with the same words behind it: operators that are one; `do fit`:
// operators of too many dimensions become others; `do export`: all three; `do select`: the same,
// with select ops; `do few`: these for what would be many operators, too; `do lists`: lists become
// tensors, then as export; `do composites`: calls of composite functions become operators, or are
// the error "DECLINED NODE: WHY", one a line; `do loops`: scans are rewritten, with notes in the
// same form behind them; `do functional`: control flow of version 1 becomes branches and loops,
// whose functions print behind the graph; `do shifted`: states that loops pass on are copies; `do
// lower`: operators become ops; `do write`: the file, read again. Nodes print without Tin and Tout,
// sorted. An error is wanted where `out` begins with its code; refused ops are the error "REFUSED
// NODE: OP: WHY", one a line. Cases are separated by lines of dashes.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "smelt/graph/copy_node.h"
#include "smelt/graph/text.h"
#include "smelt/lite/check_own_fusions.h"
#include "smelt/lite/composites/composite.h"
#include "smelt/lite/emit.h"
#include "smelt/lite/flex/select_ops.h"
#include "smelt/lite/fuse/fusion.h"
#include "smelt/lite/import.h"
#include "smelt/lite/legalizer.h"
#include "smelt/lite/lower/lowering.h"
#include "smelt/lite/prepare/bodies.h"
#include "smelt/lite/prepare/cases.h"
#include "smelt/lite/prepare/functional.h"
#include "smelt/lite/quantize/quantize_graphs.h"
#include "smelt/lite/recurrences/recurrence.h"
#include "smelt/lite/shifted_states.h"
#include "tests/case_tests.h"

namespace smelt {
namespace {

std::string Canonical(Graph& graph) {
  std::vector<std::string> lines;
  for (Node* n : graph.Nodes()) {
    n->EraseAttr("Tin");
    n->EraseAttr("Tout");
    lines.emplace_back(absl::StripAsciiWhitespace(PrintNode(*n)));
  }
  std::sort(lines.begin(), lines.end());
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

std::string CanonicalText(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  std::sort(lines.begin(), lines.end());
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

// The graph as it reads back from the bytes of a file.
StatusOr<std::string> Written(Graph& graph) {
  std::vector<std::string> inputs, outputs;
  for (const Node* n : graph.Nodes()) {
    if (n->Is("_Arg")) inputs.push_back(n->name());
    if (n->Is("_Retval")) outputs.push_back(n->input(0).node->name());
  }
  LiteModel model;
  model.buffers.emplace_back();
  ASSIGN_OR_RETURN(LiteSubgraph subgraph,
                   EmitSubgraph(
                       graph, "main", inputs, outputs,
                       [](absl::string_view) -> StatusOr<int64_t> { return 0; }, model));
  model.subgraphs.push_back(std::move(subgraph));
  auto bytes = std::make_shared<std::string>();
  RETURN_IF_ERROR(WriteTflite(model, false, [&](absl::string_view piece) {
    bytes->append(piece.data(), piece.size());
    return OkStatus();
  }));
  ASSIGN_OR_RETURN(const LiteModel read, ReadTflite(*bytes, bytes));
  ASSIGN_OR_RETURN(const LiteFunctions functions, ImportLite(read));
  return Canonical(*functions.library->Find("main")->body);
}

// A linear congruence, the same on every machine.
StatusOr<std::vector<LiteSample>> MadeUpSamples(const Graph& graph) {
  constexpr int kSamples = 8;
  std::vector<LiteSample> out(kSamples);
  uint32_t state = 1;
  std::vector<const Node*> args(static_cast<size_t>(graph.num_nodes()));
  for (const Node* n : graph.Nodes()) {
    if (n->Is("_Arg")) args[static_cast<size_t>(n->Int("index"))] = n;
  }
  std::erase(args, nullptr);
  for (LiteSample& sample : out) {
    for (const Node* arg : args) {
      const auto shapes = arg->Get<std::vector<PartialShape>>("_output_shapes", {});
      ASSIGN_OR_RETURN(Tensor t, Tensor::Make(Dtype::kFloat, shapes.at(0).ToShape()));
      for (float& v : t.flat<float>()) {
        state = state * 1664525 + 1013904223;
        v = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1;
      }
      sample.push_back(std::move(t));
    }
  }
  return out;
}

Status AsItIs(Graph&) { return OkStatus(); }

StatusOr<std::string> LayersOf(std::unique_ptr<Graph> graph,
                               const std::vector<std::string>& words) {
  FloatLayerFlags flags;
  flags.measure = true;
  for (size_t i = 1; i < words.size(); ++i) {
    absl::string_view word = words[i];
    double loss = 0;
    if (absl::ConsumePrefix(&word, "auto=") && absl::SimpleAtod(word, &loss)) {
      flags.max_loss = loss;
    } else {
      flags.patterns.emplace_back(words[i]);
    }
  }
  ASSIGN_OR_RETURN(const auto samples, MadeUpSamples(*graph));
  ASSIGN_OR_RETURN(LiteGraphs graphs, CollectGraphs(std::move(graph), AsItIs));
  QuantizeGraphsFlags quantize;
  quantize.mode = LiteQuantize::kInt8;
  quantize.float_layers = std::move(flags);
  ASSIGN_OR_RETURN(const auto chosen, QuantizeGraphs(graphs, samples, std::move(quantize)));
  const FloatLayers& got = *chosen;
  const LayerError* worst = nullptr;
  for (const LayerError& l : got.before.layers) {
    if (worst == nullptr || l.alone.Relative() > worst->alone.Relative()) worst = &l;
  }
  std::string out;
  if (worst != nullptr) absl::StrAppend(&out, "worst ", worst->node, "\n");
  for (const std::string& name : got.nodes) absl::StrAppend(&out, "float ", name, "\n");
  return out;
}

int64_t NumberOf(const std::vector<std::string>& words, absl::string_view name, int64_t otherwise) {
  int64_t value = otherwise;
  for (absl::string_view word : words) {
    if (absl::ConsumePrefix(&word, name) && !absl::SimpleAtoi(word, &value)) return -1;
  }
  return value;
}

std::string TextOf(const LiteGraphs& graphs) {
  std::string out = Canonical(*graphs.main);
  for (const LiteBody& body : graphs.bodies) {
    for (const absl::string_view line :
         absl::StrSplit(Canonical(*body.graph), '\n', absl::SkipEmpty())) {
      absl::StrAppend(&out, body.function, ": ", line, "\n");
    }
  }
  return out;
}

StatusOr<std::string> WithFilledStates(std::unique_ptr<Graph> graph) {
  ASSIGN_OR_RETURN(const LiteGraphs graphs, CollectGraphs(std::move(graph), AsItIs));
  RETURN_IF_ERROR(FillEmptyStates(graphs));
  return TextOf(graphs);
}

StatusOr<std::string> WithCopiedStates(std::unique_ptr<Graph> graph) {
  ASSIGN_OR_RETURN(const LiteGraphs graphs, CollectGraphs(std::move(graph), AsItIs));
  RETURN_IF_ERROR(CopyShiftedStates(graphs));
  return TextOf(graphs);
}

StatusOr<std::string> QuantizedText(std::unique_ptr<Graph> graph,
                                    const std::vector<std::string>& words) {
  constexpr std::pair<absl::string_view, LiteQuantize> kModes[] = {
      {"dynamic", LiteQuantize::kDynamic},
      {"float16", LiteQuantize::kFloat16},
      {"int8", LiteQuantize::kInt8},
      {"int16x8", LiteQuantize::kInt16x8}};
  QuantizeGraphsFlags flags;
  for (size_t i = 1; i < words.size(); ++i) {
    absl::string_view word = words[i];
    for (const auto& [name, mode] : kModes) {
      if (word == name) flags.mode = mode;
    }
    if (absl::ConsumePrefix(&word, "op=")) flags.dynamic.float_ops.emplace(word);
    if (absl::ConsumePrefix(&word, "node=")) flags.dynamic.float_nodes.emplace(word);
    if (absl::ConsumePrefix(&word, "float=")) flags.float_layers.patterns.emplace_back(word);
  }
  flags.dynamic.least_elements = NumberOf(words, "least=", 0);
  flags.dynamic.block_size = NumberOf(words, "block=", 0);
  flags.dynamic.weight_bits = static_cast<int>(NumberOf(words, "bits=", 8));
  flags.integer.weight_bits = flags.dynamic.weight_bits;
  flags.integer.float_ops = flags.dynamic.float_ops;
  flags.integer.float_nodes = flags.dynamic.float_nodes;
  std::vector<LiteSample> samples;
  if (flags.mode == LiteQuantize::kInt8 || flags.mode == LiteQuantize::kInt16x8) {
    ASSIGN_OR_RETURN(samples, MadeUpSamples(*graph));
  }
  ASSIGN_OR_RETURN(LiteGraphs graphs, CollectGraphs(std::move(graph), AsItIs));
  RETURN_IF_ERROR(QuantizeGraphs(graphs, samples, std::move(flags)).status());
  return TextOf(graphs);
}

StatusOr<std::string> RunSteps(const std::string& what, const std::string& in,
                               const std::string& fusions) {
  ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, ParseGraph(in));
  std::vector<std::string> words = absl::StrSplit(what, ' ', absl::SkipEmpty());
  FusionChoice choice;
  bool with = false;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "with" || words[i] == "without") {
      with = words[i] == "with";
    } else if (words[i] == "coarse_weights") {
      choice.coarse_weights = true;
    } else {
      (with ? choice.on : choice.off).insert(words[i]);
    }
  }
  ASSIGN_OR_RETURN(choice.own, ParseFusions(fusions));
  std::vector<FusionNote> notes;
  OperatorSets sets;
  const bool few = words.at(0) == "few";
  sets.select = words.at(0) == "select" || few;
  const std::string step = sets.select ? "export" : words.at(0);
  if (step == "layers") return LayersOf(std::move(graph), words);
  if (step == "states") return WithFilledStates(std::move(graph));
  if (step == "shifted") return WithCopiedStates(std::move(graph));
  if (step == "quantize") return QuantizedText(std::move(graph), words);
  if (step == "composites") {
    CompositeChoice composites;
    for (const RuleFusion& own : choice.own) composites.by_rules.merge(CompositeNames(own.customs));
    CompositeNames declined;
    RETURN_IF_ERROR(ChooseComposites(*graph, composites, declined, &notes).status());
  } else if (step == "loops") {
    PassContext context;
    context.lower_control_flow = false;
    RETURN_IF_ERROR(TakeLoops(graph, context, choice.off, &notes));
  }
  if (step == "functional") {
    RETURN_IF_ERROR(MakeFunctional(*graph));
    RETURN_IF_ERROR(CasesToIfs(*graph));
    graph->Prune(Roots(*graph));
    return PrintGraph(*graph);
  }
  std::string why;
  for (const FusionNote& n : notes) {
    if (!n.why_not.empty()) absl::StrAppend(&why, "DECLINED ", n.node, ": ", n.why_not, "\n");
  }
  if (step == "composites" && !why.empty()) return why;
  if (step == "lists") {
    RETURN_IF_ERROR(OwnBodies(*graph, [](Graph&) { return OkStatus(); }));
    graph->Prune(Roots(*graph));
  }
  std::vector<Refusal> refusals;
  if (step == "lists" || step == "legalize" || step == "export" || step == "explain" ||
      step == "composites") {
    if (few) PreferSelectOps(*graph);
    ASSIGN_OR_RETURN(refusals, Legalize(*graph));
  }
  if (step == "stated") {
    LegalizeFlags legalize;
    legalize.declares_ranges = true;
    ASSIGN_OR_RETURN(refusals, Legalize(*graph, nullptr, legalize));
    RETURN_IF_ERROR(Fuse(*graph, choice, nullptr));
    IntegerFlags integer;
    integer.weight_bits = static_cast<int>(NumberOf(words, "bits=", 8));
    RETURN_IF_ERROR(QuantizeToInteger(*graph, {}, integer));
  }
  if (step == "dynamic") {
    DynamicRangeFlags dynamic;
    dynamic.least_elements = 0;
    dynamic.weight_bits = static_cast<int>(NumberOf(words, "bits=", 8));
    dynamic.block_size = NumberOf(words, "block=", 0);
    RETURN_IF_ERROR(QuantizeDynamicRange(*graph, dynamic));
  }
  const bool composites_by_rules = step == "composites" && !choice.own.empty();
  if (step == "fuse" || step == "export" || step == "lists" || composites_by_rules) {
    RETURN_IF_ERROR(FuseChecked(*graph, choice, nullptr));
  }
  if (step == "explain") {
    RETURN_IF_ERROR(Fuse(*graph, choice, &notes));
    std::string said;
    for (const FusionNote& n : notes) {
      absl::StrAppend(&said, n.fusion, " ", n.node, ": ", n.why_not.empty() ? "fused" : n.why_not,
                      "\n");
    }
    return said;
  }
  ASSIGN_OR_RETURN(const bool late, LegalizeLate(*graph, refusals));
  if (late && step == "export") RETURN_IF_ERROR(Fuse(*graph, choice, nullptr));
  if (sets.select) RETURN_IF_ERROR(ReplaceRefused(*graph, sets, refusals));
  const size_t known = refusals.size();
  if (step == "fit" || step == "export" || step == "lists")
    RETURN_IF_ERROR(FitOperators(*graph, refusals).status());
  RETURN_IF_ERROR(ReplaceUnfit(*graph, sets, known, refusals));
  std::string text;
  for (const Refusal& r : refusals) {
    absl::StrAppend(&text, "REFUSED ", r.node, ": ", r.op, ": ", r.why, "\n");
  }
  if (!text.empty()) return text;
  LiteResources resources;
  if (step == "lower") RETURN_IF_ERROR(Lower(*graph, "main", resources));
  if (step == "write") return Written(*graph);
  std::vector<Node*> roots;
  for (Node* n : graph->Nodes()) {
    const bool stays = n->Is("_Arg") || n->Is("_Retval") || (n->def() && n->def()->stateful);
    if (stays) roots.push_back(n);
  }
  graph->Prune(roots);
  return Canonical(*graph) + why;
}

bool RunLiteCase(const std::string& name, const std::string& what, const std::string& in,
                 const std::string& out, const std::string& fusions) {
  const auto result = RunSteps(what, in, fusions);
  const std::string got = result.ok() ? CanonicalText(*result) : result.status().ToString() + "\n";
  const std::string wanted = CanonicalText(out);
  if (got == wanted) return true;
  std::printf("FAILED %s\nwanted:\n%sgot:\n%s", name.c_str(), wanted.c_str(), got.c_str());
  return false;
}

int RunLiteFile(const std::string& path, int* passed) {
  std::ifstream file(path);
  std::string line, name, what, in, out, fusions;
  int failed = 0, section = 0;
  const auto finish = [&] {
    if (name.empty()) return;
    RunLiteCase(name, what, in, out, fusions) ? ++*passed : ++failed;
    name.clear();
    in.clear();
    out.clear();
    fusions.clear();
    section = 0;
  };
  while (std::getline(file, line)) {
    if (absl::StartsWith(line, "---")) {
      finish();
    } else if (section == 0 && absl::StartsWith(line, "case ")) {
      name = line.substr(5);
    } else if (section == 0 && absl::StartsWith(line, "do ")) {
      what = line.substr(3);
    } else if (line == "fusions" && section == 0) {
      section = 4;
    } else if (line == "in") {
      section = 1;
    } else if (line == "out") {
      section = 2;
    } else if (line == "same") {
      out = in;
      section = 3;
    } else if (section == 4) {
      fusions += line + "\n";
    } else if (section == 1 || section == 2) {
      (section == 1 ? in : out) += line + "\n";
    }
  }
  finish();
  return failed;
}

}  // namespace

int LiteTests(int argc, char** argv) {
  int passed = 0, failed = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      if (entry.path().extension() == ".case") failed += RunLiteFile(entry.path(), &passed);
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace smelt
