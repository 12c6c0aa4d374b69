// Variable bundles (Checkpoint V2): PREFIX.index, a sorted table of entries, and the bytes in
// PREFIX.data-0000K-of-0000N. The format is drawn in docs/formats/bundle.md.
//
// Little-endian bundles only. Variants and resource handles are not stored.
#ifndef SMELT_WIRE_BUNDLE_BUNDLE_H_
#define SMELT_WIRE_BUNDLE_BUNDLE_H_

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/node_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "smelt/io/file_system.h"
#include "smelt/tensor/tensor.h"
#include "smelt/wire/bundle/slices.h"

namespace smelt {

// What the index says of a tensor, or of one part of a partitioned one.
struct BundleEntry {
  Dtype dtype = Dtype::kInvalid;  // kInvalid: one that this program does not know
  Shape shape;
  int shard = 0;
  int64_t offset = 0, size = 0;  // bytes in the shard; none for a partitioned tensor
  uint32_t masked_crc = 0;
  std::vector<TensorSlice> slices;  // not empty: a partitioned tensor; they lie within `shape`

  bool partitioned() const { return !slices.empty(); }
};

// Thread safe. The index is read whole; data files are mapped when first needed, and stay mapped
// while the reader or a tensor from it lives. Numbers are verified once.
class BundleReader {
 public:
  // NOT_FOUND when PREFIX.index is not there; DATA_LOSS when it is not a table, a block fails its
  // checksum, or the header or an entry makes no sense; UNIMPLEMENTED for big-endian bundles;
  // INVALID_ARGUMENT for a newer format.
  // PERMISSION_DENIED for a file that `files` does not permit.
  static StatusOr<std::shared_ptr<BundleReader>> Open(const std::string& prefix,
                                                      FileSystem files = FileSystem::Whole());

  // Tensor names, sorted; parts of partitioned tensors are not among them.
  std::vector<std::string> names() const;
  bool Has(absl::string_view name) const { return Lookup(name) != nullptr; }
  // NOT_FOUND: "Key NAME not found in checkpoint". The entry lives as long as the reader.
  StatusOr<const BundleEntry*> Find(absl::string_view name) const;

  // The whole tensor, its checksum verified. Numbers alias the mapped file, read only, where they
  // are aligned to their element. DATA_LOSS names the tensor and the file; NOT_FOUND the name or a
  // data file that is not there; UNIMPLEMENTED a tensor of a type that is not read.
  StatusOr<Tensor> Read(absl::string_view name) const;
  // Part of a tensor, whole or partitioned, put together from what is stored; rows of a tensor that
  // is stored whole alias it. INTERNAL for a slice that does not lie within the tensor,
  // INVALID_ARGUMENT when the stored parts do not cover it.
  StatusOr<Tensor> ReadSlice(absl::string_view name, const TensorSlice& slice) const;

  // Verifies numbers, so that reading them does not: for a thread beside those that will read.
  // Returns when all are verified, or soon after `stop`. What is wrong is for those who read it.
  void VerifyAhead(const std::stop_token& stop) const;
  // Pages of so many bytes of tensors that are verified from now on may stay resident, as they are
  // read soon: to ask for them again takes as long as the checksum. At first: of none.
  void LeavePages(int64_t bytes) { pages_left_ = bytes; }
  // From now on the process's memory counts more than its time: tensors below kSmall are copied, as
  // with what is read of a mapped file come pages around it, and what is verified leaves no pages.
  void SpareMemory() { spares_memory_ = true; }
  static constexpr size_t kSmall = size_t{64} << 10;
  // Gives back those of tensors that nobody has read; after SpareMemory() those of all.
  void DropUnread() const;

 private:
  using Stored = std::pair<std::string, BundleEntry>;
  struct Part;
  struct Check {
    enum class State { kUnknown, kBusy, kRight, kWrong };
    State state = State::kUnknown;
    uint32_t crc = 0;  // where it is wrong
    bool keeps_pages = false, read = false;
  };

  BundleReader() = default;
  const BundleEntry* Lookup(absl::string_view key) const;
  StatusOr<std::shared_ptr<const MappedFile>> Shard(int shard) const;
  Status CheckSize(absl::string_view name, const BundleEntry& entry) const;
  StatusOr<absl::string_view> Bytes(absl::string_view name, const BundleEntry& entry,
                                    const MappedFile& file) const;
  StatusOr<Tensor> ReadStored(absl::string_view name, const BundleEntry& entry) const;
  Check Verify(const BundleEntry& entry, absl::string_view bytes) const;
  // Of what is busy by this thread. Nothing where it was told to stop.
  std::optional<Check> Compute(const BundleEntry& entry, absl::string_view bytes,
                               const std::stop_token& stop, Check* check) const;
  // The next of what is to be verified ahead. False: nothing is left, or it was told to stop.
  bool VerifyNext(const std::stop_token& stop) const;
  // REQUIRES: CheckSize(entry) is OK.
  StatusOr<Tensor> ReadStrings(absl::string_view name, const BundleEntry& entry,
                               absl::string_view bytes) const;
  StatusOr<std::vector<Part>> PartsOf(absl::string_view name, const BundleEntry& entry,
                                      const TensorSlice& slice, const Shape& shape) const;
  std::string Where(absl::string_view name, const BundleEntry& entry) const;
  Status ChecksumError(absl::string_view name, const BundleEntry& entry, uint32_t got) const;

  std::string prefix_;
  FileSystem files_;
  int num_shards_ = 0;
  std::vector<Stored> entries_;  // by key, ascending
  mutable absl::Mutex mutex_;
  mutable std::map<int, std::shared_ptr<const MappedFile>> shards_ ABSL_GUARDED_BY(mutex_);
  mutable std::atomic<int64_t> pages_left_ = 0;
  std::atomic<bool> spares_memory_ = false;
  mutable absl::Mutex checks_mutex_;
  mutable absl::node_hash_map<const BundleEntry*, Check> checks_ ABSL_GUARDED_BY(checks_mutex_);
  mutable std::vector<const Stored*> ahead_ ABSL_GUARDED_BY(checks_mutex_);  // the next one is last
};

struct BundleWriterOptions {
  // Number of data files. Each tensor goes to the one that is shortest so far.
  int num_shards = 1;
  // Tensors begin at multiples of so many bytes. 1 is TensorFlow's default; with 64 every tensor
  // of numbers can be read without a copy.
  int data_alignment = 1;
};

// Writes all files under temporary names and renames them into place in Finish. Tensors are written
// when they are added, without a copy. Belongs to one thread. After an error of the disk every call
// returns that error.
class BundleWriter {
 public:
  // Makes the folder of `prefix` where it is missing. INVALID_ARGUMENT for options out of range.
  static StatusOr<std::unique_ptr<BundleWriter>> Create(const std::string& prefix,
                                                        const BundleWriterOptions& options = {});
  // Without Finish, nothing is left on disk.
  ~BundleWriter();

  // ALREADY_EXISTS: "Adding duplicate key: NAME"; UNIMPLEMENTED for handles and variants;
  // INVALID_ARGUMENT for a name that no index can hold.
  Status Add(absl::string_view name, const Tensor& value);
  // One part of a partitioned tensor of shape `full`. INVALID_ARGUMENT when `value` has not the
  // shape of the slice, or shape or type contradict an earlier part.
  Status AddSlice(absl::string_view name, const Shape& full, const TensorSlice& slice,
                  const Tensor& value);
  // Syncs and renames the data files, then writes the index: a reader that finds the index finds
  // the data. FAILED_PRECONDITION for any call after it.
  Status Finish();

 private:
  class DataFile;

  BundleWriter(std::string prefix, const BundleWriterOptions& options);
  Status AddStored(const std::string& key, const Tensor& value);
  Status Check(absl::string_view name, const Tensor& value) const;

  const std::string prefix_;
  const BundleWriterOptions options_;
  std::vector<std::unique_ptr<DataFile>> files_;
  std::map<std::string, BundleEntry> entries_;
  Status disk_;
  bool finished_ = false;
};

// Makes one bundle of several, as MergeV2Checkpoints does: data files are renamed, indexes merged
// and the old ones removed. `delete_old`: also removes the inputs' folders that this leaves empty.
// INVALID_ARGUMENT, before anything is changed, when two bundles hold the same tensor.
Status MergeBundles(const std::vector<std::string>& prefixes, const std::string& destination,
                    bool delete_old);

}  // namespace smelt

#endif  // SMELT_WIRE_BUNDLE_BUNDLE_H_
