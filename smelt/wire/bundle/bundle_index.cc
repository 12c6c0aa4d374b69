#include "smelt/wire/bundle/bundle_index.h"

#include "absl/strings/str_format.h"
#include "smelt/io/fs.h"
#include "smelt/wire/bundle/index_table.h"
#include "smelt/wire/proto/proto_internal.h"
#include "smelt/wire/proto/saved_model.pb.h"

namespace smelt {
namespace {

// The version of the format that is written, and the newest that is understood.
constexpr int kBundleVersion = 1;

StatusOr<int> ShardsFromHeader(absl::string_view bytes) {
  tensorflow::BundleHeaderProto header;
  RETURN_IF_ERROR(ParseBinaryProto(bytes, "the bundle's header", &header));
  if (header.endianness() != tensorflow::BundleHeaderProto::LITTLE) {
    return Unimplemented("big-endian bundles are not supported");
  }
  if (header.version().min_consumer() > kBundleVersion) {
    return InvalidArgument("Checkpoint min consumer version ", header.version().min_consumer(),
                           " above current version ", kBundleVersion);
  }
  if (header.num_shards() < 0) {
    return DataLoss("the bundle has ", header.num_shards(), " shards");
  }
  return header.num_shards();
}

StatusOr<Shape> BundleShape(const tensorflow::TensorShapeProto& proto) {
  if (proto.unknown_rank()) return InvalidArgument("Shape <unknown> is not fully defined");
  Dims dims;
  for (const auto& dim : proto.dim()) dims.push_back(dim.size());
  return Shape::Make(dims);
}

StatusOr<BundleEntry> EntryFromProto(absl::string_view bytes, int num_shards) {
  tensorflow::BundleEntryProto proto;
  RETURN_IF_ERROR(ParseBinaryProto(bytes, "the entry", &proto));
  BundleEntry entry;
  const auto dtype = static_cast<Dtype>(proto.dtype());
  if (IsKnownDtype(proto.dtype()) && !IsRef(dtype)) entry.dtype = dtype;
  auto shape = BundleShape(proto.shape());
  if (!shape.ok()) return DataLoss(shape.status().message());
  entry.shape = *std::move(shape);
  entry.shard = proto.shard_id();
  entry.offset = proto.offset();
  entry.size = proto.size();
  entry.masked_crc = proto.crc32c();
  if (entry.offset < 0 || entry.size < 0) return DataLoss("the entry has a negative position");
  for (const auto& slice_proto : proto.slices()) {
    TensorSlice slice = SliceFromProto(slice_proto);
    if (auto part = slice.ShapeIn(entry.shape); !part.ok()) {
      return DataLoss(part.status().message());
    }
    entry.slices.push_back(std::move(slice));
  }
  // A partitioned tensor has no bytes of its own, unless one part is all of it.
  const bool stored = !entry.partitioned() || entry.size != 0;
  if (entry.shard < 0 || (stored && entry.shard >= num_shards)) {
    return DataLoss("the entry lies in shard ", entry.shard, " of ", num_shards);
  }
  return entry;
}

StatusOr<std::string> EntryToProto(const BundleEntry& entry) {
  tensorflow::BundleEntryProto proto;
  proto.set_dtype(static_cast<tensorflow::DataType>(entry.dtype));
  auto* shape = proto.mutable_shape();  // present for a scalar too
  for (int64_t d : entry.shape.dims()) shape->add_dim()->set_size(d);
  proto.set_shard_id(entry.shard);
  proto.set_offset(entry.offset);
  proto.set_size(entry.size);
  proto.set_crc32c(entry.masked_crc);
  for (const TensorSlice& slice : entry.slices) {
    SliceToProto(slice, proto.add_slices());
  }
  return SerializeProto(proto);
}

}  // namespace

std::string BundleIndexPath(const std::string& prefix) { return prefix + ".index"; }

std::string BundleShardPath(const std::string& prefix, int shard, int num_shards) {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, shard, num_shards);
}

StatusOr<BundleIndex> ReadBundleIndex(const std::string& prefix, const FileSystem& files) {
  const std::string path = BundleIndexPath(prefix);
  auto file = files.Read(path);
  if (absl::IsNotFound(file.status())) {
    return NotFound(
        "Unsuccessful TensorSliceReader constructor: Failed to find any matching files ", "for ",
        prefix);
  }
  RETURN_IF_ERROR(file.status());
  BundleIndex index;
  bool have_header = false;
  const Status status =
      ReadIndexTable(*file, [&](absl::string_view key, absl::string_view value) -> Status {
        // The header's key is empty, so it comes first.
        if (!have_header) {
          if (!key.empty()) return DataLoss("the bundle has no header");
          have_header = true;
          ASSIGN_OR_RETURN(index.num_shards, ShardsFromHeader(value));
          return OkStatus();
        }
        auto entry = EntryFromProto(value, index.num_shards);
        if (!entry.ok()) return Suffix(entry.status(), absl::StrCat(" (tensor '", key, "')"));
        index.entries.emplace_back(std::string(key), *std::move(entry));
        return OkStatus();
      });
  if (!status.ok()) return Suffix(status, absl::StrCat(": ", path));
  if (!have_header) return DataLoss("the bundle has no header: ", path);
  return index;
}

StatusOr<std::string> SerializeBundleIndex(const BundleIndex& index) {
  tensorflow::BundleHeaderProto header;
  header.set_num_shards(index.num_shards);
  header.mutable_version()->set_producer(kBundleVersion);
  std::vector<std::pair<std::string, std::string>> rows(1);
  ASSIGN_OR_RETURN(rows[0].second, SerializeProto(header));
  rows.reserve(index.entries.size() + 1);
  for (const auto& [key, entry] : index.entries) {
    ASSIGN_OR_RETURN(std::string value, EntryToProto(entry));
    rows.emplace_back(key, std::move(value));
  }
  return BuildIndexTable(rows);
}

}  // namespace smelt
