#include "smelt/io/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <cstdio>
#include <memory>

#include "absl/strings/str_split.h"
#include "smelt/io/fs.h"

namespace smelt {
namespace {

constexpr size_t kArchiveBlock = 256 << 10;

struct ArchiveCloser {
  void operator()(archive* a) const { archive_read_free(a); }
  void operator()(std::FILE* f) const { std::fclose(f); }
};

absl::string_view ArchiveError(archive* a) {
  const char* text = archive_error_string(a);
  return text == nullptr ? "no reason given" : text;
}

Status CheckEntryName(absl::string_view name) {
  if (name.empty() || name[0] == '/') return InvalidArgument("entry '", name, "' is not relative");
  for (absl::string_view part : absl::StrSplit(name, '/')) {
    if (part == "..") return InvalidArgument("entry '", name, "' leads out of the archive");
  }
  return OkStatus();
}

Status WriteEntry(archive* a, const std::string& path) {
  std::unique_ptr<std::FILE, ArchiveCloser> file(std::fopen(path.c_str(), "wb"));
  if (file == nullptr) return Internal("cannot write ", path);
  const void* data = nullptr;
  size_t size = 0;
  la_int64_t offset = 0;
  while (true) {
    const int r = archive_read_data_block(a, &data, &size, &offset);
    if (r == ARCHIVE_EOF) break;
    if (r != ARCHIVE_OK) return DataLoss("the archive breaks off: ", ArchiveError(a));
    if (std::fseek(file.get(), static_cast<long>(offset), SEEK_SET) != 0 ||
        std::fwrite(data, 1, size, file.get()) != size) {
      return ResourceExhausted("cannot write ", path, ": the disk refuses");
    }
  }
  if (std::fclose(file.release()) != 0) {
    return ResourceExhausted("cannot write ", path, ": the disk refuses");
  }
  return OkStatus();
}

Status ExtractAll(archive* a, const std::string& folder) {
  while (true) {
    archive_entry* entry = nullptr;
    const int r = archive_read_next_header(a, &entry);
    if (r == ARCHIVE_EOF) return OkStatus();
    if (r != ARCHIVE_OK) return DataLoss("the archive breaks off: ", ArchiveError(a));
    const char* name = archive_entry_pathname(entry);
    RETURN_IF_ERROR(CheckEntryName(name == nullptr ? "" : name));
    const std::string path = JoinPath(folder, name);
    if (archive_entry_filetype(entry) == AE_IFDIR) {
      RETURN_IF_ERROR(MakeDirs(path));
      continue;
    }
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) {
      return InvalidArgument("entry '", name, "' is neither a file nor a folder");
    }
    RETURN_IF_ERROR(MakeDirs(path.substr(0, path.rfind('/'))));
    RETURN_IF_ERROR(WriteEntry(a, path));
  }
}

}  // namespace

Status ExtractArchive(const std::string& path, const std::string& folder) {
  std::unique_ptr<archive, ArchiveCloser> a(archive_read_new());
  if (a == nullptr) return ResourceExhausted("no memory to read ", path);
  archive_read_support_filter_gzip(a.get());
  archive_read_support_format_tar(a.get());
  if (archive_read_open_filename(a.get(), path.c_str(), kArchiveBlock) != ARCHIVE_OK) {
    return InvalidArgument(path, " is not an archive: ", ArchiveError(a.get()));
  }
  return Prefix(ExtractAll(a.get(), folder), absl::StrCat(path, ": "));
}

}  // namespace smelt
