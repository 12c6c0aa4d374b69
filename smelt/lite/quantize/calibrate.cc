#include "smelt/lite/quantize/calibrate.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/match.h"
#include "smelt/lite/lower/lowering.h"
#include "smelt/runtime/session.h"

namespace smelt {
namespace {

bool IsMeasured(const Node& n, int port) {
  const bool made = n.Is("_Arg") || absl::StartsWith(n.op(), "tfl.");
  return made && n.output_types[static_cast<size_t>(port)] == Dtype::kFloat;
}

// The graph as one that a session runs: arguments are placeholders, results are not asked for, and
// each measured tensor's least and greatest element stand in two vectors.
struct Measured {
  std::shared_ptr<Graph> graph;
  std::vector<std::string> feeds;
  std::vector<std::string> names;                      // of the measured tensors
  std::vector<std::pair<const Node*, int>> endpoints;  // in the graph that was given
};

StatusOr<Node*> AddNode(Graph& graph, absl::string_view name, OpName op,
                        std::vector<Endpoint> inputs, AttrMap attrs) {
  return graph.Add(name, op.text(), inputs, std::move(attrs));
}

StatusOr<Measured> Measure(const Graph& from) {
  Measured out;
  out.graph = std::make_shared<Graph>(from.library());
  Graph& g = *out.graph;
  ASSIGN_OR_RETURN(const NodeCopies copies, g.CopyFrom(from, ""));
  const Endpoint flat = {g.AddConst("measure/flat", Tensor::Vector<int32_t>({-1})), 0};
  const Endpoint axis = {g.AddConst("measure/axis", Tensor::Vector<int32_t>({0})), 0};
  std::vector<Endpoint> least, greatest;
  for (const Node* n : from.Nodes()) {
    for (int port = 0; port < n->num_outputs(); ++port) {
      if (!IsMeasured(*n, port)) continue;
      const Endpoint e = {copies.Of(n), port};
      AttrMap attrs;
      attrs.Set("T", Dtype::kFloat);
      ASSIGN_OR_RETURN(Node * row, AddNode(g, "measure/row", "Reshape", {e, flat}, attrs));
      ASSIGN_OR_RETURN(Node * low, AddNode(g, "measure/min", "Min", {{row, 0}, axis}, attrs));
      ASSIGN_OR_RETURN(Node * high, AddNode(g, "measure/max", "Max", {{row, 0}, axis}, attrs));
      least.push_back({low, 0});
      greatest.push_back({high, 0});
      out.names.push_back(n->name());
      out.endpoints.emplace_back(n, port);
    }
  }
  AttrMap attrs;
  attrs.Set("T", Dtype::kFloat);
  attrs.Set("N", static_cast<int64_t>(least.size()));
  RETURN_IF_ERROR(AddNode(g, "measure/all_min", "Pack", least, attrs).status());
  RETURN_IF_ERROR(AddNode(g, "measure/all_max", "Pack", greatest, attrs).status());
  LiteResources resources;
  RETURN_IF_ERROR(Lower(g, "main", resources));
  std::vector<Node*> args;
  for (Node* n : g.Nodes()) {
    if (n->Is("_Retval")) {
      g.Remove(n);
    } else if (n->Is("_Arg")) {
      args.push_back(n);
    }
  }
  out.feeds.resize(args.size());
  for (Node* arg : args) {
    AttrMap placeholder;
    placeholder.Set("dtype", arg->output_types[0]);
    placeholder.Set("shape", PartialShape::Unknown());
    ASSIGN_OR_RETURN(Node * fed,
                     AddNode(g, "measure/feed", "Placeholder", {}, std::move(placeholder)));
    out.feeds[static_cast<size_t>(arg->Int("index"))] = fed->name();
    g.ReplaceAllUses({arg, 0}, {fed, 0});
    g.ReplaceControlUses(arg, nullptr);
    g.Remove(arg);
  }
  return out;
}

}  // namespace

StatusOr<LiteRanges> Calibrate(const Graph& graph, std::span<const std::vector<Tensor>> samples) {
  if (samples.empty()) return InvalidArgument("there are no samples to calibrate with");
  ASSIGN_OR_RETURN(const Measured m, Measure(graph));
  LiteRanges out;
  if (m.endpoints.empty()) return out;
  SessionOptions options;
  options.compile = false;
  Session session(m.graph, options);
  for (size_t s = 0; s < samples.size(); ++s) {
    if (samples[s].size() != m.feeds.size()) {
      return InvalidArgument("sample ", s, " has ", samples[s].size(), " inputs, not ",
                             m.feeds.size());
    }
    std::vector<std::pair<std::string, Tensor>> feeds;
    for (size_t i = 0; i < m.feeds.size(); ++i) feeds.emplace_back(m.feeds[i], samples[s][i]);
    auto got = session.Run(feeds, {"measure/all_min", "measure/all_max"}, {});
    if (!got.ok()) return Prefix(got.status(), absl::StrCat("sample ", s, ": "));
    for (size_t i = 0; i < m.endpoints.size(); ++i) {
      const float low = (*got)[0].data<float>()[i], high = (*got)[1].data<float>()[i];
      // A tensor without elements has the range of nothing.
      if (low > high) continue;
      if (!std::isfinite(low) || !std::isfinite(high)) {
        return InvalidArgument("sample ", s, ": '", m.names[i], "' is not finite");
      }
      const auto [it, added] = out.try_emplace(m.endpoints[i], LiteRange{low, high});
      if (added) continue;
      it->second.min = std::min(it->second.min, low);
      it->second.max = std::max(it->second.max, high);
    }
  }
  return out;
}

}  // namespace smelt
