// FormsFile: what was made of a model's files, packed weights above all, in a file of a cache
// folder, for later processes. The format is drawn in docs/formats/forms.md.
//
// The file is one of a key: what the model's files hold and what program reads them. Nothing in it
// is believed: its head and its table are checked before it is used, a form when it is asked for,
// each against its checksum. What fails is as if it were not there, and is written anew. A file
// that others than its owner may write, or that belongs to somebody else than this user and root,
// is not used: whoever writes it decides on answers.
#ifndef SMELT_IO_FORMS_FILE_H_
#define SMELT_IO_FORMS_FILE_H_

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "smelt/base/status.h"
#include "smelt/io/file_system.h"
#include "smelt/io/fs.h"

namespace smelt {

// Read-only bytes, aligned to a cache line; `owner` is kept while they are used.
struct KeptBytes {
  const void* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
};

struct FormsFileOptions {
  // What the files of a folder may take together. Those that were written first go when another
  // one would exceed it; one that alone exceeds it is not written.
  int64_t folder_limit = int64_t{16} << 30;
};

// Thread safe. Processes may share a folder: each maps what it finds, and replaces whole files.
class FormsFile {
 public:
  // Never fails: without a folder, or with a file that cannot be used, there are no forms yet.
  static std::shared_ptr<FormsFile> Open(const std::string& folder, absl::string_view key,
                                         const FormsFileOptions& options = {});

  // The form of `size` bytes that `what` names: which bytes of which file it was made of and all
  // that its making depends on, but not what the files hold, which the key says. Empty: there is
  // none.
  std::optional<KeptBytes> Find(absl::string_view what, size_t size);
  // Checks the forms, so that finding them does not: for a thread beside those that will. Returns
  // when all are checked, or soon after `stop`.
  void CheckAhead(const std::stop_token& stop);
  // Keeps the bytes, which nobody changes any more.
  void Add(absl::string_view what, KeptBytes bytes);

  // Writes what was added, with what is still good of the file, beside it, and renames that into
  // place; makes the folder. Nothing where nothing was added, or another process is writing the
  // file. What it keeps is not held any more. Errors of the disk name the path;
  // RESOURCE_EXHAUSTED beyond the limit.
  Status Save();
  // What was wrong with the file so far, for people; each is told once.
  std::vector<std::string> TakeWarnings();
  const std::string& path() const { return path_; }

 private:
  // By what: SHA-256, so that the file need not hold texts.
  using Name = std::array<char, 32>;
  enum class State : uint8_t { kUnknown, kBusy, kGood, kBad };
  struct Stored {
    uint64_t offset = 0, size = 0;
    uint32_t crc = 0;
    State state = State::kUnknown;
    bool used = false;
  };

  FormsFile(std::string folder, absl::string_view key, const FormsFileOptions& options);
  static Name NameOf(absl::string_view what);
  // Checks a form that is busy by this thread.
  bool Check(Stored& stored, const MappedFile& file);
  Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status MakeRoom(int64_t bytes) const;

  const std::string folder_;
  const std::string key_;  // SHA-256, hexadecimal
  const FormsFileOptions options_;
  const std::string path_;
  absl::Mutex mutex_;
  std::shared_ptr<const MappedFile> file_ ABSL_GUARDED_BY(mutex_);
  std::map<Name, Stored> stored_ ABSL_GUARDED_BY(mutex_);
  std::map<Name, KeptBytes> added_ ABSL_GUARDED_BY(mutex_);
  bool damaged_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> warnings_ ABSL_GUARDED_BY(mutex_);
};

// Which files have forms is known to the whole process, as what is mapped where is: kernels see
// bytes, and whoever maps them for a kernel knows nothing of the cache.
//
// Files whose paths begin with `prefix` have these forms while somebody holds them.
void KeepFormsOf(std::string prefix, const std::shared_ptr<FormsFile>& forms);
// As files.Map; where forms of the file are kept, FindKeptPlace finds its bytes while it is mapped.
StatusOr<std::shared_ptr<const MappedFile>> MapWithForms(const FileSystem& files,
                                                         const std::string& path);
// Where bytes lie in a file whose forms are kept.
struct KeptPlace {
  std::shared_ptr<FormsFile> forms;
  std::string file;  // what its path has behind the prefix
  int64_t offset = 0;
  // Tells one state of the file from another without a look at its bytes: every write changes the
  // time of its last change, which no user sets. "" where it changed so shortly before that it may
  // change again within a tick of that clock.
  std::string state;
};
// Empty: in none.
std::optional<KeptPlace> FindKeptPlace(const void* data);

// That something is true of a mapped file's bytes, which takes a look at all of them to know, and
// is kept with the file's forms: for as long as the file is in this state.
class KeptFact {
 public:
  // Empty where there is nothing to keep it in, or it is known sooner than looked up.
  static std::optional<KeptFact> Of(absl::string_view what, const void* data, size_t size);
  // Did somebody keep it?
  bool Known() const { return place_.forms->Find(name_, 0).has_value(); }
  void Keep() const { place_.forms->Add(name_, {}); }

 private:
  KeptFact(KeptPlace place, std::string name) : place_(std::move(place)), name_(std::move(name)) {}
  KeptPlace place_;
  std::string name_;
};

// What tells this program and the libraries that it has loaded from others: their build ids, as the
// linker wrote them. Empty where the program itself has none.
std::string ProgramId();

}  // namespace smelt

#endif  // SMELT_IO_FORMS_FILE_H_
