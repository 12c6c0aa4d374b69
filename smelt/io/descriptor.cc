#include "smelt/io/descriptor.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

namespace smelt {

Status FileError(const std::string& path, int error) {
  return Status(absl::ErrnoToStatusCode(error),
                absl::StrCat(path, "; ", absl::ErrnoToStatus(error, "").message().substr(2)));
}

Status WriteAll(int fd, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return FileError(path, errno);
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return OkStatus();
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void SyncFolder(const std::string& dir) {
  const Descriptor fd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) fsync(fd.get());
}

bool LockDescriptor(int fd, bool wait) {
  for (;;) {
    if (flock(fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB) == 0) return true;
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return true;
  }
}

}  // namespace smelt
