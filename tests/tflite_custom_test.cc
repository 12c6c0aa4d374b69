// Custom operators that TensorFlow Lite's own resolver brings. What is wanted is worked out by
// hand; tests/peers/lite_resolver_customs.py compares drawn files with LiteRT.
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/match.h"
#include "smelt/wire/tflite/flex.h"
#include "tests/tflite_text.h"

namespace smelt {
namespace {

using Entries = std::vector<FlexEntry>;

std::string OptionsField(const std::string& bytes) {
  std::vector<int> numbers;
  for (const char c : bytes) numbers.push_back(static_cast<uint8_t>(c));
  return absl::StrCat(", custom_options: [", absl::StrJoin(numbers, ","), "]");
}

std::string FlexOf(const Entries& entries) {
  auto bytes = FlexMap(entries);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *std::move(bytes);
}

// `base` with other values; an entry without one goes.
Entries With(Entries base, const Entries& other) {
  for (const FlexEntry& o : other) {
    std::erase_if(base, [&](const FlexEntry& e) { return e.first == o.first; });
    if (o.second.get<std::monostate>() == nullptr) base.push_back(o);
  }
  return base;
}

std::vector<float> Floats(const StatusOr<NamedTensors>& answers, const std::string& key) {
  if (!answers.ok() || !answers->contains(key)) return {};
  const auto flat = answers->at(key).flat<float>();
  return {flat.begin(), flat.end()};
}

void ExpectInvalid(const Status& status, absl::string_view operator_name, absl::string_view words) {
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), operator_name)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), words)) << status << "\nwanted: " << words;
}

// ---- TFLite_Detection_PostProcess

constexpr char kDetection[] = "TFLite_Detection_PostProcess";

Entries DetectorOptions() {
  return {{"max_detections", int64_t{3}},
          {"max_classes_per_detection", int64_t{1}},
          {"num_classes", int64_t{2}},
          {"nms_score_threshold", 0.5f},
          {"nms_iou_threshold", 0.5f},
          {"y_scale", 10.0f},
          {"x_scale", 10.0f},
          {"h_scale", 5.0f},
          {"w_scale", 5.0f}};
}

// Four boxes of height and width 1, of which the second lies on most of the first; two classes
// behind a background.
const std::vector<float> kAnchors = {0.5, 0.5,  1, 1,  //
                                     0.5, 0.6f, 1, 1,  //
                                     2.5, 0.5,  1, 1,  //
                                     0.5, 10.5, 1, 1};
const std::vector<float> kScores = {0, 0.9f,  0.1f,  //
                                    0, 0.75f, 0.8f,  //
                                    0, 0.6f,  0.7f,  //
                                    0, 0.3f,  0.2f};
const std::vector<float> kFirst = {0, 0, 1, 1}, kThird = {2, 0, 3, 1}, kNothing = {0, 0, 0, 0};
const std::vector<float> kSecond = {0, 0.6f - 0.5f, 1, 0.6f + 0.5f};

std::vector<float> Joined(const std::vector<std::vector<float>>& parts) {
  std::vector<float> out;
  for (const std::vector<float>& p : parts) out.insert(out.end(), p.begin(), p.end());
  return out;
}

struct Detector {
  std::string options = FlexOf(DetectorOptions());
  std::vector<float> encodings = std::vector<float>(16, 0.0f);
  std::vector<float> scores = kScores, anchors = kAnchors;
  std::string encodings_shape = "[1,4,4]", scores_shape = "[1,4,3]", anchors_shape = "[4,4]";

  std::string Bytes() const {
    TfliteText text;
    const std::vector<int> in = {text.Const(encodings_shape, "FLOAT32", encodings),
                                 text.Const(scores_shape, "FLOAT32", scores),
                                 text.Const(anchors_shape, "FLOAT32", anchors)};
    std::vector<int> out;
    for (int i = 0; i < 4; ++i) out.push_back(text.Tensor("[]"));
    text.Op(absl::StrCat("custom:", kDetection), in, out, "", OptionsField(options));
    return text.Bytes(out);
  }
  StatusOr<NamedTensors> Run() const { return RunTflite(Bytes()); }
};

void ExpectDetected(const StatusOr<NamedTensors>& answers, const std::vector<float>& boxes,
                    const std::vector<float>& classes, const std::vector<float>& scores,
                    float count) {
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ(Floats(answers, "t3"), boxes);
  EXPECT_EQ(Floats(answers, "t4"), classes);
  EXPECT_EQ(Floats(answers, "t5"), scores);
  EXPECT_EQ(Floats(answers, "t6"), std::vector<float>{count});
  const auto rows = static_cast<int64_t>(classes.size());
  EXPECT_EQ(answers->at("t3").shape(), Shape({1, rows, 4}));
  EXPECT_EQ(answers->at("t5").shape(), Shape({1, rows}));
}

TEST(TfliteCustom, BoxesAreSuppressedByTheirBestClass) {
  Detector d;
  ExpectDetected(d.Run(), Joined({kFirst, kThird, kNothing}), {0, 1, 0}, {0.9f, 0.7f, 0}, 2);
  d.options = FlexOf(With(DetectorOptions(), {{"max_classes_per_detection", int64_t{2}}}));
  ExpectDetected(d.Run(), Joined({kFirst, kFirst, kThird, kThird, kNothing, kNothing}),
                 {0, 1, 1, 0, 0, 0}, {0.9f, 0.1f, 0.7f, 0.6f, 0, 0}, 2);
  // More classes than there are leave room.
  d.options = FlexOf(With(DetectorOptions(), {{"max_classes_per_detection", int64_t{3}},
                                              {"max_detections", int64_t{1}}}));
  ExpectDetected(d.Run(), Joined({kFirst, kFirst, kNothing}), {0, 1, 0}, {0.9f, 0.1f, 0}, 1);
  d.options = FlexOf(With(DetectorOptions(), {{"max_detections", int64_t{0}}}));
  ExpectDetected(d.Run(), {}, {}, {}, 0);
}

TEST(TfliteCustom, BoxesAreSuppressedClassByClass) {
  Detector d;
  const Entries regular = With(DetectorOptions(), {{"use_regular_nms", int64_t{1}}});
  d.options = FlexOf(regular);
  ExpectDetected(d.Run(), Joined({kFirst, kSecond, kThird}), {0, 1, 1}, {0.9f, 0.8f, 0.7f}, 3);
  d.options = FlexOf(With(regular, {{"use_regular_nms", true}, {"max_detections", int64_t{5}}}));
  ExpectDetected(d.Run(), Joined({kFirst, kSecond, kThird, kThird, kNothing}), {0, 1, 1, 0, 0},
                 {0.9f, 0.8f, 0.7f, 0.6f, 0}, 4);
  d.options = FlexOf(With(regular, {{"detections_per_class", int64_t{1}}}));
  ExpectDetected(d.Run(), Joined({kFirst, kSecond, kNothing}), {0, 1, 0}, {0.9f, 0.8f, 0}, 2);
}

TEST(TfliteCustom, EqualScoresKeepTheirOrder) {
  Detector d;
  d.scores = {0, 0.5f, 0.5f, 0, 0.5f, 0.5f, 0, 0.5f, 0.5f, 0, 0.25f, 0.25f};
  ExpectDetected(d.Run(), Joined({kFirst, kThird, kNothing}), {0, 0, 0}, {0.5f, 0.5f, 0}, 2);
  d.options = FlexOf(With(DetectorOptions(), {{"use_regular_nms", true}}));
  ExpectDetected(d.Run(), Joined({kFirst, kThird, kFirst}), {0, 0, 1}, {0.5f, 0.5f, 0.5f}, 3);
}

TEST(TfliteCustom, WithoutABackgroundAllClassesCount) {
  Detector d;
  d.options = FlexOf(With(DetectorOptions(), {{"num_classes", int64_t{3}}}));
  ExpectDetected(d.Run(), Joined({kFirst, kThird, kNothing}), {1, 2, 0}, {0.9f, 0.7f, 0}, 2);
}

TEST(TfliteCustom, ScalesDivideWhatABoxDiffersBy) {
  Detector d;
  // The center of the first moves by its height; the second's width is e times as large.
  d.encodings = {10, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0};
  const auto half = static_cast<float>(0.5 * std::exp(1.0));
  ExpectDetected(d.Run(), Joined({{1, 0, 2, 1}, {0, 0.6f - half, 1, 0.6f + half}, kThird}),
                 {0, 1, 1}, {0.9f, 0.8f, 0.7f}, 3);
  // What stands behind the four numbers of a box is not read.
  d.encodings = std::vector<float>(24, 0.0f);
  for (size_t i = 4; i < 24; i += 6) d.encodings[i] = d.encodings[i + 1] = 7;
  d.encodings_shape = "[1,4,6]";
  ExpectDetected(d.Run(), Joined({kFirst, kThird, kNothing}), {0, 1, 0}, {0.9f, 0.7f, 0}, 2);
}

TEST(TfliteCustom, QuantizedDetections) {
  TfliteText text;
  const auto scaled = [](absl::string_view scale, int zero) {
    return absl::StrCat("quantization: {scale: [", scale, "], zero_point: [", zero, "]}, ");
  };
  const std::vector<int> in = {
      text.Input("[1,2,4]", "UINT8", scaled("0.1", 128)),
      text.Input("[1,2,3]", "UINT8", scaled("0.00390625", 0)),
      text.Const<uint8_t>("[2,4]", "UINT8", {11, 11, 12, 12, 15, 11, 12, 12}, scaled("0.5", 10)),
  };
  std::vector<int> out;
  for (int i = 0; i < 4; ++i) out.push_back(text.Tensor("[]"));
  text.Op(absl::StrCat("custom:", kDetection), in, out, "",
          OptionsField(FlexOf(DetectorOptions())));
  NamedTensors inputs;
  inputs["t0"] = *Tensor::Zeros(Dtype::kUint8, Shape({1, 2, 4}));
  std::ranges::fill(inputs["t0"].flat<uint8_t>(), 128);
  inputs["t1"] = *Tensor::Zeros(Dtype::kUint8, Shape({1, 2, 3}));
  std::ranges::copy(std::vector<uint8_t>{9, 128, 64, 9, 100, 192},
                    inputs["t1"].flat<uint8_t>().begin());
  ExpectDetected(RunTflite(text.Bytes(out), inputs), Joined({{2, 0, 3, 1}, kFirst, kNothing}),
                 {1, 0, 0}, {0.75f, 0.5f, 0}, 2);
}

TEST(TfliteCustom, OptionsOfADetectorThatCannotBe) {
  const auto fails = [](const Entries& other, absl::string_view words) {
    Detector d;
    d.options = FlexOf(With(DetectorOptions(), other));
    ExpectInvalid(LowerTflite(d.Bytes()), kDetection, words);
  };
  for (const char* name : {"max_detections", "max_classes_per_detection", "num_classes",
                           "nms_iou_threshold", "y_scale", "x_scale", "h_scale", "w_scale"}) {
    fails({{name, Attr()}}, absl::StrCat("its options lack ", name));
    fails({{name, "3"}}, absl::StrCat("its option ", name, " is no number"));
  }
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  fails({{"max_detections", int64_t{-1}}}, "max_detections is -1");
  fails({{"max_detections", kHuge}}, "max_detections is 9.22337e+18");
  fails({{"max_detections", int64_t{1} << 30}}, "max_detections is 1073741824");
  fails({{"max_detections", int64_t{1} << 16}, {"max_classes_per_detection", int64_t{1} << 16}},
        "max_classes_per_detection 65536");
  fails({{"max_detections", std::nanf("")}}, "max_detections is nan");
  fails({{"max_classes_per_detection", int64_t{0}}}, "max_classes_per_detection is 0");
  fails({{"num_classes", int64_t{0}}}, "num_classes is 0");
  fails({{"num_classes", int64_t{-2}}}, "num_classes is -2");
  fails({{"nms_iou_threshold", 0.0f}}, "nms_iou_threshold is 0");
  fails({{"nms_iou_threshold", 1.5f}}, "nms_iou_threshold is 1.5");
  fails({{"nms_iou_threshold", std::nanf("")}}, "nms_iou_threshold is nan");
  fails({{"use_regular_nms", true}, {"detections_per_class", int64_t{0}}},
        "detections_per_class 0");
  fails({{"use_regular_nms", true}, {"max_detections", int64_t{0}}}, "max_detections is 0");
  Detector d;
  d.options.clear();
  ExpectInvalid(LowerTflite(d.Bytes()), kDetection, "its options are no FlexBuffer");
  // A score that is left out is 0, as there: every box is one.
  d.options = FlexOf(With(DetectorOptions(), {{"nms_score_threshold", Attr()}}));
  const auto answers = d.Run();
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ(Floats(answers, "t6"), std::vector<float>{3});
}

TEST(TfliteCustom, InputsOfADetectorThatCannotBe) {
  const auto fails = [](const Detector& d, absl::string_view words) {
    ExpectInvalid(d.Run().status(), "", words);
  };
  Detector d;
  d.encodings_shape = "[2,2,4]";
  fails(d, "the box encodings have the shape [2,2,4]");
  d.encodings_shape = "[1,8,2]";
  fails(d, "the box encodings have the shape [1,8,2]");
  d.encodings_shape = "[4,4]";
  fails(d, "the box encodings have the shape [4,4]");
  d = {};
  d.scores_shape = "[1,3,4]";
  fails(d, "the class predictions have the shape [1,3,4]");
  d = {};
  d.options = FlexOf(With(DetectorOptions(), {{"num_classes", int64_t{1}}}));
  fails(d, "the class predictions have the shape [1,4,3]");
  d = {};
  d.anchors.resize(12);
  d.anchors_shape = "[3,4]";
  fails(d, "the anchors have the shape [3,4]");
  d = {};
  d.anchors[2] = -1;
  fails(d, "box 0 ends before it begins");
}

TEST(TfliteCustom, OperandsThatCannotBe) {
  const auto lower = [](std::vector<absl::string_view> types, int outputs) {
    TfliteText text;
    std::vector<int> in, out;
    for (const absl::string_view type : types) {
      in.push_back(type.empty() ? -1 : text.Input("[1,4,4]", type));
    }
    for (int i = 0; i < outputs; ++i) out.push_back(text.Tensor("[]"));
    text.Op(absl::StrCat("custom:", kDetection), in, out, "",
            OptionsField(FlexOf(DetectorOptions())));
    return LowerTflite(text.Bytes(out));
  };
  ExpectInvalid(lower({"FLOAT32", "FLOAT32"}, 4), kDetection, "it has 2 inputs and 4 outputs");
  ExpectInvalid(lower({"FLOAT32", "FLOAT32", "FLOAT32"}, 3), kDetection, "3 outputs");
  ExpectInvalid(lower({"FLOAT32", "", "FLOAT32"}, 4), kDetection, "its input 1 is left out");
  ExpectInvalid(lower({"INT8", "FLOAT32", "INT8"}, 4), kDetection, "its input 0 is int8");
  ExpectInvalid(lower({"FLOAT32", "FLOAT32", "UINT8"}, 4), kDetection, "without scales");
}

// Each byte of the options is each of a few others, and the options end at each of their bytes.
TEST(TfliteCustom, DamagedOptionsAreErrorsOrAnswers) {
  const std::string whole = FlexOf(DetectorOptions());
  int errors = 0;
  const auto run = [&](std::string options) {
    Detector d;
    d.options = std::move(options);
    const Status status = d.Run().status();
    if (status.ok()) return;
    ++errors;
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    // What options say is an error of the operator, and that shapes do not fit them one of the
    // node.
    EXPECT_TRUE(absl::StrContains(status.message(), kDetection) ||
                absl::StrContains(status.message(), "{{node "))
        << status;
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    run(whole.substr(0, i));
    for (const int mask : {0x01, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ mask);
      run(std::move(damaged));
    }
  }
  EXPECT_GT(errors, static_cast<int>(whole.size()));
}

// ---- the map of options

TEST(TfliteCustom, MapsAreReadAsTheyAreWritten) {
  const Entries entries = {{"a", int64_t{-5}},
                           {"b", int64_t{1} << 40},
                           {"c", 0.1f},
                           {"d", true},
                           {"e", false},
                           {"f", "text"},
                           {"g", std::string("\0", 1)},
                           {"h", int64_t{300}}};
  const auto read = ReadFlexMap(FlexOf(entries));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == entries);
  Entries listed = entries;
  listed.emplace_back("i", std::vector<int64_t>{1, 2});
  EXPECT_TRUE(*ReadFlexMap(FlexOf(listed)) == entries);
  EXPECT_TRUE(ReadFlexMap(FlexOf({}))->empty());
  for (const std::string& none :
       {std::string(), std::string(3, '\0'), std::string(64, '\xff'), WriteFlexPair({"a", "b"})}) {
    EXPECT_FALSE(ReadFlexMap(none).ok());
  }
}

// ---- AudioSpectrogram and Mfcc

StatusOr<NamedTensors> RunAudio(absl::string_view code, const Entries& options,
                                const std::vector<int>& shape, int32_t rate = 0) {
  TfliteText text;
  std::vector<int> in = {text.Input(absl::StrCat("[", absl::StrJoin(shape, ","), "]"))};
  if (rate != 0) in.push_back(text.Const<int32_t>("[1]", "INT32", {rate}));
  const int out = text.Tensor("[]");
  text.Op(absl::StrCat("custom:", code), in, {out}, "", OptionsField(FlexOf(options)));
  NamedTensors inputs;
  inputs["t0"] = *Tensor::Zeros(Dtype::kFloat, Shape(Dims(shape.begin(), shape.end())));
  if (shape.size() == 2) std::ranges::fill(inputs["t0"].flat<float>(), 1.0f);
  return RunTflite(text.Bytes({out}), inputs);
}

// The window is 0, 1/2, 1, 1/2.
TEST(TfliteCustom, SpectrogramOfOnes) {
  const Entries options = {{"window_size", int64_t{4}}, {"stride", int64_t{3}}};
  for (const bool squared : {false, true}) {
    const auto answers =
        RunAudio("AudioSpectrogram", With(options, {{"magnitude_squared", squared}}), {8, 2});
    ASSERT_TRUE(answers.ok()) << answers.status();
    const Tensor& y = answers->begin()->second;
    EXPECT_EQ(y.shape(), Shape({2, 2, 3}));
    for (int64_t i = 0; i < 12; i += 3) {
      EXPECT_NEAR(y.flat<float>()[i], squared ? 4 : 2, 1e-6);
      EXPECT_NEAR(y.flat<float>()[i + 1], 1, 1e-6);
      EXPECT_NEAR(y.flat<float>()[i + 2], 0, 1e-6);
    }
  }
  // An input that is shorter than a window has no frame.
  const auto none = RunAudio("AudioSpectrogram", options, {3, 1});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->begin()->second.shape(), Shape({1, 0, 3}));
  const auto fails = [&](const Entries& other, absl::string_view words) {
    ExpectInvalid(RunAudio("AudioSpectrogram", With(options, other), {8, 2}).status(),
                  "AudioSpectrogram", words);
  };
  fails({{"window_size", Attr()}}, "its options lack window_size");
  fails({{"stride", Attr()}}, "its options lack stride");
  fails({{"stride", int64_t{0}}}, "its option stride is 0");
  fails({{"window_size", int64_t{1}}}, "its option window_size is 1");
  fails({{"window_size", int64_t{1} << 31}}, "its option window_size is");
  fails({{"window_size", (int64_t{1} << 31) - 1}}, "its option window_size is");
}

// Every band of silence is 1e-12: what is left of its logarithms is their mean.
TEST(TfliteCustom, CoefficientsOfSilence) {
  const Entries options = {{"upper_frequency_limit", 4000.0f},
                           {"lower_frequency_limit", 20.5f},
                           {"filterbank_channel_count", int64_t{8}},
                           {"dct_coefficient_count", int64_t{3}}};
  const auto answers = RunAudio("Mfcc", options, {1, 2, 65}, 16000);
  ASSERT_TRUE(answers.ok()) << answers.status();
  const Tensor& y = answers->begin()->second;
  EXPECT_EQ(y.shape(), Shape({1, 2, 3}));
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(y.flat<float>()[i], i % 3 == 0 ? 4 * std::log(1e-12) : 0, 1e-4);
  }
  const auto fails = [&](const Entries& other, absl::string_view words) {
    ExpectInvalid(RunAudio("Mfcc", With(options, other), {1, 2, 65}, 16000).status(), "Mfcc",
                  words);
  };
  fails({{"upper_frequency_limit", Attr()}}, "its options lack upper_frequency_limit");
  fails({{"upper_frequency_limit", 20.9f}}, "its frequencies go from 20 to 20 Hz");
  fails({{"lower_frequency_limit", int64_t{-1}}}, "its frequencies go from -1");
  fails({{"dct_coefficient_count", int64_t{9}}}, "dct_coefficient_count is 9");
  fails({{"dct_coefficient_count", int64_t{0}}}, "dct_coefficient_count is 0");
  fails({{"filterbank_channel_count", Attr()}}, "its options lack filterbank_channel_count");
  fails({{"filterbank_channel_count", int64_t{1} << 30}, {"dct_coefficient_count", int64_t{64}}},
        "filterbank_channel_count 1073741824");
}

// ---- NumericVerify

// Of 3 and -1 at scale 0.5 and zero point 1: 1 and -1. `fetched`: the difference is a result.
StatusOr<NamedTensors> Verify(const Entries& options, bool fetched = true,
                              std::vector<float> reference = {0.75f, -1}) {
  TfliteText text;
  const int x =
      text.Const<int8_t>("[2]", "INT8", {3, -1}, "quantization: {scale: [0.5], zero_point: [1]}, ");
  const int ref = text.Input(absl::StrCat("[", reference.size(), "]"));
  const int off = text.Tensor("[2]"), twice = text.Tensor("[2]");
  text.Op("custom:NumericVerify", {x, ref}, {off}, "", OptionsField(FlexOf(options)));
  text.Op("NEG", {ref}, {twice});
  NamedTensors inputs;
  inputs["t1"] = Tensor::Vector(std::span<const float>(reference));
  return RunTflite(text.Bytes({fetched ? off : twice}), inputs);
}

TEST(TfliteCustom, DifferencesOfQuantizedNumbers) {
  for (const Entries& options :
       std::vector<Entries>{{},
                            {{"tolerance", 0.4f}, {"log_if_failed", false}},
                            {{"tolerance", 0.05f}, {"log_if_failed", true}},
                            {{"tolerance", 0.5f}, {"log_if_failed", true}}}) {
    const auto answers = Verify(options);
    ASSERT_TRUE(answers.ok()) << answers.status();
    EXPECT_EQ(Floats(answers, "t2"), (std::vector<float>{0.25f, 0}));
  }
  for (const bool fetched : {true, false}) {
    const Status status = Verify({{"tolerance", 0.4f}, {"log_if_failed", true}}, fetched).status();
    ExpectInvalid(status, "NumericVerify", "by more than 0.2");
    EXPECT_TRUE(absl::StrContains(status.message(), "[0.25 0]")) << status;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Verify({}, true, {1, 2, 3}).status()));
}

TEST(TfliteCustom, DifferencesOfWhatIsNotQuantized) {
  TfliteText text;
  const int x = text.Input("[2]", "INT8"), ref = text.Input("[2]"), off = text.Tensor("[2]");
  text.Op("custom:NumericVerify", {x, ref}, {off}, "", OptionsField(FlexOf({})));
  ExpectInvalid(LowerTflite(text.Bytes({off})), "NumericVerify", "int8 without scales");
}

}  // namespace
}  // namespace smelt
