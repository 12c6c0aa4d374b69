// Variable bundles: bytes as TensorFlow writes them, turns through disk, and merging.
#include <gtest/gtest.h>

#include <cstring>
#include <stop_token>
#include <thread>

#include "absl/time/clock.h"
#include "bundle_fixture.h"

namespace smelt {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;

TEST_F(BundleTest, ReadsWhatTensorFlowWrote) {
  WriteBytes(Path("tf.index"), Hex(kTfIndex));
  WriteBytes(Path("tf.data-00000-of-00001"), Hex(kTfData));
  auto reader = Open(Path("tf"));
  ASSERT_TRUE(reader);
  std::vector<std::string> names;
  for (const auto& [name, value] : TfTensors()) {
    names.push_back(name);
    ExpectReads(*reader, name, value);
  }
  EXPECT_EQ(reader->names(), names);
  const BundleEntry& part = **reader->Find("part");
  EXPECT_TRUE(part.partitioned());
  EXPECT_EQ(part.shape, Shape({3, 2}));
  EXPECT_TRUE(reader->Has("pi"));
  EXPECT_FALSE(reader->Has("p"));
  EXPECT_EQ(reader->Read("foo").status().message(), "Key foo not found in checkpoint");
  EXPECT_EQ(reader->Read("").status().code(), StatusCode::kNotFound);
}

TEST_F(BundleTest, WritesWhatTensorFlowWrites) {
  auto writer = *BundleWriter::Create(Path("ours"));
  for (const auto& [name, value] : TfTensors()) {
    if (name != "part") {
      ASSERT_TRUE(writer->Add(name, value).ok());
      continue;
    }
    TensorSlice slice{{0, 0}, {1, -1}};
    ASSERT_TRUE(writer->AddSlice(name, value.shape(), slice, value.Rows(0, 1)).ok());
    slice = TensorSlice{{1, 0}, {2, -1}};
    ASSERT_TRUE(writer->AddSlice(name, value.shape(), slice, value.Rows(1, 3)).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(absl::BytesToHexString(*ReadFile(Path("ours.index"))), kTfIndex);
  EXPECT_EQ(absl::BytesToHexString(*ReadFile(Path("ours.data-00000-of-00001"))), kTfData);
}

TEST_F(BundleTest, ReadsCompressedIndex) {
  WriteBytes(Path("s.index"), Hex(kSnappyIndex));
  WriteBytes(Path("s.data-00000-of-00001"), Hex("0000003f0000003f000000400000404000004040"));
  auto reader = Open(Path("s"));
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->names(), (std::vector<std::string>{"a", "a2", "b", "c", "c2"}));
  ExpectReads(*reader, "a2", Tensor::Scalar(0.5f));
  ExpectReads(*reader, "c2", Tensor::Scalar(3.0f));
}

TEST_F(BundleTest, EveryTypeAndShapeReturns) {
  for (const BundleWriterOptions& options :
       {BundleWriterOptions{}, BundleWriterOptions{3, 1}, BundleWriterOptions{2, 64}}) {
    std::map<std::string, Tensor> tensors;
    for (int i = 1; i < kNumDtypes; ++i) {
      const auto dtype = static_cast<Dtype>(i);
      if (!IsPod(dtype) && dtype != Dtype::kString) continue;
      for (const Shape& shape :
           {Shape(), Shape({0}), Shape({3, 5}), Shape({2, 0, 3}), Shape({1}), Shape({2000})}) {
        tensors[absl::StrCat(DtypeName(dtype), shape.ToString())] = Random(dtype, shape);
      }
    }
    tensors["large"] = Random(Dtype::kFloat, Shape({5, 1000, 1000}));
    auto writer = BundleWriter::Create(Path("all"), options);
    ASSERT_TRUE(writer.ok()) << writer.status();
    // Not in the order of the names.
    for (auto it = tensors.rbegin(); it != tensors.rend(); ++it) {
      const Status status = (*writer)->Add(it->first, it->second);
      ASSERT_TRUE(status.ok()) << status;
    }
    ASSERT_TRUE((*writer)->Finish().ok());
    auto reader = Open(Path("all"));
    ASSERT_TRUE(reader);
    EXPECT_EQ(reader->names().size(), tensors.size());
    for (const auto& [name, value] : tensors) {
      ExpectReads(*reader, name, value);
      if (options.data_alignment != 64 || value.dtype() == Dtype::kString) continue;
      const Tensor got = *reader->Read(name);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(got.raw()) % 64, 0u) << name;
      EXPECT_FALSE(got.Writable()) << name;
    }
    // Tensors outlive their reader.
    const Tensor large = *reader->Read("large");
    reader.reset();
    EXPECT_TRUE(large.Identical(tensors["large"]));
  }
}

TEST_F(BundleTest, ManyNamesInSeveralBlocks) {
  auto writer = *BundleWriter::Create(Path("many"));
  const std::string folder(100, 'd');
  for (int i = 0; i < 12000; ++i) {
    ASSERT_TRUE(writer->Add(absl::StrCat(folder, i * 7919 % 12000), Tensor::Scalar(i)).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_GT(fs::file_size(Path("many.index")), size_t{256} << 10);
  auto reader = Open(Path("many"));
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->names().size(), 12000u);
  for (int i = 0; i < 12000; ++i) {
    EXPECT_EQ(reader->Read(absl::StrCat(folder, i * 7919 % 12000))->scalar<int>(), i);
  }
}

TEST_F(BundleTest, OddBoolsBecomeTrue) {
  const std::string data = Hex("00ff0201");
  auto reader = Open(Make({{"b", EntryOf(Dtype::kBool, Shape({4}), data, 0, 4)}}, data));
  ExpectReads(*reader, "b", Tensor::Vector<bool>({false, true, true, true}));
}

TEST_F(BundleTest, MisalignedNumbersAreCopied) {
  const std::string data = Hex("ff0000803f");
  auto reader = Open(Make({{"f", EntryOf(Dtype::kFloat, Shape(), data, 1, 4)}}, data));
  ExpectReads(*reader, "f", Tensor::Scalar(1.0f));
  EXPECT_TRUE(reader->Read("f")->Writable());
}

TEST_F(BundleTest, ManyThreadsRead) {
  auto writer = *BundleWriter::Create(Path("t"), {4, 1});
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(writer->Add(absl::StrCat("v", i), Tensor::Scalar(i)).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
  auto reader = Open(Path("t"));
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&] {
      for (int i = 0; i < 64; ++i) {
        EXPECT_EQ(reader->Read(absl::StrCat("v", i))->scalar<int>(), i);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

// What is read while, before and after a thread verifies is the same; one that is stopped leaves
// the rest to those who read.
TEST_F(BundleTest, VerifiedAhead) {
  std::map<std::string, Tensor> tensors;
  for (int i = 0; i < 30; ++i) {
    tensors[absl::StrCat("v", i)] = Random(Dtype::kFloat, Shape({i % 3 == 0 ? 700000 : 10 * i}));
  }
  tensors["words"] = Random(Dtype::kString, Shape({20}));
  auto writer = *BundleWriter::Create(Path("ahead"), {2, 1});
  for (const auto& [name, value] : tensors) ASSERT_TRUE(writer->Add(name, value).ok());
  ASSERT_TRUE(writer->Finish().ok());
  for (const int after_ms : {-1, 0, 2, 1000}) {
    auto reader = Open(Path("ahead"));
    reader->LeavePages(after_ms << 20);
    std::stop_source stop;
    if (after_ms < 0) stop.request_stop();
    std::thread ahead([&] { reader->VerifyAhead(stop.get_token()); });
    std::thread other([&] {
      for (const auto& [name, value] : tensors) ExpectReads(*reader, name, value);
    });
    for (auto it = tensors.rbegin(); it != tensors.rend(); ++it) {
      ExpectReads(*reader, it->first, it->second);
    }
    if (after_ms < 1000) {
      absl::SleepFor(absl::Milliseconds(after_ms));
      stop.request_stop();
    }
    ahead.join();
    other.join();
    reader->DropUnread();
    for (const auto& [name, value] : tensors) ExpectReads(*reader, name, value);
  }
  auto unread = Open(Path("ahead"));
  unread->LeavePages(int64_t{1} << 40);
  unread->VerifyAhead({});
  unread->DropUnread();
  for (const auto& [name, value] : tensors) ExpectReads(*unread, name, value);
}

TEST_F(BundleTest, SmallOnesAreCopied) {
  const Tensor small = Random(Dtype::kFloat, Shape({1000}));
  const Tensor large = Random(Dtype::kFloat, Shape({700000}));
  auto writer = *BundleWriter::Create(Path("sizes"), {1, 64});
  ASSERT_TRUE(writer->Add("small", small).ok() && writer->Add("large", large).ok());
  ASSERT_TRUE(writer->Finish().ok());
  auto reader = Open(Path("sizes"));
  EXPECT_TRUE(reader->Read("small")->buffer()->mapped_file());
  reader->SpareMemory();
  EXPECT_FALSE(reader->Read("small")->buffer()->mapped_file());
  const Tensor before = *reader->Read("large");
  EXPECT_TRUE(before.buffer()->mapped_file());
  reader->DropUnread();
  ExpectReads(*reader, "small", small);
  ExpectReads(*reader, "large", large);
  EXPECT_EQ(std::memcmp(before.raw(), large.raw(), large.bytes()), 0);
}

TEST_F(BundleTest, WriterRefusals) {
  const Tensor t = Iota(Shape({4, 2}));
  auto writer = *BundleWriter::Create(Path("new/folder/w"));
  ASSERT_TRUE(writer->Add("v", t).ok());
  EXPECT_EQ(writer->Add("v", t), AlreadyExists("Adding duplicate key: v"));
  EXPECT_EQ(writer->AddSlice("v", t.shape(), {{0, 0}, {1, -1}}, t.Rows(0, 1)).code(),
            StatusCode::kAlreadyExists);
  EXPECT_EQ(writer->Add("", t).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(writer->Add(absl::string_view("\0a", 2), t).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(writer->Add(std::string(100000, 'x'), t).code(), StatusCode::kInvalidArgument);
  ExpectStatus(writer->Add("variant", *Tensor::Make(Dtype::kVariant, Shape())),
               StatusCode::kUnimplemented, "tensor 'variant'");
  ASSERT_TRUE(writer->AddSlice("s", t.shape(), {{0, 0}, {1, -1}}, t.Rows(0, 1)).ok());
  EXPECT_EQ(writer->AddSlice("s", t.shape(), {{0, 0}, {1, -1}}, t.Rows(0, 1)).code(),
            StatusCode::kAlreadyExists);
  EXPECT_EQ(writer->AddSlice("s", Shape({5, 2}), {{1, 0}, {1, -1}}, t.Rows(0, 1)).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(writer->AddSlice("s", t.shape(), {{1, 0}, {2, -1}}, t.Rows(0, 1)).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(
      writer->AddSlice("s", t.shape(), {{1, 0}, {1, -1}}, Random(Dtype::kFloat, Shape({1, 2})))
          .code(),
      StatusCode::kInvalidArgument);
  // No file has its final name before Finish; tensors that were refused leave no trace.
  EXPECT_FALSE(fs::exists(Path("new/folder/w.data-00000-of-00001")));
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(writer->Add("late", t).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(writer->Finish().code(), StatusCode::kFailedPrecondition);
  ExpectReads(*Open(Path("new/folder/w")), "v", t);
  EXPECT_EQ(BundleWriter::Create(Path("w"), {0, 1}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(BundleWriter::Create(Path("w"), {1, 0}).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(BundleTest, UnfinishedWriterLeavesNothing) {
  {
    auto writer = *BundleWriter::Create(Path("w"), {3, 1});
    ASSERT_TRUE(writer->Add("v", Random(Dtype::kFloat, Shape({1000000}))).ok());
    EXPECT_EQ(NumFiles(), 3);
  }
  EXPECT_EQ(NumFiles(), 0);
}

TEST_F(BundleTest, FinishReplacesWhatWasThere) {
  for (int i = 0; i < 2; ++i) {
    auto writer = *BundleWriter::Create(Path("w"));
    ASSERT_TRUE(writer->Add("v", Tensor::Scalar(i)).ok());
    ASSERT_TRUE(writer->Finish().ok());
    ExpectReads(*Open(Path("w")), "v", Tensor::Scalar(i));
  }
  EXPECT_EQ(NumFiles(), 2);
}

TEST_F(BundleTest, Merge) {
  const Tensor t = Iota(Shape({3, 2}));
  std::vector<std::string> prefixes;
  for (int i = 0; i < 3; ++i) {
    prefixes.push_back(Path(absl::StrCat("temp", i, "/part")));
    auto writer = *BundleWriter::Create(prefixes.back(), {i + 1, 1});
    ASSERT_TRUE(writer->Add(absl::StrCat("v", i), Tensor::Scalar(i)).ok());
    ASSERT_TRUE(writer->AddSlice("t", t.shape(), {{i, 0}, {1, -1}}, t.Rows(i, i + 1)).ok());
    ASSERT_TRUE(writer->Add(absl::StrCat("w", i), Tensor::Scalar(-i)).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  ExpectStatus(MergeBundles({prefixes[0], prefixes[0]}, Path("m"), false),
               StatusCode::kInvalidArgument, "Duplicate tensor keyed by");
  ExpectStatus(MergeBundles({prefixes[0], Path("none")}, Path("m"), false), StatusCode::kNotFound,
               "none");
  ASSERT_TRUE(MergeBundles(prefixes, Path("m"), false).ok());
  EXPECT_TRUE(fs::exists(Path("temp0")));
  auto reader = Open(Path("m"));
  for (int i = 0; i < 3; ++i) {
    ExpectReads(*reader, absl::StrCat("v", i), Tensor::Scalar(i));
    ExpectReads(*reader, absl::StrCat("w", i), Tensor::Scalar(-i));
  }
  ExpectReads(*reader, "t", t);
  // The target is one of the inputs, whose files are renamed; the other input's folder is removed.
  auto writer = *BundleWriter::Create(Path("temp0/part"));
  ASSERT_TRUE(writer->Add("new", t).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const Status status = MergeBundles({Path("temp0/part"), Path("m")}, Path("m"), true);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_FALSE(fs::exists(Path("temp0")));
  reader = Open(Path("m"));
  ExpectReads(*reader, "new", t);
  ExpectReads(*reader, "t", t);
  ExpectReads(*reader, "w2", Tensor::Scalar(-2));
}

// Damage.

}  // namespace
}  // namespace smelt
