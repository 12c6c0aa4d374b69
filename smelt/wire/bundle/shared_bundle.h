// Readers of bundles that are in use, one of a prefix for all that ask.
#ifndef SMELT_WIRE_BUNDLE_SHARED_BUNDLE_H_
#define SMELT_WIRE_BUNDLE_SHARED_BUNDLE_H_

#include <memory>
#include <string>

#include "smelt/io/file_system.h"
#include "smelt/wire/bundle/bundle.h"

namespace smelt {

// A reader that somebody holds, as long as the index is the same file, or a new one. NOT_FOUND
// where there is no index, in the words of RestoreV2, and the errors of BundleReader::Open. Thread
// safe.
StatusOr<std::shared_ptr<BundleReader>> OpenSharedBundle(const std::string& prefix,
                                                         const FileSystem& files);

}  // namespace smelt

#endif  // SMELT_WIRE_BUNDLE_SHARED_BUNDLE_H_
