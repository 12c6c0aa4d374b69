// Resources by (container, kind, name), and the resource that most models have: the variable.
#ifndef SMELT_KERNELS_RESOURCE_MANAGER_H_
#define SMELT_KERNELS_RESOURCE_MANAGER_H_

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "smelt/graph/graph.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// Where a node's resource is kept: its attributes `container` ("localhost" when empty) and
// `shared_name` (the node's name when empty).
struct ResourceName {
  explicit ResourceName(const Node& node);
  std::string container, name;
};

// Thread safe.
class ResourceManager {
 public:
  // nullptr when there is none.
  std::shared_ptr<Resource> Find(absl::string_view container, absl::string_view kind,
                                 absl::string_view name) const;
  // The one that is there, else what `make` returns. `make` is called at most once and under the
  // lock: it must not use this manager.
  StatusOr<std::shared_ptr<Resource>> FindOrCreate(
      absl::string_view container, absl::string_view kind, absl::string_view name,
      const std::function<StatusOr<std::shared_ptr<Resource>>()>& make);
  // false when there was none.
  bool Remove(absl::string_view container, absl::string_view kind, absl::string_view name);
  // Are all of these kinds?
  bool HoldsOnly(std::initializer_list<absl::string_view> kinds) const;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;
  mutable absl::Mutex mutex_;
  std::map<Key, std::shared_ptr<Resource>> resources_ ABSL_GUARDED_BY(mutex_);
};

// A variable of either generation: TF2's resource variable, TF1's ref variable.
//
// Values are shared, never changed while shared: a reader keeps the tensor it read, whatever is
// assigned later. Thread safe.
class Variable final : public Resource {
 public:
  static constexpr absl::string_view kKind = "variable";
  Variable(std::string name, Dtype dtype) : name_(std::move(name)), dtype_(dtype) {}
  absl::string_view kind() const override { return kKind; }
  const std::string& name() const { return name_; }
  Dtype dtype() const { return dtype_; }

  // An invalid tensor while uninitialized.
  Tensor Read() const;
  void Assign(Tensor value);
  // Changes the value under the lock: `update` is given the value, cloned first when it is shared,
  // and may replace it or write it in place. `update` must not use this variable.
  Status Update(const std::function<Status(Tensor& value)>& update);
  void Clear() { Assign(Tensor()); }
  bool initialized() const { return Read().valid(); }
  // Grows with every Assign and Update.
  int64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  const std::string name_;
  const Dtype dtype_;
  mutable absl::Mutex mutex_;
  Tensor value_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int64_t> version_{0};
};

}  // namespace smelt

#endif  // SMELT_KERNELS_RESOURCE_MANAGER_H_
