// Ops of users' own, from shared libraries that speak smelt_op.h, and custom operators of
// TensorFlow Lite, from those that speak lite_op.h.
#ifndef SMELT_KERNELS_CUSTOM_OP_LIBRARY_H_
#define SMELT_KERNELS_CUSTOM_OP_LIBRARY_H_

#include <string>

#include "smelt/base/status.h"

namespace smelt {

// Loads the library and adds what it brings to this process, for good: its ops and kernels, which
// smelt_register_ops adds, and the operators of its functions Register_*. Behind the path may stand
// a colon and which of those to take: "LIB.so:NAME=SYMBOL,SYMBOL" (lite_library.h). Call before
// models are read: a graph looks its definitions up when it is made. NOT_FOUND when the library or
// a symbol cannot be found; INVALID_ARGUMENT when it brings nothing or a definition does not parse;
// ALREADY_EXISTS for an op or operator that is known; INTERNAL when a function of it fails
// otherwise. What was added before the error stays. Thread safe.
Status LoadOpLibrary(const std::string& path);
// Was a library loaded, whatever came of it?
bool OpLibraryLoaded();

}  // namespace smelt

#endif  // SMELT_KERNELS_CUSTOM_OP_LIBRARY_H_
