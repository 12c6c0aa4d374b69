// Fusions of users' own, from shared libraries that speak smelt_fusion.h.
#ifndef SMELT_LITE_FUSE_CUSTOM_FUSION_LIBRARY_H_
#define SMELT_LITE_FUSE_CUSTOM_FUSION_LIBRARY_H_

#include <string>
#include <vector>

#include "smelt/lite/fuse/fusion.h"

namespace smelt {

// Loads the library, for good, and returns its fusions. NOT_FOUND when it cannot be loaded;
// INVALID_ARGUMENT when it exports no smelt_register_fusions, or a fusion lacks something;
// FAILED_PRECONDITION when it wants another version of the interface, or fails without a reason.
// Thread safe.
StatusOr<std::vector<FunctionFusion>> LoadFusionLibrary(const std::string& path);

}  // namespace smelt

#endif  // SMELT_LITE_FUSE_CUSTOM_FUSION_LIBRARY_H_
