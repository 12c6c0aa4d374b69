// What tests of variable bundles share: a folder for them, tensors to put in, and bytes that
// TensorFlow wrote.
#ifndef SMELT_TESTS_BUNDLE_FIXTURE_H_
#define SMELT_TESTS_BUNDLE_FIXTURE_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "smelt/io/crc32c.h"
#include "smelt/wire/bundle/bundle.h"
#include "smelt/wire/bundle/bundle_index.h"

namespace smelt {

class BundleTest : public testing::Test {
 protected:
  BundleTest() {
    std::string pattern = JoinPath(testing::TempDir(), "bundle_test_XXXXXX");
    dir_ = mkdtemp(pattern.data());
  }
  ~BundleTest() override {
    SetHeapLimit(0);
    std::filesystem::remove_all(dir_);
  }

  std::string Path(absl::string_view name) const { return JoinPath(dir_, name); }
  int NumFiles() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(dir_),
                                          std::filesystem::directory_iterator()));
  }

  static void WriteBytes(const std::string& path, absl::string_view bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  static std::string Hex(absl::string_view hex) { return absl::HexStringToBytes(hex); }

  // Writes a bundle of one shard with these entries in its index and `data` as its data file.
  std::string Make(std::vector<std::pair<std::string, BundleEntry>> entries,
                   absl::string_view data) const {
    BundleIndex index;
    index.num_shards = 1;
    index.entries = std::move(entries);
    auto bytes = SerializeBundleIndex(index);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    WriteBytes(Path("made.index"), *bytes);
    WriteBytes(Path("made.data-00000-of-00001"), data);
    return Path("made");
  }

  std::string dir_;
};

inline std::shared_ptr<BundleReader> Open(const std::string& prefix) {
  auto reader = BundleReader::Open(prefix);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? *reader : nullptr;
}

inline void ExpectStatus(const Status& status, absl::StatusCode code, absl::string_view words) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), words)) << status;
}

inline void ExpectReads(const BundleReader& reader, absl::string_view name, const Tensor& want) {
  auto got = reader.Read(name);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(got->Identical(want))
      << name << ": " << Summarize(*got, 20) << " instead of " << Summarize(want, 20);
}

inline Tensor Random(Dtype dtype, const Shape& shape) {
  static std::mt19937 random(1);
  Tensor t = *Tensor::Make(dtype, shape);
  if (dtype == Dtype::kString) {
    for (auto& s : t.flat<std::string>()) s.assign(random() % 300, static_cast<char>(random()));
  } else {
    auto* bytes = static_cast<unsigned char*>(t.raw());
    for (size_t i = 0; i < t.bytes(); ++i) {
      bytes[i] = static_cast<unsigned char>(dtype == Dtype::kBool ? random() % 2 : random());
    }
  }
  return t;
}

inline Tensor Iota(const Shape& shape) {
  Tensor t = *Tensor::Make(Dtype::kInt32, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.data<int32_t>()[i] = static_cast<int32_t>(i);
  return t;
}

// A number as files hold it: little-endian.
template <typename T>
inline std::string Bytes(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline BundleEntry EntryOf(Dtype dtype, const Shape& shape, absl::string_view data, int64_t offset,
                           int64_t size) {
  BundleEntry e;
  e.dtype = dtype;
  e.shape = shape;
  e.offset = offset;
  e.size = size;
  if (offset >= 0 && size >= 0 && offset <= static_cast<int64_t>(data.size()) - size) {
    const auto at = static_cast<size_t>(offset), n = static_cast<size_t>(size);
    e.masked_crc = MaskCrc32c(Crc32c(data.substr(at, n)));
  }
  return e;
}

// Written by TensorFlow 2.21's SaveV2.
inline constexpr absl::string_view kTfIndex =
    "00000608011a020801000d150070617274000101028081807f0803120812020801120208022012280835bfdfdb7a09"
    "04158182807f080312081202080212020802201a2810352e5b453200060f612f666c6167080a120412020803280335"
    "75599106000711622f776f726473080712041202080220032809351447343507010d3208071200200c280635c1cb47"
    "5800041e706172740803120812020803120208023a060a0210010a003a080a04080110020a0001010d690801120020"
    "2a280435747e806600000000010000000079f2bf92000000000100000000c0f2a1b00001037100cc01000000000100"
    "00000082e6250bd10108de010f00000000000000000000000000000000000000000000000000000000000000000000"
    "57fb808b247547db";
inline constexpr absl::string_view kTfData =
    "0100010003ecc6ea19616263011d15826578010000000200000003000000040000000500000006000000"
    "00005040";
// Of a SavedModel whose index blocks are compressed.
inline constexpr absl::string_view kSnappyIndex =
    "646c00000608011a02080100010b61080112002804350638271f01010d32010f0420040d110c00010d6205112c0828"
    "043510fd784f00010d6305111c0c280435efd682c315333c10280435efd682c30000000001000000"
    "0103da3e1d000000000100000000c0f2a1b000010264005700000000010000000075f79c875c08690e00"
    "000000000000000000000000000000000000000000000000000000000000000000000057fb808b247547db";

inline std::vector<std::pair<std::string, Tensor>> TfTensors() {
  const Tensor part = Iota(Shape({3, 2}));
  for (int i = 0; i < 6; ++i) const_cast<Tensor&>(part).data<int32_t>()[i] = i + 1;
  return {{"a/flag", Tensor::Vector<bool>({true, false, true})},
          {"b/words", Tensor::Vector<std::string>({"", "abc"})},
          {"b/words2", Tensor::Scalar<std::string>("x")},
          {"part", part},
          {"pi", Tensor::Scalar(3.25f)}};
}

}  // namespace smelt

#endif  // SMELT_TESTS_BUNDLE_FIXTURE_H_
