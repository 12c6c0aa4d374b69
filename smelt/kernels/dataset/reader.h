// Readers, the resource behind the Reader ops of version 1: they take file names from a queue and
// return (key, record) pairs.
#ifndef SMELT_KERNELS_DATASET_READER_H_
#define SMELT_KERNELS_DATASET_READER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/dataset/file_records.h"
#include "smelt/kernels/queue/queue.h"
#include "smelt/kernels/resource_manager.h"
#include "smelt/wire/records/reader_state.h"

namespace smelt {

enum class ReaderKind { kIdentity, kWholeFile, kLines, kTfRecords, kFixedLength };

struct ReaderOptions {
  ReaderKind kind;
  std::string name;
  std::string compression;
  int64_t skip_lines = 0;
  FixedLengths lengths;
};

struct ReaderRecord {
  std::string key;
  std::string value;
};

// Thread safe.
class Reader final : public Resource {
 public:
  static constexpr absl::string_view kKind = "reader";
  absl::string_view kind() const override { return kKind; }
  explicit Reader(ReaderOptions options) : options_(std::move(options)) {}

  // Up to `limit` records of one file, at least one; takes the next file name, and waits for it,
  // when no file is open or the open one has ended. Errors of the queue and the file.
  StatusOr<std::vector<ReaderRecord>> Read(Queue& queue, int64_t limit, const Step& step);

  // Work and records so far.
  ReaderBaseState state();
  // The state as bytes, and back. UNIMPLEMENTED for readers of records; INVALID_ARGUMENT for bytes
  // that are no state.
  StatusOr<std::string> Serialize();
  Status Restore(const std::string& bytes);
  // Forgets the open file and what was read.
  Status Reset();

 private:
  struct Work {
    std::unique_ptr<FileRecords> records;
    bool done_after_one = false;  // the file, or its name, is the only record
  };

  bool KeepsState() const {
    return options_.kind == ReaderKind::kIdentity || options_.kind == ReaderKind::kWholeFile;
  }

  Status StartWork(Queue& queue, const Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status OpenWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<std::optional<ReaderRecord>> NextRecord() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ReaderOptions options_;
  absl::Mutex mutex_;
  ReaderBaseState state_ ABSL_GUARDED_BY(mutex_);
  bool working_ ABSL_GUARDED_BY(mutex_) = false;
  FileSystem files_ ABSL_GUARDED_BY(mutex_) = FileSystem::Nothing();  // of the last Read
  Work work_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace smelt

#endif  // SMELT_KERNELS_DATASET_READER_H_
