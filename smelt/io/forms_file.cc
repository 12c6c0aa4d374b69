#include "smelt/io/forms_file.h"

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "smelt/base/little_endian.h"
#include "smelt/base/parallel.h"
#include "smelt/io/crc32c.h"
#include "smelt/io/descriptor.h"
#include "smelt/io/sha256.h"
#include "smelt/io/staged_file.h"

namespace smelt {
namespace {

constexpr char kFormsMagic[] = "smeltfrm";
constexpr uint32_t kFormsVersion = 1;
constexpr char kFormsSuffix[] = ".forms";
constexpr size_t kHeadBytes = 128, kFormsEntryBytes = 56;
constexpr uint64_t kLine = 64, kFormsPage = 4096;
// Each of them has a checksum of its own, so that several cores can check a form.
constexpr size_t kFormsPiece = size_t{1} << 20;

// The masked checksum of a form: that of its pieces' checksums.
uint32_t FormCrc(absl::string_view bytes) {
  std::vector<uint32_t> crcs((bytes.size() + kFormsPiece - 1) / kFormsPiece);
  ParallelFor(static_cast<int64_t>(crcs.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      crcs[i] = Crc32c(bytes.substr(i * kFormsPiece, kFormsPiece));
    }
  });
  std::string all;
  for (const uint32_t crc : crcs) AppendLittle(crc, &all);
  return MaskCrc32c(Crc32c(all));
}

// Forms that fill pages have pages of their own.
uint64_t FormBegin(uint64_t end, uint64_t size) {
  const uint64_t step = size >= kFormsPage ? kFormsPage : kLine;
  return (end + step - 1) / step * step;
}

struct FormsHead {
  uint32_t entries = 0, table_crc = 0;
  uint64_t table = 0, size = 0;
};

std::string HeadBytes(const FormsHead& head, absl::string_view key) {
  std::string out(kFormsMagic, 8);
  AppendLittle(kFormsVersion, &out);
  AppendLittle(head.entries, &out);
  AppendLittle(head.table, &out);
  AppendLittle(head.size, &out);
  out.append(key.data(), key.size());
  AppendLittle(head.table_crc, &out);
  AppendLittle(MaskCrc32c(Crc32c(out)), &out);
  out.resize(kHeadBytes, '\0');
  return out;
}

StatusOr<FormsHead> ReadHead(absl::string_view bytes, absl::string_view key) {
  if (bytes.size() < kHeadBytes) return DataLoss("it is cut short");
  const char* p = bytes.data();
  FormsHead head;
  head.entries = LoadLittle<uint32_t>(p + 12);
  head.table = LoadLittle<uint64_t>(p + 16);
  head.size = LoadLittle<uint64_t>(p + 24);
  head.table_crc = LoadLittle<uint32_t>(p + 96);
  // Whatever differs, the head as it should be is another.
  if (bytes.substr(0, kHeadBytes) != HeadBytes(head, key)) {
    return DataLoss("its head is not that of this model and program");
  }
  if (head.size != bytes.size()) return DataLoss("it is cut short");
  if (head.table > head.size ||
      head.size - head.table != uint64_t{head.entries} * kFormsEntryBytes) {
    return DataLoss("its table has another size than the head says");
  }
  if (MaskCrc32c(Crc32c(bytes.substr(head.table))) != head.table_crc) {
    return DataLoss("the checksum of its table does not match");
  }
  return head;
}

// Others decide on answers where they write forms.
Status CheckOwner(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return FileError(path, errno);
  if (st.st_uid != geteuid() && st.st_uid != 0) {
    return absl::PermissionDeniedError(absl::StrCat("it belongs to user ", st.st_uid));
  }
  if ((st.st_mode & S_IWOTH) != 0) {
    return absl::PermissionDeniedError("everybody may write it");
  }
  return OkStatus();
}

}  // namespace

std::shared_ptr<FormsFile> FormsFile::Open(const std::string& folder, absl::string_view key,
                                           const FormsFileOptions& options) {
  auto forms = std::shared_ptr<FormsFile>(new FormsFile(folder, key, options));
  absl::MutexLock lock(&forms->mutex_);
  const Status read = forms->Read();
  if (!read.ok() && !absl::IsNotFound(read)) {
    forms->stored_.clear();
    forms->damaged_ = true;
    forms->warnings_.push_back(
        absl::StrCat(forms->path_, " is not used: ", std::string(read.message())));
  }
  return forms;
}

FormsFile::FormsFile(std::string folder, absl::string_view key, const FormsFileOptions& options)
    : folder_(std::move(folder)),
      key_(Sha256(key)),
      options_(options),
      path_(JoinPath(folder_, absl::StrCat(key_.substr(0, 32), kFormsSuffix))) {}

FormsFile::Name FormsFile::NameOf(absl::string_view what) {
  const std::string digest = absl::HexStringToBytes(Sha256(what));
  Name name;
  std::memcpy(name.data(), digest.data(), name.size());
  return name;
}

Status FormsFile::Read() {
  RETURN_IF_ERROR(CheckOwner(path_));
  ASSIGN_OR_RETURN(file_, MapFile(path_));
  const absl::string_view bytes = file_->bytes();
  ASSIGN_OR_RETURN(const FormsHead head, ReadHead(bytes, key_));
  for (uint32_t i = 0; i < head.entries; ++i) {
    const char* p = bytes.data() + head.table + uint64_t{i} * kFormsEntryBytes;
    Name name;
    std::memcpy(name.data(), p, name.size());
    Stored s;
    s.offset = LoadLittle<uint64_t>(p + 32);
    s.size = LoadLittle<uint64_t>(p + 40);
    s.crc = LoadLittle<uint32_t>(p + 48);
    if (s.offset % kLine != 0 || s.offset > head.table || s.size > head.table - s.offset) {
      return DataLoss("a form lies outside of it");
    }
    stored_[name] = s;
  }
  return OkStatus();
}

std::optional<KeptBytes> FormsFile::Find(absl::string_view what, size_t size) {
  const Name name = NameOf(what);
  Stored* found = nullptr;
  std::shared_ptr<const MappedFile> file;
  bool known = false;
  {
    absl::MutexLock lock(&mutex_);
    auto it = stored_.find(name);
    if (it == stored_.end() || it->second.size != size) return std::nullopt;
    found = &it->second;
    const auto free = [found] { return found->state != State::kBusy; };
    mutex_.Await(absl::Condition(&free));
    if (found->state == State::kBad) return std::nullopt;
    known = found->state == State::kGood;
    if (!known) found->state = State::kBusy;
    found->used = true;
    file = file_;
  }
  // Unlocked: others check theirs meanwhile.
  if (!known && !Check(*found, *file)) return std::nullopt;
  return KeptBytes{file->data() + found->offset, size, std::move(file)};
}

bool FormsFile::Check(Stored& stored, const MappedFile& file) {
  const bool good = FormCrc(file.bytes().substr(stored.offset, stored.size)) == stored.crc;
  absl::MutexLock lock(&mutex_);
  stored.state = good ? State::kGood : State::kBad;
  if (!good) {
    damaged_ = true;
    warnings_.push_back(absl::StrCat(path_, ": the checksum of a form at byte ", stored.offset,
                                     " does not match; it is made anew"));
  }
  return good;
}

void FormsFile::CheckAhead(const std::stop_token& stop) {
  std::vector<Stored*> all;
  std::shared_ptr<const MappedFile> file;
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [name, stored] : stored_) {
      // What has no bytes is a fact, which is checked with the table.
      if (stored.size > 0) all.push_back(&stored);
    }
    file = file_;
  }
  // The longest first: nobody waits long for one at the end.
  std::ranges::sort(all, std::greater(), &Stored::size);
  for (Stored* stored : all) {
    if (stop.stop_requested()) return;
    {
      absl::MutexLock lock(&mutex_);
      if (stored->state != State::kUnknown) continue;
      stored->state = State::kBusy;
    }
    Check(*stored, *file);
  }
}

void FormsFile::Add(absl::string_view what, KeptBytes bytes) {
  const Name name = NameOf(what);
  absl::MutexLock lock(&mutex_);
  added_.insert_or_assign(name, std::move(bytes));
}

Status FormsFile::Save() {
  absl::MutexLock lock(&mutex_);
  if (added_.empty() && !damaged_) return OkStatus();
  const Status written = Write();
  added_.clear();
  damaged_ = false;
  return absl::IsAborted(written) ? OkStatus() : written;
}

Status FormsFile::Write() {
  struct Form {
    Name name;
    absl::string_view bytes;
    Stored at;
  };
  std::vector<Form> forms;
  for (const auto& [name, s] : stored_) {
    // What has no bytes says something of a state of the files; nobody asked for that one.
    if (s.state == State::kBad || added_.contains(name) || (s.size == 0 && !s.used)) continue;
    const absl::string_view bytes = file_->bytes().substr(s.offset, s.size);
    if (s.state == State::kUnknown && FormCrc(bytes) != s.crc) continue;
    forms.push_back({name, bytes, s});
  }
  for (const auto& [name, kept] : added_) {
    const absl::string_view bytes(static_cast<const char*>(kept.data), kept.size);
    Stored s;
    s.size = kept.size;
    s.crc = FormCrc(bytes);
    forms.push_back({name, bytes, s});
  }
  uint64_t end = kHeadBytes;
  std::string table;
  for (Form& f : forms) {
    f.at.offset = FormBegin(end, f.at.size);
    end = f.at.offset + f.at.size;
    table.append(f.name.data(), f.name.size());
    AppendLittle(f.at.offset, &table);
    AppendLittle(f.at.size, &table);
    AppendLittle(f.at.crc, &table);
    AppendLittle(uint32_t{0}, &table);
  }
  const FormsHead head{static_cast<uint32_t>(forms.size()), MaskCrc32c(Crc32c(table)), end,
                       end + table.size()};
  RETURN_IF_ERROR(MakeDirs(folder_));
  // Never written in place: other processes have it mapped.
  if (access(folder_.c_str(), W_OK) != 0) return FileError(folder_, errno);
  RETURN_IF_ERROR(MakeRoom(static_cast<int64_t>(head.size)));
  // A file keeps its owner and permissions when it is replaced.
  if (Exists(path_) && !CheckOwner(path_).ok()) RETURN_IF_ERROR(RemoveFile(path_));
  ASSIGN_OR_RETURN(const auto staged, StagedFile::Make(path_, OtherWriter::kRefuse));
  RETURN_IF_ERROR(staged->Write(HeadBytes(head, key_)));
  uint64_t at = kHeadBytes;
  for (const Form& f : forms) {
    RETURN_IF_ERROR(staged->Write(std::string(f.at.offset - at, '\0')));
    RETURN_IF_ERROR(staged->Write(f.bytes));
    at = f.at.offset + f.at.size;
  }
  RETURN_IF_ERROR(staged->Write(table));
  return staged->Publish();
}

// Does a regular file begin as ours do?
bool IsFormsFile(const std::string& path) {
  Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  char begin[8];
  return fd.valid() && pread(fd.get(), begin, sizeof(begin), 0) == sizeof(begin) &&
         std::memcmp(begin, kFormsMagic, sizeof(begin)) == 0;
}

Status FormsFile::MakeRoom(int64_t bytes) const {
  if (bytes > options_.folder_limit) {
    return ResourceExhausted(path_, " would take ", bytes, " bytes, of ", options_.folder_limit,
                             " that the folder may hold");
  }
  struct Other {
    int64_t written_ns, size;
    std::string path;
  };
  std::vector<Other> others;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(folder_));
  int64_t all = bytes;
  for (const std::string& name : names) {
    std::string path = JoinPath(folder_, name);
    struct stat st;
    if (!absl::EndsWith(name, kFormsSuffix) || path == path_ || lstat(path.c_str(), &st) != 0 ||
        !S_ISREG(st.st_mode) || !IsFormsFile(path)) {
      continue;
    }
    all += st.st_size;
    others.push_back({int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec, st.st_size,
                      std::move(path)});
  }
  std::ranges::sort(others, {}, &Other::written_ns);
  for (size_t i = 0; all > options_.folder_limit && i < others.size(); ++i) {
    const Status removed = RemoveFile(others[i].path);
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
    all -= others[i].size;
  }
  return OkStatus();
}

std::vector<std::string> FormsFile::TakeWarnings() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(warnings_, {});
}

namespace {

// A file that changed so shortly before may change again within a tick of the clock that tells.
constexpr int64_t kSettledNs = 2'000'000'000;

// A mapped file that is found by address as long as it lives.
struct KeptMapping {
  std::shared_ptr<const MappedFile> file;
  std::weak_ptr<FormsFile> forms;
  std::string name, state;
};

struct KeptFiles {
  absl::Mutex mutex;
  std::vector<std::pair<std::string, std::weak_ptr<FormsFile>>> prefixes ABSL_GUARDED_BY(mutex);
  // By the address of the first byte.
  std::map<const char*, const KeptMapping*, std::less<>> mapped ABSL_GUARDED_BY(mutex);
};
KeptFiles& AllKeptFiles() {
  static auto* all = new KeptFiles;
  return *all;
}

void EndMapping(const KeptMapping* m) {
  {
    KeptFiles& all = AllKeptFiles();
    absl::MutexLock lock(&all.mutex);
    all.mapped.erase(m->file->data());
  }
  delete m;
}

int64_t Nanoseconds(const timespec& t) {
  return int64_t{t.tv_sec} * 1'000'000'000 + int64_t{t.tv_nsec};
}

// "" where nothing can be said.
std::string StateOf(const std::string& path) {
  struct stat st;
  timespec now;
  if (stat(path.c_str(), &st) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0) return "";
  if (Nanoseconds(now) - Nanoseconds(st.st_ctim) <= kSettledNs) return "";
  return absl::StrCat(st.st_dev, " ", st.st_ino, " ", st.st_size, " ", Nanoseconds(st.st_mtim), " ",
                      Nanoseconds(st.st_ctim));
}

}  // namespace

void KeepFormsOf(std::string prefix, const std::shared_ptr<FormsFile>& forms) {
  KeptFiles& all = AllKeptFiles();
  absl::MutexLock lock(&all.mutex);
  std::erase_if(all.prefixes, [&](const auto& p) { return p.second.expired(); });
  all.prefixes.emplace_back(std::move(prefix), forms);
}

StatusOr<std::shared_ptr<const MappedFile>> MapWithForms(const FileSystem& files,
                                                         const std::string& path) {
  KeptFiles& all = AllKeptFiles();
  auto m = std::make_unique<KeptMapping>();
  {
    absl::MutexLock lock(&all.mutex);
    for (const auto& [prefix, forms] : all.prefixes) {
      if (!absl::StartsWith(path, prefix)) continue;
      m->forms = forms;
      m->name = path.substr(prefix.size());
    }
  }
  if (m->forms.expired()) return files.Map(path);
  m->state = StateOf(path);
  ASSIGN_OR_RETURN(m->file, files.Map(path));
  // Another file may have taken the place meanwhile.
  if (StateOf(path) != m->state) m->state.clear();
  const MappedFile* file = m->file.get();
  if (file->size() == 0) return std::move(m->file);
  {
    absl::MutexLock lock(&all.mutex);
    all.mapped[file->data()] = m.get();
  }
  return std::shared_ptr<const MappedFile>(
      std::shared_ptr<const KeptMapping>(m.release(), EndMapping), file);
}

std::optional<KeptPlace> FindKeptPlace(const void* data) {
  const auto* at = static_cast<const char*>(data);
  KeptFiles& all = AllKeptFiles();
  absl::MutexLock lock(&all.mutex);
  auto it = all.mapped.upper_bound(at);
  if (it == all.mapped.begin()) return std::nullopt;
  const KeptMapping& m = *(--it)->second;
  const auto offset = static_cast<size_t>(at - m.file->data());
  if (offset >= m.file->size()) return std::nullopt;
  KeptPlace place{m.forms.lock(), m.name, static_cast<int64_t>(offset), m.state};
  if (place.forms == nullptr) return std::nullopt;
  return place;
}

std::optional<KeptFact> KeptFact::Of(absl::string_view what, const void* data, size_t size) {
  constexpr size_t kWorthRemembering = size_t{16} << 10;
  if (size < kWorthRemembering) return std::nullopt;
  std::optional<KeptPlace> place = FindKeptPlace(data);
  if (!place || place->state.empty()) return std::nullopt;
  std::string name = absl::StrCat(what, " ", place->file, " at ", place->offset, " + ", size,
                                  " of ", place->state);
  return KeptFact(*std::move(place), std::move(name));
}

namespace {

struct Ids {
  std::string text;
  bool first = true, program_has = false;
};

// The notes of one loaded object: {name size, text size, type} and both, each padded to 4 bytes.
int AddBuildId(dl_phdr_info* info, size_t, void* data) {
  auto* ids = static_cast<Ids*>(data);
  const bool program = std::exchange(ids->first, false);
  // The kernel's own object changes no form.
  if (absl::StrContains(info->dlpi_name, "vdso")) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    const char* const end = at + segment.p_memsz;
    while (end - at >= 12) {
      const auto name = LoadLittle<uint32_t>(at), text = LoadLittle<uint32_t>(at + 4);
      const auto type = LoadLittle<uint32_t>(at + 8);
      const size_t name_space = (size_t{name} + 3) / 4 * 4;
      const size_t bytes = 12 + name_space + (size_t{text} + 3) / 4 * 4;
      if (bytes > static_cast<size_t>(end - at)) break;
      if (type == NT_GNU_BUILD_ID && name == 4 && std::memcmp(at + 12, "GNU", 4) == 0) {
        absl::StrAppend(&ids->text, "build ", absl::BytesToHexString({at + 12 + name_space, text}),
                        "\n");
        ids->program_has |= program;
      }
      at += bytes;
    }
  }
  return 0;
}

}  // namespace

std::string ProgramId() {
  Ids ids;
  dl_iterate_phdr(AddBuildId, &ids);
  return ids.program_has ? ids.text : "";
}

}  // namespace smelt
