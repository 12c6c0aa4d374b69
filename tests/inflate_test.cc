// Deflate streams: what is read, what each kind of damage is called, and how far they may unpack.
#include "smelt/io/inflate.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "absl/strings/match.h"
#include "smelt/io/unpack_limit.h"

namespace smelt {
namespace {

constexpr int kZlibBits = 15, kGzipBits = 31;

std::string Pack(const std::string& bytes, int bits, int level = 6) {
  z_stream s{};
  deflateInit2(&s, level, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&s, bytes.size()), '\0');
  s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  s.avail_in = static_cast<uInt>(bytes.size());
  s.next_out = reinterpret_cast<Bytef*>(out.data());
  s.avail_out = static_cast<uInt>(out.size());
  deflate(&s, Z_FINISH);
  out.resize(s.total_out);
  deflateEnd(&s);
  return out;
}

std::string Sample() {
  std::string bytes;
  for (int i = 0; i < 400; ++i) bytes += static_cast<char>(i * i * 31 >> 3);
  return bytes;
}

// Sets the limit for the time of a test.
class ScopedUnpackLimit {
 public:
  explicit ScopedUnpackLimit(uint64_t bytes) { SetUnpackLimit(bytes); }
  ~ScopedUnpackLimit() { SetUnpackLimit(0); }
};

TEST(Inflate, NoFlippedBitIsBelieved) {
  for (const int level : {0, 9}) {
    for (const auto& [form, bits] :
         {std::pair(DeflateForm::kZlib, kZlibBits), std::pair(DeflateForm::kGzip, kGzipBits),
          std::pair(DeflateForm::kPaddedGzip, kGzipBits)}) {
      const std::string packed = Pack(Sample(), bits, level);
      ASSERT_EQ(*Inflate(packed, form), Sample());
      for (size_t bit = 0; bit < packed.size() * 8; ++bit) {
        std::string flipped = packed;
        flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
        const auto got = Inflate(flipped, form);
        if (got.ok()) {
          EXPECT_EQ(*got, Sample()) << bit;
        } else {
          EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss) << got.status();
        }
      }
    }
  }
}

TEST(Inflate, EveryCutIsRefused) {
  for (const int bits : {kZlibBits, kGzipBits}) {
    const auto form = bits == kZlibBits ? DeflateForm::kZlib : DeflateForm::kGzip;
    const std::string packed = Pack(Sample(), bits);
    for (size_t n = 1; n < packed.size(); ++n) {
      const auto got = Inflate(packed.substr(0, n), form);
      EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss) << n;
      EXPECT_TRUE(absl::StrContains(got.status().message(), "cut short")) << got.status();
    }
    const auto part = Inflate(packed.substr(0, packed.size() - 8), form, CutShort::kKeepPrefix);
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_TRUE(absl::StartsWith(Sample(), *part));
  }
}

TEST(Inflate, WhatFollowsAGzipMember) {
  const std::string one = Pack("one", kGzipBits), two = Pack("two", kGzipBits);
  const std::string zeros(700, '\0');
  for (const DeflateForm form : {DeflateForm::kGzip, DeflateForm::kPaddedGzip}) {
    EXPECT_EQ(*Inflate(one + two, form), "onetwo");
    EXPECT_EQ(*Inflate(one + Pack("", kGzipBits) + two, form), "onetwo");
    EXPECT_FALSE(Inflate(one + "garbage", form).ok());
    EXPECT_FALSE(Inflate(one + two.substr(0, two.size() - 1), form).ok());
    EXPECT_FALSE(Inflate(one + zeros + two, form).ok());
  }
  EXPECT_EQ(*Inflate(one + zeros, DeflateForm::kPaddedGzip), "one");
  EXPECT_FALSE(Inflate(one + zeros, DeflateForm::kGzip).ok());
}

TEST(Inflate, StopsAtTheLimit) {
  constexpr size_t kSize = (64 << 20) + 1;
  const std::string packed = Pack(std::string(kSize, 'a'), kGzipBits, 1);
  const auto grows = Inflate(packed, DeflateForm::kGzip);
  EXPECT_EQ(grows.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::StrContains(grows.status().message(), "the limit is 67108864"));
  EXPECT_TRUE(absl::StrContains(grows.status().message(), "--unpack_limit")) << grows.status();
  const ScopedUnpackLimit limit(kSize);
  EXPECT_EQ(Inflate(packed, DeflateForm::kGzip)->size(), kSize);
  SetUnpackLimit(kSize - 1);
  EXPECT_FALSE(Inflate(packed, DeflateForm::kGzip).ok());
}

TEST(UnpackLimit, IsARatioBetweenAFloorAndACeiling) {
  EXPECT_EQ(UnpackLimit(0), uint64_t{64} << 20);
  EXPECT_EQ(UnpackLimit(600000), uint64_t{64} << 20);
  EXPECT_EQ(UnpackLimit(10000000), 1000000000u);
  EXPECT_EQ(UnpackLimit(1000000000), uint64_t{16} << 30);
  EXPECT_EQ(UnpackLimit(uint64_t{20} << 30), uint64_t{20} << 30);
  EXPECT_EQ(UnpackLimit(SIZE_MAX), UINT64_MAX);
  const ScopedUnpackLimit limit(5);
  EXPECT_EQ(UnpackLimit(SIZE_MAX), 5u);
}

}  // namespace
}  // namespace smelt
