// The records of one file: lines, TFRecords, pieces of fixed length. For readers and datasets.
#ifndef SMELT_KERNELS_DATASET_FILE_RECORDS_H_
#define SMELT_KERNELS_DATASET_FILE_RECORDS_H_

#include <memory>
#include <optional>
#include <string>

#include "smelt/io/file_system.h"

namespace smelt {

// A whole file, mapped, or inflated into memory. Used by one thread at a time.
class FileContent {
 public:
  // `compression`: "", "ZLIB" or "GZIP", else INVALID_ARGUMENT.
  static StatusOr<FileContent> Open(const FileSystem& files, const std::string& path,
                                    absl::string_view compression);
  absl::string_view bytes() const { return inflated_ ? *inflated_ : mapped_->bytes(); }

 private:
  std::shared_ptr<const MappedFile> mapped_;
  std::shared_ptr<const std::string> inflated_;
};

// Used by one thread at a time.
class FileRecords {
 public:
  virtual ~FileRecords() = default;
  // The next record; no value at the end.
  virtual StatusOr<std::optional<std::string>> Next() = 0;
  // Where the record that Next returned last stands, as the keys of readers show it: its line, its
  // offset or its number.
  virtual int64_t position() const = 0;
};

// Which carriage returns of a line are dropped: one before the line's end (readers), or all
// (datasets).
enum class CarriageReturns { kDropLast, kDropAll };
// The lines of a file behind the first `skip_lines`, without their ends.
StatusOr<std::unique_ptr<FileRecords>> OpenLines(const FileSystem& files, const std::string& path,
                                                 absl::string_view compression,
                                                 CarriageReturns returns, int64_t skip_lines);

// The records behind byte `offset`; OUT_OF_RANGE when the file is shorter. DATA_LOSS for a record
// whose checksums are wrong or that is cut short.
StatusOr<std::unique_ptr<FileRecords>> OpenTfRecords(const FileSystem& files,
                                                     const std::string& path,
                                                     absl::string_view compression, int64_t offset);

// In bytes.
struct FixedLengths {
  int64_t header = 0;
  int64_t record = 0;
  int64_t footer = 0;
  int64_t hop = 0;  // from one record's start to the next one's; 0: the record's length
};
// When the body is no whole number of records: readers leave the rest out; datasets fail with
// INVALID_ARGUMENT when the file is opened, or with DATA_LOSS after the last record if it is
// compressed.
enum class OddLength { kLeaveOut, kRefuse };
StatusOr<std::unique_ptr<FileRecords>> OpenFixedLength(const FileSystem& files,
                                                       const std::string& path,
                                                       absl::string_view compression,
                                                       const FixedLengths& lengths, OddLength odd);

}  // namespace smelt

#endif  // SMELT_KERNELS_DATASET_FILE_RECORDS_H_
