// Forms of a model's constants that later processes find again (io/forms_file.h).
#ifndef SMELT_KERNELS_COMMON_KEPT_FORM_H_
#define SMELT_KERNELS_COMMON_KEPT_FORM_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "smelt/io/forms_file.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// Of one constant. Thread safe.
class KeptForm {
 public:
  // The form of constant `t`, which is multiplied by `factors` first where there are some. `how`:
  // everything else that the form depends on besides t's numbers, type and shape, what the
  // processor is asked for included; smelt's own code need not be named; empty: it cannot be
  // said. Nothing is returned where forms of `t` are not kept.
  static std::optional<KeptForm> Of(const Tensor& t, absl::string_view how,
                                    std::span<const float> factors) {
    // Small forms are made faster than they are looked for.
    constexpr size_t kWorthKeeping = 16 << 10;
    if (how.empty() || t.bytes() < kWorthKeeping || !t.buffer()->mapped_file()) return std::nullopt;
    std::optional<KeptPlace> place = FindKeptPlace(t.raw());
    if (!place) return std::nullopt;
    std::string name = absl::StrCat("form of ", place->file, " at ", place->offset, " ",
                                    DtypeName(t.dtype()), t.shape().ToString(), " ", how);
    if (!factors.empty()) {
      absl::StrAppend(
          &name, " times ",
          absl::string_view(reinterpret_cast<const char*>(factors.data()), factors.size_bytes()));
    }
    return KeptForm(std::move(place->forms), std::move(name));
  }

  // Read only. Empty: there is none. REQUIRES: a type of numbers.
  std::optional<Tensor> Find(Dtype dtype, const Shape& shape) const {
    const size_t bytes = static_cast<size_t>(shape.num_elements()) * DtypeSize(dtype);
    std::optional<KeptBytes> found = forms_->Find(name_, bytes);
    if (!found) return std::nullopt;
    return Tensor(
        dtype, shape,
        ForeignBuffer(found->data, found->size, ForeignBytes::kReadOnly, std::move(found->owner)));
  }
  // REQUIRES: nobody writes `form` from now on; it has the type and shape that Find will be asked
  // for.
  void Keep(const Tensor& form) const {
    forms_->Add(name_, {form.raw(), form.bytes(), std::make_shared<const Tensor>(form)});
  }

 private:
  KeptForm(std::shared_ptr<FormsFile> forms, std::string name)
      : forms_(std::move(forms)), name_(std::move(name)) {}

  std::shared_ptr<FormsFile> forms_;
  std::string name_;
};

// The form of constant `t` (KeptForm::Of): a kept one, or one that fill(Tensor& form), a Status,
// makes in memory of `allocator` and that is kept where forms of `t` are.
template <typename Fill>
StatusOr<Tensor> KeptOrMade(const Tensor& t, absl::string_view how, std::span<const float> factors,
                            Dtype dtype, const Shape& shape, Allocator* allocator,
                            const Fill& fill) {
  const auto kept = KeptForm::Of(t, how, factors);
  if (kept) {
    if (auto found = kept->Find(dtype, shape)) return *std::move(found);
  }
  ASSIGN_OR_RETURN(Tensor form, Tensor::Make(dtype, shape, allocator));
  RETURN_IF_ERROR(fill(form));
  if (kept) kept->Keep(form);
  return form;
}

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_KEPT_FORM_H_
