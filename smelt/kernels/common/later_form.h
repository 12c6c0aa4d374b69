// Forms of large constants that a single run is better off without.
#ifndef SMELT_KERNELS_COMMON_LATER_FORM_H_
#define SMELT_KERNELS_COMMON_LATER_FORM_H_

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "smelt/io/forms_file.h"
#include "smelt/kernels/common/constant_forms.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// The form of one constant that a bound kernel reads. The memory that it takes, which the system
// clears, and the way there and back cost more than what one run gains by it: the first run reads
// the constant as it lies, the next one makes the form. Thread safe.
class LaterForm {
 public:
  using Ref = std::shared_ptr<const Tensor>;

  // The form `how` of constant `t` among `forms`, as make(Allocator*) returns it (a
  // StatusOr<Tensor>). It is there at once where `forms` has it, where it is small, and where
  // later processes are to find it.
  template <typename How, typename Make>
  static StatusOr<std::unique_ptr<const LaterForm>> Of(std::shared_ptr<ConstantForms<How>> forms,
                                                       const Tensor& t, const How& how,
                                                       const Make& make) {
    constexpr size_t kWorthWaiting = 256 << 10;
    const bool now =
        t.bytes() < kWorthWaiting || FindKeptPlace(t.raw()).has_value() || forms->Has(t, how);
    auto get = [forms = std::move(forms), t, how, make] {
      return forms->Get(t, how, true, KeptAllocator(), make);
    };
    if (!now) return std::unique_ptr<const LaterForm>(new LaterForm(std::move(get)));
    ASSIGN_OR_RETURN(Ref made, get());
    return std::make_unique<const LaterForm>(std::move(made));
  }
  explicit LaterForm(Ref made) : held_(std::move(made)), made_(held_.get()) {}

  // Once it is made, the form; else nullptr.
  const Tensor* made() const { return made_.load(std::memory_order_acquire); }
  // What a run reads; nullptr: the first one, which takes the constant as it lies.
  StatusOr<const Tensor*> ForRun() const {
    if (const Tensor* made = made_.load(std::memory_order_acquire)) return made;
    if (!begun_.exchange(true, std::memory_order_relaxed)) return nullptr;
    absl::MutexLock lock(&mutex_);
    if (held_ == nullptr) {
      ASSIGN_OR_RETURN(held_, get_());
      made_.store(held_.get(), std::memory_order_release);
    }
    return held_.get();
  }

 private:
  explicit LaterForm(std::function<StatusOr<Ref>()> get) : get_(std::move(get)) {}

  const std::function<StatusOr<Ref>()> get_;
  mutable absl::Mutex mutex_;
  mutable Ref held_;
  mutable std::atomic<const Tensor*> made_ = nullptr;
  mutable std::atomic<bool> begun_ = false;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_LATER_FORM_H_
