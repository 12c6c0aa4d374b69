#include "smelt/optimize/history.h"

#include <algorithm>

#include "smelt/analysis/cost.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/graph/text.h"

namespace smelt {
namespace {

// Who wants more looks at the graph itself.
constexpr size_t kMostBytesOfAttr = 400;
constexpr size_t kMostAttrs = 64, kMostOutputs = 64;
constexpr int64_t kMostValues = 16;

bool IsMark(absl::string_view attr) { return attr == "_root" || attr == "_fed"; }

std::string Cut(std::string text) {
  if (text.size() <= kMostBytesOfAttr) return text;
  size_t end = kMostBytesOfAttr;
  // Between characters of UTF-8.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "…");
}

std::string ShapedType(Dtype dtype, const PartialShape& shape) {
  return absl::StrCat(DtypeName(dtype), shape.known_rank() ? shape.ToString() : "(?)");
}

// As the text form has it, without the values of large tensors and the ends of long texts.
std::string ShortAttr(const Attr& attr) {
  if (const auto* tensor = attr.get<std::shared_ptr<const TensorValue>>()) {
    const TensorValue& t = **tensor;
    const bool small =
        t.wire.empty() && (!t.values.valid() || t.values.num_elements() <= kMostValues);
    if (small) return Cut(PrintTensor(t));
    return absl::StrCat(ShapedType(t.dtype, t.shape), "{…}");
  }
  if (const auto* text = attr.get<std::string>(); text && text->size() > kMostBytesOfAttr) {
    return absl::StrCat(Cut(PrintAttr(Attr(text->substr(0, kMostBytesOfAttr)))), "… ", text->size(),
                        " bytes");
  }
  return Cut(PrintAttr(attr));
}

int64_t NumbersOf(const OptimizationHistory::Node& n) {
  return static_cast<int64_t>(8 + n.attrs.size() + n.outputs.size() + 2 * n.inputs.size());
}

}  // namespace

bool OptimizationHistory::Node::SameAs(const Node& other) const {
  return op == other.op && device == other.device && attrs == other.attrs && inputs == other.inputs;
}

int OptimizationHistory::Text(absl::string_view text) {
  const auto [it, added] =
      text_ids_.try_emplace(std::string(text), static_cast<int>(texts_.size()));
  if (added) texts_.emplace_back(text);
  return it->second;
}

OptimizationHistory::Node OptimizationHistory::VersionOf(const smelt::Node& node,
                                                         const Graph& graph,
                                                         const ShapeTable& shapes) {
  Node out;
  out.name = Text(node.name());
  out.op = Text(node.op());
  out.device = Text(node.device);
  out.cost = CostModel::OfNodeAlone(node, shapes);
  for (const auto& [name, attr] : node.attrs()) {
    if (IsMark(name)) continue;
    if (out.attrs.size() == kMostAttrs) {
      out.attrs.push_back(Text(absl::StrCat("… ", node.attrs().size(), " in all")));
      break;
    }
    out.attrs.push_back(Text(absl::StrCat(Cut(name), "=", ShortAttr(attr))));
  }
  for (int p = 0; p < node.num_outputs() && out.outputs.size() < kMostOutputs; ++p) {
    const PartialShape& shape = shapes.of({const_cast<smelt::Node*>(&node), p});
    out.outputs.push_back(Text(Cut(ShapedType(node.output_types[static_cast<size_t>(p)], shape))));
  }
  for (const Endpoint& e : node.inputs()) {
    if (e.node != nullptr) out.inputs.emplace_back(Text(e.node->name()), e.port);
  }
  const size_t data = out.inputs.size();
  for (const smelt::Node* c : node.control_inputs()) out.inputs.emplace_back(Text(c->name()), -1);
  std::sort(out.inputs.begin() + static_cast<std::ptrdiff_t>(data), out.inputs.end(),
            [&](const auto& a, const auto& b) {
              return texts_[static_cast<size_t>(a.first)] < texts_[static_cast<size_t>(b.first)];
            });
  ForEachCallee(*graph.library(), node, [&](absl::string_view callee) {
    if (graph.library()->Find(callee) == nullptr) return;
    const int id = Text(callee);
    if (std::ranges::find(out.calls, id) == out.calls.end() && out.calls.size() < kMostAttrs) {
      out.calls.push_back(id);
    }
  });
  return out;
}

std::vector<OptimizationHistory::Node> OptimizationHistory::Snapshot(const Graph& graph) {
  const ShapeTable shapes = InferSymbolicShapesBeside(
      graph, XlaShapeRules(), [](const smelt::Node&) { return false; }, /*into_functions=*/false);
  const auto order = graph.TopologicalOrder();
  std::vector<Node> out;
  out.reserve(static_cast<size_t>(graph.num_nodes()));
  for (const smelt::Node* n : order.ok() ? *order : graph.Nodes()) {
    out.push_back(VersionOf(*n, graph, shapes));
  }
  return out;
}

OptimizationHistory::State& OptimizationHistory::StateOf(absl::string_view name) {
  const auto [it, added] = states_.try_emplace(std::string(name));
  if (added) {
    it->second.index = graphs_.size();
    graphs_.emplace_back().name = std::string(name);
  }
  return it->second;
}

void OptimizationHistory::Begin(absl::string_view name, const Graph& graph) {
  State& state = StateOf(name);
  std::vector<Node> nodes = Snapshot(graph);
  state.shown.clear();
  for (const Node& n : nodes) state.shown.emplace(n.name, n);
  graphs_[state.index].before = std::move(nodes);
  if (!name.empty()) return;
  for (const Function* f : graph.library()->Functions()) {
    if (f->body != nullptr) Begin(f->name(), *f->body);
  }
}

void OptimizationHistory::Differences(std::vector<Node> nodes, State& state, Step& step) {
  Nodes now;
  now.reserve(nodes.size());
  for (Node& n : nodes) {
    const auto old = state.shown.find(n.name);
    if (old == state.shown.end() || !n.SameAs(old->second)) step.put.push_back(n);
    now.emplace(n.name, std::move(n));
  }
  for (const auto& [name, n] : state.shown) {
    if (!now.contains(name)) step.gone.push_back(name);
  }
  std::ranges::sort(step.gone);
  state.shown = std::move(now);
}

void OptimizationHistory::Add(const PassRun& run, const Graph& graph) {
  State& state = StateOf(run.graph);
  std::vector<Step>& steps = graphs_[state.index].steps;
  Step& step = steps.emplace_back();
  step.pass = std::string(run.pass);
  step.outcome = run.outcome;
  step.time = run.time;
  step.nodes = run.nodes_after;
  step.why_undone = run.why_undone;
  // Attributes may have changed where the graph's version did not.
  if (run.outcome == PassRun::Outcome::kSkipped) return;
  std::vector<Node> nodes = Snapshot(graph);
  if (left_ <= 0) {
    step.kept = run.outcome == PassRun::Outcome::kUnchanged;
    state.now = std::move(nodes);
    state.last = steps.size() - 1;
    state.behind = true;
    return;
  }
  Differences(std::move(nodes), state, step);
  for (const Node& n : step.put) left_ -= NumbersOf(n);
  left_ -= static_cast<int64_t>(step.gone.size());
}

void OptimizationHistory::End() {
  for (auto& [name, state] : states_) {
    if (!state.behind) continue;
    Step& step = graphs_[state.index].steps[state.last];
    Differences(std::exchange(state.now, {}), state, step);
    step.kept = true;
    state.behind = false;
  }
}

}  // namespace smelt
