// Damaged and hostile bundles: missing files, flipped bits, entries and tables that lie.
#include <gtest/gtest.h>

#include "bundle_fixture.h"
#include "smelt/wire/bundle/index_table.h"

namespace smelt {
namespace {

using BundleDamageTest = BundleTest;

using absl::StatusCode;

TEST_F(BundleDamageTest, MissingFiles) {
  ExpectStatus(BundleReader::Open(Path("none")).status(), StatusCode::kNotFound, "none");
  WriteBytes(Path("tf.index"), Hex(kTfIndex));
  auto reader = Open(Path("tf"));
  ExpectStatus(reader->Read("pi").status(), StatusCode::kNotFound, "tf.data-00000-of-00001");
  ExpectStatus(reader->Read("part").status(), StatusCode::kNotFound, "tf.data-00000-of-00001");
  // A data file is opened when it is first needed.
  WriteBytes(Path("tf.data-00000-of-00001"), Hex(kTfData));
  EXPECT_TRUE(reader->Read("pi").ok());
}

TEST_F(BundleDamageTest, DamagedIndex) {
  WriteBytes(Path("tf.data-00000-of-00001"), Hex(kTfData));
  const std::string good = Hex(kTfIndex);
  for (size_t n = 0; n < good.size(); n += 7) {
    WriteBytes(Path("tf.index"), absl::string_view(good).substr(0, n));
    ExpectStatus(BundleReader::Open(Path("tf")).status(), StatusCode::kDataLoss, "tf.index");
  }
  const auto none = [](absl::string_view, absl::string_view) { return OkStatus(); };
  for (size_t n = 0; n < good.size(); ++n) {
    EXPECT_FALSE(ReadIndexTable(absl::string_view(good).substr(0, n), none).ok()) << n;
  }
  // One flipped bit in each byte, at a different place from byte to byte.
  for (size_t bit = 0; bit < 8 * good.size(); bit += 9) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    WriteBytes(Path("tf.index"), bad);
    auto reader = BundleReader::Open(Path("tf"));
    if (!reader.ok()) {
      EXPECT_EQ(reader.status().code(), StatusCode::kDataLoss) << reader.status();
      continue;
    }
    // Only the empty metaindex block after the data, and padding, are never read.
    EXPECT_GE(bit / 8, 209u);
    for (const auto& [name, value] : TfTensors()) ExpectReads(**reader, name, value);
  }
}

// What is verified before it is read fails when it is read, in the same words.
TEST_F(BundleDamageTest, DamageFoundAhead) {
  const std::string data = Hex("0000803f0000803f");
  const auto entry = [&](int64_t at) { return EntryOf(Dtype::kFloat, Shape(), data, at, 4); };
  std::string damaged = data;
  damaged[5] = 'x';
  const std::string prefix = Make({{"a", entry(0)}, {"b", entry(4)}}, damaged);
  const Status alone = Open(prefix)->Read("b").status();
  auto reader = Open(prefix);
  reader->VerifyAhead({});
  EXPECT_TRUE(reader->Read("a").ok());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(reader->Read("b").status(), alone);
  ExpectStatus(alone, StatusCode::kDataLoss, "Checksum does not match");
  std::filesystem::remove(Path("made.data-00000-of-00001"));
  reader = Open(prefix);
  reader->VerifyAhead({});
  ExpectStatus(reader->Read("a").status(), StatusCode::kNotFound, "made.data-00000-of-00001");
}

TEST_F(BundleDamageTest, DamagedData) {
  WriteBytes(Path("tf.index"), Hex(kTfIndex));
  const std::string good = Hex(kTfData), path = Path("tf.data-00000-of-00001");
  const auto tensors = TfTensors();
  const auto failures = [&] {
    auto reader = Open(Path("tf"));
    int failed = 0;
    for (const auto& [name, value] : tensors) {
      auto got = reader->Read(name);
      if (got.ok()) {
        EXPECT_TRUE(got->Identical(value)) << name;
        continue;
      }
      ++failed;
      ExpectStatus(got.status(), StatusCode::kDataLoss, absl::StrCat("tensor '", name, "'"));
      ExpectStatus(got.status(), StatusCode::kDataLoss, "tf.data-00000-of-00001");
    }
    return failed;
  };
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    WriteBytes(path, bad);
    EXPECT_EQ(failures(), 1) << bit;
  }
  for (size_t n = 0; n < good.size(); ++n) {
    WriteBytes(path, absl::string_view(good).substr(0, n));
    EXPECT_GE(failures(), 1) << n;
  }
  std::string bad = good;
  bad[45] = 1;
  WriteBytes(path, bad);
  ExpectStatus(Open(Path("tf"))->Read("pi").status(), StatusCode::kDataLoss,
               absl::StrCat("TensorBundle at ", Path("tf"),
                            " shard 0 (4 bytes): Checksum does not match: stored "));
}

TEST_F(BundleDamageTest, HostileEntries) {
  SetHeapLimit(1 << 20);
  const std::string data(64, '\1');
  const auto expect = [&](const BundleEntry& e, StatusCode code, absl::string_view words) {
    auto reader = BundleReader::Open(Make({{"x", e}}, data));
    ExpectStatus(reader.ok() ? (*reader)->Read("x").status() : reader.status(), code, words);
    ExpectStatus(reader.ok() ? (*reader)->Read("x").status() : reader.status(), code, "'x'");
  };
  const auto lost = StatusCode::kDataLoss;
  const auto entry = [&](Dtype dtype, const Shape& shape, int64_t offset, int64_t size) {
    return EntryOf(dtype, shape, data, offset, size);
  };
  expect(entry(Dtype::kFloat, Shape({int64_t{1} << 40}), 0, 64), lost, "Invalid size");
  expect(entry(Dtype::kDouble, Shape({int64_t{1} << 61}), 0, 0), lost, "Invalid size");
  expect(entry(Dtype::kFloat, Shape({int64_t{1} << 40}), 0, int64_t{1} << 42), lost, "ends at");
  expect(entry(Dtype::kFloat, Shape({4}), 60, 16), lost, "ends at byte 64");
  expect(entry(Dtype::kFloat, Shape({4}), INT64_MAX, 16), lost, "ends at byte 64");
  expect(entry(Dtype::kFloat, Shape({4}), -4, 16), lost, "negative position");
  expect(entry(Dtype::kFloat, Shape({4}), 0, -16), lost, "negative position");
  expect(entry(Dtype::kFloat, Shape({-4}), 0, 16), lost, "not fully defined");
  expect(entry(Dtype::kInt8, Shape({int64_t{1} << 40, int64_t{1} << 40}), 0, 0), lost, "2**63");
  expect(entry(Dtype::kString, Shape({int64_t{1} << 40}), 0, 64), lost, "Invalid size");
  expect(entry(Dtype::kString, Shape({62}), 0, 64), lost, "missing");
  expect(entry(Dtype::kString, Shape({8}), 0, 64), lost, "length checksum");
  expect(entry(Dtype::kVariant, Shape(), 0, 64), StatusCode::kUnimplemented, "variant");
  expect(entry(Dtype::kResource, Shape(), 0, 64), StatusCode::kUnimplemented, "resource");
  expect(entry(static_cast<Dtype>(77), Shape(), 0, 1), StatusCode::kUnimplemented, "future");
  BundleEntry e = entry(Dtype::kFloat, Shape({4}), 0, 16);
  for (int shard : {1, -1, INT32_MAX}) {
    e.shard = shard;
    expect(e, lost, "of 1");
  }
  // A length of 2^64 - 1 whose checksum holds.
  const uint64_t length = ~uint64_t{0};
  const std::string strings =
      Hex("ffffffffffffffffff01") + Bytes<uint32_t>(MaskCrc32c(Crc32c(Bytes(length))));
  auto reader = Open(Make({{"x", EntryOf(Dtype::kString, Shape(), strings, 0, 14)}}, strings));
  ExpectStatus(reader->Read("x").status(), lost, "ends beyond");
}

TEST_F(BundleDamageTest, HostileSlices) {
  SetHeapLimit(1 << 20);
  const std::string data(64, '\1');
  const auto read = [&](std::vector<std::pair<std::string, BundleEntry>> entries) {
    std::ranges::sort(entries, {}, [](const auto& e) { return e.first; });
    auto reader = BundleReader::Open(Make(std::move(entries), data));
    return reader.ok() ? (*reader)->Read("x").status() : reader.status();
  };
  const auto lost = StatusCode::kDataLoss;
  BundleEntry whole;
  whole.dtype = Dtype::kInt8;
  const int64_t huge = int64_t{1} << 40;
  whole.shape = Shape({huge});
  whole.slices = {TensorSlice{{0}, {64}}};
  ExpectStatus(read({{"x", whole}}), lost, "is missing");
  const auto key = [&](int i) { return SliceKey("x", whole.slices[static_cast<size_t>(i)]); };
  const BundleEntry part = EntryOf(Dtype::kInt8, Shape({64}), data, 0, 64);
  ExpectStatus(read({{"x", whole}, {key(0), part}}), StatusCode::kInvalidArgument,
               "Does not have sufficient slices");
  // Parts that use the same bytes again and again.
  whole.shape = Shape({64 * 10});
  whole.slices.clear();
  std::vector<std::pair<std::string, BundleEntry>> entries;
  for (int i = 0; i < 10; ++i) {
    whole.slices.push_back(TensorSlice{{64 * i}, {64}});
    entries.emplace_back(key(i), part);
  }
  entries.emplace_back("x", whole);
  ExpectStatus(read(entries), lost, "larger than the file");
  // Shapes, types and sizes that contradict each other.
  whole.slices = {TensorSlice{{0}, {32}}};
  whole.shape = Shape({32});
  ExpectStatus(read({{"x", whole}, {key(0), part}}), lost, "another shape");
  whole.shape = Shape({huge});
  whole.slices = {TensorSlice{{0}, {-1}}};
  ExpectStatus(read({{"x", whole}}), lost, "Invalid size");
  whole.dtype = Dtype::kString;
  ExpectStatus(read({{"x", whole}}), lost, "Invalid size");
  whole.slices = {TensorSlice{{huge}, {1}}};
  ExpectStatus(read({{"x", whole}}), lost, "out of bounds");
  whole.slices = {TensorSlice{{0, 0}, {1, 1}}};
  ExpectStatus(read({{"x", whole}}), lost, "Mismatching ranks");
  // A part that is itself partitioned is read as bytes.
  BundleEntry outer;
  outer.dtype = Dtype::kInt8;
  outer.shape = Shape({64});
  outer.slices = {TensorSlice{{0}, {64}}};
  BundleEntry nested = part;
  nested.slices = outer.slices;
  EXPECT_TRUE(read({{"x", outer}, {SliceKey("x", outer.slices[0]), nested}}).ok());
}

// A table of one block whose rows are `block`.
std::string TableOf(std::string block) {
  const auto finish = [](std::string* bytes) {
    bytes->append(Bytes<uint32_t>(0) + Bytes<uint32_t>(1) + '\0');
    bytes->append(Bytes<uint32_t>(MaskCrc32c(Crc32c(*bytes))));
  };
  finish(&block);
  std::string handle, index, footer;
  AppendVarint64(0, &handle);
  AppendVarint64(block.size() - 5, &handle);
  AppendVarint64(0, &index);
  AppendVarint64(1, &index);
  AppendVarint64(handle.size(), &index);
  index += "z" + handle;
  finish(&index);
  footer = handle;
  AppendVarint64(block.size(), &footer);
  AppendVarint64(index.size() - 5, &footer);
  footer.resize(40);
  return block + index + footer + Bytes<uint64_t>(0xdb4775248b80fb57);
}

TEST(IndexTable, HostileTables) {
  const auto read = [](absl::string_view file) {
    return ReadIndexTable(file, [](absl::string_view, absl::string_view) { return OkStatus(); });
  };
  const std::vector<std::pair<std::string, std::string>> one = {{"key", "value"}};
  const std::string good = BuildIndexTable(one);
  EXPECT_TRUE(read(good).ok());
  EXPECT_TRUE(read(BuildIndexTable({})).ok());
  // The index block's handle stands in the footer; sizes near 2^64 wrap around with the trailer.
  const size_t footer = good.size() - 48;
  for (const char* handles :
       {"0000ffffffffffffffffff01fbffffffffffffffff01", "000000fbffffffffffffffff01",
        "000000ffffffffffffffffff01", "00007ffbffffffffffffffff01", "ffffffffffffffffffff"}) {
    std::string bad = good;
    const std::string bytes = absl::HexStringToBytes(handles);
    bad.replace(footer, bytes.size(), bytes);
    EXPECT_EQ(read(bad).code(), StatusCode::kDataLoss) << handles;
  }
  // Keys that do not ascend.
  EXPECT_EQ(
      read(BuildIndexTable(std::vector<std::pair<std::string, std::string>>{{"b", ""}, {"a", ""}}))
          .code(),
      StatusCode::kDataLoss);
  // A long key that every row repeats at three bytes a row.
  std::string block;
  for (uint64_t i = 0; i < 5000; ++i) {
    AppendVarint64(i == 0 ? 0 : 60000 + i - 1, &block);
    AppendVarint64(i == 0 ? 60000 : 1, &block);
    AppendVarint64(0, &block);
    block += std::string(i == 0 ? 60000 : 1, 'k');
  }
  ExpectStatus(read(TableOf(block)), StatusCode::kDataLoss, "too many rows");
  std::vector<std::pair<std::string, std::string>> rows;
  rows = {{std::string(kMaxTableKey + 1, 'k'), ""}};
  ExpectStatus(read(BuildIndexTable(rows)), StatusCode::kDataLoss, "too long");
}

TEST_F(BundleDamageTest, ClaimsOfCompressedBlocks) {
  // The data block begins with its length, here made 2^32 - 1; the checksum is made to hold.
  const std::string good = Hex(kSnappyIndex);
  std::string bad = good;
  const size_t length = 0x57;  // of the block; its type and checksum come after
  bad.replace(0, 5, Hex("ffffffff0f"));
  const uint32_t crc = MaskCrc32c(Crc32c(absl::string_view(bad).substr(0, length + 1)));
  bad.replace(length + 1, 4, Bytes(crc));
  WriteBytes(Path("s.index"), bad);
  ExpectStatus(BundleReader::Open(Path("s")).status(), StatusCode::kDataLoss,
               "does not decompress");
}

TEST_F(BundleDamageTest, Headers) {
  const auto open = [&](absl::string_view header) {
    WriteBytes(Path("h.index"), BuildIndexTable(std::vector<std::pair<std::string, std::string>>{
                                    {"", std::string(header)}}));
    return BundleReader::Open(Path("h")).status();
  };
  EXPECT_TRUE(open(Hex("08011a020801")).ok());
  EXPECT_TRUE(open("").ok());
  EXPECT_EQ(open(Hex("08011001")).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(open(Hex("08011a021002")).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(open(Hex("08ffffffffffffffffff01")).code(), StatusCode::kDataLoss);
  EXPECT_EQ(open(Hex("0801ff")).code(), StatusCode::kDataLoss);
  WriteBytes(Path("h.index"), BuildIndexTable({}));
  EXPECT_EQ(BundleReader::Open(Path("h")).status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace smelt
