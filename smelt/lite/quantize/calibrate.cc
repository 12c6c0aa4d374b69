#include "smelt/lite/quantize/calibrate.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/match.h"
#include "smelt/lite/common/attributes.h"

namespace smelt {
namespace {

bool IsMeasured(const Node& n, int port) {
  const bool made = n.Is("_Arg") || absl::StartsWith(n.op(), "tfl.");
  return made && n.output_types[static_cast<size_t>(port)] == Dtype::kFloat;
}

// The graph with the least and the greatest element of each measured tensor in two vectors.
struct Measured {
  std::shared_ptr<Graph> graph;
  std::vector<Endpoint> vectors;  // least, greatest, and the ranges of each of `lstms`
  std::vector<const Node*> lstms;
  std::vector<std::string> names;                      // of the measured tensors
  std::vector<std::pair<const Node*, int>> endpoints;  // in the graph that was given
};

StatusOr<Node*> AddNode(Graph& graph, absl::string_view name, OpName op,
                        std::vector<Endpoint> inputs, AttrMap attrs) {
  return graph.Add(name, op.text(), inputs, std::move(attrs));
}

bool IsLstm(const Node& n) {
  if (n.num_inputs() < 20 || n.num_outputs() != 1 || n.output_types[0] != Dtype::kFloat) {
    return false;
  }
  return n.Is("tfl.unidirectional_sequence_lstm") ||
         (n.Is("tfl.lstm") && n.String("kernel_type", "FULL") == "FULL");
}

// The operator gives what it has in between as output 1.
Status GiveRanges(Graph& graph, Node* n) {
  std::vector<PartialShape> shapes = {StatedShape({n, 0})};
  shapes.emplace_back(Shape({kLstmCell + 1, 2}));
  n->AttrsToChange().Set("_gives_ranges", true);
  n->AttrsToChange().Set("Tout", DtypeVector{Dtype::kFloat, Dtype::kFloat});
  n->AttrsToChange().Set(kOutputShapes, std::move(shapes));
  return graph.ResolveTypes(n);
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
    if (IsLstm(*n)) out.lstms.push_back(n);
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
  ASSIGN_OR_RETURN(Node * all_min, AddNode(g, "measure/all_min", "Pack", least, attrs));
  ASSIGN_OR_RETURN(Node * all_max, AddNode(g, "measure/all_max", "Pack", greatest, attrs));
  out.vectors = {{all_min, 0}, {all_max, 0}};
  for (const Node* n : out.lstms) {
    RETURN_IF_ERROR(GiveRanges(g, copies.Of(n)));
    out.vectors.push_back({copies.Of(n), 1});
  }
  return out;
}

// A tensor without elements has the range of nothing: its least is greater than its greatest.
Status Widen(LiteRanges& ranges, std::pair<const Node*, int> key, float low, float high) {
  if (low > high) return OkStatus();
  if (!std::isfinite(low) || !std::isfinite(high)) return InvalidArgument("is not finite");
  const auto [it, added] = ranges.try_emplace(key, LiteRange{low, high});
  if (added) return OkStatus();
  it->second.min = std::min(it->second.min, low);
  it->second.max = std::max(it->second.max, high);
  return OkStatus();
}

}  // namespace

StatusOr<LiteRanges> Calibrate(const Graph& graph, std::span<const LiteSample> samples) {
  if (samples.empty()) return InvalidArgument("there are no samples to calibrate with");
  ASSIGN_OR_RETURN(Measured m, Measure(graph));
  LiteRanges out;
  if (m.endpoints.empty()) return out;
  ASSIGN_OR_RETURN(const auto run,
                   SampleRun::Make(std::move(m.graph), m.vectors, SampleRun::States::kKept));
  for (size_t s = 0; s < samples.size(); ++s) {
    auto got = run->Run(samples[s]);
    if (!got.ok()) return Prefix(got.status(), absl::StrCat("sample ", s, ": "));
    for (size_t i = 0; i < m.endpoints.size(); ++i) {
      const Status added =
          Widen(out, m.endpoints[i], (*got)[0].data<float>()[i], (*got)[1].data<float>()[i]);
      if (!added.ok()) return Prefix(added, absl::StrCat("sample ", s, ": '", m.names[i], "' "));
    }
    for (size_t i = 0; i < m.lstms.size(); ++i) {
      const auto* ranges = (*got)[2 + i].data<float>();
      for (int k = 0; k <= kLstmCell; ++k) {
        const Status added =
            Widen(out, {m.lstms[i], kLstmRanges + k}, ranges[2 * k], ranges[2 * k + 1]);
        if (!added.ok()) {
          return Prefix(added, absl::StrCat("sample ", s, ": '", m.lstms[i]->name(), "' "));
        }
      }
    }
  }
  return out;
}

}  // namespace smelt
