#include "smelt/kernels/nn/isa_activation.h"

namespace smelt::nn {

UnaryF32 IsaActivation(Activation a) {
  switch (a) {
    case Activation::kRelu:
      return UnaryF32::kRelu;
    case Activation::kRelu6:
      return UnaryF32::kRelu6;
    case Activation::kElu:
      return UnaryF32::kElu;
    case Activation::kLeakyRelu:
      return UnaryF32::kLeakyRelu;
    case Activation::kTanh:
      return UnaryF32::kTanh;
    case Activation::kSigmoid:
      return UnaryF32::kSigmoid;
    case Activation::kGeluExact:
      return UnaryF32::kGeluErf;
    case Activation::kGeluApproximate:
      return UnaryF32::kGeluTanh;
    case Activation::kSilu:
      return UnaryF32::kSwish;
    case Activation::kHardSwish:
      return UnaryF32::kHardSwish;
  }
  return UnaryF32::kIdentity;
}

}  // namespace smelt::nn
