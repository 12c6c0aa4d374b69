#include "smelt/io/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "smelt/io/descriptor.h"
#include "smelt/io/staged_file.h"

namespace smelt {
namespace {

constexpr size_t kCopyStep = size_t{1} << 30;
constexpr size_t kCopyBuffer = size_t{1} << 20;

int OpenForRead(const std::string& path) { return open(path.c_str(), O_RDONLY | O_CLOEXEC); }

// Copies what is left of one open file to the other, in the file system where it can.
Status CopyBytes(int in, const std::string& from, int out, const std::string& to) {
  for (;;) {
    const ssize_t n = copy_file_range(in, nullptr, out, nullptr, kCopyStep, 0);
    if (n == 0) break;  // the end; some file systems also say so of files that they cannot copy
    if (n > 0 || errno == EINTR) continue;
    if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) {
      return FileError(to, errno);
    }
    break;
  }
  std::string bytes(kCopyBuffer, '\0');
  for (;;) {
    const ssize_t n = read(in, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(from, errno);
    if (n == 0) return OkStatus();
    RETURN_IF_ERROR(WriteAll(out, absl::string_view(bytes).substr(0, static_cast<size_t>(n)), to));
  }
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
  Descriptor fd(OpenForRead(path));
  if (!fd.valid()) return FileError(path, errno);
  struct stat st;
  if (fstat(fd.get(), &st) != 0) return FileError(path, errno);
  if (S_ISDIR(st.st_mode)) return FileError(path, EISDIR);
  const auto size = static_cast<size_t>(st.st_size);
  if (size == 0) return std::make_shared<const MappedFile>("", 0);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return FileError(path, errno);
  return std::make_shared<const MappedFile>(data, size);
}

StatusOr<std::string> ReadFile(const std::string& path) {
  Descriptor fd(OpenForRead(path));
  if (!fd.valid()) return FileError(path, errno);
  struct stat st;
  if (fstat(fd.get(), &st) != 0) return FileError(path, errno);
  std::string bytes;
  // One more than the file says, so that the read that finds the end needs no growth.
  bytes.resize(S_ISREG(st.st_mode) ? static_cast<size_t>(st.st_size) + 1 : 65536);
  size_t have = 0;
  while (true) {
    if (have == bytes.size()) bytes.resize(2 * have);
    const ssize_t n = read(fd.get(), bytes.data() + have, bytes.size() - have);
    if (n < 0) {
      if (errno == EINTR) continue;
      return FileError(path, errno);
    }
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

Status WriteFileAtomically(const std::string& path, absl::string_view bytes) {
  ASSIGN_OR_RETURN(const auto file, StagedFile::Make(path, OtherWriter::kWait));
  RETURN_IF_ERROR(file->Write(bytes));
  return file->Publish();
}

Status CopyFile(const std::string& from, const std::string& to) {
  const Descriptor in(OpenForRead(from));
  if (!in.valid()) return FileError(from, errno);
  struct stat st;
  if (fstat(in.get(), &st) != 0) return FileError(from, errno);
  Descriptor out(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 07777));
  if (!out.valid()) return FileError(to, errno);
  const Status copied = CopyBytes(in.get(), from, out.get(), to);
  const bool closed = out.Close() == 0;
  if (copied.ok() && closed) return OkStatus();
  const Status why = copied.ok() ? FileError(to, errno) : copied;
  unlink(to.c_str());
  return why;
}

Status AppendToFile(const std::string& path, absl::string_view bytes) {
  Descriptor fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd.valid()) return FileError(path, errno);
  RETURN_IF_ERROR(WriteAll(fd.get(), bytes, path));
  return fd.Close() == 0 ? OkStatus() : FileError(path, errno);
}

Status MakeDirs(const std::string& path) {
  for (size_t end = 1; end <= path.size(); ++end) {
    if (end != path.size() && path[end] != '/') continue;
    const std::string dir = path.substr(0, end);
    if (mkdir(dir.c_str(), 0777) != 0) {
      const int error = errno;
      // A folder above may refuse the attempt (read-only disk) and still be there.
      if (!IsDir(dir)) return FileError(dir, error);
    }
  }
  return OkStatus();
}

Status MakeFile(const std::string& path, absl::string_view bytes) {
  Descriptor fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd.valid()) return FileError(path, errno);
  Status status = WriteAll(fd.get(), bytes, path);
  if (fd.Close() != 0 && status.ok()) status = FileError(path, errno);
  if (!status.ok()) unlink(path.c_str());
  return status;
}

Status RemoveFile(const std::string& path) {
  return unlink(path.c_str()) == 0 ? OkStatus() : FileError(path, errno);
}

StatusOr<std::vector<std::string>> ListDir(const std::string& path) {
  DIR* dir = opendir(path.c_str());
  if (dir == nullptr) return FileError(path, errno);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(dir)) {
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  const int error = errno;
  closedir(dir);
  if (error != 0) return FileError(path, error);
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
  if (stat(path.c_str(), &st) != 0) return FileError(path, errno);
  return static_cast<int64_t>(st.st_size);
}

std::string JoinPath(absl::string_view dir, absl::string_view name) {
  if (dir.empty()) return std::string(name);
  return absl::StrCat(dir, dir.back() == '/' ? "" : "/", name);
}

}  // namespace smelt
