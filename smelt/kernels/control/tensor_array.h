// TensorArray: a sequence of tensors that lives in one step, written and read by ops that a float
// "flow" or control edges put in order. Shared by the ops of all three versions.
#ifndef SMELT_KERNELS_CONTROL_TENSOR_ARRAY_H_
#define SMELT_KERNELS_CONTROL_TENSOR_ARRAY_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/kernel.h"

namespace smelt {

class TensorArray final : public Resource {
 public:
  static constexpr absl::string_view kKind = "tensor_array";
  absl::string_view kind() const override { return kKind; }

  struct Element {
    Tensor value;  // none though written: zeros of `shape`
    Shape shape;   // when written
    bool written = false;
    bool read = false;
    bool cleared = false;
  };

  // Set once, before anybody else sees it.
  std::string name;
  Dtype dtype = Dtype::kInvalid;
  bool clear_after_read = true;
  bool identical_shapes = false;
  bool sums_writes = false;  // a gradient: what is written twice is added
  bool is_gradient = false;

  absl::Mutex mutex;
  bool dynamic_size ABSL_GUARDED_BY(mutex) = false;
  PartialShape element_shape ABSL_GUARDED_BY(mutex);
  std::vector<Element> elements ABSL_GUARDED_BY(mutex);
  bool closed ABSL_GUARDED_BY(mutex) = false;
  // By source.
  std::map<std::string, std::shared_ptr<TensorArray>> gradients ABSL_GUARDED_BY(mutex);

  Status CheckOpen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  Status Write(int64_t index, Tensor value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  StatusOr<Tensor> Read(OpContext& ctx, int64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // May ops of that type read or write?
  Status CheckReadType(Dtype wanted) const;
  Status CheckWriteType(Dtype given) const;

 private:
  Status Add(Element& e, int64_t index, const Tensor& value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
};

// The array that input 0 names. Handles are resources in version 3. Older ones are strings,
// [container, name], that name an array of the step; version 1 has references to such strings.
StatusOr<std::shared_ptr<TensorArray>> FindTensorArray(const OpContext& ctx);
// Puts the array's handle, as the op wants it, into output 0.
Status SetArrayHandle(OpContext& ctx, std::shared_ptr<TensorArray> array);
// The same for any resource of a step.
Status SetStepHandle(OpContext& ctx, absl::string_view container, const std::string& name,
                     std::shared_ptr<Resource> resource);
// The resource of that kind that input 0 names.
StatusOr<std::shared_ptr<Resource>> FindStepResource(const OpContext& ctx, absl::string_view kind);

// "TensorArray index must be a scalar, but had shape: [1]"
StatusOr<int64_t> ArrayIndex(const Tensor& t, absl::string_view what);
// A name that no other array or stack has: "arr_7".
std::string UniqueArrayName(absl::string_view base);
// The flow: passed on where there is one (input >= 0), made where not.
Status SetFlow(OpContext& ctx, int output, int input);

}  // namespace smelt

#endif  // SMELT_KERNELS_CONTROL_TENSOR_ARRAY_H_
