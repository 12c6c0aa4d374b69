// The pieces of turning a converted model back (revert.cc).
#ifndef SMELT_CONVERT_REVERT_H_
#define SMELT_CONVERT_REVERT_H_

#include "smelt/convert/conversion.h"
#include "smelt/graph/shape/infer.h"

namespace smelt {

// Everything that is bfloat16 becomes float32: nodes, constants, interfaces of functions, stored
// variables. A model whose signatures or concrete functions take or give bfloat16 themselves was so
// before any conversion: it stays, with a note.
Status UndoBfloat16(Conversion& c);

// Folds what the border's two halves leave when nothing stands between them: identities, pairs of
// transposes, reshapes to what the tensor was before, casts to the type that it has, EnsureShape
// that the shape satisfies.
void UndoTransferForms(Function& f, const ShapeTable& shapes);

}  // namespace smelt

#endif  // SMELT_CONVERT_REVERT_H_
