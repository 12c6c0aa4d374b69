// TFRecord files: uint64 length | uint32 masked crc32c of the length | data | uint32 masked crc32c
// of the data, little endian, record after record. Uncompressed.
//
// A reader or writer belongs to one thread.
#ifndef SMELT_IO_RECORD_H_
#define SMELT_IO_RECORD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"
#include "smelt/io/fs.h"
#include "smelt/io/staged_file.h"

namespace smelt {

class RecordReader {
 public:
  static StatusOr<RecordReader> Open(const std::string& path);
  // Over bytes in memory, which must outlive the reader.
  explicit RecordReader(absl::string_view bytes) : bytes_(bytes) {}

  // The next record, valid while the reader lives; nothing at the end. DATA_LOSS names the byte
  // where a record is cut short or fails its checksum; the reader then stays there. Allocates
  // nothing, whatever a length field says.
  StatusOr<std::optional<absl::string_view>> Next();
  // Where the next record begins.
  int64_t offset() const { return static_cast<int64_t>(offset_); }

 private:
  std::shared_ptr<const MappedFile> file_;
  absl::string_view bytes_;
  size_t offset_ = 0;
  std::string path_;
};

class RecordWriter {
 public:
  // Nothing stands at `path` before Close, which replaces what was there (staged_file.h). ABORTED
  // while another process writes there.
  static StatusOr<RecordWriter> Open(const std::string& path);

  Status Write(absl::string_view record);
  // Puts the file in place; a full disk shows here at the latest. Nothing may be written after.
  Status Close();

 private:
  explicit RecordWriter(std::unique_ptr<StagedFile> file) : file_(std::move(file)) {}
  Status Flush();

  std::unique_ptr<StagedFile> file_;
  std::string gathered_;
};

// Appends one record in its frame to `out`.
void AppendRecord(absl::string_view record, std::string* out);

}  // namespace smelt

#endif  // SMELT_IO_RECORD_H_
