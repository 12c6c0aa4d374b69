#include "smelt/io/staged_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "smelt/io/fs.h"
#include "smelt/io/path.h"

namespace smelt {
namespace {

namespace stdfs = std::filesystem;

constexpr char kFolderSuffix[] = ".smelt-tmp";
// In the staging folder: the entries to publish, what they replace, and, once the old ones are out
// of the way, the names of the new ones.
constexpr char kNew[] = "/new", kOld[] = "/old", kMovingIn[] = "/names";

Status RenamePath(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0 ? OkStatus() : FileError(to, errno);
}

bool StandsThere(const std::string& path) {
  struct stat st;
  return lstat(path.c_str(), &st) == 0;
}

Status RemoveAll(const std::string& path) {
  std::error_code e;
  stdfs::remove_all(path, e);
  return e ? FileError(path, e.value()) : OkStatus();
}

// Is the folder the root of a mount? Nothing can be renamed over it.
bool IsMountPoint(const std::string& dir) {
  struct statx st = {};
  if (statx(AT_FDCWD, dir.c_str(), 0, STATX_BASIC_STATS, &st) != 0) return false;
  if ((st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0) {
    return (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  }
  struct stat here, above;
  return stat(dir.c_str(), &here) == 0 && stat(JoinPath(dir, "..").c_str(), &above) == 0 &&
         here.st_dev != above.st_dev;
}

// What stands in a place, without what is no part of it: the staging folder, and what file systems
// keep at the root of a mount.
StatusOr<std::vector<std::string>> EntriesOf(const std::string& place) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir(place));
  std::erase_if(
      names, [](const std::string& name) { return name == kFolderSuffix || name == "lost+found"; });
  return names;
}

// Moves the names from one folder to the other, `last` at the end.
Status MoveNames(const std::vector<std::string>& names, const std::string& from,
                 const std::string& to, const std::string& last) {
  for (const bool final_one : {false, true}) {
    for (const std::string& name : names) {
      if ((name == last) != final_one) continue;
      RETURN_IF_ERROR(RenamePath(JoinPath(from, name), JoinPath(to, name)));
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<StagedFolder>> StagedFolder::Make(std::string place, std::string last,
                                                           const MayReplace& may_replace) {
  ASSIGN_OR_RETURN(place, ResolvedPath(place));
  auto folder = std::unique_ptr<StagedFolder>(new StagedFolder(std::move(place), std::move(last)));
  RETURN_IF_ERROR(folder->Begin(may_replace));
  return folder;
}

Status StagedFolder::Begin(const MayReplace& may_replace) {
  const std::string parent = FolderOf(place_);
  for (std::string above = parent; !StandsThere(above); above = FolderOf(above)) {
    made_above_ = above;
  }
  RETURN_IF_ERROR(MakeDirs(parent));
  const bool exists = StandsThere(place_);
  if (exists && !IsDir(place_)) return FileError(place_, ENOTDIR);
  // A writer that was killed inside of the place has left its state there.
  const std::string inside = JoinPath(place_, kFolderSuffix);
  inside_ = exists && (StandsThere(inside) || IsMountPoint(place_) ||
                       access(parent.c_str(), W_OK | X_OK) != 0);
  if (inside_ && StandsThere(inside)) {
    RETURN_IF_ERROR(Lock(inside));
  } else {
    RETURN_IF_ERROR(Lock(inside_ ? inside : place_ + kFolderSuffix));
  }
  if (IsDir(place_)) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, EntriesOf(place_));
    if (!names.empty()) RETURN_IF_ERROR(may_replace(names));
  }
  return MakeDirs(path());
}

Status StagedFolder::Lock(const std::string& staging) {
  // From its making on the folder goes with the process.
  const SignalsWait whole;
  for (;;) {
    const bool made = mkdir(staging.c_str(), 0777) == 0;
    if (!made && errno != EEXIST) return FileError(staging, errno);
    Descriptor fd(open(staging.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) {
      if (errno == ENOENT) continue;  // the other writer has just ended
      return FileError(staging, errno);
    }
    if (!LockDescriptor(fd.get(), /*wait=*/false)) {
      return absl::AbortedError(absl::StrCat(place_, ": another process is writing this folder"));
    }
    struct stat here, there;
    if (fstat(fd.get(), &here) != 0) return FileError(staging, errno);
    if (stat(staging.c_str(), &there) != 0 || here.st_ino != there.st_ino) continue;
    RETURN_IF_ERROR(Recover(staging));
    lock_ = std::move(fd);
    staging_ = staging;
    goes_.emplace(staging_);
    return OkStatus();
  }
}

// The staging folder is locked, so whoever made what is in it is gone.
Status StagedFolder::Recover(const std::string& staging) const {
  const std::string fresh = staging + kNew, old = staging + kOld, moving_in = staging + kMovingIn;
  if (!inside_) {
    if (StandsThere(old) && !StandsThere(place_)) RETURN_IF_ERROR(RenamePath(old, place_));
  } else if (StandsThere(old)) {
    const bool done = StandsThere(moving_in) && StandsThere(JoinPath(place_, last_)) &&
                      !StandsThere(JoinPath(fresh, last_));
    if (!done) {
      if (StandsThere(moving_in)) {
        ASSIGN_OR_RETURN(const std::string text, ReadFile(moving_in));
        for (const absl::string_view name : absl::StrSplit(text, '\0')) {
          if (name.empty() || StandsThere(JoinPath(fresh, name))) continue;
          RETURN_IF_ERROR(RemoveAll(JoinPath(place_, name)));
        }
      }
      ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(old));
      RETURN_IF_ERROR(MoveNames(names, old, place_, last_));
    }
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> left, ListDir(staging));
  for (const std::string& name : left) RETURN_IF_ERROR(RemoveAll(JoinPath(staging, name)));
  return OkStatus();
}

Status StagedFolder::Publish() {
  // Names and contents before the step that makes them visible.
  SyncFolder(path());
  const SignalsWait whole;
  const Status moved = inside_ ? MoveIn() : Swap();
  published_ = moved.ok();
  return moved;
}

Status StagedFolder::Swap() {
  const std::string fresh = path(), old = staging_ + kOld;
  // Over nothing, or over an empty folder.
  if (std::rename(fresh.c_str(), place_.c_str()) == 0) {
    SyncFolder(FolderOf(place_));
    return OkStatus();
  }
  if (errno != ENOTEMPTY && errno != EEXIST) return FileError(place_, errno);
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, place_.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno != EINVAL && errno != ENOSYS) return FileError(place_, errno);
    // A file system that cannot exchange.
    RETURN_IF_ERROR(RenamePath(place_, old));
    if (const Status s = RenamePath(fresh, place_); !s.ok()) {
      RETURN_IF_ERROR(RenamePath(old, place_));
      return s;
    }
  }
  SyncFolder(FolderOf(place_));
  return OkStatus();
}

Status StagedFolder::MoveIn() {
  const std::string fresh = path(), old = staging_ + kOld;
  ASSIGN_OR_RETURN(const std::vector<std::string> olds, EntriesOf(place_));
  ASSIGN_OR_RETURN(const std::vector<std::string> news, ListDir(fresh));
  RETURN_IF_ERROR(MakeDirs(old));
  const auto move = [&]() -> Status {
    // What makes the old folder what it is goes first.
    if (StandsThere(JoinPath(place_, last_))) {
      RETURN_IF_ERROR(RenamePath(JoinPath(place_, last_), JoinPath(old, last_)));
    }
    for (const std::string& name : olds) {
      if (name == last_) continue;
      RETURN_IF_ERROR(RenamePath(JoinPath(place_, name), JoinPath(old, name)));
    }
    RETURN_IF_ERROR(
        WriteFileAtomically(staging_ + kMovingIn, absl::StrJoin(news, std::string(1, '\0'))));
    return MoveNames(news, fresh, place_, last_);
  };
  const Status moved = move();
  if (!moved.ok()) {
    const Status back = Recover(staging_);
    if (back.ok()) return moved;
    // The old folder is still in there.
    lock_ = Descriptor();
    goes_.reset();
    return Suffix(moved, absl::StrCat("; taking it back: ", back.message()));
  }
  SyncFolder(place_);
  return OkStatus();
}

StagedFolder::~StagedFolder() {
  if (!lock_.valid()) return;
  RemoveAll(staging_).IgnoreError();  // the next writer removes what is left
  goes_.reset();
  if (published_ || made_above_.empty()) return;
  // Only folders that are still empty go.
  for (std::string dir = FolderOf(place_);; dir = FolderOf(dir)) {
    if (rmdir(dir.c_str()) != 0 || dir == made_above_) return;
  }
}

}  // namespace smelt
