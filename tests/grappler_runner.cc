// smelt_case_tests grappler FILE...: the optimizer beside TensorFlow's Grappler.
//
//   case NAME
//   upstream FILE TEST        the tests of TensorFlow that say the same, any number
//   optimizers arithmetic     RewriterConfig.optimizers, each once; left out: the default list
//   config remapping: ON      more of the RewriterConfig, any number of lines
//   feeds x
//   fetches y
//   keep z
//   init a                    ops that initialize
//   session experimental { executor_type: "X" }    more of the ConfigProto around it
//   device NAME GPU architecture=7.0    a machine that the graph is for, any number
//   values SENTENCE           the graph must compute the same numbers afterwards, and why one asks
//   env NAME=VALUE            in the environment of TensorFlow and of smelt, any number
//   why SENTENCE              with the section `smelt`
//   by_hand SENTENCE          why `out` is what TensorFlow's sources say, and not written by it
//   in
//   ...graph text...
//   out
//   ...what TensorFlow makes of it (tools/make_grappler_cases.py writes it)...
//   smelt
//   ...what smelt makes of it, where it means to do otherwise...
//
// `same` instead of `out`: the graph as it was. `error TEXT` instead of `out`: TensorFlow refuses;
// without `smelt` smelt must, and say so. Nodes are compared by name, control inputs in any order,
// attributes that equal the definition's default as absent. Which nodes stand on one device counts,
// not by whose name they say so; where a node of a body came from (its debug information) does not.
// Functions count with their signatures and bodies. Nodes that nothing needs count where a pass
// that takes them away ran: TensorFlow's rules leave them to the pruner.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/text.h"
#include "smelt/optimize/meta_optimizer.h"
#include "smelt/wire/options/rewriter_options.h"
#include "tests/case_tests.h"
#include "tests/grappler_values.h"

namespace smelt {
namespace {

struct GrapplerCase {
  std::string name;
  std::map<std::string, std::string> fields;  // lines of one name are joined by blanks
  std::map<std::string, std::string> graphs;  // by section
  std::vector<std::string> devices;
  std::vector<std::pair<std::string, std::string>> environment;
};

constexpr absl::string_view kFields[] = {"upstream", "optimizers", "config", "session",
                                         "feeds",    "fetches",    "init",   "keep",
                                         "values",   "why",        "by_hand"};
constexpr absl::string_view kSections[] = {"in", "out", "smelt", "same"};

StatusOr<std::vector<GrapplerCase>> ReadCases(const std::string& path) {
  std::ifstream file(path);
  if (!file) return NotFound(path);
  std::vector<GrapplerCase> cases(1);
  std::string section;
  for (std::string line; std::getline(file, line);) {
    GrapplerCase& now = cases.back();
    const std::pair<std::string, std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (absl::StartsWith(line, "---")) {
      cases.emplace_back();
      section.clear();
    } else if (std::ranges::find(kSections, line) != std::end(kSections)) {
      section = line;
      now.graphs[section];
    } else if (words.first == "error") {
      section = words.first;
      now.graphs[section] = words.second;
    } else if (!section.empty()) {
      now.graphs[section] += line + "\n";
    } else if (words.first == "case") {
      now.name = words.second;
    } else if (words.first == "device") {
      now.devices.push_back(words.second);
    } else if (words.first == "env") {
      now.environment.push_back(absl::StrSplit(words.second, absl::MaxSplits('=', 1)));
    } else if (std::ranges::find(kFields, words.first) != std::end(kFields)) {
      std::string& text = now.fields[words.first];
      text += (text.empty() ? "" : " ") + words.second;
    } else {
      return InvalidArgument(path, ": ", line);
    }
  }
  for (GrapplerCase& c : cases) {
    if (c.graphs.contains("same")) c.graphs["out"] = c.graphs["in"];
    const bool refused = c.graphs.contains("error");
    const bool whole = c.graphs.contains("in") && (c.graphs.contains("out") || refused);
    if (c.name.empty() || !whole || c.graphs.contains("smelt") != c.fields.contains("why")) {
      return InvalidArgument(path, ": case '", c.name, "' lacks a part");
    }
  }
  return cases;
}

std::vector<std::string> Words(const GrapplerCase& c, const std::string& field) {
  const auto it = c.fields.find(field);
  if (it == c.fields.end()) return {};
  return absl::StrSplit(it->second, ' ', absl::SkipEmpty());
}

// Drops what means nothing: attributes that equal their default, how many values a constant states,
// notes.
void Normalize(Graph& graph) {
  for (Node* n : graph.Nodes()) {
    AttrMap attrs;
    // What TensorFlow found out of shapes, for the memory that oneDNN plans; its unknown sizes are
    // carried in `extra`.
    if (n->attrs().Find("_input_shapes") != nullptr) {
      n->EraseAttr("_input_shapes");
      n->extra.clear();
    }
    for (const auto& [name, attr] : n->attrs()) {
      const AttrDef* def = n->def() == nullptr ? nullptr : n->def()->FindAttr(name);
      const bool is_default = def != nullptr && def->default_value && *def->default_value == attr;
      if (!is_default) attrs.Set(name, attr);
    }
    if (const auto value = ConstantTensor(*n)) attrs.Set("value", *value);
    n->AttrsToChange() = std::move(attrs);
    n->extra.clear();
  }
}

// Gives all nodes of a group that must stand on one device the same statement of it.
void NormalizeColocation(Graph& graph) {
  std::map<std::string, std::string> leader;
  const auto find = [&](std::string name) {
    for (auto it = leader.find(name); it != leader.end(); it = leader.find(name)) name = it->second;
    return name;
  };
  for (Node* n : graph.Nodes()) {
    for (const std::string& c : n->Get<std::vector<std::string>>("_class", {})) {
      const std::string a = find(n->name());
      const std::string b = find(std::string(absl::StripPrefix(c, "loc:@")));
      if (a != b) leader[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<std::string, std::vector<Node*>> groups;
  for (Node* n : graph.Nodes()) groups[find(n->name())].push_back(n);
  for (auto& [name, nodes] : groups) {
    std::ranges::sort(nodes, {}, &Node::name);
    for (Node* n : nodes) {
      n->EraseAttr("_class");
      if (nodes.size() > 1) n->AttrsToChange().Set("_class", "with " + nodes[0]->name());
    }
  }
}

// "Add(x, y) {T=float} ^z" of a node, with its control inputs in the order of their names.
std::string Statement(Graph& graph, Node* n) {
  std::vector<std::string> waits;
  const std::vector<Node*> before = n->control_inputs();
  for (const Node* c : before) waits.push_back("^" + c->name());
  std::ranges::sort(waits);
  graph.SetControlInputs(n, {});
  const std::string text = PrintNode(*n);
  graph.SetControlInputs(n, before);
  return text.substr(text.find(" = ") + 3) + " " + absl::StrJoin(waits, " ");
}

std::string CanonicalNodes(Graph& graph) {
  Normalize(graph);
  NormalizeColocation(graph);
  std::vector<std::string> lines;
  for (Node* n : graph.Nodes()) lines.push_back(n->name() + " = " + Statement(graph, n));
  std::ranges::sort(lines);
  return absl::StrJoin(lines, "\n") + "\n";
}

std::string Canonical(Graph& graph) {
  std::string text = CanonicalNodes(graph);
  std::map<std::string, Function*> functions;
  for (Function* f : graph.library()->Functions()) functions[f->name()] = f;
  for (const auto& [name, f] : functions) {
    const std::vector<std::string> lines = absl::StrSplit(PrintFunction(*f), '\n');
    absl::StrAppend(&text, lines[0], "\n", CanonicalNodes(*f->body));
    for (const std::string& line : lines) {
      if (absl::StartsWith(line, "  return")) absl::StrAppend(&text, line, "\n");
    }
  }
  return text;
}

void PruneToItem(const GraphItem& item, Graph& graph) {
  std::vector<Node*> roots;
  for (const std::string& name : item.NodesToPreserve()) {
    if (Node* n = graph.Find(name)) roots.push_back(n);
  }
  graph.Prune(roots);
}

Status RunCase(const GrapplerCase& c) {
  MetaOptions options;
  std::string config = "min_graph_nodes: -1 fail_on_optimizer_errors: true ";
  if (const auto it = c.fields.find("config"); it != c.fields.end()) config += it->second;
  // Its passes would only get in the way of those that a case is about.
  if (!absl::StrContains(config, "tfg")) config += " disable_tfg_optimizer: true";
  if (const auto it = c.fields.find("session"); it != c.fields.end()) {
    absl::string_view session = it->second;
    const bool inside = absl::ConsumePrefix(&session, "graph_options {");
    config = absl::StrCat("graph_options { rewrite_options { ", config, inside ? " } " : " } } ",
                          session);
  }
  ASSIGN_OR_RETURN(options.config, ParseRewriterConfig(config));
  options.config.optimizers = Words(c, "optimizers");
  if (!options.config.optimizers.empty() && options.config.meta_optimizer_iterations == 0) {
    options.config.meta_optimizer_iterations = 1;
  }
  for (const std::string& text : c.devices) {
    ASSIGN_OR_RETURN(options.devices.emplace_back(), ParseDeviceProperties(text));
  }
  GraphItem item;
  item.id = "item";
  ASSIGN_OR_RETURN(item.graph, ParseGraph(c.graphs.at("in")));
  item.feeds = Words(c, "feeds");
  item.fetches = Words(c, "fetches");
  item.init_ops = Words(c, "init");
  item.keep_ops = Words(c, "keep");
  const auto optimized = OptimizeItem(item, options);
  if (c.graphs.contains("error") && !c.graphs.contains("smelt")) {
    const std::string& text = c.graphs.at("error");
    if (!optimized.ok() && absl::StrContains(optimized.status().message(), text)) return OkStatus();
    return Internal("wanted the error: ", text, "\ngot: ", optimized.status().ToString());
  }
  ASSIGN_OR_RETURN(const OptimizationReport report, optimized);
  if (!report.unknown_optimizers.empty()) {
    return NotFound("no optimizer ", absl::StrJoin(report.unknown_optimizers, ", "));
  }
  if (c.fields.contains("values")) {
    ASSIGN_OR_RETURN(const auto before, ParseGraph(c.graphs.at("in")));
    RETURN_IF_ERROR(HaveSameValues(*before, *item.graph, item.feeds, item.fetches));
  }
  const std::vector<std::string> passes = Words(c, "optimizers");
  const bool prunes = passes.empty() || std::ranges::find(passes, "pruning") != passes.end();
  const auto text = [&](Graph& graph) {
    if (!prunes && !item.fetches.empty()) PruneToItem(item, graph);
    return Canonical(graph);
  };
  const std::string got = text(*item.graph);
  std::string out = "an error";
  if (c.graphs.contains("out")) {
    ASSIGN_OR_RETURN(auto theirs, ParseGraph(c.graphs.at("out")));
    out = text(*theirs);
  }
  if (!c.graphs.contains("smelt")) {
    return got == out ? OkStatus() : Internal("wanted:\n", out, "got:\n", got);
  }
  ASSIGN_OR_RETURN(auto ours, ParseGraph(c.graphs.at("smelt")));
  const std::string want = text(*ours);
  if (got != want) return Internal("wanted:\n", want, "got:\n", got);
  return got == out ? Internal("TensorFlow does the same") : OkStatus();
}

}  // namespace

int GrapplerTests(int argc, char** argv) {
  int passed = 0, failed = 0;
  for (int i = 1; i < argc; ++i) {
    const auto cases = ReadCases(argv[i]);
    if (!cases.ok()) {
      std::printf("FAILED %s\n", cases.status().ToString().c_str());
      return 1;
    }
    for (const GrapplerCase& c : *cases) {
      for (const auto& [name, value] : c.environment) setenv(name.c_str(), value.c_str(), 1);
      const Status status = RunCase(c);
      for (const auto& [name, value] : c.environment) unsetenv(name.c_str());
      status.ok() ? ++passed : ++failed;
      if (!status.ok()) std::printf("FAILED %s: %s\n", c.name.c_str(), status.ToString().c_str());
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace smelt
