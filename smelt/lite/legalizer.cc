#include "smelt/lite/legalizer.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/lite/flex/select_ops.h"
#include "smelt/lite/prepare/quotients.h"
#include "smelt/lite/prepare/updates.h"
#include "smelt/lite/prepare/wide_types.h"
#include "smelt/lite/prepare/xla_scatters.h"
#include "smelt/lite/rows/rows.h"

namespace smelt {

PartialShape Legalizer::shape(Endpoint e) const {
  if (e.node == nullptr) return {};
  const Attr* stated = e.node->attrs().Find(kOutputShapes);
  const bool made = stated_ || absl::StartsWith(e.node->op(), "tfl.") || e.node->Is("Complex");
  if (made && stated != nullptr) {
    const auto* shapes = stated->get<std::vector<PartialShape>>();
    return (*shapes)[static_cast<size_t>(e.port)];
  }
  if (const TensorValue* value = StatedConstant(*e.node)) return value->shape;
  return shapes_.of(e);
}

std::optional<Tensor> Legalizer::Constant(Endpoint e) const {
  if (e.node == nullptr) return std::nullopt;
  return ConstantTensor(*BehindIdentities(e).node);
}

std::optional<std::vector<int64_t>> Legalizer::Integers(Endpoint e) const {
  const std::optional<Tensor> value = Constant(e);
  if (!value || (value->dtype() != Dtype::kInt32 && value->dtype() != Dtype::kInt64)) {
    return std::nullopt;
  }
  std::vector<int64_t> out;
  for (int64_t i = 0; i < value->num_elements(); ++i) out.push_back(IndexAt(*value, i));
  return out;
}

std::shared_ptr<Resource> Legalizer::Held(absl::string_view container, absl::string_view kind,
                                          absl::string_view name) const {
  return resources_ == nullptr ? nullptr : resources_->Find(container, kind, name);
}

StatusOr<Node*> Legalizer::AddMany(OpName op, std::span<const Endpoint> inputs, AttrMap options,
                                   std::span<const LiteOutput> outputs) {
  DtypeVector in, out;
  std::vector<PartialShape> shapes;
  for (const Endpoint& e : inputs) {
    if (e.node == nullptr) return Internal("an input of ", op.text(), " was not made");
    in.push_back(BaseType(type(e)));
  }
  for (const LiteOutput& o : outputs) {
    out.push_back(BaseType(o.type));
    std::vector<int64_t> dims;
    for (int i = 0; i < o.shape.rank(); ++i) dims.push_back(std::max<int64_t>(o.shape[i], -1));
    shapes.push_back(o.shape.known_rank() ? PartialShape::Of(dims) : o.shape);
  }
  options.Set("Tin", in);
  options.Set("Tout", out);
  options.Set(kOutputShapes, std::move(shapes));
  if (node_->Bool(kSameShapes) && std::ranges::equal(inputs, node_->inputs())) {
    options.Set(kSameShapes, true);
  }
  return graph_.Add(node_->name(), op.text(), inputs, std::move(options));
}

StatusOr<Endpoint> Legalizer::Add(OpName op, std::span<const Endpoint> inputs, AttrMap options,
                                  const LiteOutput& output) {
  ASSIGN_OR_RETURN(Node * n, AddMany(op, inputs, std::move(options), {&output, 1}));
  return Endpoint{n, 0};
}

StatusOr<Endpoint> Legalizer::ShapeOf(Endpoint e) {
  return Add("tfl.shape", {e}, Options({{"out_type", Dtype::kInt32}}),
             {Dtype::kInt32, PartialShape::Of({rank(e)})});
}

void Legalizer::StateShapes(Node& n) const {
  std::vector<PartialShape> shapes;
  for (int i = 0; i < n.num_outputs(); ++i) {
    const PartialShape s = shape({&n, i});
    std::vector<int64_t> dims;
    for (int k = 0; k < s.rank(); ++k) dims.push_back(std::max<int64_t>(s[k], -1));
    shapes.push_back(s.known_rank() ? PartialShape::Of(dims) : s);
  }
  n.AttrsToChange().Set(kOutputShapes, std::move(shapes));
}

Endpoint Legalizer::Const(const Tensor& value) {
  return {graph_.AddConst(absl::StrCat(node_->name(), "/const"), value), 0};
}

Endpoint Legalizer::Ints(std::span<const int64_t> values) {
  const std::vector<int32_t> narrow(values.begin(), values.end());
  return Const(Tensor::Vector(std::span<const int32_t>(narrow)));
}

Endpoint Legalizer::IntPairs(std::span<const int64_t> values) {
  const std::vector<int32_t> narrow(values.begin(), values.end());
  const auto rows = static_cast<int64_t>(narrow.size()) / 2;
  return Const(Tensor::Vector(std::span<const int32_t>(narrow)).WithShape(Shape({rows, 2})));
}

Endpoint Legalizer::Int(int64_t value) {
  return Const(Tensor::Scalar(static_cast<int32_t>(value)));
}

Endpoint Legalizer::Floats(float value) { return Const(Tensor::Scalar(value)); }

Endpoint Legalizer::NoValue() {
  // It has no inputs and no attributes: nothing can be wrong with it.
  return {*graph_.Add("no_value", "tfl.no_value", {}), 0};
}

AttrMap Options(std::initializer_list<std::pair<absl::string_view, Attr>> values) {
  AttrMap out;
  for (const auto& [name, value] : values) out.Set(name, value);
  return out;
}

const ExportRow* FindExportRow(OpName op) {
  static const auto* rows = [] {
    auto* by_op = new std::array<const ExportRow*, kNumOps>();
    for (const auto family : AllExportRows()) {
      for (const ExportRow& row : family) (*by_op)[static_cast<size_t>(row.op.number())] = &row;
    }
    return by_op;
  }();
  return op.unknown() ? nullptr : (*rows)[static_cast<size_t>(op.number())];
}

namespace {

// What the file has as it is.
bool IsLite(const Node& n) {
  return n.Is("Const") || n.Is("_Arg") || n.Is("_Retval") || absl::StartsWith(n.op(), "tfl.");
}

// A complex number in two parts, until something takes it apart again (rows/complex.cc).
bool IsGlue(const Node& n) { return n.Is("Complex"); }

// Does the op move numbers that are in two parts?
bool MovesParts(const Node& n) {
  constexpr OpSet kMoves = {"StridedSlice", "Slice",     "Reshape", "Squeeze",
                            "ExpandDims",   "Transpose", "Gather",  "GatherV2",
                            "Tile",         "ReverseV2", "Pad",     "BroadcastTo"};
  // Whose operators take no complex numbers at all.
  constexpr OpSet kOfParts = {"Pad", "Roll"};
  if (n.num_inputs() == 0) return false;
  return (n.Is(kMoves) && IsGlue(*n.input(0).node)) ||
         (n.Is(kOfParts) && BaseType(n.input_types[0]) == Dtype::kComplex64);
}

bool MultipliesParts(const Node& n) {
  constexpr OpSet kProducts = {"Einsum", "MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"};
  return n.Is(kProducts) && n.input_types[0] == Dtype::kComplex64 &&
         n.input_types[n.input_types.size() - 1] == Dtype::kComplex64 && n.num_inputs() <= 2;
}

class Legalization {
 public:
  Legalization(Graph& graph, const ShapeTable& shapes, const ResourceManager* resources,
               const LegalizeFlags& flags, bool stated = false)
      : graph_(graph), flags_(flags), l_(graph, shapes, resources, stated) {
    l_.SetFiles(flags.files);
    l_.SetDeclaresRanges(flags.declares_ranges);
  }

  Status Visit(Node* n) {
    if (IsLite(*n)) return OkStatus();
    if (flags_.builtins && IsGlue(*n)) {
      l_.StateShapes(*n);  // it may be a select op's operand
      return OkStatus();
    }
    if (!flags_.builtins) {
      Refuse(*n, "builtins are not among the operators that are wanted");
      return OkStatus();
    }
    if (flags_.asserts && n->Is("Assert")) {
      Refuse(*n, "it is kept, and has no builtin operator");
      return OkStatus();
    }
    // A call of a function by its name is a call.
    const bool call = n->op_name().unknown() && graph_.library()->Find(n->op()) != nullptr;
    const ExportRow* row = FindExportRow(call ? OpName("PartitionedCall") : n->op_name());
    if (row == nullptr) {
      Refuse(*n, n->String(kWhyNot, "it has no builtin operator"));
      return OkStatus();
    }
    return Replace(n, row);
  }

  // By what the row makes.
  Status Replace(Node* n, const ExportRow* row) {
    l_.Begin(*n, *row);
    const int first_new = graph_.max_id();
    LiteEndpoints by = MovesParts(*n)        ? MovedInParts(*n, l_)
                       : MultipliesParts(*n) ? MultipliedInParts(*n, l_)
                                             : row->convert(*n, l_);
    if (absl::IsUnimplemented(by.status())) {
      Refuse(*n, n->String(kWhyNot, std::string(by.status().message())));
      return OkStatus();
    }
    if (!by.ok()) return Prefix(by.status(), absl::StrCat("node '", n->name(), "': "));
    if (by->empty() && n->num_outputs() > 0) return OkStatus();  // it stays
    const int count = OperatorsSince(first_new);
    if (count > n->Int(kMostOperators, count)) {
      Refuse(*n, absl::StrCat("it would be ", count, " operators"));
      RemoveSince(first_new);
      return OkStatus();
    }
    const std::vector<Use> readers = n->OrderedUses();
    for (size_t i = 0; i < by->size() && i < static_cast<size_t>(n->num_outputs()); ++i) {
      graph_.ReplaceAllUses({n, static_cast<int>(i)}, (*by)[i]);
    }
    Node* made = by->empty() ? nullptr : by->front().node;
    if (made != nullptr && !absl::StartsWith(made->op(), "tfl.")) made = nullptr;
    const bool added = made != nullptr && made->id() >= first_new;
    KeepOrder(*n, made, added, first_new, readers);
    const std::string name = n->name();
    graph_.Remove(n);
    // A node that was not there before takes the name.
    return added ? graph_.Rename(made, name) : OkStatus();
  }

  // Complex numbers that nothing took apart.
  void RefuseGlue() {
    for (Node* n : graph_.Nodes()) {
      if (!IsGlue(*n)) continue;
      if (n->uses().empty()) {
        graph_.Remove(n);
      } else if (std::ranges::any_of(n->uses(), [](const Use& u) { return IsLite(*u.node); })) {
        Refuse(*n, "no operator makes complex numbers");
      }
    }
  }

  std::vector<Refusal> refusals;

 private:
  int OperatorsSince(int first_new) const {
    int count = 0;
    for (int id = first_new; id < graph_.max_id(); ++id) {
      const Node* node = graph_.NodeOf(id);
      count += node != nullptr && absl::StartsWith(node->op(), "tfl.") ? 1 : 0;
    }
    return count;
  }
  void RemoveSince(int first_new) {
    for (int id = graph_.max_id() - 1; id >= first_new; --id) {
      Node* node = graph_.NodeOf(id);
      if (node != nullptr && node->uses().empty()) graph_.Remove(node);
    }
  }

  void Refuse(Node& n, std::string why) {
    l_.StateShapes(n);
    refusals.push_back({n.name(), std::string(n.op()), std::move(why), false, false});
  }

  // What stands for the node, and whatever is new and has an effect, waits as it did; who waited
  // for the node waits for what stands for it. What was there before, and now stands for the node
  // too, need not wait: its readers do.
  void KeepOrder(Node& n, Node* made, bool added, int first_new, const std::vector<Use>& readers) {
    for (int id = first_new; id < graph_.max_id(); ++id) {
      Node* node = graph_.NodeOf(id);
      if (node == nullptr || node->def() == nullptr) continue;
      if (node != made && !node->def()->stateful) continue;
      for (Node* before : n.control_inputs()) graph_.AddControlInput(node, before);
    }
    for (const Use& use : readers) {
      for (Node* before : n.control_inputs()) {
        if (!added && before != use.node) graph_.AddControlInput(use.node, before);
      }
    }
    graph_.ReplaceControlUses(&n, made);
  }

  Graph& graph_;
  const LegalizeFlags& flags_;
  Legalizer l_;
};

}  // namespace

StatusOr<bool> LegalizeLate(Graph& graph, std::vector<Refusal>& refusals) {
  DropFused(graph, refusals);
  const ShapeTable none;
  const LegalizeFlags flags;
  Legalization legalization(graph, none, nullptr, flags, true);
  const size_t before = refusals.size();
  for (const Refusal& r : refusals) {
    Node* n = graph.Find(r.node);
    for (const ExportRow& row : LateExport()) {
      if (n->Is(row.op)) {
        RETURN_IF_ERROR(legalization.Replace(n, &row));
        break;
      }
    }
  }
  DropFused(graph, refusals);
  return refusals.size() < before;
}

StatusOr<bool> FitOperators(Graph& graph, std::vector<Refusal>& refusals) {
  const ShapeTable none;
  const LegalizeFlags flags;
  Legalization legalization(graph, none, nullptr, flags, true);
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  const int first_new = graph.max_id();
  for (Node* n : order) {
    for (const auto family : AllFitRows()) {
      const auto row = std::ranges::find_if(family, [&](const FitRow& r) { return n->Is(r.ops); });
      if (row == family.end()) continue;
      const ExportRow as_export = {n->op_name(), row->convert};
      RETURN_IF_ERROR(legalization.Replace(n, &as_export));
      break;
    }
  }
  for (Refusal& r : legalization.refusals) {
    r.op = absl::AsciiStrToUpper(absl::StripPrefix(r.op, "tfl."));
    refusals.push_back(std::move(r));
  }
  return graph.max_id() > first_new;
}

void DropFused(const Graph& graph, std::vector<Refusal>& refusals) {
  std::erase_if(refusals, [&](const Refusal& r) {
    const Node* n = graph.Find(r.node);
    return n == nullptr || n->op() != r.op;
  });
}

namespace {

// Are the operands of one rank, and of sizes that are either known and equal, or not known?
bool MayBeSameShapes(const Node& n, const ShapeTable& shapes) {
  if (n.num_inputs() < 2 || FindExportRow(n.op_name()) == nullptr) return false;
  const PartialShape first = shapes.of(n.input(0));
  return first.rank() > 0 && !first.fully_known() &&
         std::ranges::all_of(n.inputs(), [&](Endpoint e) { return shapes.of(e) == first; });
}

// EQUAL and NOT_EQUAL broadcast, and what does not fit is an error: where TensorFlow's ops might
// answer with a scalar, for all that is known of their operands, the shape is that of theirs.
Status TakeAsBroadcast(Graph& graph) {
  constexpr absl::string_view kFits = "incompatible_shape_error";
  std::vector<Node*> open;
  for (Node* n : graph.Nodes()) {
    if (n->Is({"Equal", "NotEqual"}) && !n->Bool(kFits, true)) open.push_back(n);
  }
  if (open.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const ShapeTable shapes, InferShapes(graph, {}));
  for (Node* n : open) {
    if (!shapes.of({n, 0}).known_rank()) n->AttrsToChange().Set(kFits, true);
  }
  return OkStatus();
}

// Sizes that inputs leave free.
std::set<int64_t> SizesOfInputs(const Graph& graph, const ShapeTable& symbols) {
  std::set<int64_t> out;
  for (Node* n : graph.Nodes()) {
    if (!n->Is("_Arg")) continue;
    for (const int64_t size : symbols.of({n, 0}).dims()) {
      if (IsSymbolicDim(size)) out.insert(size);
    }
  }
  return out;
}

// Says of nodes that their operands have the same shape, which decides what kernels take of those
// whose operands might broadcast.
void MarkSameShapes(Graph& graph, const ShapeTable& shapes) {
  std::vector<Node*> nodes;
  for (Node* n : graph.Nodes()) {
    if (MayBeSameShapes(*n, shapes)) nodes.push_back(n);
  }
  // What most kernels take.
  constexpr int kFewDims = 4;
  constexpr OpSet kNever = {"Atan2", "BitwiseAnd", "BitwiseOr", "LeftShift"};
  // Free batches of two inputs are one batch: a kernel that looks whether they are says what is
  // wrong with others.
  constexpr OpSet kLooks = {"Atan2"};
  std::erase_if(nodes, [&](const Node* n) {
    return shapes.of(n->input(0)).rank() <= kFewDims && !n->Is(kNever);
  });
  if (nodes.empty()) return;
  const ShapeTable symbols = InferSymbolicShapes(graph, {});
  const std::set<int64_t> of_inputs = SizesOfInputs(graph, symbols);
  for (Node* n : nodes) {
    const PartialShape first = symbols.of(n->input(0));
    const bool certain = std::ranges::all_of(
        first.dims(), [](int64_t size) { return size >= 0 || IsSymbolicDim(size); });
    const auto same_as_first = [&](Endpoint e) {
      const PartialShape other = symbols.of(e);
      return other == first ||
             (n->Is(kLooks) &&
              std::ranges::equal(first.dims(), other.dims(), [&](int64_t a, int64_t b) {
                return a == b || (of_inputs.contains(a) && of_inputs.contains(b));
              }));
    };
    const bool same =
        first.known_rank() && certain && std::ranges::all_of(n->inputs(), same_as_first);
    if (same) n->AttrsToChange().Set(kSameShapes, true);
  }
}

}  // namespace

StatusOr<std::vector<Refusal>> Legalize(Graph& graph, const ResourceManager* resources,
                                        const LegalizeFlags& flags) {
  if (flags.builtins) {
    RETURN_IF_ERROR(SpellUpdates(graph));
    RETURN_IF_ERROR(SpellXlaScatters(graph));
    RETURN_IF_ERROR(DivideWithoutDoubles(graph));
    RETURN_IF_ERROR(WidenTypes(graph));
    RETURN_IF_ERROR(TakeAsBroadcast(graph));
  }
  ASSIGN_OR_RETURN(const ShapeTable shapes, InferShapes(graph, {}));
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  MarkSameShapes(graph, shapes);
  Legalization legalization(graph, shapes, resources, flags);
  for (Node* n : order) RETURN_IF_ERROR(legalization.Visit(n));
  legalization.RefuseGlue();
  return std::move(legalization.refusals);
}

}  // namespace smelt
