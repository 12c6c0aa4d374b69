#include <algorithm>
#include <cstring>
#include <functional>
#include <tuple>

#include "absl/strings/str_format.h"
#include "smelt/base/little_endian.h"
#include "smelt/io/crc32c.h"
#include "smelt/io/forms_file.h"
#include "smelt/wire/bundle/bundle.h"
#include "smelt/wire/bundle/bundle_index.h"
#include "smelt/wire/bundle/index_table.h"
#include "smelt/wire/bundle/slice_copy.h"

namespace smelt {
namespace {

// Verifying a tensor at least this large leaves none of its pages resident, unless they may stay
// (LeavePages): weights that are read later (or never) do not count as memory of the process.
constexpr size_t kDropPagesFrom = size_t{1} << 20;
// Of larger ones, tables of embeddings most of all, a request reads little.
constexpr size_t kLeavePagesUpTo = size_t{16} << 20;
constexpr size_t kVerifyStep = size_t{4} << 20;

// The checksum; nothing where it was told to stop. `keep`: the pages stay.
std::optional<uint32_t> VerifyMapped(absl::string_view bytes, bool keep,
                                     const std::stop_token& stop) {
  uint32_t crc = 0;
  // A page that two steps share is dropped by neither; it is one in a thousand.
  for (size_t at = 0; at < bytes.size(); at += kVerifyStep) {
    if (stop.stop_requested()) return std::nullopt;
    const absl::string_view piece = bytes.substr(at, kVerifyStep);
    crc = ExtendCrc32c(crc, piece);
    if (!keep) DropMappedPages(piece.data(), piece.size());
  }
  return crc;
}

// Is the masked checksum of a mapped file's bytes this one? Those that an earlier process verified
// in the state that the file is in are not read. `*crc`: what was computed where it is another.
// Nothing where it was told to stop. `keep`: as of VerifyMapped.
std::optional<bool> IsVerified(absl::string_view bytes, uint32_t masked, bool keep,
                               const std::stop_token& stop, uint32_t* crc) {
  const auto fact = KeptFact::Of(absl::StrCat("verified ", masked), bytes.data(), bytes.size());
  if (fact && fact->Known()) return true;
  const std::optional<uint32_t> computed = VerifyMapped(bytes, keep, stop);
  if (!computed) return std::nullopt;
  *crc = *computed;
  if (MaskCrc32c(*crc) != masked) return false;
  if (fact) fact->Keep();
  return true;
}

// A C++ bool is 0 or 1, but a file may hold other bytes: those are copied and normalized.
bool ProperBools(absl::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return static_cast<unsigned char>(c) <= 1; });
}

}  // namespace

struct BundleReader::Part {
  const BundleEntry* entry;
  std::span<const int64_t> starts;  // within the whole tensor
};

StatusOr<std::shared_ptr<BundleReader>> BundleReader::Open(const std::string& prefix,
                                                           FileSystem files) {
  ASSIGN_OR_RETURN(BundleIndex index, ReadBundleIndex(prefix, files));
  auto reader = std::shared_ptr<BundleReader>(new BundleReader);
  reader->prefix_ = prefix;
  reader->files_ = std::move(files);
  reader->num_shards_ = index.num_shards;
  reader->entries_ = std::move(index.entries);
  return reader;
}

std::vector<std::string> BundleReader::names() const {
  std::vector<std::string> out;
  for (const auto& [key, entry] : entries_) {
    if (key[0] != '\0') out.push_back(key);
  }
  return out;
}

const BundleEntry* BundleReader::Lookup(absl::string_view key) const {
  auto it = std::ranges::lower_bound(entries_, key, std::less<>(),
                                     [](const auto& e) { return absl::string_view(e.first); });
  return it != entries_.end() && it->first == key ? &it->second : nullptr;
}

StatusOr<const BundleEntry*> BundleReader::Find(absl::string_view name) const {
  const BundleEntry* entry = Lookup(name);
  if (entry == nullptr) return NotFound("Key ", name, " not found in checkpoint");
  return entry;
}

StatusOr<std::shared_ptr<const MappedFile>> BundleReader::Shard(int shard) const {
  absl::MutexLock hold(&mutex_);
  auto it = shards_.find(shard);
  if (it == shards_.end()) {
    ASSIGN_OR_RETURN(auto file, MapWithForms(files_, BundleShardPath(prefix_, shard, num_shards_)));
    it = shards_.emplace(shard, std::move(file)).first;
  }
  return it->second;
}

std::string BundleReader::Where(absl::string_view name, const BundleEntry& entry) const {
  return absl::StrCat("tensor '", name, "' in ",
                      BundleShardPath(prefix_, entry.shard, num_shards_));
}

Status BundleReader::ChecksumError(absl::string_view name, const BundleEntry& entry,
                                   uint32_t got) const {
  return DataLoss("TensorBundle at ", prefix_, " shard ", entry.shard, " (", entry.size,
                  " bytes): Checksum does not match: stored ",
                  absl::StrFormat("%08u", UnmaskCrc32c(entry.masked_crc)),
                  " vs. calculated on the restored bytes ", got, " (", Where(name, entry), ")");
}

StatusOr<Tensor> BundleReader::ReadStrings(absl::string_view name, const BundleEntry& entry,
                                           absl::string_view bytes) const {
  auto broken = [&](absl::string_view what) {
    return DataLoss("strings do not parse: ", what, " (", Where(name, entry), ")");
  };
  const int64_t n = entry.shape.num_elements();
  absl::string_view rest = bytes;
  std::vector<uint64_t> lengths(static_cast<size_t>(n));
  uint32_t crc = 0;
  for (uint64_t& length : lengths) {
    if (!TakeVarint64(&rest, &length)) return broken("a length does not end");
    // Checksummed at a fixed width, not as stored.
    const size_t width = length <= UINT32_MAX ? 4 : 8;
    crc = ExtendCrc32c(crc, {reinterpret_cast<const char*>(&length), width});
  }
  if (rest.size() < 4) return broken("the checksum of the lengths is missing");
  const auto stored = LoadLittle<uint32_t>(rest.data());
  if (MaskCrc32c(crc) != stored) {
    return DataLoss("The length checksum does not match: expected ",
                    absl::StrFormat("%08u", UnmaskCrc32c(stored)), " but actual is ", crc, " (",
                    Where(name, entry), ")");
  }
  crc = ExtendCrc32c(crc, rest.substr(0, 4));
  rest.remove_prefix(4);
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(Dtype::kString, entry.shape));
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t length = lengths[static_cast<size_t>(i)];
    if (length > rest.size()) return broken("a string ends beyond the tensor");
    const absl::string_view value = rest.substr(0, length);
    t.data<std::string>()[i].assign(value.data(), value.size());
    crc = ExtendCrc32c(crc, value);
    rest.remove_prefix(length);
  }
  if (MaskCrc32c(crc) != entry.masked_crc) return ChecksumError(name, entry, crc);
  return t;
}

// Can tensors have the entry's type, and does its size fit the shape? Reading it then allocates no
// more than a small multiple of the size.
Status BundleReader::CheckSize(absl::string_view name, const BundleEntry& entry) const {
  const auto n = static_cast<size_t>(entry.shape.num_elements());
  const auto size = static_cast<size_t>(entry.size);
  if (entry.dtype == Dtype::kString) {
    // Each string's length takes at least one byte.
    if (n <= size) return OkStatus();
    return DataLoss("Invalid size in bundle entry: key ", name, "; stored size ", size, "; ", n,
                    " strings (", Where(name, entry), ")");
  }
  if (!IsPod(entry.dtype)) {
    const bool known = entry.dtype != Dtype::kInvalid;
    return Unimplemented("a ", known ? DtypeName(entry.dtype) : "type of the future",
                         " cannot be read from a bundle (", Where(name, entry), ")");
  }
  size_t wanted = 0;
  if (__builtin_mul_overflow(n, DtypeSize(entry.dtype), &wanted) || wanted != size) {
    return DataLoss("Invalid size in bundle entry: key ", name, "; stored size ", size,
                    "; expected size ", wanted, " (", Where(name, entry), ")");
  }
  return OkStatus();
}

StatusOr<absl::string_view> BundleReader::Bytes(absl::string_view name, const BundleEntry& entry,
                                                const MappedFile& file) const {
  const auto offset = static_cast<size_t>(entry.offset), size = static_cast<size_t>(entry.size);
  if (offset > file.size() || size > file.size() - offset) {
    return DataLoss("the file ends at byte ", file.size(), ", the tensor at ", entry.offset, " + ",
                    entry.size, " (", Where(name, entry), ")");
  }
  return file.bytes().substr(offset, size);
}

// Each entry is verified by the thread that asks first. The others verify what is to be verified
// ahead until it is done, and wait for it when there is nothing left.
BundleReader::Check BundleReader::Verify(const BundleEntry& entry, absl::string_view bytes) const {
  Check* check = nullptr;
  for (bool more = true;; more = VerifyNext({})) {
    absl::MutexLock hold(&checks_mutex_);
    Check& found = checks_[&entry];
    const auto free = [&found] { return found.state != Check::State::kBusy; };
    if (!more) checks_mutex_.Await(absl::Condition(&free));
    if (!free()) continue;
    if (found.state != Check::State::kUnknown) return found;
    found.state = Check::State::kBusy;
    check = &found;
    break;
  }
  return *Compute(entry, bytes, {}, check);
}

std::optional<BundleReader::Check> BundleReader::Compute(const BundleEntry& entry,
                                                         absl::string_view bytes,
                                                         const std::stop_token& stop,
                                                         Check* check) const {
  const auto size = static_cast<int64_t>(bytes.size());
  const bool left = bytes.size() <= kLeavePagesUpTo && pages_left_.fetch_sub(size) >= size;
  const bool keep = left || bytes.size() < (spares_memory_ ? kSmall : kDropPagesFrom);
  uint32_t crc = 0;
  const std::optional<bool> right = IsVerified(bytes, entry.masked_crc, keep, stop, &crc);
  absl::MutexLock hold(&checks_mutex_);
  check->keeps_pages = left;
  if (!right) {
    check->state = Check::State::kUnknown;
    return std::nullopt;
  }
  check->state = *right ? Check::State::kRight : Check::State::kWrong;
  check->crc = crc;
  return *check;
}

bool BundleReader::VerifyNext(const std::stop_token& stop) const {
  const Stored* stored = nullptr;
  Check* check = nullptr;
  {
    absl::MutexLock hold(&checks_mutex_);
    while (check == nullptr && !ahead_.empty()) {
      stored = ahead_.back();
      ahead_.pop_back();
      Check& found = checks_[&stored->second];
      if (found.state != Check::State::kUnknown) continue;
      found.state = Check::State::kBusy;
      check = &found;
    }
  }
  if (check == nullptr) return false;
  const auto& [name, entry] = *stored;
  const auto file = Shard(entry.shard);
  auto bytes = file.ok() ? Bytes(name, entry, **file) : file.status();
  if (bytes.ok()) return Compute(entry, *bytes, stop, check).has_value();
  absl::MutexLock hold(&checks_mutex_);
  check->state = Check::State::kUnknown;
  return true;
}

void BundleReader::VerifyAhead(const std::stop_token& stop) const {
  std::vector<const Stored*> order;
  for (const Stored& stored : entries_) {
    const BundleEntry& e = stored.second;
    if (e.size > 0 && IsPod(e.dtype) && !e.partitioned()) order.push_back(&stored);
  }
  // From behind: the longest first, so that those who read the rest meanwhile need not wait for one
  // at the end; what a page or two holds as it lies.
  std::ranges::sort(order, std::greater(), [](const Stored* stored) {
    const BundleEntry& e = stored->second;
    const int64_t size = static_cast<size_t>(e.size) < kDropPagesFrom ? 0 : e.size;
    return std::tuple(-size, e.shard, e.offset);
  });
  {
    absl::MutexLock hold(&checks_mutex_);
    ahead_ = std::move(order);
  }
  while (VerifyNext(stop)) {
  }
}

void BundleReader::DropUnread() const {
  if (spares_memory_) {
    absl::MutexLock hold(&mutex_);
    for (const auto& [number, file] : shards_) DropMappedPages(file->data(), file->size());
    return;
  }
  absl::MutexLock hold(&checks_mutex_);
  for (auto& [entry, check] : checks_) {
    if (!check.keeps_pages || check.read) continue;
    const auto file = Shard(entry->shard);
    if (!file.ok()) continue;
    const absl::string_view bytes = (*file)->bytes().substr(static_cast<size_t>(entry->offset),
                                                            static_cast<size_t>(entry->size));
    DropMappedPages(bytes.data(), bytes.size());
    check.keeps_pages = false;
  }
}

StatusOr<Tensor> BundleReader::ReadStored(absl::string_view name, const BundleEntry& entry) const {
  RETURN_IF_ERROR(CheckSize(name, entry));
  ASSIGN_OR_RETURN(const auto file, Shard(entry.shard));
  ASSIGN_OR_RETURN(const absl::string_view bytes, Bytes(name, entry, *file));
  const size_t size = bytes.size();
  if (entry.dtype == Dtype::kString) return ReadStrings(name, entry, bytes);
  const Check check = Verify(entry, bytes);
  {
    absl::MutexLock hold(&checks_mutex_);
    checks_[&entry].read = true;
  }
  if (check.state != Check::State::kRight) return ChecksumError(name, entry, check.crc);
  // No type asks for more than the alignment of a double.
  const size_t align = std::min<size_t>(DtypeSize(entry.dtype), alignof(double));
  const bool proper = entry.dtype != Dtype::kBool || ProperBools(bytes);
  const bool copy = spares_memory_ && size < kSmall;
  if (!copy && proper && reinterpret_cast<uintptr_t>(bytes.data()) % align == 0) {
    return Tensor(entry.dtype, entry.shape,
                  ForeignBuffer(bytes.data(), size, ForeignBytes::kMappedFile, file));
  }
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(entry.dtype, entry.shape));
  if (!bytes.empty()) std::memcpy(t.raw(), bytes.data(), size);
  if (!proper) {
    auto* bools = static_cast<unsigned char*>(t.raw());
    for (size_t i = 0; i < size; ++i) bools[i] = bools[i] != 0;
  }
  return t;
}

StatusOr<Tensor> BundleReader::Read(absl::string_view name) const {
  ASSIGN_OR_RETURN(const BundleEntry* entry, Find(name));
  if (!entry->partitioned()) return ReadStored(name, *entry);
  return ReadSlice(name, TensorSlice::Whole(entry->shape.rank()));
}

// The stored parts that overlap `slice`, which has `shape`. The overlaps together have as many
// elements as the slice; that no element lies in two of them is for the caller to check.
StatusOr<std::vector<BundleReader::Part>> BundleReader::PartsOf(absl::string_view name,
                                                                const BundleEntry& entry,
                                                                const TensorSlice& slice,
                                                                const Shape& shape) const {
  std::vector<Part> parts;
  std::map<int, size_t> bytes;  // by shard
  int64_t covered = 0;
  for (const TensorSlice& stored : entry.slices) {
    ASSIGN_OR_RETURN(const Shape part_shape, stored.ShapeIn(entry.shape));
    const auto overlap = Overlap(stored.starts, part_shape, slice.starts, shape);
    if (!overlap) continue;
    // A part that is the whole tensor is stored under the tensor's own key.
    const BundleEntry* part = stored.IsFull() ? &entry : Lookup(SliceKey(name, stored));
    if (part == nullptr) {
      return DataLoss("slice ", stored.ToString(), " of tensor '", name, "' is missing in ",
                      BundleIndexPath(prefix_));
    }
    if (part->dtype != entry.dtype || !(part->shape == part_shape)) {
      return DataLoss("slice ", stored.ToString(), " of tensor '", name,
                      "' has another shape or type than the tensor in ", BundleIndexPath(prefix_));
    }
    RETURN_IF_ERROR(CheckSize(name, *part));
    // Parts of a tensor do not share bytes, so that the file bounds what they allocate together.
    ASSIGN_OR_RETURN(const auto file, Shard(part->shard));
    size_t& sum = bytes[part->shard];
    if (static_cast<size_t>(part->size) > file->size() - sum) {
      return DataLoss("the slices are larger than the file (", Where(name, *part), ")");
    }
    sum += static_cast<size_t>(part->size);
    if (overlap->elements > shape.num_elements() - covered) {
      return DataLoss("slices of tensor '", name, "' overlap in ", BundleIndexPath(prefix_));
    }
    covered += overlap->elements;
    parts.push_back({part, stored.starts});
  }
  if (covered != shape.num_elements()) {
    return InvalidArgument("Does not have sufficient slices for partitioned tensor ", name,
                           " to restore in slice_spec: ", slice.ToString());
  }
  return parts;
}

StatusOr<Tensor> BundleReader::ReadSlice(absl::string_view name, const TensorSlice& slice) const {
  ASSIGN_OR_RETURN(const BundleEntry* entry, Find(name));
  ASSIGN_OR_RETURN(const Shape shape, slice.ShapeIn(entry->shape));
  if (!entry->partitioned()) {
    ASSIGN_OR_RETURN(Tensor whole, ReadStored(name, *entry));
    if (shape == entry->shape) return whole;
    // The shapes differ, so the rank is at least 1.
    if (std::ranges::equal(shape.dims().subspan(1), entry->shape.dims().subspan(1))) {
      return whole.Rows(slice.starts[0], slice.starts[0] + shape[0]);
    }
    ASSIGN_OR_RETURN(Tensor out, Tensor::Make(entry->dtype, shape));
    const Dims origin(slice.starts.size(), 0);
    if (auto overlap = Overlap(origin, entry->shape, slice.starts, shape)) {
      ForEachRun(*overlap, entry->shape, shape, [&](int64_t from, int64_t to, int64_t n) {
        CopyElements(whole, from, &out, to, n);
        return true;
      });
    }
    return out;
  }
  ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(name, *entry, slice, shape));
  if (parts.size() == 1 && parts[0].entry->shape == shape) return ReadStored(name, *parts[0].entry);
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(entry->dtype, shape));
  ElementSet seen(shape.num_elements());
  for (const Part& part : parts) {
    ASSIGN_OR_RETURN(const Tensor value, ReadStored(name, *part.entry));
    const auto overlap = Overlap(part.starts, part.entry->shape, slice.starts, shape);
    const bool apart =
        ForEachRun(*overlap, part.entry->shape, shape, [&](int64_t from, int64_t to, int64_t n) {
          CopyElements(value, from, &out, to, n);
          return seen.Add(to, n);
        });
    if (!apart) {
      return DataLoss("slices of tensor '", name, "' overlap in ", BundleIndexPath(prefix_));
    }
  }
  return out;
}

}  // namespace smelt
