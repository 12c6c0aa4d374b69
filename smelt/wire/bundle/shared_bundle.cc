#include "smelt/wire/bundle/shared_bundle.h"

#include <sys/stat.h>

#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace smelt {
namespace {

// What tells one version of a bundle from the next: its index is replaced by renaming.
struct IndexStamp {
  int64_t size = 0, seconds = 0, nanos = 0;
  uint64_t inode = 0;
  bool operator==(const IndexStamp&) const = default;
};

std::optional<IndexStamp> StampOf(const std::string& prefix) {
  struct stat st;
  if (stat(absl::StrCat(prefix, ".index").c_str(), &st) != 0) return std::nullopt;
  return IndexStamp{st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_ino};
}

// Readers in use, by prefix, so that the many RestoreV2 of one model open its index once.
class OpenBundles {
 public:
  StatusOr<std::shared_ptr<BundleReader>> Open(const std::string& prefix, const FileSystem& files) {
    // A reader that somebody else opened does not ask again.
    RETURN_IF_ERROR(files.MayRead(absl::StrCat(prefix, ".index")));
    const std::optional<IndexStamp> stamp = StampOf(prefix);
    if (!stamp) {
      return NotFound(
          "Unsuccessful TensorSliceReader constructor: Failed to find any matching "
          "files for ",
          prefix);
    }
    // Locked while opening: others that ask for this prefix want this reader.
    absl::MutexLock lock(&mutex_);
    Slot& slot = slots_[prefix];
    if (auto reader = slot.reader.lock(); reader != nullptr && slot.stamp == *stamp) {
      return reader;
    }
    auto reader = BundleReader::Open(prefix, files);
    if (reader.ok()) {
      slot = Slot{*stamp, *reader};
    }
    std::erase_if(slots_, [](const auto& s) { return s.second.reader.expired(); });
    return reader;
  }

 private:
  struct Slot {
    IndexStamp stamp;
    std::weak_ptr<BundleReader> reader;
  };
  absl::Mutex mutex_;
  std::map<std::string, Slot> slots_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

StatusOr<std::shared_ptr<BundleReader>> OpenSharedBundle(const std::string& prefix,
                                                         const FileSystem& files) {
  static auto* bundles = new OpenBundles;
  return bundles->Open(prefix, files);
}

}  // namespace smelt
