// Optional: the variant behind the Optional ops, which holds tensors or nothing. Immutable once it
// is in a variant.
#ifndef SMELT_KERNELS_COMMON_OPTIONAL_H_
#define SMELT_KERNELS_COMMON_OPTIONAL_H_

#include <vector>

#include "smelt/tensor/tensor.h"

namespace smelt {

struct Optional final : VariantValue {
  static constexpr absl::string_view kTypeName = "tensorflow::data::Optional";
  absl::string_view type_name() const override { return kTypeName; }

  bool has_value = false;
  std::vector<Tensor> components;
};

// What the scalar `handle` holds; nullptr: another variant, or none.
inline const Optional* OptionalIn(const Tensor& handle) {
  const VariantValue* value = handle.scalar<Variant>().value.get();
  if (value == nullptr || value->type_name() != Optional::kTypeName) return nullptr;
  return static_cast<const Optional*>(value);
}

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_OPTIONAL_H_
