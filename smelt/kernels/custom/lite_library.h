// Custom operators of TensorFlow Lite that shared libraries bring (lite_op.h).
#ifndef SMELT_KERNELS_CUSTOM_LITE_LIBRARY_H_
#define SMELT_KERNELS_CUSTOM_LITE_LIBRARY_H_

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"
#include "smelt/kernels/custom/lite_op.h"

namespace smelt {

// What an operator does: those members of TfLiteRegistration that every version of it has, and what
// a TfLiteOperator has of them.
struct LiteOp {
  using Function = std::function<TfLiteStatus(TfLiteContext* context, TfLiteNode* node)>;
  std::function<void*(TfLiteContext* context, const char* buffer, size_t length)> init;
  std::function<void(TfLiteContext* context, void* buffer)> free;
  Function prepare, invoke;
};

// A TfLiteOperator as it is now.
struct MadeLiteOp {
  std::string name;
  bool custom;
  LiteOp op;
};
// What TfLiteOperatorCreate made, if that is it. Any thread.
std::optional<MadeLiteOp> FindMadeLiteOp(const void* address);

// A function that returns a TfLiteRegistration* or a TfLiteOperator*, and the operator's name;
// where that is empty the one that it says, or else what stands behind "Register_", or in front of
// "Operator", in the function's.
struct LiteSymbol {
  std::string op, symbol;
};

// Adds the operators for good: of `symbols`, or where that is empty of all functions Register_*
// that the library, which dlopen loaded, exports without arguments, and *Operator of one that calls
// TfLiteOperatorCreate. How many there were. NOT_FOUND
// for a symbol that is not there; INVALID_ARGUMENT for an operator that cannot be invoked;
// ALREADY_EXISTS for a name that another function gave. Thread safe.
StatusOr<int> AddLiteOps(void* library, std::span<const LiteSymbol> symbols);

// By the custom code of a file; nullptr when no library brought it. Any thread.
const LiteOp* FindLiteOp(absl::string_view code);
// Sorted.
std::vector<std::string> LiteOpNames();

}  // namespace smelt

#endif  // SMELT_KERNELS_CUSTOM_LITE_LIBRARY_H_
