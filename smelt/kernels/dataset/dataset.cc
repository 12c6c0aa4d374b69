#include "smelt/kernels/dataset/dataset.h"

#include "smelt/base/stack.h"

namespace smelt {

NextElement Pull(ElementIterator& iterator, Step& step) {
  if (step.cancellation != nullptr) RETURN_IF_ERROR(step.cancellation->Check());
  // Datasets are read through those they are made from, one call within another.
  if (StackIsShort()) {
    return ResourceExhausted("datasets nest deeper than the stack of the thread allows");
  }
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

Tensor DatasetTensor(Dataset dataset) {
  return Tensor::Scalar(Variant{std::make_shared<Dataset>(std::move(dataset))});
}

Tensor DatasetTensor(DatasetRef dataset) {
  // Nothing changes a dataset; a variant just cannot hold a pointer to const.
  return Tensor::Scalar(Variant{std::const_pointer_cast<Dataset>(std::move(dataset))});
}

}  // namespace smelt
