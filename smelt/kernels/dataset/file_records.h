// The records of one file: lines, TFRecords, pieces of fixed length. For readers and datasets.
#ifndef SMELT_KERNELS_DATASET_FILE_RECORDS_H_
#define SMELT_KERNELS_DATASET_FILE_RECORDS_H_

#include <memory>
#include <optional>
#include <string>

#include "smelt/io/fs.h"

namespace smelt {

// A whole file, uncompressed; used by one thread at a time.
class FileContent {
 public:
  // `compression`: "", "ZLIB" or "GZIP", else INVALID_ARGUMENT.
  static StatusOr<FileContent> Open(const std::string& path, absl::string_view compression);
  absl::string_view bytes() const { return inflated_ ? *inflated_ : mapped_->bytes(); }

 private:
  std::shared_ptr<const MappedFile> mapped_;
  std::shared_ptr<const std::string> inflated_;
};

// Used by one thread at a time.
class FileRecords {
 public:
  virtual ~FileRecords() = default;
  // Nothing at the end.
  virtual StatusOr<std::optional<std::string>> Next() = 0;
  // What tells the record that Next gave last from the others of the file: its line, its offset,
  // its number.
  virtual int64_t position() const = 0;
};

// Carriage returns: only one at the end of a line is dropped, or every one.
enum class CarriageReturns { kDropLast, kDropAll };
StatusOr<std::unique_ptr<FileRecords>> OpenLines(const std::string& path,
                                                 absl::string_view compression,
                                                 CarriageReturns returns, int64_t skip_lines);

StatusOr<std::unique_ptr<FileRecords>> OpenTfRecords(const std::string& path,
                                                     absl::string_view compression, int64_t offset);

struct FixedLengths {
  int64_t header = 0;
  int64_t record = 0;
  int64_t footer = 0;
  int64_t hop = 0;  // from record to record; 0: the record's length
};
// Where the file's length is no whole number of records: readers leave the rest out, datasets give
// INVALID_ARGUMENT at once, or DATA_LOSS behind the last record of a compressed file.
enum class OddLength { kLeaveOut, kRefuse };
StatusOr<std::unique_ptr<FileRecords>> OpenFixedLength(const std::string& path,
                                                       absl::string_view compression,
                                                       const FixedLengths& lengths, OddLength odd);

}  // namespace smelt

#endif  // SMELT_KERNELS_DATASET_FILE_RECORDS_H_
