#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <set>

#include "smelt/io/crc32c.h"
#include "smelt/io/descriptor.h"
#include "smelt/wire/bundle/bundle.h"
#include "smelt/wire/bundle/bundle_index.h"
#include "smelt/wire/bundle/index_table.h"

namespace smelt {
namespace {

// Small writes are gathered up to this; larger ones go straight to the file.
constexpr size_t kGatherBytes = size_t{256} << 10;
// Bytes are checksummed and written piece by piece, so that each is still in the cache when
// written.
constexpr size_t kWriteStep = size_t{1} << 20;
constexpr int kMaxWrittenShards = 99999;  // five digits in a file's name
constexpr int kMaxDataAlignment = 1 << 20;

// A name that no reader takes for a data file's.
std::string TemporaryPath(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  return absl::StrCat(path, ".tempstate", getpid(), ".", counter.fetch_add(1));
}

Status RenameFile(const std::string& from, const std::string& to) {
  if (from == to || std::rename(from.c_str(), to.c_str()) == 0) return OkStatus();
  return FileError(absl::StrCat(from, " to ", to), errno);
}

}  // namespace

// One shard as it grows, under a temporary name.
class BundleWriter::DataFile {
 public:
  explicit DataFile(const std::string& final_path)
      : final_path_(final_path), path_(TemporaryPath(final_path)) {}
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;
  ~DataFile() {
    if (made_) unlink(path_.c_str());
  }

  Status Make() {
    file_ = Descriptor(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file_.valid()) return FileError(path_, errno);
    made_ = true;
    return OkStatus();
  }

  int64_t size() const { return size_; }

  Status Append(absl::string_view bytes) {
    size_ += static_cast<int64_t>(bytes.size());
    if (gathered_.size() + bytes.size() >= kGatherBytes) {
      RETURN_IF_ERROR(Flush());
      if (bytes.size() >= kGatherBytes) return WriteAll(file_.get(), bytes, path_);
    }
    gathered_.append(bytes.data(), bytes.size());
    return OkStatus();
  }

  // The same; extends the checksum by the bytes.
  Status Append(absl::string_view bytes, uint32_t* crc) {
    while (!bytes.empty()) {
      const absl::string_view piece = bytes.substr(0, kWriteStep);
      *crc = ExtendCrc32c(*crc, piece);
      RETURN_IF_ERROR(Append(piece));
      bytes.remove_prefix(piece.size());
    }
    return OkStatus();
  }

  Status Pad(int alignment) {
    const auto over = static_cast<size_t>(size_ % alignment);
    if (over == 0) return OkStatus();
    return Append(std::string(static_cast<size_t>(alignment) - over, '\0'));
  }

  // Syncs the file, which keeps its temporary name.
  Status Close() {
    RETURN_IF_ERROR(Flush());
    if (fsync(file_.get()) != 0 || file_.Close() != 0) return FileError(path_, errno);
    return OkStatus();
  }

  Status Rename() {
    RETURN_IF_ERROR(RenameFile(path_, final_path_));
    made_ = false;
    return OkStatus();
  }

 private:
  Status Flush() {
    RETURN_IF_ERROR(WriteAll(file_.get(), gathered_, path_));
    gathered_.clear();
    return OkStatus();
  }

  const std::string final_path_, path_;
  Descriptor file_;
  bool made_ = false;  // and not yet renamed
  int64_t size_ = 0;
  std::string gathered_;
};

BundleWriter::BundleWriter(std::string prefix, const BundleWriterOptions& options)
    : prefix_(std::move(prefix)), options_(options) {}

BundleWriter::~BundleWriter() = default;

StatusOr<std::unique_ptr<BundleWriter>> BundleWriter::Create(const std::string& prefix,
                                                             const BundleWriterOptions& options) {
  if (options.num_shards < 1 || options.num_shards > kMaxWrittenShards) {
    return InvalidArgument("a bundle cannot have ", options.num_shards, " shards");
  }
  if (options.data_alignment < 1 || options.data_alignment > kMaxDataAlignment) {
    return InvalidArgument("tensors cannot be aligned to ", options.data_alignment, " bytes");
  }
  RETURN_IF_ERROR(MakeDirs(FolderOf(prefix)));
  auto writer = std::unique_ptr<BundleWriter>(new BundleWriter(prefix, options));
  for (int i = 0; i < options.num_shards; ++i) {
    writer->files_.push_back(
        std::make_unique<DataFile>(BundleShardPath(prefix, i, options.num_shards)));
    RETURN_IF_ERROR(writer->files_.back()->Make());
  }
  return writer;
}

Status BundleWriter::Check(absl::string_view name, const Tensor& value) const {
  RETURN_IF_ERROR(disk_);
  if (finished_) return FailedPrecondition("The bundle ", prefix_, " is finished");
  if (name.empty() || name[0] == '\0' || name.size() > kMaxTableKey / 2) {
    return InvalidArgument("a bundle cannot hold a tensor of the name '", name, "'");
  }
  if (value.dtype() != Dtype::kString && !IsPod(value.dtype())) {
    return Unimplemented("a ", DtypeName(value.dtype()), " cannot be written to a bundle (tensor '",
                         name, "')");
  }
  return OkStatus();
}

Status BundleWriter::AddStored(const std::string& key, const Tensor& value) {
  const auto shortest = std::ranges::min_element(files_, std::less<>(),
                                                 [](const auto& file) { return file->size(); });
  DataFile& file = **shortest;
  BundleEntry entry;
  entry.dtype = value.dtype();
  entry.shape = value.shape();
  entry.shard = static_cast<int>(shortest - files_.begin());
  uint32_t crc = 0;
  disk_ = [&]() -> Status {
    RETURN_IF_ERROR(file.Pad(options_.data_alignment));
    entry.offset = file.size();
    if (value.dtype() != Dtype::kString) {
      return file.Append({static_cast<const char*>(value.raw()), value.bytes()}, &crc);
    }
    std::string lengths;
    for (const std::string& s : value.flat<std::string>()) {
      AppendVarint64(s.size(), &lengths);
      // Checksummed at a fixed width, not as stored.
      const uint64_t length = s.size();
      crc = ExtendCrc32c(crc, {reinterpret_cast<const char*>(&length),
                               length <= UINT32_MAX ? size_t{4} : size_t{8}});
    }
    const uint32_t masked = MaskCrc32c(crc);
    RETURN_IF_ERROR(file.Append(lengths));
    RETURN_IF_ERROR(file.Append({reinterpret_cast<const char*>(&masked), sizeof(masked)}, &crc));
    for (const std::string& s : value.flat<std::string>()) RETURN_IF_ERROR(file.Append(s, &crc));
    return OkStatus();
  }();
  RETURN_IF_ERROR(disk_);
  entry.size = file.size() - entry.offset;
  entry.masked_crc = MaskCrc32c(crc);
  entries_.emplace(key, std::move(entry));
  return OkStatus();
}

Status BundleWriter::Add(absl::string_view name, const Tensor& value) {
  RETURN_IF_ERROR(Check(name, value));
  const std::string key(name);
  if (entries_.contains(key)) return AlreadyExists("Adding duplicate key: ", name);
  return AddStored(key, value);
}

Status BundleWriter::AddSlice(absl::string_view name, const Shape& full, const TensorSlice& slice,
                              const Tensor& value) {
  RETURN_IF_ERROR(Check(name, value));
  ASSIGN_OR_RETURN(const Shape part, slice.ShapeIn(full));
  if (!(part == value.shape())) {
    return InvalidArgument("slice ", slice.ToString(), " of shape ", full.ToString(),
                           " is not the shape ", value.shape().ToString(), " of tensor '", name,
                           "'");
  }
  // A part that is the whole tensor is stored as a whole tensor.
  if (part == full) return Add(name, value);
  auto it = entries_.find(std::string(name));
  if (it != entries_.end()) {
    if (!it->second.partitioned()) return AlreadyExists("Adding duplicate key: ", name);
    if (it->second.dtype != value.dtype() || !(it->second.shape == full)) {
      return InvalidArgument("slices of tensor '", name, "' are of ", DtypeName(it->second.dtype),
                             " ", it->second.shape.ToString(), " and of ", DtypeName(value.dtype()),
                             " ", full.ToString());
    }
  }
  const std::string key = SliceKey(name, slice);
  if (key.size() > kMaxTableKey) return InvalidArgument("a slice of too many dimensions: ", name);
  if (entries_.contains(key)) return AlreadyExists("Adding duplicate key: ", name);
  RETURN_IF_ERROR(AddStored(key, value));
  BundleEntry& whole = entries_[std::string(name)];
  whole.dtype = value.dtype();
  whole.shape = full;
  whole.slices.push_back(slice);
  return OkStatus();
}

Status BundleWriter::Finish() {
  RETURN_IF_ERROR(disk_);
  if (finished_) return FailedPrecondition("The bundle ", prefix_, " is finished");
  finished_ = true;
  BundleIndex index;
  index.num_shards = options_.num_shards;
  index.entries.reserve(entries_.size());
  for (auto& [key, entry] : entries_) index.entries.emplace_back(key, std::move(entry));
  entries_.clear();
  disk_ = [&]() -> Status {
    ASSIGN_OR_RETURN(const std::string bytes, SerializeBundleIndex(index));
    for (const auto& file : files_) RETURN_IF_ERROR(file->Close());
    for (const auto& file : files_) RETURN_IF_ERROR(file->Rename());
    return WriteFileAtomically(BundleIndexPath(prefix_), bytes);
  }();
  return disk_;
}

namespace {

// Of all bundles that are merged: their entries, and the number of each data file in the result.
struct MergedBundle {
  std::map<std::string, BundleEntry> entries;
  std::map<std::string, int> shards;
};

Status AddBundle(const std::string& prefix, MergedBundle* merged) {
  ASSIGN_OR_RETURN(BundleIndex index, ReadBundleIndex(prefix, FileSystem::Whole()));
  for (auto& [key, entry] : index.entries) {
    if (entry.dtype == Dtype::kInvalid) {
      return Unimplemented("tensor '", key, "' has a type of the future: ", prefix);
    }
    if (!entry.partitioned() || entry.size != 0) {
      const std::string file = BundleShardPath(prefix, entry.shard, index.num_shards);
      const int next = static_cast<int>(merged->shards.size());
      const auto [it, added] = merged->shards.emplace(file, next);
      if (added && !Exists(file)) return NotFound(file, "; No such file or directory");
      entry.shard = it->second;
    }
    const auto [it, added] = merged->entries.emplace(key, entry);
    if (added) continue;
    BundleEntry& before = it->second;
    if (!before.partitioned() || !entry.partitioned()) {
      return InvalidArgument("Duplicate tensor keyed by ", key,
                             " encountered, when merging prefix: ", prefix);
    }
    if (before.dtype != entry.dtype || !(before.shape == entry.shape)) {
      return InvalidArgument("slices of tensor '", key, "' are of ", DtypeName(before.dtype), " ",
                             before.shape.ToString(), " and of ", DtypeName(entry.dtype), " ",
                             entry.shape.ToString(), ", when merging prefix: ", prefix);
    }
    std::ranges::move(entry.slices, std::back_inserter(before.slices));
  }
  return OkStatus();
}

}  // namespace

Status MergeBundles(const std::vector<std::string>& prefixes, const std::string& destination,
                    bool delete_old) {
  if (prefixes.empty()) return InvalidArgument("There are no bundles to merge");
  MergedBundle merged;
  for (const std::string& prefix : prefixes) RETURN_IF_ERROR(AddBundle(prefix, &merged));
  BundleIndex index;
  index.num_shards = static_cast<int>(merged.shards.size());
  for (auto& [key, entry] : merged.entries) index.entries.emplace_back(key, std::move(entry));
  ASSIGN_OR_RETURN(const std::string bytes, SerializeBundleIndex(index));

  const std::string folder = FolderOf(destination);
  RETURN_IF_ERROR(MakeDirs(folder));
  // Through temporary names: a file of the result may have the name of one that is still to be
  // moved.
  std::vector<std::pair<std::string, std::string>> moves;
  for (const auto& [file, shard] : merged.shards) {
    const std::string to = BundleShardPath(destination, shard, index.num_shards);
    if (file == to) continue;
    moves.emplace_back(TemporaryPath(to), to);
    RETURN_IF_ERROR(RenameFile(file, moves.back().first));
  }
  for (const auto& [from, to] : moves) RETURN_IF_ERROR(RenameFile(from, to));
  RETURN_IF_ERROR(WriteFileAtomically(BundleIndexPath(destination), bytes));

  // The merged bundle is complete: old files that cannot be removed are left without an error.
  std::set<std::string> folders;
  for (const std::string& prefix : prefixes) {
    if (prefix == destination) continue;
    unlink(BundleIndexPath(prefix).c_str());
    if (delete_old && FolderOf(prefix) != folder) folders.insert(FolderOf(prefix));
  }
  for (const std::string& old : folders) rmdir(old.c_str());
  return OkStatus();
}

}  // namespace smelt
