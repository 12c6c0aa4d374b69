// The Unicode tables of ICU, loaded when first needed: few models ask for them, and every start of
// the program would pay for linking to them. Thread safe.
#ifndef SMELT_KERNELS_TEXT_ICU_H_
#define SMELT_KERNELS_TEXT_ICU_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace smelt {

// Without the rules of any locale. UNIMPLEMENTED, here and below, when libicuuc is not installed.
StatusOr<std::u16string> UnicodeLower(const std::u16string& s);
StatusOr<std::u16string> UnicodeUpper(const std::u16string& s);

// The script of each code point by ICU's numbers, -1 for what is no code point.
Status UnicodeScripts(const int32_t* code_points, int64_t n, int32_t* scripts);

// One of ICU's converters, which reads texts of an encoding one after the other: what a text leaves
// behind (the order of bytes that a mark chose, a shift) holds for the next one. For one thread.
class IcuDecoder {
 public:
  // INVALID_ARGUMENT for a name that no converter has.
  static StatusOr<std::unique_ptr<IcuDecoder>> Open(const std::string& encoding);
  ~IcuDecoder();
  IcuDecoder(const IcuDecoder&) = delete;
  IcuDecoder& operator=(const IcuDecoder&) = delete;

  // Calls fn(code point, its bytes, whether they are malformed) for each character.
  void ForEach(absl::string_view text, absl::FunctionRef<void(int32_t, size_t, bool)> fn);

 private:
  explicit IcuDecoder(void* converter) : converter_(converter) {}

  void* converter_;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_TEXT_ICU_H_
