// File descriptors, and the errors of calls on them.
#ifndef SMELT_IO_DESCRIPTOR_H_
#define SMELT_IO_DESCRIPTOR_H_

#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace smelt {

// Closes the descriptor in the end; -1: none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // The descriptor is gone whatever close says; its error may be that of a delayed write.
  int Close() { return close(std::exchange(fd_, -1)); }

 private:
  int fd_ = -1;
};

// TensorFlow's form of file errors: "path; No such file or directory".
Status FileError(const std::string& path, int error);

Status WriteAll(int fd, absl::string_view bytes, const std::string& path);

// The folder of a path: what stands before the last slash, "." or "/".
std::string FolderOf(const std::string& path);

// Makes a rename within `dir` last through a crash, where the file system can.
void SyncFolder(const std::string& dir);

// Locks the open file or folder for this process, until it is closed. False: somebody else holds
// the lock. True also where the file system knows no locks.
bool LockDescriptor(int fd, bool wait);

}  // namespace smelt

#endif  // SMELT_IO_DESCRIPTOR_H_
