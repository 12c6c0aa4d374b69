#include "smelt/io/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "smelt/io/fs.h"
#include "smelt/io/inflate.h"
#include "smelt/io/unpack_limit.h"

namespace smelt {
namespace {

constexpr uint64_t kTarBlock = 512;
// What an empty file and a folder take of a disk, about, and of the time to make and remove them.
constexpr uint64_t kFileBytes = 4 << 10;
constexpr uint64_t kFolderBytes = 16 << 10;
constexpr absl::string_view kGzipMagic = "\x1f\x8b";

struct ArchiveCloser {
  void operator()(archive* a) const { archive_read_free(a); }
  void operator()(std::FILE* f) const { std::fclose(f); }
};

// libarchive turns the UTF-8 names of PAX headers into the character set of the locale, and plain C
// has none. This changes it for one thread, and neither numbers nor messages. Where the system has
// no C.UTF-8, the locale stays, and names that it cannot tell are errors.
class Utf8Names {
 public:
  Utf8Names() : utf8_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (utf8_ != nullptr) before_ = uselocale(utf8_);
  }
  Utf8Names(const Utf8Names&) = delete;
  Utf8Names& operator=(const Utf8Names&) = delete;
  ~Utf8Names() {
    if (utf8_ == nullptr) return;
    uselocale(before_);
    freelocale(utf8_);
  }

 private:
  locale_t utf8_, before_ = nullptr;
};

// The bytes of a tar file, of which gzip's checksums are verified on the way: libarchive's own
// filter leaves them out.
class TarBytes {
 public:
  // `file` must outlive this.
  explicit TarBytes(absl::string_view file) : plain_(file) {
    if (absl::StartsWith(file, kGzipMagic)) {
      packed_.emplace(file, DeflateForm::kPaddedGzip, CutShort::kRefuse);
    }
  }

  // The next block; none at the end.
  StatusOr<absl::string_view> Next() {
    absl::string_view block;
    if (packed_) {
      ASSIGN_OR_RETURN(block, packed_->Next());
    } else {
      std::swap(block, plain_);
    }
    const size_t last = block.find_last_not_of('\0');
    if (last != block.npos) last_not_zero_ = size_ + last + 1;
    size_ += block.size();
    return block;
  }

  // What archive_read_open calls. An error stays in status().
  static la_ssize_t Read(archive* a, void* self, const void** block) {
    auto& bytes = *static_cast<TarBytes*>(self);
    auto next = bytes.Next();
    if (!next.ok()) {
      bytes.status_ = next.status();
      archive_set_error(a, EIO, "%s", "its bytes cannot be read");
      return -1;
    }
    *block = next->data();
    return static_cast<la_ssize_t>(next->size());
  }

  const Status& status() const { return status_; }
  // Of the blocks so far.
  uint64_t size() const { return size_; }
  uint64_t last_not_zero() const { return last_not_zero_; }

 private:
  absl::string_view plain_;
  std::optional<InflateStream> packed_;
  uint64_t size_ = 0, last_not_zero_ = 0;
  Status status_;
};

Status CheckEntryName(absl::string_view name) {
  if (name.size() >= PATH_MAX) return InvalidArgument("an entry's name is longer than any path");
  if (name.empty() || name[0] == '/') return InvalidArgument("entry '", name, "' is not relative");
  for (absl::string_view part : absl::StrSplit(name, '/')) {
    if (part == "..") return InvalidArgument("entry '", name, "' leads out of the archive");
  }
  return OkStatus();
}

class Extraction {
 public:
  Extraction(absl::string_view file, const std::string& folder)
      : bytes_(file), folder_(folder), limit_(UnpackLimit(file.size())) {}

  Status Run() {
    archive_.reset(archive_read_new());
    if (archive_ == nullptr) return ResourceExhausted("no memory to read an archive");
    archive_read_support_format_tar(archive_.get());
    if (archive_read_open(archive_.get(), &bytes_, nullptr, TarBytes::Read, nullptr) !=
        ARCHIVE_OK) {
      return Broken();
    }
    RETURN_IF_ERROR(Entries());
    return CheckEnd();
  }

 private:
  Status Broken() {
    RETURN_IF_ERROR(bytes_.status());
    const char* text = archive_error_string(archive_.get());
    return DataLoss("the archive breaks off: ", text == nullptr ? "no reason given" : text);
  }

  Status Entries() {
    while (true) {
      archive_entry* entry = nullptr;
      const int r = archive_read_next_header(archive_.get(), &entry);
      if (r == ARCHIVE_EOF) return OkStatus();
      if (r != ARCHIVE_OK) return Broken();
      const char* name = archive_entry_pathname(entry);
      RETURN_IF_ERROR(CheckEntryName(name == nullptr ? "" : name));
      const std::string path = JoinPath(folder_, name);
      if (archive_entry_filetype(entry) == AE_IFDIR) {
        RETURN_IF_ERROR(MakeFolder(name));
        if (archive_read_data_skip(archive_.get()) != ARCHIVE_OK) return Broken();
      } else if (archive_entry_filetype(entry) == AE_IFREG &&
                 archive_entry_hardlink(entry) == nullptr) {
        const size_t slash = absl::string_view(name).rfind('/');
        if (slash != absl::string_view::npos) {
          RETURN_IF_ERROR(MakeFolder(absl::string_view(name).substr(0, slash)));
        }
        RETURN_IF_ERROR(WriteEntry(path, static_cast<uint64_t>(archive_entry_size(entry))));
      } else {
        return InvalidArgument("entry '", name, "' is neither a file nor a folder");
      }
      entries_end_ = static_cast<uint64_t>(archive_filter_bytes(archive_.get(), 0));
    }
  }

  Status Grow(uint64_t bytes) {
    unpacked_ += std::min(bytes, UINT64_MAX - unpacked_);
    return CheckUnpacked("the archive", unpacked_, limit_);
  }

  // Makes the folder, of a name within the archive, and those around it that are not there.
  Status MakeFolder(absl::string_view name) {
    bool made = false;
    for (size_t end = 0; end != name.npos;) {
      end = name.find('/', end + 1);
      if (!folders_.emplace(name.substr(0, end)).second) continue;
      RETURN_IF_ERROR(Grow(kFolderBytes));
      made = true;
    }
    return made ? MakeDirs(JoinPath(folder_, name)) : OkStatus();
  }

  // The size that the header states is taken before a byte is written: of a sparse file only parts
  // are in the archive.
  Status WriteEntry(const std::string& path, uint64_t size) {
    RETURN_IF_ERROR(Grow(kFileBytes));
    RETURN_IF_ERROR(Grow(size));
    std::unique_ptr<std::FILE, ArchiveCloser> file(std::fopen(path.c_str(), "wb"));
    if (file == nullptr) return Internal("cannot write ", path);
    const void* data = nullptr;
    size_t part = 0;
    la_int64_t offset = 0;
    while (true) {
      const int r = archive_read_data_block(archive_.get(), &data, &part, &offset);
      if (r == ARCHIVE_EOF) break;
      if (r != ARCHIVE_OK) return Broken();
      const auto at = static_cast<uint64_t>(offset);
      if (at > size || part > size - at) return DataLoss("a file is longer than its header says");
      if (std::fseek(file.get(), static_cast<long>(offset), SEEK_SET) != 0 ||
          std::fwrite(data, 1, part, file.get()) != part) {
        return ResourceExhausted("cannot write ", path, ": the disk refuses");
      }
    }
    // A sparse file may end in a hole.
    if (std::fflush(file.get()) != 0 ||
        ftruncate(fileno(file.get()), static_cast<off_t>(size)) != 0 ||
        std::fclose(file.release()) != 0) {
      return ResourceExhausted("cannot write ", path, ": the disk refuses");
    }
    return OkStatus();
  }

  // Behind the last entry stand blocks of zeros, and nothing else: an archive without them is cut
  // short between two entries, one with more was spoiled by zeros in its midst, or is two.
  Status CheckEnd() {
    while (true) {
      ASSIGN_OR_RETURN(const absl::string_view block, bytes_.Next());
      if (block.empty()) break;
    }
    const uint64_t end = (entries_end_ + kTarBlock - 1) / kTarBlock * kTarBlock;
    if (bytes_.last_not_zero() > end) {
      return DataLoss("the archive goes on behind its end, at byte ", end);
    }
    if (bytes_.size() < end + kTarBlock) return DataLoss("the archive breaks off: it has no end");
    return OkStatus();
  }

  TarBytes bytes_;
  const std::string& folder_;
  const uint64_t limit_;
  std::unique_ptr<archive, ArchiveCloser> archive_;
  std::set<std::string> folders_;  // that were made
  uint64_t unpacked_ = 0;
  uint64_t entries_end_ = 0;  // in bytes of the tar file
};

}  // namespace

Status ExtractArchive(const std::string& path, const std::string& folder) {
  ASSIGN_OR_RETURN(const auto file, MapFile(path));
  const Utf8Names utf8;
  return Prefix(Extraction(file->bytes(), folder).Run(), absl::StrCat(path, ": "));
}

}  // namespace smelt
