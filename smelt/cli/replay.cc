// smelt replay: recorded requests against a model, in order, in one session.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "smelt/cli/command.h"
#include "smelt/io/json_writer.h"
#include "smelt/io/record.h"
#include "smelt/model/function_signatures.h"
#include "smelt/model/loaded_model.h"
#include "smelt/model/model_folder.h"
#include "smelt/tensor/compare.h"
#include "smelt/wire/records/prediction_log.h"

namespace smelt {
namespace {

struct ReplayFlags {
  std::string model, log, record;
  Tolerance tolerance;
  bool json = false;
  int threads = 0;
  int repeat = 1;
  int clients = 1;
  int64_t memory_limit = 0;
  std::vector<std::string> shapes_only;
};

struct SignatureResult {
  int records = 0, differing = 0;
  bool exact = true;  // every output of a type that is compared exactly
  double max_abs = 0, max_rel = 0, max_range = 0;
};

struct RecordResult {
  bool ok = false;
  Status status;
  std::map<std::string, Comparison> outputs;
  double ms = 0;
  std::string why;
};

class Replay {
 public:
  explicit Replay(const ReplayFlags& flags) : flags_(flags) {}

  StatusOr<int> Run() {
    if (flags_.memory_limit > 0) SetHeapLimit(flags_.memory_limit);
    RETURN_IF_ERROR(LookForFunctions());
    ASSIGN_OR_RETURN(ModelFolder folder, ModelFolder::Open(flags_.model));
    folder_.emplace(std::move(folder));
    ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(flags_.log));
    std::optional<RecordWriter> writer;
    if (!flags_.record.empty()) {
      ASSIGN_OR_RETURN(writer, RecordWriter::Open(flags_.record + ".partial"));
    }
    while (true) {
      ASSIGN_OR_RETURN(auto bytes, reader.Next());
      if (!bytes) break;
      auto record = ParsePredictionLog(*bytes);
      if (!record.ok()) {
        return Prefix(record.status(), absl::StrCat("record ", count_, ": "));
      }
      NamedTensors answer;
      RecordResult result = One(*record, &answer);
      if (writer) {
        record->has_response = result.status.ok();
        record->outputs.assign(answer.begin(), answer.end());
        ASSIGN_OR_RETURN(const std::string out, SerializePredictionLog(*record));
        RETURN_IF_ERROR(writer->Write(out));
      }
      Report(*record, result);
      ++count_;
    }
    if (writer) {
      RETURN_IF_ERROR(writer->Close());
      if (std::rename((flags_.record + ".partial").c_str(), flags_.record.c_str()) != 0) {
        return Internal("cannot rename ", flags_.record, ".partial");
      }
    }
    if (!flags_.json) Summary();
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
    ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(folder_->dir()));
    MetaGraph* meta = nullptr;
    if (tags.empty() && model.meta_graphs.size() == 1) {
      meta = &model.meta_graphs[0];
    } else {
      ASSIGN_OR_RETURN(
          meta, FindMetaGraph(model, tags.empty() ? std::vector<std::string>{"serve"} : tags));
    }
    if (functions_) {
      std::vector<std::string> left_out;
      RETURN_IF_ERROR(AddFunctionSignatures(meta, &left_out));
      for (const std::string& why : left_out) std::fprintf(stderr, "note: %s\n", why.c_str());
    }
    SessionOptions options;
    options.threads = flags_.threads;
    return LoadedModel::Load(std::move(*meta), folder_->dir(), options);
  }

  RecordResult One(const PredictionRecord& record, NamedTensors* answer) {
    RecordResult r;
    auto model = ModelFor(record.tags);
    NamedTensors inputs(record.inputs.begin(), record.inputs.end());
    const std::string signature = record.signature.empty() ? "serving_default" : record.signature;
    r.status = model.status();
    for (int i = 0; i < flags_.repeat && model.ok(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      auto out = (*model)->RunSignature(signature, inputs);
      r.ms = MsSince(start);
      times_.push_back(r.ms);
      r.status = out.status();
      if (out.ok()) *answer = *std::move(out);
      if (flags_.clients > 1 && r.status.ok()) {
        r.status = ManyClients(**model, signature, inputs);
        break;
      }
    }
    if (!record.has_response) {
      r.ok = !r.status.ok();
      if (!r.ok) r.why = "answers, where the recorded request had no response";
      return r;
    }
    if (!r.status.ok()) return r;
    r.ok = true;
    for (const auto& [name, want] : record.outputs) {
      auto got = answer->find(name);
      Comparison c;
      if (got == answer->end()) {
        c.why = "is missing";
      } else if (std::find(flags_.shapes_only.begin(), flags_.shapes_only.end(), name) !=
                 flags_.shapes_only.end()) {
        c.equal = want.dtype() == got->second.dtype() && want.shape() == got->second.shape();
        if (!c.equal) c = Compare(want, got->second, flags_.tolerance);
      } else {
        c = Compare(want, got->second, flags_.tolerance);
      }
      r.ok = r.ok && c.equal;
      if (!c.equal)
        absl::StrAppend(&r.why, r.why.empty() ? "" : "; ", "output '", name, "' ", c.why);
      auto& s = signatures_[signature];
      s.exact = s.exact && !IsFloating(want.dtype()) && !IsComplex(want.dtype());
      r.outputs[name] = std::move(c);
    }
    return r;
  }

  static double MsSince(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  }

  // `repeat` more runs of the request, shared by clients that each send the next one when they have
  // their answer. The first error, if any, which ends that client.
  Status ManyClients(LoadedModel& model, const std::string& signature, const NamedTensors& inputs) {
    std::atomic<int> sent{0};
    absl::Mutex mutex;
    Status status;
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> clients;
    for (int c = 0; c < flags_.clients; ++c) {
      clients.emplace_back([&] {
        std::vector<double> times;
        Status mine;
        while (mine.ok() && sent.fetch_add(1) < flags_.repeat) {
          const auto begin = std::chrono::steady_clock::now();
          mine = model.RunSignature(signature, inputs).status();
          times.push_back(MsSince(begin));
        }
        absl::MutexLock lock(&mutex);
        status.Update(mine);
        times_.insert(times_.end(), times.begin(), times.end());
      });
    }
    for (std::thread& client : clients) client.join();
    busy_ms_ += MsSince(start);
    return status;
  }

  void Report(const PredictionRecord& record, const RecordResult& r) {
    const std::string signature = record.signature.empty() ? "serving_default" : record.signature;
    SignatureResult& s = signatures_[signature];
    ++s.records;
    for (const auto& [name, c] : r.outputs) {
      s.max_abs = std::max(s.max_abs, c.max_abs);
      s.max_rel = std::max(s.max_rel, c.max_rel);
      s.max_range = std::max(s.max_range, c.max_range);
    }
    if (!r.ok) {
      ++s.differing;
      ++failed_;
    }
    if (flags_.json) {
      PrintJson(signature, r);
    } else if (!r.ok) {
      std::printf("record %d, signature '%s': %s\n", count_, signature.c_str(),
                  r.status.ok()
                      ? r.why.c_str()
                      : absl::StrCat(CodeName(r.status.code()), ": ", r.status.message()).c_str());
    }
  }

  void PrintJson(const std::string& signature, const RecordResult& r) {
    JsonLineWriter w;
    w.Object([&] {
      w.Field("record", count_);
      w.Field("signature", signature);
      w.Flag("ok", r.ok);
      w.Field("code", CodeName(r.status.code()));
      w.Field("message", r.status.ok() ? r.why : absl::string_view(r.status.message()));
      w.Object("outputs", [&] {
        for (const auto& output : r.outputs) {
          w.Object(output.first, [&] {
            const auto& c = output.second;
            w.Flag("equal", c.equal);
            w.RealField("max_abs", c.max_abs);
            w.RealField("max_rel", c.max_rel);
            w.RealField("max_range", c.max_range);
          });
        }
      });
      w.RealField("ms", std::round(r.ms * 1e4) / 1e4);
    });
    std::printf("%s\n", std::string(w.text()).c_str());
  }

  void Summary() {
    for (const auto& [name, s] : signatures_) {
      std::string line = absl::StrFormat("signature '%s': %d records", name, s.records);
      if (s.exact && s.max_abs == 0) {
        absl::StrAppend(&line, ", exact");
      } else {
        absl::StrAppendFormat(&line, ", max abs %.3g, max rel %.3g", s.max_abs, s.max_rel);
        if (flags_.tolerance.range_tol > 0) {
          absl::StrAppendFormat(&line, ", max %.3g of the range", s.max_range);
        }
      }
      absl::StrAppend(&line,
                      s.differing == 0 ? ", equal" : absl::StrFormat(", %d differ", s.differing));
      std::printf("%s\n", line.c_str());
    }
    std::printf("%d records, %d equal, %d differ\n", count_, count_ - failed_, failed_);
    if (times_.empty()) return;
    const double first = times_[0];
    std::sort(times_.begin(), times_.end());
    const size_t n = times_.size();
    std::printf("first %.3f ms, median %.3f ms, p99 %.3f ms over %zu requests\n", first,
                times_[n / 2], times_[std::min(n - 1, n * 99 / 100)], n);
    if (busy_ms_ > 0) {
      std::printf("%d clients, %.2f requests a second\n", flags_.clients,
                  static_cast<double>(n - static_cast<size_t>(count_)) * 1e3 / busy_ms_);
    }
  }

  const ReplayFlags& flags_;
  std::map<std::string, StatusOr<std::unique_ptr<LoadedModel>>> models_;
  std::map<std::string, SignatureResult> signatures_;
  std::vector<double> times_;
  double busy_ms_ = 0;  // time in ManyClients
  std::optional<ModelFolder> folder_;
  bool functions_ = false;
  int count_ = 0, failed_ = 0;
};

}  // namespace

CommandBody SetupReplay(CLI::App& app) {
  auto flags = std::make_shared<ReplayFlags>();
  app.add_option("model", flags->model, "SavedModel directory")->required();
  app.add_option("--log", flags->log, "TFRecord file of PredictionLogs")->required();
  app.add_option("--rtol", flags->tolerance.rtol, "Relative tolerance of floating outputs")
      ->capture_default_str();
  app.add_option("--atol", flags->tolerance.atol, "Absolute tolerance of floating outputs")
      ->capture_default_str();
  app.add_option("--range_tol", flags->tolerance.range_tol,
                 "Tolerance of floating outputs relative to the range of the whole output")
      ->capture_default_str();
  app.add_flag("--json", flags->json, "One JSON line for each record");
  app.add_option("--record", flags->record, "Write what was answered as PredictionLogs");
  app.add_option("--threads", flags->threads, "Threads of one request; 0: every core");
  app.add_option("--repeat", flags->repeat, "Run each request this many times, for timing")
      ->check(CLI::PositiveNumber);
  app.add_option("--clients", flags->clients,
                 "Clients that share the repetitions of a request and wait at the same time")
      ->check(CLI::PositiveNumber);
  app.add_option("--memory_limit", flags->memory_limit, "Bytes that tensors may take; 0: no limit");
  AddUnpackLimitFlag(app);
  app.add_option("--shapes_only", flags->shapes_only,
                 "Outputs (random ones) of which only dtype and shape are compared");
  return [flags] { return Replay(*flags).Run(); };
}

}  // namespace smelt
