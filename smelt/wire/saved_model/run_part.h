// Which part of a SavedModel's message a program that answers requests reads. Private to wire/.
#ifndef SMELT_WIRE_SAVED_MODEL_RUN_PART_H_
#define SMELT_WIRE_SAVED_MODEL_RUN_PART_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace tensorflow {
class SavedModel;
}  // namespace tensorflow

namespace smelt {

// Parses the bytes of a SavedModel into `model`, an empty message, without what no request, no
// restoring of variables and no initialization can reach: nodes that signatures, asset files and
// the restoring half of the saver do not need, and functions that no kept node calls, directly or
// through functions. Functions that implement one interface (api_implements) go together, and so
// do a function and its gradient. Everything else is as the file says, but for object graphs: those
// that are no more than one field were parsed, to know that they do, and are left where they lie:
// `object_graphs` has one for each MetaGraph, empty where there is none.
//
// False where the bytes are not as expected: `model` holds anything then, and a reader of the whole
// says what is wrong.
bool ParseRunPart(absl::string_view bytes, tensorflow::SavedModel* model,
                  std::vector<absl::string_view>* object_graphs);

}  // namespace smelt

#endif  // SMELT_WIRE_SAVED_MODEL_RUN_PART_H_
