// The memory plans of programs as a picture.
#ifndef SMELT_CLI_MEMORY_PICTURE_H_
#define SMELT_CLI_MEMORY_PICTURE_H_

#include <string>

#include "smelt/runtime/session.h"

namespace smelt {

// SVG: for each program of the session that has an arena, actions from left to right, places from
// bottom to top, and a rectangle for each value with its name as the title. Thread safe.
std::string MemorySvg(Session& session);

}  // namespace smelt

#endif  // SMELT_CLI_MEMORY_PICTURE_H_
