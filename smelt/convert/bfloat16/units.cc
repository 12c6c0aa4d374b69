// The units of a graph: which of its float32 tensors may be bfloat16 together.
#include <algorithm>

#include "smelt/analysis/captured.h"
#include "smelt/convert/bfloat16/bfloat16.h"

namespace smelt {
namespace {

constexpr Bf16Op kCastOut = {"Cast", Bf16Class::kPassing, Bf16Inputs::kPlain, "DstT", ""};
constexpr Bf16Op kCastIn = {"Cast", Bf16Class::kPassing, Bf16Inputs::kPlain, "SrcT", ""};
constexpr Bf16Op kCastToWhole = {"Cast", Bf16Class::kKeep, Bf16Inputs::kDecision, "SrcT",
                                 "an index or a decision comes of it"};
constexpr Bf16Op kCastToBool = {"Cast", Bf16Class::kKeep, Bf16Inputs::kExact, "SrcT",
                                "a comparison"};
constexpr Bf16Op kCastAway = {"Cast", Bf16Class::kKeep, Bf16Inputs::kPlain, "SrcT",
                              "casts to another floating type"};

const Bf16Op* RowOf(const Node& n) {
  if (!n.Is("Cast")) return FindBf16Op(n.op_name());
  const Dtype from = n.Type("SrcT"), to = n.Type("DstT");
  if (to == Dtype::kFloat) return from == Dtype::kFloat ? nullptr : &kCastOut;
  if (from != Dtype::kFloat) return nullptr;
  if (to == Dtype::kBool) return &kCastToBool;
  if (to == Dtype::kBfloat16) return &kCastIn;
  return IsFloating(to) || IsComplex(to) ? &kCastAway : &kCastToWhole;
}

// Flat positions of the tensors that the type attribute governs.
std::vector<int> Governed(const std::vector<ArgDef>& args, const Node& n, absl::string_view attr) {
  std::vector<int> out;
  int at = 0;
  for (const ArgDef& a : args) {
    auto arity = ArgArity(a, *n.def(), n.attrs());
    if (!arity.ok()) return {};
    for (int64_t i = 0; i < *arity; ++i, ++at) {
      if (a.type_attr == attr) out.push_back(at);
    }
  }
  return out;
}

bool Allows(const Node& n, absl::string_view attr) {
  const AttrDef* def = n.def()->FindAttr(attr);
  if (def == nullptr || def->type != "type") return false;
  return def->allowed_types.empty() ||
         std::ranges::find(def->allowed_types, Dtype::kBfloat16) != def->allowed_types.end();
}

class UnitMaker {
 public:
  UnitMaker(FloatGraph& g, const Bf16Filter& filter, const CarriedElements& carried)
      : g_(g), filter_(filter), carried_(carried) {}

  void Add(Node* n) {
    if (n->def() == nullptr || IsFloatSource(*n) || g_.outside.contains(n)) return;
    if (n->Is("IdentityN")) {
      for (int i = 0; i < n->num_inputs(); ++i) Element(n, {{"T", i}}, i, i, false);
    } else if (IsLoop(*n)) {
      for (int i = 0; i < n->num_inputs(); ++i) Element(n, {{"T", i}}, i, i, true);
    } else if (IsBranch(*n) || IsPartitionedCall(*n)) {
      const int first = IsPartitionedCall(*n) ? 0 : 1;
      for (int i = first; i < n->num_inputs(); ++i) Element(n, {{"Tin", i - first}}, i, -1, true);
      for (int i = 0; i < n->num_outputs(); ++i) Element(n, {{"Tout", i}}, -1, i, true);
    } else if (const Bf16Op* row = RowOf(*n)) {
      Governing(n, *row);
    }
  }

 private:
  // Adds the unit of one element in lists of types. One of a call is bfloat16 only when `carried`
  // has it.
  void Element(Node* n, std::vector<std::pair<std::string, int>> elements, int input, int output,
               bool call) {
    const Dtype t = input >= 0
                        ? BaseType(n->inputs()[input].node->output_types[n->inputs()[input].port])
                        : n->output_types[output];
    if (t != Dtype::kFloat) return;
    FloatUnit u;
    u.node = n;
    if (input >= 0) u.inputs = {input};
    if (output >= 0) u.outputs = {output};
    u.keep = std::string(filter_.Why(*n));
    if (u.keep.empty() && call) {
      auto it = carried_.find({n, elements[0].first});
      u.fixed = it != carried_.end() && it->second.contains(elements[0].second);
      if (!u.fixed) u.keep = "crosses into a function";
    }
    u.elements = std::move(elements);
    Put(std::move(u));
  }

  void Governing(Node* n, const Bf16Op& row) {
    if (n->Type(row.attr) != Dtype::kFloat) return;
    FloatUnit u;
    u.node = n;
    u.row = &row;
    u.kind = row.kind;
    u.attr = std::string(row.attr);
    u.inputs = Governed(n->def()->inputs, *n, row.attr);
    u.outputs = Governed(n->def()->outputs, *n, row.attr);
    u.keep = std::string(filter_.Why(*n));
    if (!u.keep.empty()) {
      // It is the options' choice.
    } else if (row.kind == Bf16Class::kKeep) {
      u.keep = std::string(row.why);
    } else if (!Allows(*n, row.attr)) {
      u.keep = "the op has no bfloat16 form";
    }
    if (IsTable(*n)) u.kind = Bf16Class::kAnchor;
    u.fixed = u.kind == Bf16Class::kAnchor && u.keep.empty();
    Put(std::move(u));
  }

  // A lookup of rows in a variable counts as a product, so that the variable is stored as bfloat16.
  // Single numbers may be ids, which must not be rounded.
  bool IsTable(const Node& n) const {
    if (n.Is("ResourceGather") || n.Is("ResourceGatherNd")) {
      const PartialShape& out = g_.shapes->of({const_cast<Node*>(&n), 0});
      const PartialShape& indices = g_.shapes->of(n.inputs()[1]);
      return out.known_rank() && indices.known_rank() && out.rank() > indices.rank();
    }
    if (!n.Is("GatherV2") && !n.Is("Gather")) return false;
    const PartialShape& params = g_.shapes->of(n.inputs()[0]);
    return n.inputs()[0].node->Is("ReadVariableOp") && params.known_rank() && params.rank() >= 2;
  }

  void Put(FloatUnit u) {
    const int id = static_cast<int>(g_.units.size());
    for (int i : u.inputs) g_.in[{u.node, i}] = id;
    for (int o : u.outputs) g_.out[{u.node, o}] = id;
    g_.units.push_back(std::move(u));
  }

  FloatGraph& g_;
  const Bf16Filter& filter_;
  const CarriedElements& carried_;
};

}  // namespace

bool IsFloatSource(const Node& n) {
  return n.Is("_Arg") || n.Is("Const") || n.Is("ReadVariableOp") || n.Is("Placeholder") ||
         n.Is("PlaceholderWithDefault") || n.Is("VariableV2") || n.Is("VarHandleOp");
}

int FloatGraph::In(const Node* n, int input) const {
  auto it = in.find({n, input});
  return it == in.end() ? -1 : it->second;
}

int FloatGraph::Out(Endpoint e) const {
  auto it = out.find({e.node, e.port});
  return it == out.end() ? -1 : it->second;
}

int64_t FloatGraph::Elements(Endpoint e) const {
  constexpr int64_t kMost = int64_t{1} << 40;
  const PartialShape& s = shapes->of(e);
  if (!s.known_rank()) return 1;
  int64_t n = 1;
  for (int64_t d : s.dims()) {
    if (d == 0) return 0;
    if (d > 0) n = n > kMost / d ? kMost : n * d;
  }
  return n;
}

void MakeFloatUnits(FloatGraph& g, const Bf16Filter& filter, const CarriedElements& carried) {
  UnitMaker maker(g, filter, carried);
  for (Node* n : g.graph->Nodes()) maker.Add(n);
}

}  // namespace smelt
