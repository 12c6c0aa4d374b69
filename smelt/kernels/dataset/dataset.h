// Datasets and what iterates over them: the variants behind the tf.data ops.
//
// A dataset is a value: what it was made from, and a function that makes iterators. An iterator is
// a function that gives the next element. Everything runs in the caller's thread, in TensorFlow's
// order; parallel forms give what their sequential ones give.
#ifndef SMELT_KERNELS_DATASET_DATASET_H_
#define SMELT_KERNELS_DATASET_DATASET_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "smelt/kernels/kernel.h"

namespace smelt {

using Element = std::vector<Tensor>;
// Nothing at the end. After an error the next call goes on behind what failed.
using NextElement = StatusOr<std::optional<Element>>;
// Used by one thread at a time. The step is that of the caller, a different one at every call.
using ElementIterator = absl::AnyInvocable<NextElement(Step&)>;

// Cardinalities that are no counts.
inline constexpr int64_t kInfinite = -1;
inline constexpr int64_t kUnknownCount = -2;

// Immutable: any number of iterators may be made, in any thread.
struct Dataset final : VariantValue {
  static constexpr absl::string_view kTypeName = "tensorflow::DatasetVariantWrapper";
  absl::string_view type_name() const override { return kTypeName; }

  std::string op;  // that made it, for errors
  std::vector<Dtype> types;
  std::vector<PartialShape> shapes;
  int64_t cardinality = kUnknownCount;
  int depth = 0;  // of datasets made from datasets
  std::function<StatusOr<ElementIterator>(Step&)> make;
};
using DatasetRef = std::shared_ptr<const Dataset>;

// The next element, unless the step is cancelled or late.
NextElement Pull(ElementIterator& iterator, Step& step);
// The end, as a value to return.
inline NextElement EndOfElements() { return std::optional<Element>(); }

// ---- for kernels ----

// The dataset of input i. INVALID_ARGUMENT when it is none.
StatusOr<DatasetRef> DatasetInput(const OpContext& ctx, int i);
StatusOr<DatasetRef> DatasetOf(const Tensor& t);
// Input i, which must be a scalar: INVALID_ARGUMENT "<name> must be a scalar".
template <typename T>
StatusOr<T> ScalarInput(const OpContext& ctx, int i, absl::string_view name) {
  const Tensor& t = ctx.input(i);
  if (t.rank() != 0) return InvalidArgument(name, " must be a scalar");
  return t.scalar<T>();
}
StatusOr<int64_t> CountInput(const OpContext& ctx, int i, absl::string_view name);

// Output 0: a dataset of the types and shapes that the node states. `inputs` are what it is made
// from. RESOURCE_EXHAUSTED when they nest too deep.
Status SetDataset(OpContext& ctx, std::span<const DatasetRef> inputs, int64_t cardinality,
                  std::function<StatusOr<ElementIterator>(Step&)> make);
// A variant scalar of a dataset that no node states.
Tensor DatasetTensor(Dataset dataset);
Tensor DatasetTensor(DatasetRef dataset);

// A handle that owns the resource; one to nothing of nullptr, which HoldsResource tells.
Tensor AnonymousHandle(const OpContext& ctx, std::shared_ptr<Resource> resource);
bool HoldsResource(const Tensor& handle);

// A function of the library with the values that it captured.
class DatasetFunction {
 public:
  // The attribute `name`; captures are inputs [first, first + count). The types of its results are
  // checked against `results` unless that is empty.
  static StatusOr<DatasetFunction> Of(const OpContext& ctx, absl::string_view name, int first,
                                      int count, std::vector<Dtype> results);
  StatusOr<Element> operator()(Element args, Step& step) const;

 private:
  Callee function_;
  std::vector<Tensor> captured_;
  std::vector<Dtype> results_;
};
// How many inputs the argument `name` of the node has, and the first one.
std::pair<int, int> ArgumentRange(const Node& node, absl::string_view name);
// Node attributes that state elements.
std::vector<Dtype> StatedTypes(const Node& node);

// What elements of one batch must have in common: TensorFlow has both, with words of their own.
enum class BatchRule { kSameShapes, kSameSizes };
// Rows of a batch: elements put together along a new first dimension, in the shape of the first
// one. INVALID_ARGUMENT when they do not agree. REQUIRES: at least one.
StatusOr<Element> BatchElements(const std::vector<Element>& elements, BatchRule rule, Step& step);

}  // namespace smelt

#endif  // SMELT_KERNELS_DATASET_DATASET_H_
