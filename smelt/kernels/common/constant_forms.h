// Constant tensors in the forms that kernels want: converted, rearranged or packed, once per node.
#ifndef SMELT_KERNELS_COMMON_CONSTANT_FORMS_H_
#define SMELT_KERNELS_COMMON_CONSTANT_FORMS_H_

#include <memory>
#include <utility>

#include "smelt/kernels/common/small_cache.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// A value of `How` names a form of a tensor; forms are compared by ==. Thread safe.
template <typename How>
class ConstantForms {
 public:
  // Valid as long as this object.
  using Ref = std::shared_ptr<const Tensor>;

  // The form `how` of `t`, as make(Allocator*) returns it (a StatusOr<Tensor>). `constant`: the
  // values of a buffer never change, so that the form is made once, and kept.
  // Otherwise it is made on each call, in memory of `allocator`.
  template <typename Make>
  StatusOr<Ref> Get(const Tensor& t, const How& how, bool constant, Allocator* allocator,
                    const Make& make) {
    if (!constant) {
      ASSIGN_OR_RETURN(Tensor made, make(allocator));
      return std::make_shared<const Tensor>(std::move(made));
    }
    const auto is_of = [&](const Form& f) { return f.Is(t, how); };
    ASSIGN_OR_RETURN(auto form, forms_.FindOrMake(is_of, [&]() -> StatusOr<Form> {
      ASSIGN_OR_RETURN(Tensor made, make(KeptAllocator()));
      return Form{t, how, std::move(made)};
    }));
    const Tensor* made = &form->made;
    return Ref(std::move(form), made);
  }
  // Would Get find the form of constant `t`?
  bool Has(const Tensor& t, const How& how) {
    return forms_.Find([&](const Form& f) { return f.Is(t, how); }) != nullptr;
  }

 private:
  struct Form {
    Tensor original;  // keeps its buffer, so that no other one gets the same address
    How how;
    Tensor made;
    bool Is(const Tensor& t, const How& as) const {
      return original.raw() == t.raw() && original.SharesBufferWith(t) &&
             original.shape() == t.shape() && how == as;
    }
  };
  // A node has more than one form only when its runs want different ones (by shape, say).
  SmallCache<Form, 2, 2> forms_;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_CONSTANT_FORMS_H_
