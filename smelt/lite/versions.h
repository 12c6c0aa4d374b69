// Which version of an operator a use of it needs, and which runtime has that version.
#ifndef SMELT_LITE_VERSIONS_H_
#define SMELT_LITE_VERSIONS_H_

#include "smelt/wire/tflite/tflite.h"

namespace smelt {

// Sets the version of every operator, and the metadata "min_runtime_version": the first runtime
// that has them all, as 16 bytes of text filled up with zeros. Operators that the table lacks have
// version 1 and ask for no runtime.
void SetVersions(LiteModel& model);

}  // namespace smelt

#endif  // SMELT_LITE_VERSIONS_H_
