// Weights of which many are zero, in a file that leaves these out.
#ifndef SMELT_LITE_SPARSE_H_
#define SMELT_LITE_SPARSE_H_

#include "smelt/wire/tflite/tflite.h"

namespace smelt {

// Constants that convolutions and products read as weights, three tenths of them zeros at least,
// become sparse: blocks of a row where FULLY_CONNECTED has kernels for these, else single numbers,
// which a DENSIFY makes dense when the file is loaded.
Status EncodeSparse(LiteModel& model);

}  // namespace smelt

#endif  // SMELT_LITE_SPARSE_H_
