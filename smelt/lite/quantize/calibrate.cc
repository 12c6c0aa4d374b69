#include "smelt/lite/quantize/calibrate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "absl/strings/match.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/quantization.h"

namespace smelt {
namespace {

bool IsMeasured(const Node& n, int port) {
  const bool made = n.Is("_Arg") || absl::StartsWith(n.op(), "tfl.");
  return made && n.output_types[static_cast<size_t>(port)] == Dtype::kFloat;
}

// The least and the greatest element of each measured tensor of a graph, in two vectors.
struct RangeVectors {
  Endpoint least, greatest;
  std::vector<std::pair<const Node*, int>> endpoints;  // what was measured, in the graph it is of
};

// The main graph with what it is asked for.
struct Measured {
  std::shared_ptr<Graph> graph;
  RangeVectors ranges;
  std::vector<const Node*> lstms;
  // `ranges`, where there are any; the ranges of each of `lstms`; the graph's results, which bodies
  // run for.
  std::vector<Endpoint> asked;
};

// A body keeps its ranges of all turns in variables.
struct BodyRanges {
  std::string function;
  RangeVectors ranges;
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

AttrMap OfType(Dtype type) {
  AttrMap attrs;
  attrs.Set("T", type);
  return attrs;
}

StatusOr<Endpoint> Packed(Graph& g, absl::string_view name, const std::vector<Endpoint>& values,
                          Dtype type = Dtype::kFloat) {
  AttrMap attrs = OfType(type);
  attrs.Set("N", static_cast<int64_t>(values.size()));
  ASSIGN_OR_RETURN(Node * n, AddNode(g, name, "Pack", values, std::move(attrs)));
  return Endpoint{n, 0};
}

// What is padded for maxima alone, by numbers below all others: any number of its scale that is no
// greater does as well, so that the padding counts for no range.
bool PadsBelowMaxima(const Node& n) {
  if (!n.Is("tfl.padv2") || n.NumUses(0) == 0) return false;
  const auto reads_maxima = [](const Use& use) { return use.node->Is("tfl.max_pool_2d"); };
  if (!std::ranges::all_of(n.uses(), reads_maxima)) return false;
  const TensorValue* stated = StatedConstant(*n.input(2).node);
  if (stated == nullptr || stated->dtype != Dtype::kFloat) return false;
  const StatusOr<Tensor> value = stated->Materialize();
  return value.ok() && value->num_elements() == 1 && value->flat<float>()[0] < -1e30f;
}

// `g` is a copy of `from`, whose nodes have their names. `finite`: a vector more, which tells of
// each tensor whether all of its elements are; the least of numbers and NaN may be a number.
StatusOr<RangeVectors> AddRanges(Graph& g, const Graph& from, Endpoint* finite) {
  const Endpoint flat = {g.AddConst("measure/flat", Tensor::Vector<int32_t>({-1})), 0};
  const Endpoint axis = {g.AddConst("measure/axis", Tensor::Vector<int32_t>({0})), 0};
  const AttrMap attrs = OfType(Dtype::kFloat);
  RangeVectors out;
  std::vector<Endpoint> least, greatest, all_finite;
  for (const Node* n : from.Nodes()) {
    for (int port = 0; port < n->num_outputs(); ++port) {
      // Of a loop's variables conditions read few.
      const bool unread = finite != nullptr && n->NumUses(port) == 0;
      if (!IsMeasured(*n, port) || unread) continue;
      Endpoint e = {g.Find(n->name()), port};
      if (PadsBelowMaxima(*n)) e = e.node->input(0);
      ASSIGN_OR_RETURN(Node * row, AddNode(g, "measure/row", "Reshape", {e, flat}, attrs));
      ASSIGN_OR_RETURN(Node * low, AddNode(g, "measure/min", "Min", {{row, 0}, axis}, attrs));
      ASSIGN_OR_RETURN(Node * high, AddNode(g, "measure/max", "Max", {{row, 0}, axis}, attrs));
      least.push_back({low, 0});
      greatest.push_back({high, 0});
      out.endpoints.emplace_back(n, port);
      if (finite == nullptr) continue;
      ASSIGN_OR_RETURN(Node * each, AddNode(g, "measure/finite", "IsFinite", {{row, 0}}, attrs));
      ASSIGN_OR_RETURN(Node * all, AddNode(g, "measure/all", "All", {{each, 0}, axis}, {}));
      all_finite.push_back({all, 0});
    }
  }
  if (out.endpoints.empty()) return out;
  ASSIGN_OR_RETURN(out.least, Packed(g, "measure/all_min", least));
  ASSIGN_OR_RETURN(out.greatest, Packed(g, "measure/all_max", greatest));
  if (finite != nullptr) {
    ASSIGN_OR_RETURN(*finite, Packed(g, "measure/all_finite", all_finite, Dtype::kBool));
  }
  return out;
}

StatusOr<Measured> Measure(const LiteGraphs& graphs, std::shared_ptr<FunctionLibrary> library) {
  const Graph& from = *graphs.main;
  Measured out;
  out.graph = std::make_shared<Graph>(std::move(library));
  Graph& g = *out.graph;
  ASSIGN_OR_RETURN(const NodeCopies copies, g.CopyFrom(from, ""));
  ASSIGN_OR_RETURN(out.ranges, AddRanges(g, from, nullptr));
  if (!out.ranges.endpoints.empty()) out.asked = {out.ranges.least, out.ranges.greatest};
  for (const Node* n : from.Nodes()) {
    if (!IsLstm(*n)) continue;
    out.lstms.push_back(n);
    RETURN_IF_ERROR(GiveRanges(g, copies.Of(n)));
    out.asked.push_back({copies.Of(n), 1});
  }
  for (const Node* n : from.Nodes()) {
    if (n->Is("_Retval") && !graphs.bodies.empty()) {
      out.asked.push_back({copies.Of(n->input(0).node), n->input(0).port});
    }
  }
  return out;
}

// What the variables of a body are.
struct RangeVariable {
  const char* name;
  Dtype type;
  OpName joined;
};
constexpr RangeVariable kRangeVariables[] = {
    {"least", Dtype::kFloat, "Minimum"},
    {"greatest", Dtype::kFloat, "Maximum"},
    {"finite", Dtype::kBool, "LogicalAnd"},
};
constexpr size_t kVariables = std::size(kRangeVariables);

// How the variable `i` begins before each sample: with the range of nothing.
StatusOr<Tensor> RangeBegin(size_t i, int64_t count) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(kRangeVariables[i].type, Shape({count})));
  if (i == 2) {
    std::ranges::fill(out.flat<bool>(), true);
  } else {
    std::ranges::fill(out.flat<float>(), i == 0 ? kInfinity : -kInfinity);
  }
  return out;
}

std::string VariableName(const BodyRanges& body, const RangeVariable& v) {
  return absl::StrCat("measure/", body.function, "/", v.name);
}

Status Keep(Graph& g, const std::string& name, const RangeVariable& by, Endpoint value) {
  AttrMap handle, type;
  handle.Set("shared_name", name);
  handle.Set("dtype", by.type);
  handle.Set("shape", PartialShape::Unknown());
  type.Set("dtype", by.type);
  ASSIGN_OR_RETURN(Node * v, AddNode(g, "measure/variable", "VarHandleOp", {}, std::move(handle)));
  ASSIGN_OR_RETURN(Node * before, AddNode(g, "measure/read", "ReadVariableOp", {{v, 0}}, type));
  AttrMap attrs;
  if (by.type == Dtype::kFloat) attrs = OfType(by.type);
  ASSIGN_OR_RETURN(Node * now,
                   AddNode(g, "measure/joined", by.joined, {{before, 0}, value}, std::move(attrs)));
  return AddNode(g, "measure/assign", "AssignVariableOp", {{v, 0}, {now, 0}}, type).status();
}

StatusOr<BodyRanges> MeasureBody(const LiteBody& body, Graph& copy) {
  BodyRanges out;
  out.function = body.function;
  Endpoint values[kVariables];
  ASSIGN_OR_RETURN(out.ranges, AddRanges(copy, *body.graph, &values[2]));
  if (out.ranges.endpoints.empty()) return out;
  values[0] = out.ranges.least;
  values[1] = out.ranges.greatest;
  for (size_t i = 0; i < kVariables; ++i) {
    const RangeVariable& v = kRangeVariables[i];
    RETURN_IF_ERROR(Keep(copy, VariableName(out, v), v, values[i]));
  }
  return out;
}

class Calibration {
 public:
  explicit Calibration(const LiteGraphs& graphs) : graphs_(graphs) {}

  Status Prepare() {
    const auto library = LibraryFor(graphs_);
    const auto measure = [&](const LiteBody& body, Graph& copy) -> Status {
      ASSIGN_OR_RETURN(BodyRanges ranges, MeasureBody(body, copy));
      if (!ranges.ranges.endpoints.empty()) bodies_.push_back(std::move(ranges));
      return OkStatus();
    };
    RETURN_IF_ERROR(AddLowered(graphs_, "", library, measure));
    ASSIGN_OR_RETURN(main_, Measure(graphs_, library));
    if (main_.asked.empty()) return OkStatus();
    ASSIGN_OR_RETURN(
        run_, SampleRun::Make(std::move(main_.graph), main_.asked, SampleRun::States::kKept));
    for (const BodyRanges& body : bodies_) {
      for (const RangeVariable& v : kRangeVariables) {
        ASSIGN_OR_RETURN(auto variable, run_->AddVariable(VariableName(body, v), v.type));
        variables_.push_back(std::move(variable));
      }
    }
    return OkStatus();
  }

  Status Add(const LiteSample& sample) {
    if (run_ == nullptr) return OkStatus();
    for (size_t i = 0; i < variables_.size(); ++i) {
      const size_t count = bodies_[i / kVariables].ranges.endpoints.size();
      ASSIGN_OR_RETURN(Tensor begin, RangeBegin(i % kVariables, static_cast<int64_t>(count)));
      variables_[i]->Assign(std::move(begin));
    }
    ASSIGN_OR_RETURN(const auto got, run_->Run(sample));
    size_t at = 0;
    if (const auto& measured = main_.ranges.endpoints; !measured.empty()) {
      at = 2;
      RETURN_IF_ERROR(Widen(measured, got[0], got[1], nullptr));
    }
    for (const Node* n : main_.lstms) {
      const auto* ranges = got[at++].data<float>();
      for (int k = 0; k <= kLstmCell; ++k) {
        RETURN_IF_ERROR(Widen({n, kLstmRanges + k}, ranges[2 * k], ranges[2 * k + 1]));
      }
    }
    for (size_t i = 0; i < bodies_.size(); ++i) {
      const auto* values = &variables_[kVariables * i];
      const Tensor finite = values[2]->Read();
      const Status added =
          Widen(bodies_[i].ranges.endpoints, values[0]->Read(), values[1]->Read(), &finite);
      if (!added.ok()) return Prefix(added, absl::StrCat("function '", bodies_[i].function, "': "));
    }
    return OkStatus();
  }

  LiteRanges Take() { return std::move(ranges_); }

 private:
  Status Widen(const std::vector<std::pair<const Node*, int>>& measured, const Tensor& least,
               const Tensor& greatest, const Tensor* finite) {
    for (size_t i = 0; i < measured.size(); ++i) {
      const bool is_odd = finite != nullptr && !finite->data<bool>()[i];
      const float low = is_odd ? std::numeric_limits<float>::quiet_NaN() : least.data<float>()[i];
      RETURN_IF_ERROR(Widen(measured[i], low, greatest.data<float>()[i]));
    }
    return OkStatus();
  }

  // A tensor without elements has the range of nothing: its least is greater than its greatest.
  Status Widen(std::pair<const Node*, int> key, float low, float high) {
    if (low > high) return OkStatus();
    // Masks have no least number, which what they are for decides about.
    if (!(low <= std::numeric_limits<float>::max()) || !std::isfinite(high)) {
      return InvalidArgument("'", key.first->name(), "' is not finite");
    }
    const auto [it, added] = ranges_.try_emplace(key, LiteRange{low, high});
    if (added) return OkStatus();
    it->second.min = std::min(it->second.min, low);
    it->second.max = std::max(it->second.max, high);
    return OkStatus();
  }

  const LiteGraphs& graphs_;
  Measured main_;
  std::vector<BodyRanges> bodies_;
  std::unique_ptr<SampleRun> run_;
  std::vector<std::shared_ptr<Variable>> variables_;  // those of each body in turn
  LiteRanges ranges_;
};

}  // namespace

StatusOr<LiteRanges> Calibrate(const LiteGraphs& graphs, std::span<const LiteSample> samples) {
  if (samples.empty()) return InvalidArgument("there are no samples to calibrate with");
  Calibration calibration(graphs);
  RETURN_IF_ERROR(calibration.Prepare());
  for (size_t s = 0; s < samples.size(); ++s) {
    const Status added = calibration.Add(samples[s]);
    if (!added.ok()) return Prefix(added, absl::StrCat("sample ", s, ": "));
  }
  return calibration.Take();
}

Status CheckRanges(const Graph& graph, const LiteRanges& ranges) {
  for (const Node* n : graph.Nodes()) {
    for (int port = 0; port < n->num_outputs(); ++port) {
      const auto known = ranges.find({n, port});
      if (known == ranges.end() || std::isfinite(known->second.min)) continue;
      return InvalidArgument("'", n->name(), "' is not finite");
    }
  }
  return OkStatus();
}

void StateRanges(Graph& graph, const LiteRanges& ranges) {
  constexpr int kCellState = 19;
  for (Node* n : graph.Nodes()) {
    for (int port = 0; port < n->num_outputs(); ++port) {
      const auto range = ranges.find({n, port});
      if (range == ranges.end()) continue;
      SetSeenRange(n->AttrsToChange(), port, range->second.min, range->second.max);
    }
    for (int i = 0; i <= kLstmHidden; ++i) {
      const auto range = ranges.find({n, kLstmRanges + i});
      if (range == ranges.end()) continue;
      SetSeenRange(n->AttrsToChange(), kLstmRanges + i, range->second.min, range->second.max);
    }
    const auto cell = ranges.find({n, kLstmRanges + kLstmCell});
    if (cell == ranges.end()) continue;
    SetSeenRange(n->input(kCellState).node->AttrsToChange(), 0, cell->second.min, cell->second.max);
  }
}

}  // namespace smelt
