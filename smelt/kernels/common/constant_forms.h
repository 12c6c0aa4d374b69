// Other forms of constant tensors: converted, rearranged or packed once.
#ifndef SMELT_KERNELS_COMMON_CONSTANT_FORMS_H_
#define SMELT_KERNELS_COMMON_CONSTANT_FORMS_H_

#include <memory>
#include <utility>

#include "smelt/kernels/common/small_cache.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// `How` says which form of a tensor it is, compared by ==. Thread safe.
template <typename How>
class ConstantForms {
 public:
  // Valid as long as this object.
  using Ref = std::shared_ptr<const Tensor>;

  // The form `how` of `t`, which make(Allocator*) makes as StatusOr<Tensor>. With `constant`, `t`
  // holds the same values whenever it is the same buffer: then its form is made once, on the heap,
  // and kept; else on each call, in memory of `allocator`.
  template <typename Make>
  StatusOr<Ref> Get(const Tensor& t, const How& how, bool constant, Allocator* allocator,
                    const Make& make) {
    if (!constant) {
      ASSIGN_OR_RETURN(Tensor made, make(allocator));
      return std::make_shared<const Tensor>(std::move(made));
    }
    const auto is_of = [&](const Form& f) {
      return f.original.raw() == t.raw() && f.original.SharesBufferWith(t) &&
             f.original.shape() == t.shape() && f.how == how;
    };
    ASSIGN_OR_RETURN(auto form, forms_.FindOrMake(is_of, [&]() -> StatusOr<Form> {
      ASSIGN_OR_RETURN(Tensor made, make(HeapAllocator()));
      return Form{t, how, std::move(made)};
    }));
    const Tensor* made = &form->made;
    return Ref(std::move(form), made);
  }

 private:
  struct Form {
    Tensor original;  // holds its buffer, so that its address names it
    How how;
    Tensor made;
  };
  // Forms of one node in use at a time: more than one only when runs want them for other shapes.
  SmallCache<Form, 2, 2> forms_;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_CONSTANT_FORMS_H_
