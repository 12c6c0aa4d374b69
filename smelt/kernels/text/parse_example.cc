// Ops that parse tf.Example protocol messages.
#include <map>

#include "smelt/kernels/common/tensor_variant.h"
#include "smelt/kernels/dataset/dataset.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/ragged/variant.h"
#include "smelt/wire/example/example.h"

namespace smelt {
namespace {

struct ParseExampleState final : KernelState {
  std::vector<Dtype> sparse_types, dense_types, ragged_types, splits_types;
  std::vector<PartialShape> dense_shapes;
  // ParseSingleExample and the datasets have their keys as attributes.
  std::vector<std::string> sparse_keys, dense_keys, ragged_keys;
};

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

// Dense features of the state's types and shapes, with defaults from input `first` on.
Status AddDense(const OpContext& ctx, int first, ExampleFeatures* features) {
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
  RETURN_IF_ERROR(AddDense(ctx, 5, &features));
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
  RETURN_IF_ERROR(AddDense(ctx, static_cast<int>(2 + sparse + dense), &features));
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
  RETURN_IF_ERROR(AddDense(ctx, 1, &features));
  return ParseInto(ctx, features, serialized, {});
}

// What a dataset of parsed examples keeps: it may outlive its node.
struct ParsedDataset {
  std::vector<std::string> dense_keys, sparse_keys, ragged_keys;
  ExampleFeatures features;  // whose keys are those above
  // By component, which stand in the order of their keys: the place among dense, then sparse, then
  // ragged features.
  std::vector<size_t> components;
};

// A sparse feature is its three parts in variants, a ragged one a variant.
StatusOr<Element> ParsedElement(const ParsedDataset& parsed, ParsedExamples examples) {
  const size_t dense = examples.dense.size(), sparse = examples.sparse_values.size();
  Element out;
  for (size_t i : parsed.components) {
    if (i < dense) {
      out.push_back(std::move(examples.dense[i]));
    } else if (i < dense + sparse) {
      i -= dense;
      ASSIGN_OR_RETURN(Tensor triple, Tensor::Make(Dtype::kVariant, Shape({3})));
      triple.data<Variant>()[0] = VariantOfTensor(std::move(examples.sparse_indices[i]));
      triple.data<Variant>()[1] = VariantOfTensor(std::move(examples.sparse_values[i]));
      triple.data<Variant>()[2] = VariantOfTensor(std::move(examples.sparse_shapes[i]));
      out.push_back(std::move(triple));
    } else {
      i -= dense + sparse;
      auto ragged = std::make_shared<RaggedValue>();
      ragged->values = std::move(examples.ragged_values[i]);
      ragged->splits.push_back(std::move(examples.ragged_splits[i]));
      out.push_back(Tensor::Scalar(Variant{std::move(ragged)}));
    }
  }
  return out;
}

// Keys and types of the state; components in the order of the keys.
StatusOr<std::shared_ptr<ParsedDataset>> MakeParsedDataset(const ParseExampleState& s) {
  RETURN_IF_ERROR(CheckKeyCount("dense_keys", "len(dense_types)",
                                static_cast<int64_t>(s.dense_keys.size()), s.dense_types.size()));
  RETURN_IF_ERROR(CheckKeyCount("sparse_keys", "num_sparse",
                                static_cast<int64_t>(s.sparse_keys.size()), s.sparse_types.size()));
  RETURN_IF_ERROR(CheckKeyCount("ragged_keys", "len(ragged_value_types)",
                                static_cast<int64_t>(s.ragged_keys.size()), s.ragged_types.size()));
  auto parsed = std::make_shared<ParsedDataset>();
  parsed->dense_keys = s.dense_keys;
  parsed->sparse_keys = s.sparse_keys;
  parsed->ragged_keys = s.ragged_keys;
  std::map<absl::string_view, size_t> order;
  for (const auto* keys : {&parsed->dense_keys, &parsed->sparse_keys, &parsed->ragged_keys}) {
    for (const std::string& key : *keys) {
      if (!order.emplace(key, order.size()).second) {
        return InvalidArgument("Duplicate key not allowed: ", key);
      }
    }
  }
  for (const std::string& key : parsed->dense_keys) parsed->features.dense.push_back({key});
  for (size_t i = 0; i < s.sparse_keys.size(); ++i) {
    parsed->features.sparse.push_back({parsed->sparse_keys[i], s.sparse_types[i]});
  }
  for (size_t i = 0; i < s.ragged_keys.size(); ++i) {
    parsed->features.ragged.push_back(
        {parsed->ragged_keys[i], s.ragged_types[i], s.splits_types[i]});
  }
  for (const auto& [key, i] : order) parsed->components.push_back(i);
  return parsed;
}

// Each element of the input is a batch of examples.
Status RunParseExampleDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const int64_t calls, CountInput(ctx, 1, "num_parallel_calls"));
  if (calls <= 0 && calls != -1) {
    return InvalidArgument("num_parallel_calls must be greater than zero.");
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<ParsedDataset> parsed,
                   MakeParsedDataset(ctx.state<ParseExampleState>()));
  RETURN_IF_ERROR(AddDense(ctx, 2, &parsed->features));
  return SetDataset(
      ctx, {&input, 1}, input->cardinality,
      [input, parsed = std::shared_ptr<const ParsedDataset>(parsed)](
          Step& step) -> StatusOr<ElementIterator> {
        ASSIGN_OR_RETURN(ElementIterator in, input->make(step));
        return [parsed, in = std::move(in)](Step& step) mutable -> NextElement {
          ASSIGN_OR_RETURN(auto element, Pull(in, step));
          if (!element) return element;
          if (element->size() != 1 || (*element)[0].dtype() != Dtype::kString ||
              (*element)[0].rank() != 1) {
            return InvalidArgument("Expected elements that are vectors of serialized examples");
          }
          ASSIGN_OR_RETURN(ParsedExamples examples,
                           ParseExamples(parsed->features, (*element)[0].flat<std::string>(), {},
                                         step.allocator));
          ASSIGN_OR_RETURN(Element out, ParsedElement(*parsed, std::move(examples)));
          return std::optional<Element>(std::move(out));
        };
      });
}

constexpr Kernel kParseExampleTable[] = {
    {"ParseExampleDataset", "", kAnyType, "dataset:parse_example", RunParseExampleDataset,
     PrepareParseExample},
    {"ExperimentalParseExampleDataset", "", kAnyType, "dataset:parse_example",
     RunParseExampleDataset, PrepareParseExample},
    {"ParseExampleDatasetV2", "", kAnyType, "dataset:parse_example", RunParseExampleDataset,
     PrepareParseExample},
    {"ParseExampleV2", "", kAnyType, "text:parse_example", RunParseExampleV2, PrepareParseExample},
    {"ParseExample", "", kAnyType, "text:parse_example", RunParseExample, PrepareParseExample},
    {"ParseSingleExample", "", kAnyType, "text:parse_example", RunParseSingleExample,
     PrepareParseExample},
};

}  // namespace

extern constinit const std::span<const Kernel> kParseExampleKernels = kParseExampleTable;

}  // namespace smelt
