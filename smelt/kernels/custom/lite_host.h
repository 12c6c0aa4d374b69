// The functions of a TfLiteContext, for lite_instance.cc.
#ifndef SMELT_KERNELS_CUSTOM_LITE_HOST_H_
#define SMELT_KERNELS_CUSTOM_LITE_HOST_H_

#include "smelt/kernels/custom/lite_instance.h"

namespace smelt {

struct LiteOpInstance::Host {
  // A context of the operator, without tensors.
  static TfLiteContext Of(LiteOpInstance* op);
  // The one that no lambda can be: g++ makes none of a lambda with free arguments.
  static void ReportError(TfLiteContext* context, const char* format, ...);
};

// Bytes of a tensor of numbers; INVALID_ARGUMENT for sizes that none can have.
StatusOr<size_t> AbiBytes(TfLiteType type, const TfLiteIntArray* dims);
// kTfLiteNoType for those that lie in memory in another form than here.
TfLiteType AbiTypeOf(Dtype type);

}  // namespace smelt

#endif  // SMELT_KERNELS_CUSTOM_LITE_HOST_H_
