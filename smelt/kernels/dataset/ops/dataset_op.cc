#include "smelt/kernels/dataset/ops/dataset_op.h"

#include <algorithm>
#include <utility>

#include "smelt/kernels/resource_types.h"

namespace smelt {
namespace {

constexpr int kMaxDatasetDepth = 1000;

}  // namespace

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
                  MakeIterator make) {
  Dataset dataset;
  dataset.op = std::string(ctx.node().op());
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

bool HoldsResource(const Tensor& handle) {
  return handle.num_elements() > 0 && handle.scalar<ResourceHandle>().resource != nullptr;
}

Tensor AnonymousHandle(const OpContext& ctx, std::shared_ptr<Resource> resource) {
  ResourceHandle h;
  h.container = "localhost";
  h.name = ctx.node().name();
  h.device = std::string(ctx.step().device);
  if (resource != nullptr) h.type_name = std::string(ResourceTypeName(resource->kind()));
  h.resource = std::move(resource);
  return Tensor::Scalar(std::move(h));
}

}  // namespace smelt
