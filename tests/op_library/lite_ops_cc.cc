// The same in C++, whose functions have longer names: in a namespace, without arguments.
#ifdef LITE_HEADER
#include LITE_HEADER
#else
#include "smelt/kernels/custom/lite_op.h"
#endif

#include <cmath>
#include <stdexcept>

namespace examples::ops {
namespace {

// Square roots. An exception of its own ends at the host.
TfLiteStatus Roots(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& x = context->tensors[node->inputs->data[0]];
  TfLiteTensor& y = context->tensors[node->outputs->data[0]];
  for (size_t i = 0; i < x.bytes / sizeof(float); ++i) {
    if (std::isnan(x.data.f[i])) throw std::domain_error("not a number");
    if (x.data.f[i] < 0) {
      context->ReportError(context, "x[%d] is %g, below 0", static_cast<int>(i), x.data.f[i]);
      return kTfLiteError;
    }
    y.data.f[i] = std::sqrt(x.data.f[i]);
  }
  return kTfLiteOk;
}

}  // namespace

TfLiteRegistration* Register_ROOTS() {
  static TfLiteRegistration r = {};
  static constexpr char kOpName[] = "Roots";
  r.custom_name = kOpName;
  r.prepare = [](TfLiteContext* context, TfLiteNode* node) -> TfLiteStatus {
    const TfLiteTensor& x = context->tensors[node->inputs->data[0]];
    if (x.dims->size != 2) {
      context->ReportError(context, "x has %d dimensions, not 2", x.dims->size);
      return kTfLiteError;
    }
    return context->ResizeTensor(context, &context->tensors[node->outputs->data[0]],
                                 TfLiteIntArrayCopy(x.dims));
  };
  r.invoke = Roots;
  return &r;
}

// With an argument it is no such function.
TfLiteRegistration* Register_WITH_ARGUMENT(int) { return nullptr; }

}  // namespace examples::ops
