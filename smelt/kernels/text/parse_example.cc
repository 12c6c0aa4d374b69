// Ops that parse tf.Example protocol messages.
#include "smelt/kernels/text/parse_example.h"

namespace smelt {
namespace {

Status CheckFeatureTypes(const std::vector<Dtype>& types, absl::string_view what) {
  for (Dtype t : types) {
    if (t != Dtype::kFloat && t != Dtype::kInt64 && t != Dtype::kString) {
      return InvalidArgument(what, " must be float, int64 or string, got ", DtypeName(t));
    }
  }
  return OkStatus();
}

template <typename T>
std::vector<T> ListAttr(const Node& node, absl::string_view name) {
  return node.Get<std::vector<T>>(name, {});
}

void SetParsedOutputs(OpContext& ctx, ParsedExamples parsed) {
  int i = 0;
  for (auto* list : {&parsed.sparse_indices, &parsed.sparse_values, &parsed.sparse_shapes,
                     &parsed.dense, &parsed.ragged_values, &parsed.ragged_splits}) {
    for (Tensor& t : *list) ctx.set_output(i++, std::move(t));
  }
}

Status CheckOutputCount(const OpContext& ctx, const ExampleFeatures& f) {
  const size_t n = 3 * f.sparse.size() + f.dense.size() + 2 * f.ragged.size();
  if (n == static_cast<size_t>(ctx.num_outputs())) return OkStatus();
  return InvalidArgument("node '", ctx.node().name(), "' has ", ctx.num_outputs(),
                         " outputs for features that make ", n);
}

StatusOr<std::span<const std::string>> ExampleNames(const Tensor& names, const Tensor& serialized) {
  if (names.num_elements() == 0) return std::span<const std::string>();
  if (!(names.shape() == serialized.shape())) {
    return InvalidArgument(
        "Expected names have the same shape as serialized: name.shape=", names.shape().ToString(),
        ", serialized.shape=", serialized.shape().ToString());
  }
  return names.flat<std::string>();
}

Status ParseInto(OpContext& ctx, const ExampleFeatures& features, const Tensor& serialized,
                 std::span<const std::string> names) {
  RETURN_IF_ERROR(CheckOutputCount(ctx, features));
  if (serialized.rank() == 0) {
    ASSIGN_OR_RETURN(
        ParsedExamples parsed,
        ParseOneExample(features, serialized.scalar<std::string>(), ctx.step().allocator));
    SetParsedOutputs(ctx, std::move(parsed));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(ParsedExamples parsed, ParseExamples(features, serialized.flat<std::string>(),
                                                        names, ctx.step().allocator));
  SetParsedOutputs(ctx, std::move(parsed));
  return OkStatus();
}

Status RunParseExampleV2(OpContext& ctx) {
  const auto& s = ctx.state<ParseExampleState>();
  const Tensor& serialized = ctx.input(0);
  if (serialized.rank() > 1) {
    return InvalidArgument("Expected serialized to be a scalar or vector, got shape: ",
                           serialized.shape().ToString());
  }
  ASSIGN_OR_RETURN(const auto names, ExampleNames(ctx.input(1), serialized));
  const Tensor &sparse = ctx.input(2), &dense = ctx.input(3), &ragged = ctx.input(4);
  RETURN_IF_ERROR(
      CheckKeyCount("dense_keys", "len(dense_types)", dense.num_elements(), s.dense_types.size()));
  RETURN_IF_ERROR(
      CheckKeyCount("sparse_keys", "num_sparse", sparse.num_elements(), s.sparse_types.size()));
  RETURN_IF_ERROR(CheckKeyCount("ragged_keys", "len(ragged_value_types)", ragged.num_elements(),
                                s.ragged_types.size()));
  ExampleFeatures features;
  for (size_t i = 0; i < s.sparse_types.size(); ++i) {
    features.sparse.push_back({sparse.data<std::string>()[i], s.sparse_types[i]});
  }
  features.dense.resize(s.dense_types.size());
  for (size_t i = 0; i < s.dense_types.size(); ++i) {
    features.dense[i].key = dense.data<std::string>()[i];
  }
  for (size_t i = 0; i < s.ragged_types.size(); ++i) {
    features.ragged.push_back(
        {ragged.data<std::string>()[i], s.ragged_types[i], s.splits_types[i]});
  }
  RETURN_IF_ERROR(AddDenseFeatures(ctx, 5, &features));
  return ParseInto(ctx, features, serialized, names);
}

Status RunParseExample(OpContext& ctx) {
  const auto& s = ctx.state<ParseExampleState>();
  const Tensor& serialized = ctx.input(0);
  if (serialized.rank() != 1) {
    return InvalidArgument("Expected serialized to be a vector, got shape: ",
                           serialized.shape().ToString());
  }
  ASSIGN_OR_RETURN(const auto names, ExampleNames(ctx.input(1), serialized));
  const size_t sparse = s.sparse_types.size(), dense = s.dense_types.size();
  if (static_cast<size_t>(ctx.num_inputs()) != 2 + sparse + 2 * dense) {
    return InvalidArgument("node '", ctx.node().name(), "' has ", ctx.num_inputs(), " inputs for ",
                           sparse, " sparse and ", dense, " dense features");
  }
  ExampleFeatures features;
  features.dense.resize(dense);
  for (size_t i = 0; i < sparse + dense; ++i) {
    const Tensor& key = ctx.input(static_cast<int>(2 + i));
    if (key.num_elements() != 1) {
      return InvalidArgument("Expected ", i < sparse ? "sparse" : "dense",
                             " keys to be scalars, got shape: ", key.shape().ToString());
    }
    if (i < sparse) {
      features.sparse.push_back({key.scalar<std::string>(), s.sparse_types[i]});
    } else {
      features.dense[i - sparse].key = key.scalar<std::string>();
    }
  }
  RETURN_IF_ERROR(AddDenseFeatures(ctx, static_cast<int>(2 + sparse + dense), &features));
  return ParseInto(ctx, features, serialized, names);
}

Status RunParseSingleExample(OpContext& ctx) {
  const auto& s = ctx.state<ParseExampleState>();
  const Tensor& serialized = ctx.input(0);
  if (serialized.rank() != 0) {
    return InvalidArgument("Expected serialized to be a scalar, got shape: ",
                           serialized.shape().ToString());
  }
  RETURN_IF_ERROR(CheckKeyCount("dense_keys", "len(dense_types)",
                                static_cast<int64_t>(s.dense_keys.size()), s.dense_types.size()));
  RETURN_IF_ERROR(CheckKeyCount("sparse_keys", "num_sparse",
                                static_cast<int64_t>(s.sparse_keys.size()), s.sparse_types.size()));
  ExampleFeatures features;
  for (size_t i = 0; i < s.sparse_types.size(); ++i) {
    features.sparse.push_back({s.sparse_keys[i], s.sparse_types[i]});
  }
  features.dense.resize(s.dense_types.size());
  for (size_t i = 0; i < s.dense_types.size(); ++i) features.dense[i].key = s.dense_keys[i];
  RETURN_IF_ERROR(AddDenseFeatures(ctx, 1, &features));
  return ParseInto(ctx, features, serialized, {});
}

constexpr Kernel kParseExampleTable[] = {
    {"ParseExampleV2", "", kAnyType, "text:parse_example", RunParseExampleV2, PrepareParseExample},
    {"ParseExample", "", kAnyType, "text:parse_example", RunParseExample, PrepareParseExample},
    {"ParseSingleExample", "", kAnyType, "text:parse_example", RunParseSingleExample,
     PrepareParseExample},
};

}  // namespace

StatusOr<std::unique_ptr<KernelState>> PrepareParseExample(const Node& node) {
  auto s = std::make_unique<ParseExampleState>();
  s->sparse_types = ListAttr<Dtype>(node, "sparse_types");
  s->dense_types = ListAttr<Dtype>(node, "Tdense");
  s->ragged_types = ListAttr<Dtype>(node, "ragged_value_types");
  s->splits_types = ListAttr<Dtype>(node, "ragged_split_types");
  s->dense_shapes = ListAttr<PartialShape>(node, "dense_shapes");
  s->sparse_keys = ListAttr<std::string>(node, "sparse_keys");
  s->dense_keys = ListAttr<std::string>(node, "dense_keys");
  s->ragged_keys = ListAttr<std::string>(node, "ragged_keys");
  RETURN_IF_ERROR(CheckFeatureTypes(s->sparse_types, "sparse_types"));
  RETURN_IF_ERROR(CheckFeatureTypes(s->dense_types, "Tdense"));
  RETURN_IF_ERROR(CheckFeatureTypes(s->ragged_types, "ragged_value_types"));
  if (s->ragged_types.size() != s->splits_types.size()) {
    return InvalidArgument("len(ragged_value_types) != len(ragged_split_types)");
  }
  for (Dtype t : s->splits_types) {
    if (t != Dtype::kInt32 && t != Dtype::kInt64) {
      return InvalidArgument("Invalid ragged_split_type: ", DtypeName(t));
    }
  }
  if (s->dense_types.size() != s->dense_shapes.size()) {
    return InvalidArgument("len(dense_types) != len(dense_shapes)");
  }
  for (size_t d = 0; d < s->dense_shapes.size(); ++d) {
    const PartialShape& shape = s->dense_shapes[d];
    bool fits = shape.known_rank();
    for (int i = 1; fits && i < shape.rank(); ++i) fits = shape[i] >= 0;
    if (!fits) {
      return InvalidArgument("dense_shapes[", d,
                             "] has unknown rank or unknown inner dimensions: ", shape.ToString());
    }
    // Sizes are bounded here once, so that products below cannot overflow.
    Dims dims(shape.dims().begin(), shape.dims().end());
    if (!dims.empty() && dims[0] < 0) dims[0] = 1;
    RETURN_IF_ERROR(Shape::Make(dims).status());
  }
  return s;
}

Status AddDenseFeatures(const OpContext& ctx, int first, ExampleFeatures* features) {
  const auto& s = ctx.state<ParseExampleState>();
  for (size_t d = 0; d < s.dense_types.size(); ++d) {
    DenseFeature& f = features->dense[d];
    f.dtype = s.dense_types[d];
    f.shape = s.dense_shapes[d];
    const Tensor& value = ctx.input(first + static_cast<int>(d));
    if (value.dtype() != f.dtype) {
      return InvalidArgument("dense_defaults[", d, "].dtype() == ", DtypeName(value.dtype()),
                             " != dense_types_[", d, "] == ", DtypeName(f.dtype));
    }
    if (f.variable()) {
      if (value.num_elements() != 1) {
        return InvalidArgument("dense_shape[", d,
                               "] is a variable length shape: ", f.shape.ToString(),
                               ", therefore def_value[", d,
                               "] must contain a single element (the padding element).  But its ",
                               "shape is: ", value.shape().ToString());
      }
    } else if (value.num_elements() > 0 && !f.shape.Matches(value.shape())) {
      return InvalidArgument("def_value[", d, "].shape() == ", value.shape().ToString(),
                             " is not compatible with dense_shapes_[", d,
                             "] == ", f.shape.ToString());
    }
    f.default_value = value;
  }
  return OkStatus();
}

Status CheckKeyCount(absl::string_view keys, absl::string_view want, int64_t have, size_t n) {
  if (have == static_cast<int64_t>(n)) return OkStatus();
  return InvalidArgument("Expected len(", keys, ") == ", want, " but got: ", have, " vs. ", n);
}

extern constinit const std::span<const Kernel> kParseExampleKernels = kParseExampleTable;

}  // namespace smelt
