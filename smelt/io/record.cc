#include "smelt/io/record.h"

#include <cerrno>
#include <utility>

#include "smelt/base/little_endian.h"
#include "smelt/io/crc32c.h"

namespace smelt {
namespace {

// Small records are written together.
constexpr size_t kGatheredRecords = 256 << 10;
constexpr size_t kRecordHeader = 12;  // length and its checksum
constexpr size_t kRecordFooter = 4;

void FrameOf(absl::string_view record, char (&header)[kRecordHeader],
             char (&footer)[kRecordFooter]) {
  StoreLittle<uint64_t>(record.size(), header);
  StoreLittle<uint32_t>(MaskCrc32c(Crc32c({header, 8})), header + 8);
  StoreLittle<uint32_t>(MaskCrc32c(Crc32c(record)), footer);
}

}  // namespace

StatusOr<RecordReader> RecordReader::Open(const std::string& path) {
  ASSIGN_OR_RETURN(auto file, MapFile(path));
  RecordReader reader(file->bytes());
  reader.file_ = std::move(file);
  reader.path_ = path;
  return reader;
}

StatusOr<std::optional<absl::string_view>> RecordReader::Next() {
  const absl::string_view left = bytes_.substr(offset_);
  auto lost = [&](absl::string_view what) {
    return DataLoss(what, " record at ", offset_, path_.empty() ? "" : " of ", path_);
  };
  if (left.empty()) return std::optional<absl::string_view>();
  if (left.size() < kRecordHeader) return lost("truncated");
  if (Crc32c(left.substr(0, 8)) != UnmaskCrc32c(LoadLittle<uint32_t>(left.data() + 8))) {
    return lost("corrupted");
  }
  const auto length = LoadLittle<uint64_t>(left.data());
  if (left.size() - kRecordHeader < kRecordFooter ||
      length > left.size() - kRecordHeader - kRecordFooter) {
    return lost("truncated");
  }
  const absl::string_view data = left.substr(kRecordHeader, length);
  if (Crc32c(data) != UnmaskCrc32c(LoadLittle<uint32_t>(data.data() + length))) {
    return lost("corrupted");
  }
  offset_ += kRecordHeader + length + kRecordFooter;
  return std::optional<absl::string_view>(data);
}

StatusOr<RecordWriter> RecordWriter::Open(const std::string& path) {
  ASSIGN_OR_RETURN(auto file, StagedFile::Make(path, OtherWriter::kRefuse));
  return RecordWriter(std::move(file));
}

Status RecordWriter::Write(absl::string_view record) {
  if (file_ == nullptr) return FailedPrecondition("the file of records is closed");
  AppendRecord(record, &gathered_);
  return gathered_.size() < kGatheredRecords ? OkStatus() : Flush();
}

Status RecordWriter::Flush() {
  RETURN_IF_ERROR(file_->Write(gathered_));
  gathered_.clear();
  return OkStatus();
}

Status RecordWriter::Close() {
  if (file_ == nullptr) return FailedPrecondition("the file of records is closed");
  RETURN_IF_ERROR(Flush());
  const std::unique_ptr<StagedFile> file = std::move(file_);
  return file->Publish();
}

void AppendRecord(absl::string_view record, std::string* out) {
  char header[kRecordHeader], footer[kRecordFooter];
  FrameOf(record, header, footer);
  out->append(header, kRecordHeader);
  out->append(record.data(), record.size());
  out->append(footer, kRecordFooter);
}

}  // namespace smelt
