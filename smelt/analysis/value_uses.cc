#include "smelt/analysis/value_uses.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "absl/strings/match.h"
#include "smelt/analysis/captured.h"
#include "smelt/analysis/handle_flow.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/infer.h"

namespace smelt {
namespace {

constexpr int kAllOutputs = -1;

// Elements of the argument are elements of the output, beside kMovesValues and kControlFlow.
struct PassedOn {
  absl::string_view op, arg;
  int output;
};
constexpr PassedOn kPassedOn[] = {
    {"TensorListFromTensor", "tensor", 0},
    {"TensorListGetItem", "input_handle", 0},
    {"TensorListStack", "input_handle", 0},
    {"TensorListConcat", "input_handle", 0},
    {"TensorListSetItem", "input_handle", 0},
    {"TensorListSetItem", "item", 0},
    {"TensorListPushBack", "input_handle", 0},
    {"TensorListPushBack", "tensor", 0},
    {"TensorArrayScatter", "value", 0},
    {"TensorArrayWrite", "value", 0},
    {"TensorArrayRead", "flow_in", 0},
    {"TensorArrayGather", "flow_in", 0},
    {"RaggedTensorToVariant", "rt_dense_values", 0},
    {"RaggedTensorToTensor", "values", 0},
    {"RaggedTensorToSparse", "rt_dense_values", 1},
    {"SparseToDense", "sparse_values", 0},
    {"SparseReorder", "input_values", 1},
    {"SparseSlice", "values", 1},
    {"SparseFillEmptyRows", "values", 1},
    {"SparseConcat", "values", 1},
    {"DynamicPartition", "data", kAllOutputs},
    {"DynamicStitch", "data", 0},
    {"ParallelDynamicStitch", "data", 0},
    {"PlaceholderWithDefault", "input", 0},
    {"Unique", "x", 0},
    {"Select", "t", 0},
    {"Select", "e", 0},
    {"SelectV2", "t", 0},
    {"SelectV2", "e", 0},
    {"AsString", "input", 0},
    {"StringStrip", "input", 0},
    {"StringLower", "input", 0},
    {"StringUpper", "input", 0},
    {"RegexReplace", "input", 0},
    {"StaticRegexReplace", "input", 0},
    {"StringSplit", "input", 1},
    {"StringSplitV2", "input", 1},
    {"DecodeBase64", "input", 0},
};

// `arg` indexes the rows of `table`: of its dimension `axis`, of those that the last dimension of
// the indices counts (kEachAxis), or it is itself the number of rows (kIsNumber).
constexpr int kAxisAttr = -1, kEachAxis = -2, kIsNumber = -3;
struct RowIndex {
  absl::string_view op, arg, table;
  int axis;
};
constexpr RowIndex kRowIndices[] = {
    {"Gather", "indices", "params", 0},
    {"GatherV2", "indices", "params", kAxisAttr},
    {"ResourceGather", "indices", "resource", 0},
    {"ResourceGatherNd", "indices", "resource", kEachAxis},
    {"GatherNd", "indices", "params", kEachAxis},
    {"SparseSegmentSum", "indices", "data", 0},
    {"SparseSegmentMean", "indices", "data", 0},
    {"SparseSegmentSqrtN", "indices", "data", 0},
    {"SparseSegmentSumWithNumSegments", "indices", "data", 0},
    {"SparseSegmentMeanWithNumSegments", "indices", "data", 0},
    {"SparseSegmentSqrtNWithNumSegments", "indices", "data", 0},
    {"OneHot", "indices", "depth", kIsNumber},
    {"UnsortedSegmentSum", "segment_ids", "num_segments", kIsNumber},
    {"UnsortedSegmentMax", "segment_ids", "num_segments", kIsNumber},
    {"DenseBincount", "input", "size", kIsNumber},
    {"Bincount", "arr", "size", kIsNumber},
    {"ReverseSequence", "seq_lengths", "input", 1},
};

constexpr absl::string_view kDecoders[] = {"DecodeJpeg",       "DecodeAndCropJpeg", "DecodePng",
                                           "ExtractJpegShape", "DecodeImage",       "DecodeBmp",
                                           "DecodeGif",        "DecodeWav"};

// Arguments of kMovesValues that say where elements go.
constexpr absl::string_view kPlaces[] = {
    "shape",   "perm",  "paddings", "axis",        "dim",        "concat_dim", "split_dim",
    "indices", "begin", "size",     "end",         "strides",    "multiples",  "size_splits",
    "dims",    "shift", "crops",    "block_shape", "seq_lengths"};

// The name of the definition's argument that the node's input is part of. REQUIRES: it has one.
absl::string_view ArgumentOf(const Node& n, int input) {
  for (const ArgDef& arg : n.def()->inputs) {
    const auto [first, count] = InputRange(n, arg.name);
    if (input >= first && input < first + count) return arg.name;
  }
  return "";
}

bool NamesSparse(const Node& n, absl::string_view suffix) {
  return std::ranges::any_of(n.def()->inputs, [&](const ArgDef& arg) {
    return absl::EndsWith(arg.name, suffix) && arg.name != "new_shape";
  });
}

class ValueUses {
 public:
  explicit ValueUses(const Graph& main)
      : main_(main),
        constants_(main),
        shapes_(InferModelShapes(main, XlaShapeRules())),
        flow_(main) {
    FollowTables();
  }

  std::vector<ValueUse> Find(std::span<const Endpoint> fed) {
    std::vector<ValueUse> uses(fed.size());
    for (size_t i = 0; i < fed.size(); ++i) Hold(&uses[i], nullptr, fed[i]);
    flow_.Follow([this](int source, const HandleUse& use) { Look(source, use); });
    return uses;
  }

 private:
  void Hold(ValueUse* use, Function* function, Endpoint e) {
    sources_.push_back(use);
    flow_.Hold(static_cast<int>(sources_.size()) - 1, function, e);
  }

  // Where the handles of lookup tables get to.
  void FollowTables() {
    static constinit const OpSet kTables = {
        "HashTable",          "HashTableV2",           "MutableHashTable",
        "MutableHashTableV2", "MutableDenseHashTable", "MutableDenseHashTableV2"};
    table_flow_.emplace(main_);
    for (Node* n : main_.Nodes()) {
      if (!n->Is(kTables)) continue;
      tables_.push_back(n);
      table_flow_->Hold(static_cast<int>(tables_.size()) - 1, nullptr, {n, 0});
    }
    table_flow_->Follow([](int, const HandleUse&) {});
  }

  void Look(int source, const HandleUse& use) {
    const Node& n = *use.node;
    if (n.def() == nullptr) return;
    ValueUse& value = *sources_[static_cast<size_t>(source)];
    const absl::string_view op = FirstVersion(n.op());
    const absl::string_view arg = ArgumentOf(n, use.input);
    if (MovesOn(n, op, arg)) {
      for (int port = 0; port < n.num_outputs(); ++port) Pass(source, use, port);
    }
    for (const PassedOn& p : kPassedOn) {
      if ((p.op != op && p.op != n.op()) || p.arg != arg) continue;
      for (int port = 0; port < n.num_outputs(); ++port) {
        if (p.output == kAllOutputs || p.output == port) Pass(source, use, port);
      }
    }
    if (n.Is("RaggedTensorFromVariant")) Pass(source, use, n.num_outputs() - 1);
    if (absl::StartsWith(op, "StringSplit")) value.words = true;
    if (n.Is("DecodeBase64")) value.base64 = true;
    if (std::ranges::find(kDecoders, op) != std::end(kDecoders)) value.decoder = std::string(op);
    if (n.Is("StringToNumber")) {
      value.number = true;
      value.integer = value.integer || IsInteger(n.output_types[0]);
    }
    if (n.Is("DecodeCSV") && use.input == 0) value.columns = n.output_types;
    Index(value, use, op, arg);
    LookUp(value, use, op, arg);
    PartOfSparse(value, n, op, arg);
    Parse(value, use, op, arg);
  }

  void Pass(int source, const HandleUse& use, int port) {
    flow_.Hold(source, use.function, {use.node, port});
  }

  static bool MovesOn(const Node& n, absl::string_view op, absl::string_view arg) {
    if (n.Is(kControlFlow)) return arg != "pred";
    if (n.Is(kMovesValues) || op == "BroadcastTo") {
      return std::ranges::find(kPlaces, arg) == std::end(kPlaces);
    }
    if (!n.Is(kElementwiseOps) || n.num_outputs() == 0) return false;
    return n.Is("Cast") || IsInteger(n.output_types[0]);
  }

  const ShapeTable& ShapesOf(const Function* f) const {
    static const ShapeTable nothing;
    if (f == nullptr) return shapes_.graph;
    const auto it = shapes_.functions.find(f->name());
    return it == shapes_.functions.end() ? nothing : it->second;
  }

  // The constant, also where it is an argument that is the same at every call.
  std::optional<Tensor> Constant(const Function* function, Endpoint e) {
    const Node* n = BehindIdentities(e).node;
    if (function != nullptr && n->Is("_Arg")) {
      n = constants_.ConstantOf(*function, function->FlatPosition(BehindIdentities(e)));
    }
    return n == nullptr ? std::nullopt : ConstantTensor(*n);
  }
  std::optional<int64_t> Number(const Function* function, Endpoint e) {
    const auto t = Constant(function, e);
    if (!t || t->num_elements() != 1) return std::nullopt;
    if (t->dtype() == Dtype::kInt32) return t->data<int32_t>()[0];
    if (t->dtype() == Dtype::kInt64) return t->data<int64_t>()[0];
    return std::nullopt;
  }

  void Index(ValueUse& value, const HandleUse& use, absl::string_view op, absl::string_view arg) {
    const Node& n = *use.node;
    const auto limit = [&value](int64_t rows) {
      if (rows > 0) value.rows = value.rows == 0 ? rows : std::min(value.rows, rows);
    };
    for (const RowIndex& r : kRowIndices) {
      if ((r.op != op && r.op != n.op()) || r.arg != arg) continue;
      const auto [first, count] = InputRange(n, r.table);
      if (count != 1) continue;
      const Endpoint table = n.input(first);
      if (r.axis == kIsNumber) {
        limit(Number(use.function, table).value_or(0));
        continue;
      }
      const ShapeTable& shapes = ShapesOf(use.function);
      const PartialShape& shape = r.table == "resource" ? shapes.held(table) : shapes.of(table);
      if (!shape.known_rank()) continue;
      if (r.axis == kEachAxis) {
        const PartialShape& indices = shapes.of(n.input(use.input));
        const bool known = indices.known_rank() && indices.rank() > 0;
        const int64_t axes = known ? indices[indices.rank() - 1] : shape.rank();
        for (int i = 0; i < shape.rank() && i < axes; ++i) limit(shape[i]);
        continue;
      }
      int64_t axis = r.axis;
      if (axis == kAxisAttr) axis = Number(use.function, n.input(2)).value_or(0);
      if (axis < 0) axis += shape.rank();
      if (axis >= 0 && axis < shape.rank()) limit(shape[static_cast<int>(axis)]);
    }
  }

  void LookUp(ValueUse& value, const HandleUse& use, absl::string_view op, absl::string_view arg) {
    if (op != "LookupTableFind" && use.node->op() != "LookupTableFindV2") return;
    if (arg != "keys") return;
    for (const int i : table_flow_->Of(use.node->input(0))) {
      const Node* table = tables_[static_cast<size_t>(i)];
      if (std::ranges::find(value.tables, table) == value.tables.end()) {
        value.tables.push_back(table);
      }
    }
  }

  static void PartOfSparse(ValueUse& value, const Node& n, absl::string_view op,
                           absl::string_view arg) {
    if (!absl::StartsWith(op, "Sparse") || !NamesSparse(n, "indices") ||
        !(NamesSparse(n, "shape") || NamesSparse(n, "shapes"))) {
      return;
    }
    if (absl::EndsWith(arg, "indices")) value.sparse_indices = true;
    if ((absl::EndsWith(arg, "shape") || absl::EndsWith(arg, "shapes")) && arg != "new_shape") {
      value.sparse_shape = true;
    }
  }

  void Parse(ValueUse& value, const HandleUse& use, absl::string_view op, absl::string_view arg) {
    Node& n = *use.node;
    const bool v2 = n.Is("ParseExampleV2"), single = n.Is("ParseSingleExample");
    if (arg != "serialized" || !(v2 || single || op == "ParseExample")) return;
    const auto sparse = Keys(use, "sparse_keys"), dense = Keys(use, "dense_keys"),
               ragged = Keys(use, "ragged_keys");
    const auto types = [&n](absl::string_view attr) { return n.Get<std::vector<Dtype>>(attr, {}); };
    const auto shapes = n.Get<std::vector<PartialShape>>("dense_shapes", {});
    const std::vector<Dtype> sparse_types = types("sparse_types"), dense_types = types("Tdense"),
                             ragged_types = types("ragged_value_types");
    // Outputs: indices, values and shapes of sparse features, dense ones, values and splits.
    const size_t s = sparse_types.size(), d = dense_types.size();
    for (size_t i = 0; i < sparse.size() && i < s; ++i) {
      Add(value, use, sparse[i], sparse_types[i], PartialShape(), s + i);
    }
    for (size_t i = 0; i < dense.size() && i < d && i < shapes.size(); ++i) {
      Add(value, use, dense[i], dense_types[i], shapes[i], 3 * s + i);
    }
    for (size_t i = 0; i < ragged.size() && i < ragged_types.size(); ++i) {
      Add(value, use, ragged[i], ragged_types[i], PartialShape(), 3 * s + d + i);
    }
  }

  // Of a list attribute, a vector or one scalar each.
  std::vector<std::string> Keys(const HandleUse& use, absl::string_view name) {
    const Node& n = *use.node;
    auto keys = n.Get<std::vector<std::string>>(name, {});
    const auto [first, count] = InputRange(n, name);
    for (int i = first; i < first + count; ++i) {
      const auto t = Constant(use.function, n.input(i));
      if (!t || t->dtype() != Dtype::kString) continue;
      for (const std::string& key : t->flat<std::string>()) keys.push_back(key);
    }
    return keys;
  }

  void Add(ValueUse& value, const HandleUse& use, const std::string& key, Dtype dtype,
           const PartialShape& shape, size_t port) {
    auto there = std::ranges::find(value.features, key, [](const auto& f) { return f->key; });
    if (there == value.features.end()) {
      value.features.push_back(std::make_unique<FeatureUse>(FeatureUse{key, dtype, shape, {}}));
      there = value.features.end() - 1;
    } else if (!(*there)->shape.known_rank()) {
      (*there)->shape = shape;
    }
    if (static_cast<int>(port) >= use.node->num_outputs()) return;
    Hold(&(*there)->use, use.function, {use.node, static_cast<int>(port)});
  }

  const Graph& main_;
  CapturedArguments constants_;
  const ModelShapes shapes_;
  HandleFlow flow_;
  std::optional<HandleFlow> table_flow_;
  std::vector<const Node*> tables_;
  std::vector<ValueUse*> sources_;
};

}  // namespace

std::vector<ValueUse> FindValueUses(const Graph& main, std::span<const Endpoint> fed) {
  return ValueUses(main).Find(fed);
}

}  // namespace smelt
