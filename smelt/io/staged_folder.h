// A folder that appears whole or not at all, and replaces another one whole or not at all.
//
// It is written beside its place (NAME.smelt-tmp) and swapped with what stands there in one step.
// Where that cannot be, because the place is a mount point or its parent may not be written, it is
// written inside of the place (.smelt-tmp): the old entries move away, the new ones move in, and
// the entry that makes the folder what it is comes last. Whatever kills the process, there is the
// old folder, the new one, or one without that entry, which the next writer to the same place turns
// into the old one again.
#ifndef SMELT_IO_STAGED_FOLDER_H_
#define SMELT_IO_STAGED_FOLDER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "smelt/base/status.h"
#include "smelt/io/descriptor.h"
#include "smelt/io/signal_cleanup.h"

namespace smelt {

// Used by one thread at a time. Errors name the path and carry the code of errno.
class StagedFolder {
 public:
  // Given the names of the entries of a place that is not empty: may they go?
  using MayReplace = std::function<Status(const std::vector<std::string>& names)>;

  // Makes the folders above `place`. Removes what a killed writer left there, or takes it back.
  // `last`: the entry that makes the folder what it is. Errors of `may_replace`, which is asked
  // when something stands there; FAILED_PRECONDITION when that is no folder; ABORTED while another
  // process writes there.
  static StatusOr<std::unique_ptr<StagedFolder>> Make(std::string place, std::string last,
                                                      const MayReplace& may_replace);
  // Without Publish, nothing is left, nor any folder that was made above the place.
  ~StagedFolder();

  // Where the entries are to be written: an empty folder, on the disk of the place.
  std::string path() const { return staging_ + "/new"; }
  // Where `place` leads to, links followed.
  const std::string& place() const { return place_; }
  // REQUIRES: called once, last.
  Status Publish();

 private:
  StagedFolder(std::string place, std::string last)
      : place_(std::move(place)), last_(std::move(last)) {}
  Status Begin(const MayReplace& may_replace);
  // Takes the lock of the staging folder and tidies up what is in it.
  Status Lock(const std::string& staging);
  // REQUIRES: nobody else works in the staging folder.
  Status Recover(const std::string& staging) const;
  Status Swap();
  Status MoveIn();

  const std::string place_, last_;
  std::string staging_;
  bool inside_ = false;     // staging_ lies in place_
  std::string made_above_;  // the topmost folder that was made above the place, or ""
  Descriptor lock_;         // of staging_, which goes with it
  std::optional<RemovedOnSignal> goes_;
  bool published_ = false;
};

}  // namespace smelt

#endif  // SMELT_IO_STAGED_FOLDER_H_
