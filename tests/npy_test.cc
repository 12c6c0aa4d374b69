// .npy and .npz files: what is read, what is written, and what is refused.
#include "smelt/wire/numpy/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "smelt/io/unpack_limit.h"
#include "smelt/wire/example/example_writer.h"

namespace smelt {
namespace {

std::string Npy(const std::string& header, const std::string& data, char version = 1) {
  std::string out("\x93NUMPY", 6);
  out.push_back(version);
  out.push_back(0);
  out.push_back(static_cast<char>(header.size()));
  out.push_back(0);
  if (version > 1) out.append(2, '\0');
  return out + header + data;
}

std::string Header(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }\n";
}

template <typename T>
std::string Bytes(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T));
}

TEST(Npy, RoundTripsEveryType) {
  for (int i = 1; i < kNumDtypes; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    auto t = Tensor::Zeros(dtype, Shape({2, 3}));
    if (!t.ok()) continue;
    auto bytes = SerializeNpy(*t);
    if (!bytes.ok() || IsQuantized(dtype)) continue;
    auto back = ParseNpy(*bytes);
    ASSERT_TRUE(back.ok()) << DtypeName(dtype) << ": " << back.status();
    EXPECT_TRUE(back->Identical(*t)) << DtypeName(dtype);
  }
}

TEST(Npy, RoundTripsStrings) {
  const Tensor t =
      Tensor::Vector<std::string>({"", "a", std::string("\0\xff", 2), std::string(300, 'x')});
  for (const Shape& shape : {Shape({4}), Shape({2, 2}), Shape({1, 4, 1})}) {
    auto back = ParseNpy(*SerializeNpy(t.WithShape(shape)));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(back->Identical(t.WithShape(shape)));
  }
  auto scalar = ParseNpy(*SerializeNpy(Tensor::Scalar<std::string>("one")));
  ASSERT_TRUE(scalar.ok());
  EXPECT_EQ(scalar->scalar<std::string>(), "one");
}

TEST(Npy, ReadsOrdersAndVersions) {
  const auto want = Tensor::Vector<int16_t>({1, 2, 3, 4, 5, 6}).WithShape(Shape({2, 3}));
  const std::string columns = Bytes<int16_t>({1, 4, 2, 5, 3, 6});
  for (char version : {1, 2, 3}) {
    auto t = ParseNpy(Npy(Header("<i2", "(2, 3)", true), columns, version));
    ASSERT_TRUE(t.ok()) << t.status();
    EXPECT_TRUE(t->Identical(want));
  }
  auto big = ParseNpy(Npy(Header(">i2", "(2,)"), std::string("\x01\x02\x03\x04", 4)));
  ASSERT_TRUE(big.ok());
  EXPECT_EQ(big->data<int16_t>()[0], 0x0102);
  auto text = ParseNpy(Npy(Header("<U2", "(2,)"), Bytes<uint32_t>({0xe9, 0, 0x1f600, 'a'})));
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->data<std::string>()[0], "\xc3\xa9");
  EXPECT_EQ(text->data<std::string>()[1],
            "\xf0\x9f\x98\x80"
            "a");
}

TEST(Npy, RefusesWhatDoesNotHoldTogether) {
  using absl::StatusCode;
  const struct {
    std::string bytes;
    StatusCode code;
  } cases[] = {
      {"", StatusCode::kInvalidArgument},
      {"\x93NUMPY\x01", StatusCode::kInvalidArgument},
      {Npy(Header("<f4", "(2,)"), "1234"), StatusCode::kDataLoss},
      {Npy(Header("<f4", "(4611686018427387904, 4)"), ""), StatusCode::kInvalidArgument},
      {Npy(Header("<f4", "(4611686018427387904,)"), ""), StatusCode::kDataLoss},
      {Npy(Header("<f4", "(-1,)"), ""), StatusCode::kInvalidArgument},
      {Npy(Header("|S0", "(1000000000,)"), ""), StatusCode::kInvalidArgument},
      {Npy(Header("<M8", "(1,)"), "12345678"), StatusCode::kUnimplemented},
      {Npy(Header("<f16", "(1,)"), std::string(16, 0)), StatusCode::kUnimplemented},
      {Npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234"),
       StatusCode::kUnimplemented},
      {Npy("{'descr': '<f4', 'shape': (1,)}", "1234"), StatusCode::kInvalidArgument},
      {Npy(Header("|O", "(1,)"), "\x80\x04}."), StatusCode::kUnimplemented},
      {Npy(Header("|O", "(1,)"),
           "\x80\x04"
           "cos\nsystem\n(C\x01xtR."),
       StatusCode::kUnimplemented},
      {Npy(Header("|O", "(1,)"), "\x80\x04"), StatusCode::kDataLoss},
      // A pickle of tuples nested 100,000 deep.
      {Npy(Header("|O", "(1,)"), "\x80\x04)" + std::string(100000, '\x85') + "."),
       StatusCode::kUnimplemented},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(ParseNpy(c.bytes).status().code(), c.code) << ParseNpy(c.bytes).status();
  }
  auto good = *SerializeNpy(Tensor::Vector<std::string>({"abc", "d"}));
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(ParseNpy(good.substr(0, n)).ok()) << n;
}

// One member, stored unless `flags_and_method` says otherwise.
std::string Zip(const std::string& name, const std::string& data, uint32_t crc, uint32_t size,
                uint32_t flags_and_method = 0) {
  const auto u = [](uint64_t v, int n) {
    return std::string(reinterpret_cast<const char*>(&v), static_cast<size_t>(n));
  };
  const std::string local = "PK\x03\x04" + u(20, 2) + u(flags_and_method, 4) + u(0, 4) + u(crc, 4) +
                            u(data.size(), 4) + u(size, 4) + u(name.size(), 2) + u(0, 2) + name +
                            data;
  const std::string entry = "PK\x01\x02" + u(20, 2) + u(20, 2) + u(flags_and_method, 4) + u(0, 4) +
                            u(crc, 4) + u(data.size(), 4) + u(size, 4) + u(name.size(), 2) +
                            u(0, 8) + u(0, 4) + u(0, 4) + name;
  return local + entry + "PK\x05\x06" + u(0, 4) + u(1, 2) + u(1, 2) + u(entry.size(), 4) +
         u(local.size(), 4) + u(0, 2);
}

uint32_t Crc32(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc;
}

TEST(Npz, ReadsByNameAndChecks) {
  const std::string npy = Npy(Header("|u1", "(2,)"), "\x07\x08");
  // A member whose checksum is wrong is listed, but not read.
  const std::string wrong = Zip("k.npy", npy, 1, static_cast<uint32_t>(npy.size()));
  ASSERT_TRUE(NpzNames(wrong).ok());
  EXPECT_EQ(*NpzNames(wrong), std::vector<std::string>{"k"});
  EXPECT_EQ(ParseNpzArray(wrong, "k").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseNpzArray(wrong, "j").status().code(), absl::StatusCode::kNotFound);
  const std::string zip = Zip("k.npy", npy, Crc32(npy), static_cast<uint32_t>(npy.size()));
  auto t = ParseNpzArray(zip, "k");
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_TRUE(t->Identical(Tensor::Vector<uint8_t>({7, 8})));
  for (size_t n = 0; n < zip.size(); ++n) EXPECT_FALSE(ParseNpzArray(zip.substr(0, n), "k").ok());
}

TEST(Npz, ReadsDeflatedMembersOfAnyName) {
  const std::string npy = Npy(Header("|u1", "(2,)"), "\x07\x08");
  // One block of deflate without compression.
  const auto n = static_cast<uint16_t>(npy.size());
  const uint16_t lengths[] = {n, static_cast<uint16_t>(~n)};
  const std::string packed = "\x01" + std::string(reinterpret_cast<const char*>(lengths), 4) + npy;
  constexpr uint32_t kUtf8 = 0x800, kDeflate = 8 << 16;
  const std::string zip = Zip("gr\u00f6\u00dfe.npy", packed, Crc32(npy), n, kUtf8 | kDeflate);
  auto t = ParseNpzArray(zip, "gr\u00f6\u00dfe");
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_TRUE(t->Identical(Tensor::Vector<uint8_t>({7, 8})));

  // Sizes that a member states are checked against its bytes.
  for (const uint32_t size : {n - 1u, n + 1u, 0xfffffff0u}) {
    const std::string lie = Zip("k.npy", packed, Crc32(npy), size, kDeflate);
    EXPECT_EQ(ParseNpzArray(lie, "k").status().code(), absl::StatusCode::kDataLoss) << size;
    const std::string stored = Zip("k.npy", npy, Crc32(npy), size);
    EXPECT_EQ(ParseNpzArray(stored, "k").status().code(), absl::StatusCode::kDataLoss) << size;
  }
  // Not even room for the array is taken beyond the limit.
  SetUnpackLimit(n - 1u);
  EXPECT_EQ(ParseNpzArray(zip, "gr\u00f6\u00dfe").status().code(),
            absl::StatusCode::kResourceExhausted);
  SetUnpackLimit(n);
  EXPECT_TRUE(ParseNpzArray(zip, "gr\u00f6\u00dfe").ok());
  SetUnpackLimit(0);
  // LZMA with a dictionary of 4 GB; encrypted.
  const std::string lzma = std::string("\x09\x14\x05\x00\x5d\xff\xff\xff\xff", 9) + npy;
  for (const uint32_t flags_and_method : {uint32_t{14} << 16, uint32_t{1}}) {
    const std::string other = Zip("k.npy", lzma, Crc32(npy), n, flags_and_method);
    EXPECT_EQ(ParseNpzArray(other, "k").status().code(), absl::StatusCode::kUnimplemented);
  }
}

TEST(Example, IsWrittenAsProtobufDoes) {
  auto bytes = SerializeExample({{"a", Tensor::Vector<int64_t>({1, 300})},
                                 {"b", Tensor::Vector<std::string>({"x"})},
                                 {"c", Tensor::Vector<float>({1.0f})},
                                 {"d", Tensor()}});
  ASSERT_TRUE(bytes.ok());
  const char want[] =
      "\x0a\x30"
      "\x0a\x0c\x0a\x01"
      "a\x12\x07\x1a\x05\x0a\x03\x01\xac\x02"
      "\x0a\x0a\x0a\x01"
      "b\x12\x05\x0a\x03\x0a\x01x"
      "\x0a\x0d\x0a\x01"
      "c\x12\x08\x12\x06\x0a\x04\x00\x00\x80\x3f"
      "\x0a\x05\x0a\x01"
      "d\x12\x00";
  EXPECT_EQ(*bytes, std::string(want, sizeof(want) - 1));
}

}  // namespace
}  // namespace smelt
