// Datasets and what iterates over them: the variants behind the tf.data ops, and what reads data
// without such ops. This room knows no op; the ops are in ops/.
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
#include "smelt/kernels/step.h"

namespace smelt {

using Element = std::vector<Tensor>;
// Nothing at the end. After an error the next call goes on behind what failed.
using NextElement = StatusOr<std::optional<Element>>;
// Used by one thread at a time. The step is that of the caller, a different one at every call.
using ElementIterator = absl::AnyInvocable<NextElement(Step&)>;
// Starts over the elements of a dataset anew. Thread safe: any number of iterators may be made.
using MakeIterator = std::function<StatusOr<ElementIterator>(Step&)>;

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
  MakeIterator make;
};
using DatasetRef = std::shared_ptr<const Dataset>;

// The next element, unless the step is cancelled or late.
NextElement Pull(ElementIterator& iterator, Step& step);
// The end, as a value to return.
inline NextElement EndOfElements() { return std::optional<Element>(); }

// The dataset in a variant scalar. INVALID_ARGUMENT when the tensor holds something else.
StatusOr<DatasetRef> DatasetOf(const Tensor& t);
// A variant scalar that holds the dataset.
Tensor DatasetTensor(Dataset dataset);
Tensor DatasetTensor(DatasetRef dataset);

}  // namespace smelt

#endif  // SMELT_KERNELS_DATASET_DATASET_H_
