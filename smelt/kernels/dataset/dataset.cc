#include "smelt/kernels/dataset/dataset.h"

#include <algorithm>

#include "smelt/kernels/common/copy.h"

namespace smelt {
namespace {

constexpr int kMaxDatasetDepth = 1000;

}  // namespace

NextElement Pull(ElementIterator& iterator, Step& step) {
  if (step.cancellation != nullptr) RETURN_IF_ERROR(step.cancellation->Check());
  return iterator(step);
}

StatusOr<DatasetRef> DatasetOf(const Tensor& t) {
  if (t.dtype() != Dtype::kVariant || t.rank() != 0) {
    return InvalidArgument("Dataset tensor must be a scalar of dtype DT_VARIANT.");
  }
  const std::shared_ptr<VariantValue>& value = t.scalar<Variant>().value;
  if (value == nullptr || value->type_name() != Dataset::kTypeName) {
    return InvalidArgument("Tensor must be a Dataset object.");
  }
  return std::static_pointer_cast<const Dataset>(value);
}

StatusOr<DatasetRef> DatasetInput(const OpContext& ctx, int i) { return DatasetOf(ctx.input(i)); }

StatusOr<int64_t> CountInput(const OpContext& ctx, int i, absl::string_view name) {
  return ScalarInput<int64_t>(ctx, i, name);
}

std::vector<Dtype> StatedTypes(const Node& node) {
  std::vector<Dtype> types = node.Get<std::vector<Dtype>>("output_types", {});
  if (types.empty()) types = node.Get<std::vector<Dtype>>("Toutput_types", {});
  return types;
}

Status SetDataset(OpContext& ctx, std::span<const DatasetRef> inputs, int64_t cardinality,
                  std::function<StatusOr<ElementIterator>(Step&)> make) {
  Dataset dataset;
  dataset.op = ctx.node().op();
  dataset.types = StatedTypes(ctx.node());
  dataset.shapes = ctx.node().Get<std::vector<PartialShape>>("output_shapes", {});
  dataset.shapes.resize(dataset.types.size());
  dataset.cardinality = cardinality;
  for (const DatasetRef& input : inputs) dataset.depth = std::max(dataset.depth, input->depth + 1);
  if (dataset.depth > kMaxDatasetDepth) return ResourceExhausted("datasets nest too deep");
  dataset.make = std::move(make);
  ctx.set_output(0, DatasetTensor(std::move(dataset)));
  return OkStatus();
}

Tensor DatasetTensor(Dataset dataset) {
  return Tensor::Scalar(Variant{std::make_shared<Dataset>(std::move(dataset))});
}

Tensor DatasetTensor(DatasetRef dataset) {
  // Nobody changes a dataset; variants merely have no type for that.
  return Tensor::Scalar(Variant{std::const_pointer_cast<Dataset>(std::move(dataset))});
}

std::pair<int, int> ArgumentRange(const Node& node, absl::string_view name) {
  const OpDef* def = node.def();
  int at = 0;
  if (def == nullptr) return {0, 0};
  for (const ArgDef& arg : def->inputs) {
    int count = 1;
    if (!arg.number_attr.empty()) count = static_cast<int>(node.Int(arg.number_attr));
    if (!arg.type_list_attr.empty()) {
      count = static_cast<int>(node.Get<std::vector<Dtype>>(arg.type_list_attr, {}).size());
    }
    if (arg.name == name) return {at, count};
    at += count;
  }
  return {0, 0};
}

StatusOr<DatasetFunction> DatasetFunction::Of(const OpContext& ctx, absl::string_view name,
                                              int first, int count, std::vector<Dtype> results) {
  const FuncAttr* f = ctx.node().Func(name);
  if (f == nullptr) return InvalidArgument(ctx.node().op(), " names no function '", name, "'");
  DatasetFunction function;
  ASSIGN_OR_RETURN(function.function_, Callee::Of(*f));
  for (int i = 0; i < count; ++i) function.captured_.push_back(ctx.input(first + i));
  function.results_ = std::move(results);
  return function;
}

StatusOr<Element> DatasetFunction::operator()(Element args, Step& step) const {
  if (step.functions == nullptr) {
    return Internal("function '", function_.name(), "' cannot be called here");
  }
  args.insert(args.end(), captured_.begin(), captured_.end());
  Element results;
  RETURN_IF_ERROR(step.functions->Call(function_, std::move(args), &results, step));
  if (results_.empty()) return results;
  if (results.size() != results_.size()) {
    return InvalidArgument("function '", function_.name(), "' returns ", results.size(),
                           " values where ", results_.size(), " are wanted");
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].dtype() != results_[i]) {
      return InvalidArgument("function '", function_.name(), "' returns a ",
                             DtypeName(results[i].dtype()), " as value ", i, ", not a ",
                             DtypeName(results_[i]));
    }
  }
  return results;
}

StatusOr<Element> BatchElements(const std::vector<Element>& elements, BatchRule rule, Step& step) {
  Element batch;
  for (size_t c = 0; c < elements[0].size(); ++c) {
    const Tensor& first = elements[0][c];
    Shape shape = first.shape();
    shape.Insert(0, static_cast<int64_t>(elements.size()));
    ASSIGN_OR_RETURN(shape, Shape::Make(shape.dims()));
    ASSIGN_OR_RETURN(Tensor out, Tensor::Make(first.dtype(), shape, step.allocator));
    const int64_t row = first.num_elements();
    for (size_t i = 0; i < elements.size(); ++i) {
      if (elements[i].size() != elements[0].size()) {
        return InvalidArgument("Cannot batch elements of ", elements[0].size(), " and ",
                               elements[i].size(), " components");
      }
      const Tensor& t = elements[i][c];
      if (rule == BatchRule::kSameSizes && t.num_elements() != row) {
        return InvalidArgument(
            "Cannot add tensor to the batch: number of elements does not match. ",
            "Shapes are: [tensor]: ", t.shape().ToString(),
            ", [batch]: ", first.shape().ToString());
      }
      if (rule == BatchRule::kSameShapes && !(t.shape() == first.shape())) {
        return InvalidArgument("Cannot batch tensors with different shapes in component ", c,
                               ". First element had shape ", first.shape().ToString(),
                               " and element ", i, " had shape ", t.shape().ToString(), ".");
      }
      if (t.dtype() != first.dtype()) {
        return InvalidArgument("Cannot batch tensors with different types in component ", c);
      }
      CopyRun(out.dtype(), At(out.dtype(), out.raw(), static_cast<int64_t>(i) * row), t.raw(), row);
    }
    batch.push_back(std::move(out));
  }
  return batch;
}

}  // namespace smelt
