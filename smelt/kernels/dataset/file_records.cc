#include "smelt/kernels/dataset/file_records.h"

#include <algorithm>

#include "smelt/base/little_endian.h"
#include "smelt/io/crc32c.h"
#include "smelt/io/inflate.h"

namespace smelt {
namespace {

class LineRecords final : public FileRecords {
 public:
  LineRecords(FileContent content, CarriageReturns returns)
      : content_(std::move(content)), rest_(content_.bytes()), returns_(returns) {}

  StatusOr<std::optional<std::string>> Next() override {
    if (rest_.empty()) return std::optional<std::string>();
    const size_t end = rest_.find('\n');
    std::string line(rest_.substr(0, end));
    rest_ = end == absl::string_view::npos ? absl::string_view() : rest_.substr(end + 1);
    if (returns_ == CarriageReturns::kDropAll) {
      std::erase(line, '\r');
    } else if (!line.empty() && line.back() == '\r') {
      line.pop_back();
    }
    // What follows the last line end is a line only if it has bytes.
    if (end == absl::string_view::npos && line.empty()) return std::optional<std::string>();
    ++number_;
    return std::optional<std::string>(std::move(line));
  }
  int64_t position() const override { return number_; }

 private:
  const FileContent content_;
  absl::string_view rest_;
  const CarriageReturns returns_;
  int64_t number_ = 0;
};

// As TensorFlow reads them: a header that is cut short ends the file, later damage is DATA_LOSS.
class TfRecords final : public FileRecords {
 public:
  TfRecords(FileContent content, size_t offset) : content_(std::move(content)), offset_(offset) {}

  StatusOr<std::optional<std::string>> Next() override {
    constexpr size_t kHeader = sizeof(uint64_t);
    const absl::string_view rest = content_.bytes().substr(offset_);
    if (rest.size() < kHeader + kChecksum) return std::optional<std::string>();
    RETURN_IF_ERROR(Check(offset_, kHeader));
    const auto length = LoadLittle<uint64_t>(rest.data());
    const size_t begin = kHeader + kChecksum;
    if (rest.size() - begin < kChecksum || length > rest.size() - begin - kChecksum) {
      return DataLoss("truncated record at ", offset_, "' failed with Read less bytes than ",
                      "requested");
    }
    RETURN_IF_ERROR(Check(offset_ + begin, length));
    position_ = static_cast<int64_t>(offset_);
    offset_ += begin + length + kChecksum;
    return std::optional<std::string>(std::string(rest.substr(begin, length)));
  }
  int64_t position() const override { return position_; }

 private:
  static constexpr size_t kChecksum = sizeof(uint32_t);

  // Bytes [at, at + length) against the checksum behind them.
  Status Check(size_t at, size_t length) const {
    const absl::string_view bytes = content_.bytes().substr(at);
    const auto masked = LoadLittle<uint32_t>(bytes.data() + length);
    if (Crc32c(bytes.substr(0, length)) == UnmaskCrc32c(masked)) return OkStatus();
    return DataLoss("corrupted record at ", at);
  }

  const FileContent content_;
  size_t offset_;
  int64_t position_ = 0;
};

class FixedRecords final : public FileRecords {
 public:
  // `end`: what Next returns after the last record, unless it is OK.
  // REQUIRES: header and footer fit the content, hop > 0.
  FixedRecords(FileContent content, const FixedLengths& lengths, Status end)
      : content_(std::move(content)), lengths_(lengths), end_(std::move(end)) {
    rest_ = content_.bytes();
    rest_.remove_prefix(static_cast<size_t>(lengths.header));
    rest_.remove_suffix(static_cast<size_t>(lengths.footer));
  }

  StatusOr<std::optional<std::string>> Next() override {
    const auto length = static_cast<size_t>(lengths_.record);
    if (rest_.size() < length) {
      RETURN_IF_ERROR(end_);
      return std::optional<std::string>();
    }
    std::string record(rest_.substr(0, length));
    rest_.remove_prefix(std::min(rest_.size(), static_cast<size_t>(lengths_.hop)));
    ++count_;
    return std::optional<std::string>(std::move(record));
  }
  int64_t position() const override { return count_ - 1; }

 private:
  const FileContent content_;
  const FixedLengths lengths_;
  const Status end_;
  absl::string_view rest_;
  int64_t count_ = 0;
};

}  // namespace

StatusOr<FileContent> FileContent::Open(const FileSystem& files, const std::string& path,
                                        absl::string_view compression) {
  if (compression != "" && compression != "ZLIB" && compression != "GZIP") {
    return InvalidArgument("Unsupported compression_type: ", compression);
  }
  FileContent content;
  ASSIGN_OR_RETURN(content.mapped_, files.Map(path));
  if (compression.empty()) return content;
  auto inflated = Inflate(content.mapped_->bytes(),
                          compression == "GZIP" ? DeflateForm::kGzip : DeflateForm::kZlib);
  if (!inflated.ok()) return Suffix(inflated.status(), absl::StrCat(", in ", path));
  content.inflated_ = std::make_shared<const std::string>(*std::move(inflated));
  return content;
}

StatusOr<std::unique_ptr<FileRecords>> OpenLines(const FileSystem& files, const std::string& path,
                                                 absl::string_view compression,
                                                 CarriageReturns returns, int64_t skip_lines) {
  ASSIGN_OR_RETURN(FileContent content, FileContent::Open(files, path, compression));
  auto lines = std::make_unique<LineRecords>(std::move(content), returns);
  for (int64_t i = 0; i < skip_lines; ++i) {
    ASSIGN_OR_RETURN(const auto line, lines->Next());
    if (!line) break;
  }
  return lines;
}

StatusOr<std::unique_ptr<FileRecords>> OpenTfRecords(const FileSystem& files,
                                                     const std::string& path,
                                                     absl::string_view compression,
                                                     int64_t offset) {
  ASSIGN_OR_RETURN(FileContent content, FileContent::Open(files, path, compression));
  if (offset < 0 || static_cast<size_t>(offset) > content.bytes().size()) {
    return OutOfRange("byte offset ", offset, " lies outside of ", path);
  }
  return std::make_unique<TfRecords>(std::move(content), static_cast<size_t>(offset));
}

StatusOr<std::unique_ptr<FileRecords>> OpenFixedLength(const FileSystem& files,
                                                       const std::string& path,
                                                       absl::string_view compression,
                                                       const FixedLengths& lengths, OddLength odd) {
  ASSIGN_OR_RETURN(FileContent content, FileContent::Open(files, path, compression));
  FixedLengths l = lengths;
  if (l.hop == 0) l.hop = l.record;
  const auto size = static_cast<int64_t>(content.bytes().size());
  const int64_t body = size - l.header - l.footer;
  Status end;
  if (odd == OddLength::kRefuse && (body < 0 || body % l.record != 0)) {
    const std::string words = absl::StrCat(
        "Excluding the header (", l.header, " bytes) and footer (", l.footer,
        " bytes), input file \"", path, "\" has body length ", body,
        " bytes, which is not an exact multiple of the record length (", l.record, " bytes).");
    // TensorFlow inflates a compressed file as it reads, and sees its length only at the end.
    if (compression.empty()) return InvalidArgument(words);
    end = DataLoss(words);
  }
  if (body < 0) l = {.header = size, .record = l.record, .hop = l.hop};
  return std::make_unique<FixedRecords>(std::move(content), l, std::move(end));
}

}  // namespace smelt
