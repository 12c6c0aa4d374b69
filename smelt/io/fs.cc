#include "smelt/io/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace smelt {
namespace {

// TensorFlow's form of file errors: "path; No such file or directory".
Status FsError(const std::string& path, int error) {
  return Status(absl::ErrnoToStatusCode(error),
                absl::StrCat(path, "; ", absl::ErrnoToStatus(error, "").message().substr(2)));
}

class FsDescriptor {
 public:
  explicit FsDescriptor(int fd) : fd_(fd) {}
  FsDescriptor(const FsDescriptor&) = delete;
  FsDescriptor& operator=(const FsDescriptor&) = delete;
  ~FsDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  // The descriptor is gone whatever close says; its error may be that of a delayed write.
  int Close() { return close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

// Does not wait for somebody to write into a pipe: what is no file is refused at once.
int OpenForRead(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

// What a path names that is neither a file nor a folder.
Status NotAFile(const std::string& path, mode_t mode) {
  if (S_ISDIR(mode)) return FsError(path, EISDIR);
  absl::string_view kind = "a block device";
  if (S_ISCHR(mode)) kind = "a character device";
  if (S_ISFIFO(mode)) kind = "a pipe";
  if (S_ISSOCK(mode)) kind = "a socket";
  return FailedPrecondition(path, "; Is ", kind, ", not a file");
}

// The bytes up to the end, of which about `expected` are there.
StatusOr<std::string> ReadToEnd(int fd, const std::string& path, size_t expected, size_t limit) {
  const auto too_many = [&] {
    return ResourceExhausted(path, "; Holds more than ", limit, " bytes, the most that is read");
  };
  if (expected > limit) return too_many();
  std::string bytes;
  // One more than expected, so that the read that finds the end needs no growth.
  bytes.resize(expected + 1);
  size_t have = 0;
  while (true) {
    if (have == bytes.size()) bytes.resize(2 * have);
    const ssize_t n = read(fd, bytes.data() + have, bytes.size() - have);
    if (n < 0) {
      if (errno == EINTR) continue;
      return FsError(path, errno);
    }
    if (n == 0) break;
    have += static_cast<size_t>(n);
    if (have > limit) return too_many();
  }
  bytes.resize(have);
  return bytes;
}

// What is typed or piped is waited for.
StatusOr<std::string> ReadInputFrom(int fd, const std::string& name) {
  constexpr size_t kPipeBlock = 64 << 10;
  struct stat st;
  if (fstat(fd, &st) != 0) return FsError(name, errno);
  const bool typed = S_ISCHR(st.st_mode) && isatty(fd) != 0;
  const bool stream = S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || typed;
  if (!S_ISREG(st.st_mode) && !stream) return NotAFile(name, st.st_mode);
  return ReadToEnd(fd, name, stream ? kPipeBlock : static_cast<size_t>(st.st_size), kMaxInputBytes);
}

Status WriteAll(int fd, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return FsError(path, errno);
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return OkStatus();
}

std::string Parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Makes a rename within `dir` last through a crash. Errors are ignored: some file systems cannot
// sync a folder.
void SyncDir(const std::string& dir) {
  FsDescriptor fd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() >= 0) fsync(fd.get());
}

// Adds the paths below `dir` that match the pattern components of `rest`.
void AddMatching(const std::string& dir, absl::string_view rest, std::vector<std::string>* found) {
  const size_t slash = rest.find('/');
  const std::string part(rest.substr(0, slash));
  const bool last = slash == absl::string_view::npos;
  const absl::string_view below = last ? absl::string_view() : rest.substr(slash + 1);
  const auto descend = [&](const std::string& name) {
    const std::string path = dir == "/" ? absl::StrCat("/", name) : JoinPath(dir, name);
    if (last) {
      if (Exists(path)) found->push_back(path);
    } else if (IsDir(path)) {
      AddMatching(path, below, found);
    }
  };
  if (part.empty()) {  // a doubled or trailing slash
    if (!last) AddMatching(dir, below, found);
    return;
  }
  if (part.find_first_of("*?[\\") == std::string::npos) return descend(part);
  const auto names = ListDir(dir.empty() ? "." : dir);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (fnmatch(part.c_str(), name.c_str(), 0) == 0) descend(name);
  }
}

}  // namespace

MappedFile::~MappedFile() {
  if (size_ != 0) munmap(const_cast<void*>(data_), size_);
}

StatusOr<std::shared_ptr<const MappedFile>> MapFile(const std::string& path) {
  FsDescriptor fd(OpenForRead(path));
  if (fd.get() < 0) return FsError(path, errno);
  struct stat st;
  if (fstat(fd.get(), &st) != 0) return FsError(path, errno);
  if (!S_ISREG(st.st_mode)) return NotAFile(path, st.st_mode);
  const auto size = static_cast<size_t>(st.st_size);
  if (size == 0) return std::make_shared<const MappedFile>("", 0);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return FsError(path, errno);
  return std::make_shared<const MappedFile>(data, size);
}

StatusOr<std::string> ReadFile(const std::string& path) {
  FsDescriptor fd(OpenForRead(path));
  if (fd.get() < 0) return FsError(path, errno);
  struct stat st;
  if (fstat(fd.get(), &st) != 0) return FsError(path, errno);
  if (!S_ISREG(st.st_mode)) return NotAFile(path, st.st_mode);
  return ReadToEnd(fd.get(), path, static_cast<size_t>(st.st_size), SIZE_MAX);
}

StatusOr<std::string> ReadInput(const std::string& path) {
  // Waits until somebody writes into a pipe.
  FsDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (fd.get() < 0) return FsError(path, errno);
  return ReadInputFrom(fd.get(), path);
}

StatusOr<std::string> ReadStandardInput() { return ReadInputFrom(STDIN_FILENO, "standard input"); }

Status WriteFileAtomically(const std::string& path, absl::string_view bytes) {
  static std::atomic<uint64_t> counter{0};
  const std::string beside = absl::StrCat(path, ".tmp.", getpid(), ".", counter.fetch_add(1));
  FsDescriptor fd(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (fd.get() < 0) return FsError(beside, errno);
  Status status = WriteAll(fd.get(), bytes, beside);
  if (status.ok() && fsync(fd.get()) != 0) status = FsError(beside, errno);
  if (fd.Close() != 0 && status.ok()) status = FsError(beside, errno);
  if (status.ok() && rename(beside.c_str(), path.c_str()) != 0) status = FsError(path, errno);
  if (!status.ok()) {
    unlink(beside.c_str());
    return status;
  }
  SyncDir(Parent(path));
  return OkStatus();
}

Status MakeDirs(const std::string& path) {
  for (size_t end = 1; end <= path.size(); ++end) {
    if (end != path.size() && path[end] != '/') continue;
    const std::string dir = path.substr(0, end);
    if (mkdir(dir.c_str(), 0777) != 0) {
      const int error = errno;
      // A folder above may refuse the attempt (read-only disk) and still be there.
      if (!IsDir(dir)) return FsError(dir, error);
    }
  }
  return OkStatus();
}

Status MakeFile(const std::string& path, absl::string_view bytes) {
  FsDescriptor fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (fd.get() < 0) return FsError(path, errno);
  Status status = WriteAll(fd.get(), bytes, path);
  if (fd.Close() != 0 && status.ok()) status = FsError(path, errno);
  if (!status.ok()) unlink(path.c_str());
  return status;
}

Status RemoveFile(const std::string& path) {
  return unlink(path.c_str()) == 0 ? OkStatus() : FsError(path, errno);
}

StatusOr<std::vector<std::string>> ListDir(const std::string& path) {
  DIR* dir = opendir(path.c_str());
  if (dir == nullptr) return FsError(path, errno);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(dir)) {
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  const int error = errno;
  closedir(dir);
  if (error != 0) return FsError(path, error);
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> MatchingPaths(const std::string& pattern) {
  std::vector<std::string> found;
  const bool absolute = !pattern.empty() && pattern[0] == '/';
  AddMatching(absolute ? "/" : "", absl::string_view(pattern).substr(absolute ? 1 : 0), &found);
  std::ranges::sort(found);
  return found;
}

bool Exists(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0;
}

bool IsDir(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

StatusOr<int64_t> FileSize(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return FsError(path, errno);
  return static_cast<int64_t>(st.st_size);
}

std::string JoinPath(absl::string_view dir, absl::string_view name) {
  if (dir.empty()) return std::string(name);
  return absl::StrCat(dir, dir.back() == '/' ? "" : "/", name);
}

}  // namespace smelt
