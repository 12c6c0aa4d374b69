// The index of a bundle in smelt's own types, and the names of a bundle's files. Private to wire/.
// All functions are thread safe.
#ifndef SMELT_WIRE_BUNDLE_BUNDLE_INDEX_H_
#define SMELT_WIRE_BUNDLE_BUNDLE_INDEX_H_

#include "smelt/wire/bundle/bundle.h"

namespace smelt {

struct BundleIndex {
  int num_shards = 0;
  std::vector<std::pair<std::string, BundleEntry>> entries;  // by key, ascending; slices included
};

// "PREFIX.index" and "PREFIX.data-0000K-of-0000N".
std::string BundleIndexPath(const std::string& prefix);
std::string BundleShardPath(const std::string& prefix, int shard, int num_shards);

// Errors as BundleReader::Open states them; they name the file. Shapes are valid, positions are not
// negative, shards are below num_shards; whether the data files have the bytes is not checked.
StatusOr<BundleIndex> ReadBundleIndex(const std::string& prefix, const FileSystem& files);

// REQUIRES: keys ascend strictly.
StatusOr<std::string> SerializeBundleIndex(const BundleIndex& index);

}  // namespace smelt

#endif  // SMELT_WIRE_BUNDLE_BUNDLE_INDEX_H_
