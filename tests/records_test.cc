// Files and the records in them: sums, what damage is named as, and logs of predictions.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph_def_of_text.h"
#include "smelt/io/crc32c.h"
#include "smelt/io/record.h"
#include "smelt/wire/records/prediction_log.h"

namespace smelt {
namespace {

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(ExtendCrc32c(Crc32c("1234"), "56789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(UnmaskCrc32c(MaskCrc32c(0x12345678u)), 0x12345678u);
}

TEST(Record, WriteAndRead) {
  TempDir dir;
  const std::string path = JoinPath(dir.path(), "records");
  auto writer = RecordWriter::Open(path);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(writer->Write("one").ok());
  ASSERT_TRUE(writer->Write("").ok());
  ASSERT_TRUE(writer->Write(std::string(100000, 'x')).ok());
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(writer->Write("late").code(), absl::StatusCode::kFailedPrecondition);

  auto reader = RecordReader::Open(path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(**reader->Next(), "one");
  EXPECT_EQ(**reader->Next(), "");
  EXPECT_EQ((**reader->Next()).size(), 100000u);
  EXPECT_FALSE(reader->Next()->has_value());
  EXPECT_EQ(RecordReader::Open(dir.path() + "/none").status().code(), absl::StatusCode::kNotFound);
}

TEST(Record, CorruptionNamesTheByte) {
  std::string bytes;
  AppendRecord("first", &bytes);
  const size_t second = bytes.size();
  AppendRecord("second", &bytes);
  for (size_t i = second; i < bytes.size(); ++i) {
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ 0x40);
    RecordReader reader(bad);
    EXPECT_TRUE(reader.Next().ok());
    const Status status = reader.Next().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << i;
    EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat("record at ", second))) << status;
  }
  for (size_t i = second + 1; i < bytes.size(); ++i) {
    RecordReader reader(absl::string_view(bytes).substr(0, i));
    EXPECT_TRUE(reader.Next().ok());
    EXPECT_EQ(reader.Next().status().message(), absl::StrCat("truncated record at ", second));
  }
  // A length near 2^64 with a good checksum of its own.
  std::string huge(8, '\xff');
  const uint32_t crc = MaskCrc32c(Crc32c(huge));
  huge.append(reinterpret_cast<const char*>(&crc), 4).append("data");
  EXPECT_EQ(RecordReader(huge).Next().status().code(), absl::StatusCode::kDataLoss);
}

TEST(Files, WriteReadListAndErrors) {
  TempDir dir;
  const std::string path = JoinPath(dir.path(), "f");
  ASSERT_TRUE(WriteFileAtomically(path, "old").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "new bytes").ok());
  EXPECT_EQ(*ReadFile(path), "new bytes");
  EXPECT_EQ((*MapFile(path))->bytes(), "new bytes");
  EXPECT_EQ(*FileSize(path), 9);
  EXPECT_EQ(*ListDir(dir.path()), std::vector<std::string>{"f"});  // nothing left beside
  EXPECT_EQ(ReadFile(path + "x").status().message(), path + "x; No such file or directory");
  EXPECT_EQ(MapFile(path + "x").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(MapFile(dir.path()).ok());
  EXPECT_FALSE(WriteFileAtomically(dir.path() + "/no/f", "").ok());
  EXPECT_FALSE(MakeDirs(path + "/under").ok());
  EXPECT_TRUE(MakeDirs(dir.path()).ok());
}

TEST(PredictionLog, RoundTrip) {
  PredictionRecord record;
  record.signature = "serving_default";
  record.model = "half_plus_two";
  record.tags = {"serve"};
  record.inputs.emplace_back("x", Tensor::Vector<float>({1, 2}));
  record.inputs.emplace_back("z", Tensor::Scalar<std::string>("s"));
  record.outputs.emplace_back("y", Tensor::Scalar<int64_t>(3));
  record.has_response = true;
  auto bytes = SerializePredictionLog(record);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  // Of log_metadata: timestamp_secs and sampling_config.sampling_rate are read, dc is carried.
  const std::string timestamp("\x0a\x02\x20\x05", 4), dc("\x0a\x03*\x01z", 5);
  const std::string sampled("\x0a\x0b\x12\x09\x09\0\0\0\0\0\0\xd0\x3f", 13);
  auto read = ParsePredictionLog(absl::StrCat(*bytes, timestamp, dc));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->signature, record.signature);
  EXPECT_EQ(read->model, record.model);
  EXPECT_EQ(read->tags, record.tags);
  ASSERT_EQ(read->inputs.size(), 2u);
  EXPECT_TRUE(read->inputs[0].second.Identical(record.inputs[0].second));
  EXPECT_TRUE(read->inputs[1].second.Identical(record.inputs[1].second));
  EXPECT_TRUE(read->outputs[0].second.Identical(record.outputs[0].second));
  EXPECT_EQ(read->logged_at, 5);
  EXPECT_EQ(read->sampling_rate, 0);
  EXPECT_EQ(read->extra, dc);
  auto rate = ParsePredictionLog(absl::StrCat(*bytes, sampled));
  ASSERT_TRUE(rate.ok()) << rate.status();
  EXPECT_EQ(rate->sampling_rate, 0.25);
  EXPECT_EQ(rate->extra, sampled);
  record.logged_at = 5;
  auto with_time = SerializePredictionLog(record);
  ASSERT_TRUE(with_time.ok()) << with_time.status();
  EXPECT_EQ(ParsePredictionLog(*with_time)->logged_at, 5);
  // Fields of one message are merged: the time stands beside the tag.
  EXPECT_EQ(with_time->size(), bytes->size() + 2);

  EXPECT_EQ(ParsePredictionLog("\x12\x02\x0a").status().code(), absl::StatusCode::kDataLoss);
  const Status other = ParsePredictionLog(std::string("\x12\x00", 2)).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(absl::StrContains(other.message(), "classify_log")) << other;
  // An input of shape [2] with three bytes.
  const std::string bad(
      "\x32\x19\x0a\x17\x12\x15\x0a\x01x\x12\x10\x08\x01\x12\x04\x12\x02\x08\x02\"\x06"
      "abcdef",
      27);
  EXPECT_FALSE(ParsePredictionLog(bad).ok());
}

}  // namespace
}  // namespace smelt
