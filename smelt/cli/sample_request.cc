#include "smelt/cli/sample_request.h"

#include <CLI/CLI.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "smelt/cli/command.h"
#include "smelt/cli/optimize_flag.h"
#include "smelt/cli/replay_results.h"
#include "smelt/io/fs.h"
#include "smelt/io/record.h"
#include "smelt/lite/lite_borders.h"
#include "smelt/lite/lite_file.h"
#include "smelt/model/function_signatures.h"
#include "smelt/model/made_up_requests.h"
#include "smelt/model/model_folder.h"
#include "smelt/wire/records/prediction_log.h"

namespace smelt {
namespace {

// Requests that are made up are the same each time.
constexpr uint64_t kSampleSeed = 1;

// 'x=[8,224,224,3], ids=[8,64]'.
StatusOr<std::map<std::string, Shape>> ParseShapes(absl::string_view text) {
  std::map<std::string, Shape> shapes;
  while (!(text = absl::StripAsciiWhitespace(text)).empty()) {
    const size_t equals = text.find('='), open = text.find('['), close = text.find(']');
    if (equals == text.npos || open != equals + 1 || close == text.npos) {
      return InvalidArgument("--shapes wants 'name=[8,4], ...', not '", text, "'");
    }
    Dims dims;
    for (const absl::string_view d :
         absl::StrSplit(text.substr(open + 1, close - open - 1), ',', absl::SkipWhitespace())) {
      int64_t size = 0;
      if (!absl::SimpleAtoi(d, &size) || size < 0) {
        return InvalidArgument("--shapes: '", d, "' is no size");
      }
      dims.push_back(size);
    }
    const std::string name(absl::StripAsciiWhitespace(text.substr(0, equals)));
    ASSIGN_OR_RETURN(shapes[name], Shape::Make(dims));
    text = absl::StripAsciiWhitespace(text.substr(close + 1));
    absl::ConsumePrefix(&text, ",");
  }
  return shapes;
}

// Inputs that no shape is given for have the signature's, with `batch` for an open dimension 0.
StatusOr<NamedTensors> Zeros(const Signature& signature, const SampleFlags& flags) {
  ASSIGN_OR_RETURN(const auto given, ParseShapes(flags.shapes));
  const auto slots = LoadedModel::Slots(signature.inputs);
  for (const auto& [name, shape] : given) {
    if (!slots.contains(name)) {
      return InvalidArgument("--shapes: signature '", flags.signature, "' has no input '", name,
                             "'");
    }
  }
  NamedTensors inputs;
  for (const auto& [name, slot] : slots) {
    Shape shape;
    if (const auto it = given.find(name); it != given.end()) {
      shape = it->second;
    } else {
      Dims dims;
      bool known = slot.shape.known_rank();
      for (int i = 0; known && i < slot.shape.rank(); ++i) {
        dims.push_back(slot.shape[i] >= 0 ? slot.shape[i] : flags.batch);
        known = slot.shape[i] >= 0 || i == 0;
      }
      if (!known) {
        return InvalidArgument("--shapes: give that of input '", name, "', ",
                               slot.shape.ToString());
      }
      ASSIGN_OR_RETURN(shape, Shape::Make(dims));
    }
    ASSIGN_OR_RETURN(inputs[name], Tensor::Zeros(slot.dtype, shape));
  }
  return inputs;
}

StatusOr<NamedTensors> Recorded(const SampleFlags& flags) {
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(flags.log));
  while (true) {
    ASSIGN_OR_RETURN(auto bytes, reader.Next());
    if (!bytes) {
      return InvalidArgument(flags.log, " has no request to signature '", flags.signature, "'");
    }
    ASSIGN_OR_RETURN(const PredictionRecord record, ParsePredictionLog(*bytes));
    if (SignatureOf(record) != flags.signature) continue;
    return NamedTensors(record.inputs.begin(), record.inputs.end());
  }
}

class SampleLoader {
 public:
  SampleLoader(std::string dir, const SampleFlags& flags) : dir_(std::move(dir)), flags_(flags) {}

  StatusOr<Sample> Run() {
    Sample sample;
    if (!flags_.log.empty()) {
      sample.origin = "recorded";
      ASSIGN_OR_RETURN(sample.inputs, Recorded(flags_));
      RETURN_IF_ERROR(AsIntegers(sample.inputs));
    } else if (flags_.shapes.empty()) {
      // A session of its own: what is tried to no avail leaves nothing.
      sample.origin = "made up";
      ASSIGN_OR_RETURN(MetaGraph meta, Read());
      ASSIGN_OR_RETURN(SessionOptions options, Options());
      options.compile = false;
      ASSIGN_OR_RETURN(const auto asked, LoadedModel::Load(std::move(meta), dir_, options));
      MadeUpRequests requests(*asked, kSampleSeed);
      ASSIGN_OR_RETURN(auto answered, requests.Ask(flags_.signature, flags_.batch));
      sample.inputs = std::move(answered.inputs);
    }
    ASSIGN_OR_RETURN(MetaGraph meta, Read());
    if (sample.origin.empty()) {
      sample.origin = "zeros";
      const auto it = meta.signatures.find(flags_.signature);
      // Loading says which there are.
      if (it != meta.signatures.end()) {
        ASSIGN_OR_RETURN(sample.inputs, Zeros(it->second, flags_));
      }
    }
    ASSIGN_OR_RETURN(const SessionOptions options, Options());
    ASSIGN_OR_RETURN(sample.model, LoadInPrecision(std::move(meta), dir_, options, flags_.precision,
                                                   {{flags_.signature, sample.inputs}}));
    RETURN_IF_ERROR(sample.model->FindSignature(flags_.signature).status());
    return sample;
  }

 private:
  StatusOr<MetaGraph> Read() const {
    const bool function = IsFunctionSignatureName(flags_.signature);
    ASSIGN_OR_RETURN(SavedModel model,
                     ReadAnyModel(dir_, function ? ModelPart::kWhole : ModelPart::kToRun));
    ASSIGN_OR_RETURN(MetaGraph * meta, ChosenMetaGraph(model, SplitTags(flags_.tag_set)));
    if (function) {
      std::vector<std::string> left_out;
      RETURN_IF_ERROR(AddFunctionSignatures(meta, &left_out));
    }
    return std::move(*meta);
  }

  // As smelt replay asks a .tflite file whose inputs are integers.
  Status AsIntegers(NamedTensors& inputs) const {
    if (IsDir(dir_)) return OkStatus();
    ASSIGN_OR_RETURN(const LiteModel file, ReadLiteFile(dir_));
    const LiteBorders borders(file);
    for (auto& [key, value] : inputs) {
      ASSIGN_OR_RETURN(value, borders.ToInput(flags_.signature, key, value));
    }
    return OkStatus();
  }

  StatusOr<SessionOptions> Options() const {
    SessionOptions options;
    ASSIGN_OR_RETURN(options.rewriter, RewriterOfFlag(flags_.optimize));
    options.threads = flags_.threads;
    options.files = flags_.resources.Files();
    return options;
  }

  const std::string dir_;
  const SampleFlags& flags_;
};

}  // namespace

void SampleFlags::Add(CLI::App& app) {
  app.add_option("--batch", batch, "Size of open first dimensions")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--shapes", shapes,
                 "The request is zeros (and empty texts) of these shapes: 'name=[8,224,224,3], "
                 "...'; inputs that are left out have the signature's shape");
  app.add_option("--log", log,
                 "The request is the first one of the signature in this TFRecord file of "
                 "PredictionLogs; without it and --shapes it is made up, of values that the model "
                 "takes");
  app.add_option("--threads", threads, "Threads of one request; 0: every core");
  AddOptimizeFlag(app, &optimize);
  AddPrecisionFlags(app, &precision);
  AddResourceFlags(app, &resources);
}

std::string Sample::Inputs() const {
  return absl::StrJoin(inputs, ", ", [](std::string* out, const auto& input) {
    absl::StrAppend(out, input.first, " ", DtypeName(input.second.dtype()),
                    input.second.shape().ToString());
  });
}

StatusOr<Sample> LoadSample(const std::string& model, const SampleFlags& flags) {
  ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(model));
  return SampleLoader(folder.dir(), flags).Run();
}

}  // namespace smelt
