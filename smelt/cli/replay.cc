// smelt replay: recorded requests against a model, in order, in one session.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "smelt/base/thread.h"
#include "smelt/cli/cache_flag.h"
#include "smelt/cli/command.h"
#include "smelt/cli/optimize_flag.h"
#include "smelt/cli/precision_flag.h"
#include "smelt/cli/progress.h"
#include "smelt/cli/replay_results.h"
#include "smelt/cli/resource_flags.h"
#include "smelt/cli/standard_streams.h"
#include "smelt/cli/usage.h"
#include "smelt/io/fs.h"
#include "smelt/io/record.h"
#include "smelt/lite/lite_borders.h"
#include "smelt/lite/lite_file.h"
#include "smelt/model/function_signatures.h"
#include "smelt/model/loaded_model.h"
#include "smelt/model/model_folder.h"
#include "smelt/model/variables_ahead.h"
#include "smelt/wire/records/prediction_log.h"

namespace smelt {
namespace {

struct ReplayFlags {
  std::string model, log, record, optimize, cache;
  bool compile = true;
  PrecisionFlags precision;
  AnswerRules rules;
  bool json = false;
  int threads = 0;
  int repeat = 1;
  int clients = 1;
  ResourceFlags resources;
};

class Replay {
 public:
  explicit Replay(const ReplayFlags& flags) : flags_(flags) {}
  ~Replay() {
    for (auto& [tags, model] : models_) {
      if (model.ok()) LoadedModel::LeaveToSystem(*std::move(model));
    }
  }

  StatusOr<int> Run() {
    line_.Step("replay: request");
    RETURN_IF_ERROR(LookForFunctions());
    ASSIGN_OR_RETURN(ModelFolder folder, ModelFolder::Open(flags_.model));
    folder_.emplace(std::move(folder));
    // What is wrong with a file is said when it is asked.
    if (!IsDir(folder_->dir())) {
      if (const auto file = ReadLiteFile(folder_->dir()); file.ok()) borders_ = LiteBorders(*file);
    }
    ModelCache cache(flags_.cache, folder_->dir());
    ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(flags_.log));
    std::optional<RecordWriter> writer;
    if (!flags_.record.empty()) {
      ASSIGN_OR_RETURN(writer, RecordWriter::Open(flags_.record));
    }
    while (true) {
      ASSIGN_OR_RETURN(auto bytes, reader.Next());
      if (!bytes) break;
      auto record = ParsePredictionLog(*bytes);
      if (!record.ok()) {
        return Prefix(record.status(), absl::StrCat("record ", count_, ": "));
      }
      // A request keeps the time at which it came first: replaying has a pace of its own.
      if (record->logged_at == 0) record->logged_at = absl::ToUnixSeconds(absl::Now());
      StatusOr<NamedTensors> answer = Internal("nothing was asked");
      ASSIGN_OR_RETURN(const RecordResult result, One(*record, &answer));
      Report(*record, result);
      if (writer) {
        record->has_response = answer.ok();
        record->outputs.clear();
        if (answer.ok()) record->outputs.assign(answer->begin(), answer->end());
        ASSIGN_OR_RETURN(const std::string out, SerializePredictionLog(*record));
        RETURN_IF_ERROR(writer->Write(out));
      }
      ++count_;
      // Comparing serves those who read what is printed.
      if (OutputLost() && !writer) break;
    }
    if (writer) RETURN_IF_ERROR(writer->Close());
    line_.Step("");
    if (!flags_.json) Summary();
    SaveCache(cache);
    return failed_ == 0 ? kExitOk : kExitFailed;
  }

 private:
  // Sets functions_ when a record names the signature of a function: such signatures must be added
  // before the model is loaded. INVALID_ARGUMENT for a log without records.
  Status LookForFunctions() {
    ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(flags_.log));
    for (int i = 0; !functions_; ++i) {
      ASSIGN_OR_RETURN(auto bytes, reader.Next());
      if (!bytes && i == 0) return InvalidArgument(flags_.log, " holds no records");
      if (!bytes) break;
      if (!absl::StrContains(*bytes, "function:")) continue;
      auto record = ParsePredictionLog(*bytes);
      if (!record.ok()) return Prefix(record.status(), absl::StrCat("record ", i, ": "));
      functions_ = IsFunctionSignatureName(record->signature);
    }
    return OkStatus();
  }

  // The model for the record's tag set, loaded when first asked for.
  StatusOr<LoadedModel*> ModelFor(std::vector<std::string> tags) {
    std::sort(tags.begin(), tags.end());
    const std::string key = absl::StrJoin(tags, ",");
    auto [it, added] = models_.try_emplace(key);
    if (added) it->second = LoadOne(tags);
    if (!it->second.ok()) return it->second.status();
    return it->second->get();
  }

  StatusOr<std::unique_ptr<LoadedModel>> LoadOne(const std::vector<std::string>& tags) {
    SessionOptions options;
    ASSIGN_OR_RETURN(options.rewriter, RewriterOfFlag(flags_.optimize));
    options.compile = flags_.compile;
    options.threads = flags_.threads;
    options.files = flags_.resources.Files();
    const VariablesAhead ahead(folder_->dir(), options);
    const ModelPart part = functions_ ? ModelPart::kWhole : ModelPart::kToRun;
    ASSIGN_OR_RETURN(SavedModel model, ReadAnyModel(folder_->dir(), part));
    ASSIGN_OR_RETURN(MetaGraph * meta, ChosenMetaGraph(model, tags));
    if (functions_) {
      std::vector<std::string> left_out;
      RETURN_IF_ERROR(AddFunctionSignatures(meta, &left_out));
      for (const std::string& why : left_out) std::fprintf(stderr, "note: %s\n", why.c_str());
    }
    NamedRequests requests;
    if (flags_.precision.narrow()) {
      ASSIGN_OR_RETURN(requests, FirstRequests(flags_.log));
    }
    return LoadInPrecision(std::move(*meta), folder_->dir(), options, flags_.precision,
                           std::move(requests));
  }

  // Asks `repeat` times, the first time alone: what is made once is made then. `first` gets the
  // answer to that.
  StatusOr<RecordResult> One(const PredictionRecord& record, StatusOr<NamedTensors>* first) {
    RecordResult r;
    auto model = ModelFor(record.tags);
    if (!model.ok()) {
      *first = model.status();
      r.Add(JudgeAnswer(record, *first, flags_.rules), 0);
      return r;
    }
    const std::string signature = SignatureOf(record);
    NamedTensors inputs(record.inputs.begin(), record.inputs.end());
    bool converted = false;
    for (auto& [key, value] : inputs) {
      const Dtype recorded = value.dtype();
      ASSIGN_OR_RETURN(value, borders_.ToInput(signature, key, value));
      converted = converted || value.dtype() != recorded;
    }
    const auto ask = [&](double* ms) {
      const auto start = std::chrono::steady_clock::now();
      auto answer = (*model)->RunSignature(signature, inputs);
      *ms = MsSince(start);
      const Status told = AsRecorded(record, signature, converted, answer);
      return told.ok() ? std::move(answer) : StatusOr<NamedTensors>(told);
    };
    double ms = 0;
    *first = ask(&ms);
    Count(JudgeAnswer(record, *first, flags_.rules), ms, &r);
    if (flags_.clients > 1) {
      RETURN_IF_ERROR(ManyClients(record, ask, &r));
      return r;
    }
    for (int i = 1; i < flags_.repeat; ++i) {
      const StatusOr<NamedTensors> answer = ask(&ms);
      Count(JudgeAnswer(record, answer, flags_.rules), ms, &r);
    }
    return r;
  }

  // Integers of a file that stand for what was recorded as floats become these.
  Status AsRecorded(const PredictionRecord& record, const std::string& signature, bool converted,
                    StatusOr<NamedTensors>& answer) const {
    if (!answer.ok()) return OkStatus();
    for (auto& [key, value] : *answer) {
      const auto was =
          std::ranges::find(record.outputs, key, &std::pair<std::string, Tensor>::first);
      const bool floats =
          was == record.outputs.end() ? converted : was->second.dtype() == Dtype::kFloat;
      if (!floats) continue;
      ASSIGN_OR_RETURN(value, borders_.ToFloats(signature, key, value));
    }
    return OkStatus();
  }

  void Count(AnswerResult judged, double ms, RecordResult* r) {
    r->Add(std::move(judged), ms);
    times_.push_back(ms);
    line_.Count(static_cast<int64_t>(times_.size()), 0);
  }

  static double MsSince(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  }

  // The repetitions after the first, shared by clients that each send the next one when they have
  // compared their answer. RESOURCE_EXHAUSTED when the system gives too few threads.
  template <typename Ask>
  Status ManyClients(const PredictionRecord& record, const Ask& ask, RecordResult* r) {
    std::atomic<int> sent{1};
    absl::Mutex mutex;
    double compared_ms = 0;
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> clients;
    Status started;
    for (int c = 0; c < flags_.clients && started.ok(); ++c) {
      auto client = StartThread([&] {
        while (sent.fetch_add(1) < flags_.repeat) {
          double ms = 0;
          const StatusOr<NamedTensors> answer = ask(&ms);
          const auto begin = std::chrono::steady_clock::now();
          AnswerResult judged = JudgeAnswer(record, answer, flags_.rules);
          absl::MutexLock lock(&mutex);
          Count(std::move(judged), ms, r);
          compared_ms += MsSince(begin);
        }
      });
      if (client.ok()) clients.push_back(*std::move(client));
      started = client.status();
    }
    for (std::thread& client : clients) client.join();
    RETURN_IF_ERROR(started);
    // A client that compares sends nothing: that time is not the model's.
    busy_ms_ += MsSince(start) - compared_ms / flags_.clients;
    return OkStatus();
  }

  void Report(const PredictionRecord& record, const RecordResult& r) {
    const std::string signature = SignatureOf(record);
    signatures_[signature].Add(record, r);
    if (!r.ok()) ++failed_;
    if (flags_.json || !r.ok()) line_.Clear();
    if (flags_.json) {
      std::printf("%s\n", RecordJson(count_, signature, r).c_str());
    } else if (!r.ok()) {
      std::printf("record %d, signature '%s': %s\n", count_, signature.c_str(),
                  r.Complaint().c_str());
    }
  }

  void Summary() {
    for (const auto& [name, s] : signatures_) {
      std::printf("%s\n", s.Line(name, flags_.rules.tolerance).c_str());
    }
    std::printf("%d records, %d equal, %d differ\n", count_, count_ - failed_, failed_);
    if (times_.empty()) return;
    const double first = times_[0];
    std::sort(times_.begin(), times_.end());
    const size_t n = times_.size();
    std::printf("first %.3f ms, median %.3f ms, p99 %.3f ms over %zu requests\n", first,
                times_[n / 2], times_[std::min(n - 1, n * 99 / 100)], n);
    if (flags_.clients == 1) return;
    if (flags_.repeat == 1) {
      std::printf("%d clients had nothing to share: --repeat is 1\n", flags_.clients);
    } else {
      std::printf("%d clients, %.2f requests a second\n", flags_.clients,
                  static_cast<double>(n - static_cast<size_t>(count_)) * 1e3 / busy_ms_);
    }
  }

  const ReplayFlags& flags_;
  ProgressLine line_;
  std::map<std::string, StatusOr<std::unique_ptr<LoadedModel>>> models_;
  std::map<std::string, SignatureResult> signatures_;
  std::vector<double> times_;
  double busy_ms_ = 0;  // time in ManyClients
  std::optional<ModelFolder> folder_;
  LiteBorders borders_;  // of a .tflite file
  bool functions_ = false;
  int count_ = 0, failed_ = 0;
};

}  // namespace

CommandBody SetupReplay(CLI::App& app) {
  auto flags = std::make_shared<ReplayFlags>();
  app.add_option("model", flags->model, kModelHelp)->required();
  app.add_option("--log", flags->log, "TFRecord file of PredictionLogs")->required();
  app.add_option("--rtol", flags->rules.tolerance.rtol, "Relative tolerance of floating outputs")
      ->capture_default_str();
  app.add_option("--atol", flags->rules.tolerance.atol, "Absolute tolerance of floating outputs")
      ->capture_default_str();
  app.add_option("--range_tol", flags->rules.tolerance.range_tol,
                 "Tolerance of floating outputs relative to the range of the whole output")
      ->capture_default_str();
  app.add_flag("--json", flags->json,
               "One JSON line for each record; bytes that are no UTF-8 are written \\xNN");
  app.add_option("--record", flags->record,
                 "Write what was answered as PredictionLogs; those without a time get that of now");
  AddOptimizeFlag(app, &flags->optimize);
  AddCompileFlag(app, &flags->compile);
  AddPrecisionFlags(app, &flags->precision);
  app.add_option("--threads", flags->threads, "Threads of one request; 0: every core");
  app.add_option("--repeat", flags->repeat,
                 "Run each request this many times and compare every answer")
      ->check(CLI::PositiveNumber);
  app.add_option("--clients", flags->clients,
                 "Clients that share the repetitions after the first one and wait at the same time")
      ->check(CLI::PositiveNumber);
  AddResourceFlags(app, &flags->resources);
  AddCacheFlag(app, &flags->cache);
  AddUnpackLimitFlag(app);
  app.add_option("--shapes_only", flags->rules.shapes_only,
                 "Outputs (random ones) of which only dtype and shape are compared");
  return [flags] { return Replay(*flags).Run(); };
}

}  // namespace smelt
