// smelt_case_tests op_lite [--quantize dynamic|int8|int16x8|float16] [--keep FOLDER]
// [--filter TEXT] [--every N] FILE...: exports each op case (or one of N) of one op
// (docs/formats/op_cases.md) as a TensorFlow Lite model, and runs that: its answers are to be
// TensorFlow's for the op. All inputs are fed, or all but the first constant; sizes are stated, or
// are not. Quantized ones calibrate with the inputs of the case, and their floats may be off by a
// share of the range. FOLDER, which is there, takes the files and our answers, N.tflite and
// N.tfrecord.
//
// What the exporter refuses in words is counted apart, and so is what operators do otherwise than
// ops (kExceptions), which must only not end the program. Prints what fails and ends with "N
// exported, N refused, N other, N failed"; exit code 1 when something failed, 2 when a file could
// not be read.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "smelt/graph/text.h"
#include "smelt/io/record.h"
#include "smelt/lite/export.h"
#include "smelt/lite/lite_file.h"
#include "smelt/model/loaded_model.h"
#include "smelt/wire/records/prediction_log.h"
#include "tests/case_tests.h"
#include "tests/op_case.h"
#include "tests/op_compare.h"

namespace smelt {
namespace {

struct Way {
  const char* name;
  bool constants;  // inputs behind the first
  bool stated;     // the sizes of inputs
};
constexpr Way kWays[] = {
    {"fed", false, true}, {"with constants", true, true}, {"of free sizes", true, false}};

// Infinities are made finite, casts saturate, and NaN is not looked for: only numbers that any
// arithmetic keeps are compared.
bool IsOrdinary(const Tensor& t) {
  constexpr double kMost = 100;
  const auto ordinary = [](double v) { return std::abs(v) <= kMost; };
  switch (t.dtype()) {
    case Dtype::kFloat:
      return std::ranges::all_of(t.flat<float>(), ordinary);
    case Dtype::kDouble:
      return std::ranges::all_of(t.flat<double>(), ordinary);
    case Dtype::kHalf:
      return std::ranges::all_of(t.flat<Half>(),
                                 [&](Half v) { return ordinary(static_cast<float>(v)); });
    case Dtype::kBfloat16:
      return std::ranges::all_of(t.flat<Bfloat16>(),
                                 [&](Bfloat16 v) { return ordinary(static_cast<float>(v)); });
    default:
      return true;
  }
}

// What operators are known to do otherwise, by a part of the op's text.
struct Exception {
  absl::string_view part, why;
};
constexpr Exception kExceptions[] = {
    {"bad_indices_policy=\"IGNORE\"", "operators refuse places outside"},
    {"ScatterNdNonAliasingAdd", "updates of less dimensions"},
    {"incompatible_shape_error=false", "operators refuse shapes that do not fit"},
    {"sorted=false", "the operator sorts"},
    {"CombinedNonMaxSuppression", "boxes of no area"},
    {"NonMaxSuppression", "a box is dropped at a threshold that is fed, and in soft selections"},
    {"DynamicStitch", "rows that no index names"},
    {"Segment", "rows of no segment, and no rows"},
    {"SigmoidGrad", "shapes of the same size"},
    {"TanhGrad", "shapes of the same size"},
    {"SqrtGrad", "shapes of the same size"},
    {"RsqrtGrad", "shapes of the same size"},
    {"ReciprocalGrad", "shapes of the same size"},
    {"InvGrad", "shapes of the same size"},
    {"MaxPoolGradGrad", "a result that is not that of the pool"},
    {"Conv2DBackpropFilter", "filters of no depth"},
    {"LeftShift", "by more than there are bits"},
    {"UnravelIndex", "indices outside"},
    {"HistogramFixedWidth", "sums in float"},
    {"AdjustHue", "roundings of a hue"},
    {"StridedSlice {Index=int64", "places beyond 32 bits"},
    {"T=half", "operators compute in float"},
    {"T=bfloat16", "the same"},
    {"Einsum", "an ellipsis that repeats sizes which are not known"},
    {"SoftmaxCrossEntropyWithLogits", "logits that are repeated, of sizes that are not known"},
    {"MatMul", "products of nothing, of sizes that are not known"},
};
// And of what is quantized.
constexpr Exception kQuantizedExceptions[] = {
    {"ListDiff", "numbers that are near each other"},
    {"FakeQuant", "steps of its own"},
    {"Range {Tidx=float", "counts"},
    {"NEAREST", "a place beside another"},
    {"CumulativeLogsumexp", "samples that show nothing but 0"},
    {"DepthwiseConv2dNative", "filters of no elements"},
};
bool IsException(absl::string_view op, bool quantized) {
  const auto has = [&](const Exception& e) { return absl::StrContains(op, e.part); };
  return std::ranges::any_of(kExceptions, has) ||
         (quantized && std::ranges::any_of(kQuantizedExceptions, has));
}

struct Outcome {
  bool exported = false;
  std::string why;  // it failed; empty: it did not
};

// The op as a model of one signature, whose inputs and outputs are i0, i1, ... and o0, o1, ...
StatusOr<MetaGraph> ModelOf(const TestCase& c, const std::vector<Tensor>& inputs, const Way& way,
                            NamedTensors* feeds) {
  std::string text;
  std::vector<std::string> names;
  MetaGraph meta;
  meta.tags = {"serve"};
  Signature& signature = meta.signatures["serving_default"];
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = inputs[i];
    const absl::string_view type = DtypeName(t.dtype());
    names.push_back(absl::StrCat("in", i));
    if (i > 0 && way.constants) {
      absl::StrAppend(&text, "in", i, " = Const {dtype=", type, ", value=", c.ins[i], "}\n");
      continue;
    }
    PartialShape shape = t.shape();
    if (!way.stated) shape = PartialShape::UnknownOfRank(t.rank());
    absl::StrAppend(&text, "in", i, " = Placeholder {dtype=", type, ", shape=", shape.ToString(),
                    "}\n");
    TensorInfo& info = signature.inputs[absl::StrCat("i", i)];
    info.kind = TensorInfo::Kind::kDense;
    info.name = absl::StrCat("in", i, ":0");
    info.dtype = t.dtype();
    info.shape = shape;
    (*feeds)[absl::StrCat("i", i)] = t;
  }
  text += c.NodeText("tested", names);
  ASSIGN_OR_RETURN(meta.graph, ParseGraph(text));
  const Node& node = *meta.graph->Find("tested");
  if (node.def() == nullptr || node.def()->stateful) return Unimplemented("it is stateful");
  for (size_t k = 0; k < c.outs.size(); ++k) {
    TensorInfo& info = signature.outputs[absl::StrCat("o", k)];
    info.kind = TensorInfo::Kind::kDense;
    info.name = absl::StrCat("tested:", k);
    info.dtype = node.output_types[k];
    info.shape = PartialShape();
  }
  signature.method_name = "tensorflow/serving/predict";
  return meta;
}

// How files are made, and what their floats may be off by, in the range of the right ones.
struct Kind {
  absl::string_view name;
  LiteQuantize quantize;
  double share;
};
constexpr Kind kKinds[] = {{"none", LiteQuantize::kNone, 0},
                           {"float16", LiteQuantize::kFloat16, .005},
                           {"dynamic", LiteQuantize::kDynamic, .05},
                           {"int8", LiteQuantize::kInt8, .1},
                           {"int16x8", LiteQuantize::kInt16x8, .05}};

StatusOr<LiteModel> Export(MetaGraph meta, const Kind& kind, const NamedTensors& feeds) {
  ASSIGN_OR_RETURN(const auto model, LoadedModel::Load(std::move(meta), ""));
  LiteReport report;
  LiteFlags flags;
  flags.quantize = kind.quantize;
  flags.samples[kAnySignature] = {{feeds.begin(), feeds.end()}};
  return ExportLite(*model, flags, &report);
}

// Numbers that are counted may be others where those that they come from are not exact.
std::string CompareShares(const Tensor& got, const Tensor& want, double share) {
  if (got.dtype() != want.dtype() || !(got.shape() == want.shape())) return "is another tensor";
  if (want.dtype() != Dtype::kFloat) return "";
  const auto g = got.flat<float>(), w = want.flat<float>();
  double most = 0, range = 1e-3;
  for (size_t i = 0; i < w.size(); ++i) {
    const double off = std::abs(double{g[i]} - double{w[i]});
    most = off <= most ? most : off;
    range = std::max(range, double{std::abs(w[i])});
  }
  return most <= share * range ? "" : absl::StrCat("is off by ", most, " of ", range);
}

Status Keep(const std::string& path, const LiteModel& file, const NamedTensors& feeds,
            const NamedTensors& answers) {
  RETURN_IF_ERROR(WriteLiteFile(file, path + ".tflite").status());
  PredictionRecord record;
  record.signature = "serving_default";
  record.inputs.assign(feeds.begin(), feeds.end());
  record.outputs.assign(answers.begin(), answers.end());
  record.has_response = true;
  ASSIGN_OR_RETURN(const std::string bytes, SerializePredictionLog(record));
  ASSIGN_OR_RETURN(RecordWriter log, RecordWriter::Open(path + ".tfrecord"));
  RETURN_IF_ERROR(log.Write(bytes));
  return log.Close();
}

struct Flags {
  Kind kind = kKinds[0];
  std::string keep;  // the folder
  int kept = 0;
};

Outcome RunExported(const TestCase& c, const std::vector<Tensor>& inputs, const Way& way,
                    Flags& flags) {
  NamedTensors feeds;
  auto meta = ModelOf(c, inputs, way, &feeds);
  if (!meta.ok() || feeds.empty()) return {};
  auto file = Export(*std::move(meta), flags.kind, feeds);
  if (!file.ok()) return {};
  Outcome out{.exported = true};
  auto read = MetaGraphOfLite(*file);
  if (!read.ok()) return {true, absl::StrCat("is not read: ", read.status().message())};
  auto model = LoadedModel::Load(*std::move(read), "");
  if (!model.ok()) return {true, absl::StrCat("is not loaded: ", model.status().message())};
  auto results = (*model)->RunSignature("serving_default", feeds);
  if (!results.ok()) return {true, absl::StrCat("does not run: ", results.status().message())};
  if (!flags.keep.empty()) {
    const std::string path = absl::StrCat(flags.keep, "/", flags.kept++);
    if (const Status s = Keep(path, *file, feeds, *results); !s.ok()) {
      return {true, absl::StrCat("is not kept: ", s.message())};
    }
  }
  for (size_t k = 0; k < c.outs.size(); ++k) {
    auto want = ParseTensorText(c.outs[k]);
    const auto got = results->find(absl::StrCat("o", k));
    if (!want.ok() || got == results->end()) return {true, absl::StrCat("has no output ", k)};
    const std::string why = flags.kind.quantize == LiteQuantize::kNone
                                ? Compare(got->second, *want, c)
                                : CompareShares(got->second, *want, flags.kind.share);
    if (!why.empty()) return {true, absl::StrCat("output ", k, " ", why)};
  }
  return out;
}

}  // namespace

int OpLiteTests(int argc, char** argv) {
  std::vector<TestCase> cases;
  Flags flags;
  std::vector<char*> others;
  for (int i = 0; i < argc; ++i) {
    const absl::string_view flag = argv[i];
    if (flag != "--quantize" && flag != "--keep") {
      others.push_back(argv[i]);
      continue;
    }
    const absl::string_view value = ++i < argc ? argv[i] : "";
    if (flag == "--keep") {
      flags.keep = std::string(value);
      continue;
    }
    const auto kind = std::ranges::find(kKinds, value, &Kind::name);
    if (kind == std::end(kKinds)) {
      std::fprintf(stderr, "--quantize takes none, float16, dynamic, int8 or int16x8\n");
      return 2;
    }
    flags.kind = *kind;
  }
  if (!ReadOneOpCases(static_cast<int>(others.size()), others.data(), &cases)) return 2;
  int exported = 0, refused = 0, other = 0, failed = 0;
  for (const TestCase& c : cases) {
    if (c.steps[0].failure.expected) continue;
    const auto inputs = c.Inputs();
    if (!inputs || inputs->empty()) continue;
    std::vector<Tensor> all = *inputs;
    for (const std::string& literal : c.outs) {
      if (auto t = ParseTensorText(literal); t.ok()) all.push_back(*std::move(t));
    }
    if (!std::ranges::all_of(all, IsOrdinary)) continue;
    for (const Way& way : kWays) {
      if (&way == &kWays[1] && inputs->size() < 2) continue;
      const Outcome outcome = RunExported(c, *inputs, way, flags);
      ++(outcome.exported ? exported : refused);
      if (outcome.why.empty()) continue;
      if (IsException(c.op, flags.kind.quantize != LiteQuantize::kNone)) {
        ++other;
        continue;
      }
      ++failed;
      std::printf("FAILED %s, %s (%s:%d) %s\n", c.op.c_str(), way.name, c.file.c_str(), c.line,
                  outcome.why.c_str());
    }
  }
  std::printf("%d exported, %d refused, %d other, %d failed\n", exported, refused, other, failed);
  return failed == 0 && exported > 0 ? 0 : 1;
}

}  // namespace smelt
