#include "smelt/io/staged_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "smelt/io/descriptor.h"
#include "smelt/io/signal_cleanup.h"

namespace smelt {
namespace {

namespace stdfs = std::filesystem;

constexpr char kFileSuffix[] = ".smelt-tmp";
// A name may have 255 bytes.
constexpr size_t kLongestStem = 200;
constexpr int kMaxLinks = 40;  // as Linux has it

// Bytes held until they are written where something stands that cannot be replaced.
class WrittenThrough final : public StagedFile {
 public:
  WrittenThrough(std::string path, int flags) : path_(std::move(path)), flags_(flags) {}
  Status Write(absl::string_view bytes) override {
    bytes_.append(bytes.data(), bytes.size());
    return OkStatus();
  }
  Status Publish() override {
    Descriptor fd(open(path_.c_str(), O_WRONLY | O_CLOEXEC | flags_));
    if (!fd.valid()) return FileError(path_, errno);
    Status written = WriteAll(fd.get(), bytes_, path_);
    // Half a file is worse than an empty one; only a regular file is opened with O_TRUNC.
    if (!written.ok() && (flags_ & O_TRUNC) != 0 && ftruncate(fd.get(), 0) != 0) return written;
    if (fd.Close() != 0 && written.ok()) written = FileError(path_, errno);
    return written;
  }

 private:
  const std::string path_;
  const int flags_;
  std::string bytes_;
};

class Renamed final : public StagedFile {
 public:
  Renamed(std::string path, std::string beside, Descriptor fd)
      : path_(std::move(path)), beside_(std::move(beside)), fd_(std::move(fd)) {
    goes_.emplace(beside_);
  }
  ~Renamed() override {
    if (goes_) unlink(beside_.c_str());
  }
  Status Write(absl::string_view bytes) override {
    RETURN_IF_ERROR(WriteAll(fd_.get(), bytes, beside_));
    written_ += static_cast<off_t>(bytes.size());
    if (written_ - begun_ >= kWriteBack) {
      // The disk writes while the rest is made. Advice: Publish() waits for all and says what
      // fails.
      sync_file_range(fd_.get(), begun_, written_ - begun_, SYNC_FILE_RANGE_WRITE);
      begun_ = written_;
    }
    return OkStatus();
  }

  Status Publish() override {
    if (fsync(fd_.get()) != 0) return FileError(beside_, errno);
    const SignalsWait whole;
    if (std::rename(beside_.c_str(), path_.c_str()) != 0) {
      if (errno == EBUSY) return WriteInPlace();
      return FileError(path_, errno);
    }
    goes_.reset();
    if (fd_.Close() != 0) return FileError(path_, errno);
    SyncFolder(FolderOf(path_));
    return OkStatus();
  }

 private:
  // The place is a mount of its own.
  Status WriteInPlace() {
    WrittenThrough through(path_, O_TRUNC);
    std::string bytes(1 << 16, '\0');
    for (off_t at = 0;;) {
      const ssize_t n = pread(fd_.get(), bytes.data(), bytes.size(), at);
      if (n < 0) return FileError(beside_, errno);
      if (n == 0) return through.Publish();
      RETURN_IF_ERROR(through.Write(absl::string_view(bytes).substr(0, static_cast<size_t>(n))));
      at += n;
    }
  }

  static constexpr off_t kWriteBack = off_t{8} << 20;

  const std::string path_, beside_;
  Descriptor fd_;
  off_t written_ = 0, begun_ = 0;        // bytes; those that the disk was told of
  std::optional<RemovedOnSignal> goes_;  // until it is renamed
};

std::string Beside(const std::string& path) {
  const size_t name = path.rfind('/') + 1;  // npos + 1 == 0
  return absl::StrCat(path.substr(0, name + kLongestStem), kFileSuffix);
}

// Opens the file beside the place and locks it. What is in it belongs to a process that is gone.
// `whole` lives from before the file is made.
StatusOr<Descriptor> OpenBeside(const std::string& path, const std::string& beside,
                                OtherWriter other, std::optional<SignalsWait>* whole) {
  for (;;) {
    whole->emplace();
    Descriptor fd(open(beside.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!fd.valid()) return FileError(beside, errno);
    bool locked = LockDescriptor(fd.get(), /*wait=*/false);
    if (!locked && other == OtherWriter::kWait) {
      whole->reset();  // the file is the other's
      locked = LockDescriptor(fd.get(), /*wait=*/true);
      whole->emplace();
    }
    if (!locked) {
      return absl::AbortedError(absl::StrCat(path, ": another process is writing this file"));
    }
    struct stat here, there;
    if (fstat(fd.get(), &here) != 0) return FileError(beside, errno);
    if (stat(beside.c_str(), &there) != 0 || here.st_ino != there.st_ino ||
        here.st_dev != there.st_dev) {
      continue;  // the other writer has renamed it away
    }
    if (ftruncate(fd.get(), 0) != 0) return FileError(beside, errno);
    return fd;
  }
}

// Where links lead to, the last of which may lead to nothing. "" for a link of /proc, which stands
// for an open file.
StatusOr<std::string> FollowLinks(std::string path) {
  for (int i = 0; i < kMaxLinks; ++i) {
    std::error_code e;
    const stdfs::path folder = stdfs::weakly_canonical(FolderOf(path), e);
    if (absl::StartsWith(folder.string(), "/proc")) return std::string();
    if (!stdfs::is_symlink(stdfs::symlink_status(path, e))) return path;
    const stdfs::path target = stdfs::read_symlink(path, e);
    if (e) return FileError(path, e.value());
    path = target.is_absolute() ? target.string() : (folder / target).string();
  }
  return FileError(path, ELOOP);
}

}  // namespace

StatusOr<std::unique_ptr<StagedFile>> StagedFile::Make(const std::string& path, OtherWriter other) {
  struct stat st;
  const bool exists = stat(path.c_str(), &st) == 0;
  if (exists && S_ISDIR(st.st_mode)) return FileError(path, EISDIR);
  ASSIGN_OR_RETURN(std::string place, FollowLinks(path));
  if (exists && (place.empty() || !S_ISREG(st.st_mode))) {
    if (access(path.c_str(), W_OK) != 0) return FileError(path, errno);
    return std::make_unique<WrittenThrough>(path, O_APPEND);
  }
  if (place.empty()) return FileError(path, ENOENT);
  std::string beside = Beside(place);
  // From its making on the file goes with the process.
  std::optional<SignalsWait> whole;
  auto fd = OpenBeside(path, beside, other, &whole);
  if (!fd.ok()) {
    // The folder may not be written, the file in it may be.
    const bool file_only = exists && access(FolderOf(place).c_str(), W_OK) != 0;
    if (!file_only || access(place.c_str(), W_OK) != 0) return fd.status();
    return std::make_unique<WrittenThrough>(place, O_TRUNC);
  }
  // Nobody else may change what is written before it is in place.
  if (exists && fchmod(fd->get(), st.st_mode & 07777) != 0) return FileError(beside, errno);
  return std::make_unique<Renamed>(std::move(place), std::move(beside), *std::move(fd));
}

}  // namespace smelt
