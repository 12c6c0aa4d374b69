// Ops that parse tf.SequenceExample protocol messages.
#include <algorithm>

#include "smelt/kernels/kernel.h"
#include "smelt/wire/example/sequence_example.h"

namespace smelt {
namespace {

struct SequenceState final : KernelState {
  SequenceFeatures features;  // without keys and defaults, which are inputs of the V2 op
  // ParseSequenceExample has its keys as attributes.
  std::vector<std::string> keys[4];  // context sparse and dense, list sparse and dense
  std::vector<std::string> may_miss;
};

template <typename T>
std::vector<T> SequenceAttr(const Node& node, absl::string_view name) {
  return node.Get<std::vector<T>>(name, {});
}

Status SetDenseFeatures(const Node& node, absl::string_view types, absl::string_view shapes,
                        std::vector<DenseFeature>* dense) {
  const auto t = SequenceAttr<Dtype>(node, types);
  const auto s = SequenceAttr<PartialShape>(node, shapes);
  if (t.size() != s.size()) return InvalidArgument("len(", types, ") != len(", shapes, ")");
  for (size_t i = 0; i < t.size(); ++i) {
    if (!s[i].fully_known()) {
      return InvalidArgument(shapes, "[", i, "] is not fully defined: ", s[i].ToString());
    }
    RETURN_IF_ERROR(Shape::Make(s[i].dims()).status());
    dense->push_back({"", t[i], s[i], Tensor()});
  }
  return OkStatus();
}

Status SetRaggedFeatures(const Node& node, absl::string_view types, absl::string_view splits,
                         std::vector<RaggedFeature>* ragged) {
  const auto t = SequenceAttr<Dtype>(node, types);
  const auto s = SequenceAttr<Dtype>(node, splits);
  if (t.size() != s.size()) return InvalidArgument("len(", types, ") != len(", splits, ")");
  for (size_t i = 0; i < t.size(); ++i) ragged->push_back({"", t[i], s[i]});
  return OkStatus();
}

StatusOr<std::unique_ptr<KernelState>> PrepareSequence(const Node& node) {
  auto state = std::make_unique<SequenceState>();
  SequenceFeatures& f = state->features;
  RETURN_IF_ERROR(
      SetDenseFeatures(node, "Tcontext_dense", "context_dense_shapes", &f.context_dense));
  RETURN_IF_ERROR(SetDenseFeatures(node, "feature_list_dense_types", "feature_list_dense_shapes",
                                   &f.list_dense));
  for (Dtype t : SequenceAttr<Dtype>(node, "context_sparse_types")) {
    f.context_sparse.push_back({"", t});
  }
  for (Dtype t : SequenceAttr<Dtype>(node, "feature_list_sparse_types")) {
    f.list_sparse.push_back({"", t});
  }
  RETURN_IF_ERROR(SetRaggedFeatures(node, "context_ragged_value_types",
                                    "context_ragged_split_types", &f.context_ragged));
  RETURN_IF_ERROR(SetRaggedFeatures(node, "feature_list_ragged_value_types",
                                    "feature_list_ragged_split_types", &f.list_ragged));
  f.may_miss.resize(f.list_dense.size());
  constexpr absl::string_view kKeys[] = {"context_sparse_keys", "context_dense_keys",
                                         "feature_list_sparse_keys", "feature_list_dense_keys"};
  const size_t counts[] = {f.context_sparse.size(), f.context_dense.size(), f.list_sparse.size(),
                           f.list_dense.size()};
  for (int i = 0; i < 4; ++i) {
    state->keys[i] = SequenceAttr<std::string>(node, kKeys[i]);
    if (node.Is("ParseSequenceExample") && state->keys[i].size() != counts[i]) {
      return InvalidArgument("len(", kKeys[i], ") is ", state->keys[i].size(), ", not ", counts[i]);
    }
  }
  state->may_miss = SequenceAttr<std::string>(node, "feature_list_dense_missing_assumed_empty");
  return state;
}

template <typename F>
Status SetKeys(std::span<const std::string> keys, absl::string_view name,
               absl::string_view counted_by, std::vector<F>* features) {
  if (keys.size() != features->size()) {
    return InvalidArgument("Expected len(", name, ") to match ", counted_by);
  }
  for (size_t i = 0; i < keys.size(); ++i) (*features)[i].key = keys[i];
  return OkStatus();
}

// Defaults of the dense context features, from input `first` on. `shapes` is how the op names the
// attribute in its error.
Status SetDefaults(const OpContext& ctx, int first, absl::string_view name,
                   absl::string_view shapes, SequenceFeatures* features) {
  for (size_t d = 0; d < features->context_dense.size(); ++d) {
    DenseFeature& f = features->context_dense[d];
    const Tensor& value = ctx.input(first + static_cast<int>(d));
    if (value.num_elements() > 0 && !f.shape.Matches(value.shape())) {
      return InvalidArgument(name, "[", d, "].shape() == ", value.shape().ToString(),
                             " != ", shapes, "[", d, "] == ", f.shape.ToString());
    }
    f.default_value = value;
  }
  return OkStatus();
}

// Checks types too: the number of outputs may be right while the attributes order them otherwise.
Status SetSequenceOutputs(OpContext& ctx, ParsedSequences parsed, bool lengths) {
  int i = 0;
  bool fits = true;
  const auto set = [&](std::vector<Tensor>& list) {
    for (Tensor& t : list) {
      fits = fits && t.dtype() == ctx.output_type(i);
      ctx.set_output(i++, std::move(t));
    }
  };
  for (auto* list :
       {&parsed.context.sparse_indices, &parsed.context.sparse_values,
        &parsed.context.sparse_shapes, &parsed.context.dense, &parsed.context.ragged_values,
        &parsed.context.ragged_splits, &parsed.lists.sparse_indices, &parsed.lists.sparse_values,
        &parsed.lists.sparse_shapes, &parsed.lists.dense}) {
    set(*list);
  }
  if (lengths) set(parsed.lengths);
  set(parsed.lists.ragged_values);
  set(parsed.outer_splits);
  set(parsed.lists.ragged_splits);
  if (fits) return OkStatus();
  return InvalidArgument("node '", ctx.node().name(), "' has outputs of other types than its ",
                         "features");
}

Status CheckSequenceOutputs(const OpContext& ctx, const SequenceFeatures& f, bool lengths) {
  const size_t n = 3 * (f.context_sparse.size() + f.list_sparse.size()) + f.context_dense.size() +
                   (lengths ? 2 : 1) * f.list_dense.size() + 2 * f.context_ragged.size() +
                   3 * f.list_ragged.size();
  if (n == static_cast<size_t>(ctx.num_outputs())) return OkStatus();
  return InvalidArgument("node '", ctx.node().name(), "' has ", ctx.num_outputs(),
                         " outputs for features that make ", n);
}

Status ParseSequenceBatch(OpContext& ctx, const SequenceFeatures& features) {
  const Tensor& serialized = ctx.input(0);
  const Tensor& names = ctx.input(1);
  if (names.num_elements() != 0 && names.num_elements() != serialized.num_elements()) {
    return InvalidArgument("example_names must be empty or have the correct number of elements");
  }
  RETURN_IF_ERROR(CheckSequenceOutputs(ctx, features, true));
  const SequenceMode mode = serialized.rank() == 0 ? SequenceMode::kOne : SequenceMode::kBatch;
  ASSIGN_OR_RETURN(ParsedSequences parsed,
                   ParseSequences(features, mode, serialized.flat<std::string>(),
                                  names.flat<std::string>(), ctx.step().allocator));
  return SetSequenceOutputs(ctx, std::move(parsed), true);
}

Status CheckSequenceRank(const Tensor& serialized) {
  if (serialized.rank() <= 1) return OkStatus();
  return InvalidArgument("Expected serialized to be a scalar or vector, got shape: ",
                         serialized.shape().ToString());
}

Status RunParseSequenceV2(OpContext& ctx) {
  SequenceFeatures features = ctx.state<SequenceState>().features;
  RETURN_IF_ERROR(CheckSequenceRank(ctx.input(0)));
  const auto keys = [&](int i) { return ctx.input(i).flat<std::string>(); };
  // In the order of TensorFlow's checks.
  RETURN_IF_ERROR(
      SetKeys(keys(3), "context_dense_keys", "len(Tcontext_dense)", &features.context_dense));
  RETURN_IF_ERROR(
      SetKeys(keys(2), "context_sparse_keys", "Ncontext_sparse", &features.context_sparse));
  RETURN_IF_ERROR(SetKeys(keys(4), "context_ragged_keys", "len(context_ragged_value_types)",
                          &features.context_ragged));
  RETURN_IF_ERROR(
      SetKeys(keys(6), "feature_list_dense_keys", "Nfeature_list_dense", &features.list_dense));
  RETURN_IF_ERROR(
      SetKeys(keys(5), "feature_list_sparse_keys", "Nfeature_list_sparse", &features.list_sparse));
  RETURN_IF_ERROR(SetKeys(keys(7), "feature_list_ragged_keys",
                          "len(feature_list_ragged_value_types)", &features.list_ragged));
  const Tensor& may_miss = ctx.input(8);
  if (may_miss.num_elements() != static_cast<int64_t>(features.list_dense.size())) {
    return InvalidArgument("Expected len(feature_list_dense_missing_assumed_empty to match ",
                           "Nfeature_list_dense");
  }
  for (size_t i = 0; i < features.list_dense.size(); ++i) {
    features.may_miss[i] = may_miss.data<bool>()[i];
  }
  RETURN_IF_ERROR(SetDefaults(ctx, 9, "default_value", "context_dense_shapes", &features));
  return ParseSequenceBatch(ctx, features);
}

Status RunParseSequence(OpContext& ctx) {
  const auto& state = ctx.state<SequenceState>();
  SequenceFeatures features = state.features;
  RETURN_IF_ERROR(CheckSequenceRank(ctx.input(0)));
  RETURN_IF_ERROR(
      SetKeys(state.keys[0], "context_sparse_keys", "Ncontext_sparse", &features.context_sparse));
  RETURN_IF_ERROR(
      SetKeys(state.keys[1], "context_dense_keys", "len(Tcontext_dense)", &features.context_dense));
  RETURN_IF_ERROR(SetKeys(state.keys[2], "feature_list_sparse_keys", "Nfeature_list_sparse",
                          &features.list_sparse));
  RETURN_IF_ERROR(SetKeys(state.keys[3], "feature_list_dense_keys", "Nfeature_list_dense",
                          &features.list_dense));
  for (size_t i = 0; i < features.list_dense.size(); ++i) {
    features.may_miss[i] = std::find(state.may_miss.begin(), state.may_miss.end(),
                                     state.keys[3][i]) != state.may_miss.end();
  }
  RETURN_IF_ERROR(SetDefaults(ctx, 2, "default_value", "context_dense_shapes", &features));
  return ParseSequenceBatch(ctx, features);
}

// Keys that are scalar inputs, from input `*at` on.
template <typename F>
Status TakeScalarKeys(const OpContext& ctx, absl::string_view what, int* at,
                      std::vector<F>* features) {
  for (F& f : *features) {
    const Tensor& key = ctx.input((*at)++);
    if (key.rank() != 0) {
      return InvalidArgument("Expected ", what, "_keys[", &f - features->data(),
                             "] to be a scalar, got shape: ", key.shape().ToString());
    }
    f.key = key.scalar<std::string>();
  }
  return OkStatus();
}

Status RunParseSingleSequence(OpContext& ctx) {
  SequenceFeatures features = ctx.state<SequenceState>().features;
  const Tensor& serialized = ctx.input(0);
  const Tensor& may_miss = ctx.input(1);
  const Tensor& name = ctx.input(ctx.num_inputs() - 1);
  if (name.rank() != 0) {
    return InvalidArgument("Expected debug_name to be a scalar, got shape: ",
                           name.shape().ToString());
  }
  if (serialized.rank() != 0) {
    return InvalidArgument("Expected serialized to be a scalar, got shape: ",
                           serialized.shape().ToString());
  }
  const size_t inputs = 3 + features.context_sparse.size() + 2 * features.context_dense.size() +
                        features.list_sparse.size() + features.list_dense.size();
  if (inputs != static_cast<size_t>(ctx.num_inputs())) {
    return InvalidArgument("node '", ctx.node().name(), "' has ", ctx.num_inputs(),
                           " inputs, but its features make ", inputs);
  }
  int at = 2;
  RETURN_IF_ERROR(TakeScalarKeys(ctx, "context_sparse", &at, &features.context_sparse));
  RETURN_IF_ERROR(TakeScalarKeys(ctx, "context_dense", &at, &features.context_dense));
  RETURN_IF_ERROR(TakeScalarKeys(ctx, "feature_list_sparse", &at, &features.list_sparse));
  RETURN_IF_ERROR(TakeScalarKeys(ctx, "feature_list_dense", &at, &features.list_dense));
  const auto missing = may_miss.flat<std::string>();
  for (size_t i = 0; i < features.list_dense.size(); ++i) {
    features.may_miss[i] =
        std::find(missing.begin(), missing.end(), features.list_dense[i].key) != missing.end();
  }
  RETURN_IF_ERROR(SetDefaults(ctx, at, "def_value", "context_dense_shapes_", &features));
  RETURN_IF_ERROR(CheckSequenceOutputs(ctx, features, false));
  ASSIGN_OR_RETURN(ParsedSequences parsed,
                   ParseSequences(features, SequenceMode::kSingle, serialized.flat<std::string>(),
                                  name.flat<std::string>(), ctx.step().allocator));
  return SetSequenceOutputs(ctx, std::move(parsed), false);
}

constexpr Kernel kParseSequenceTable[] = {
    {"ParseSequenceExampleV2", "", kAnyType, "text:parse_sequence", RunParseSequenceV2,
     PrepareSequence},
    {"ParseSequenceExample", "", kAnyType, "text:parse_sequence", RunParseSequence,
     PrepareSequence},
    {"ParseSingleSequenceExample", "", kAnyType, "text:parse_sequence", RunParseSingleSequence,
     PrepareSequence},
};

}  // namespace

extern constinit const std::span<const Kernel> kParseSequenceKernels = kParseSequenceTable;

}  // namespace smelt
