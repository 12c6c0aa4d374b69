// smelt convert --verify: the model and its conversion on the same inputs.
#include <cmath>
#include <cstdio>
#include <random>
#include <thread>

#include "absl/strings/str_format.h"
#include "smelt/cli/report/reports.h"
#include "smelt/io/record.h"
#include "smelt/model/loaded_model.h"
#include "smelt/model/model_folder.h"
#include "smelt/model/random_inputs.h"
#include "smelt/tensor/compare.h"
#include "smelt/wire/records/prediction_log.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt {
namespace {

constexpr uint64_t kVerifySeed = 7;
// Requests that are sent to a batched model at the same time, and the most rows of each but the
// first, which is as large as the model takes, up to a limit.
constexpr int kVerifyTogether = 5, kVerifyRows = 3, kVerifyLargest = 64;

struct VerifiedOutput {
  int64_t requests = 0;
  double max_abs = 0, max_relative = 0;
  std::string why;  // a difference that no tolerance allows: dtype, shape, strings, NaN
};

class Verification {
 public:
  explicit Verification(const VerifyFlags& flags) : flags_(flags) {}

  StatusOr<bool> Run() {
    ASSIGN_OR_RETURN(original_, Open(flags_.original));
    ASSIGN_OR_RETURN(converted_, Open(flags_.converted));
    if (!flags_.log.empty()) {
      RETURN_IF_ERROR(Recorded());
    } else {
      Random();
    }
    Print();
    return ok_;
  }

 private:
  static StatusOr<std::unique_ptr<LoadedModel>> Open(const std::string& dir) {
    ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(dir));
    ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(folder.dir()));
    if (model.meta_graphs.size() == 1) {
      return LoadedModel::Load(std::move(model.meta_graphs[0]), folder.dir());
    }
    ASSIGN_OR_RETURN(MetaGraph * meta, FindMetaGraph(model, {"serve"}));
    return LoadedModel::Load(std::move(*meta), folder.dir());
  }

  Status Recorded() {
    ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(flags_.log));
    for (int i = 0;; ++i) {
      ASSIGN_OR_RETURN(auto bytes, reader.Next());
      if (!bytes) return OkStatus();
      auto record = ParsePredictionLog(*bytes);
      if (!record.ok()) return Prefix(record.status(), absl::StrCat("record ", i, ": "));
      One(record->signature.empty() ? "serving_default" : record->signature,
          NamedTensors(record->inputs.begin(), record->inputs.end()));
    }
  }

  void Random() {
    for (const auto& [name, signature] : original_->meta().signatures) {
      if (name == kInitSignature) continue;
      RandomInputs random(kVerifySeed);
      for (int i = 0; i < flags_.count; ++i) {
        auto inputs = random.Make(signature, 0);
        if (!inputs.ok()) {
          std::printf("verify: signature '%s': %s\n", name.c_str(),
                      std::string(inputs.status().message()).c_str());
          break;
        }
        One(name, *inputs);
        if (flags_.largest_batch > 0) Together(name, signature, random, i);
      }
    }
  }

  // Rows of one made-up request, cut at random, as requests of their own at the same time: a
  // batched model joins and pads them, and may split the first. Each must get what it gets alone.
  void Together(const std::string& name, const Signature& signature, RandomInputs& random,
                int round) {
    for (const auto& [key, info] : signature.inputs) {
      if (info.shape.rank() < 1 || info.shape[0] >= 0) return;  // takes no rows
    }
    std::minstd_rand draw(static_cast<unsigned>(kVerifySeed) + static_cast<unsigned>(round));
    std::vector<int64_t> ends;
    int64_t total = 0;
    for (int i = 0; i < kVerifyTogether; ++i) {
      const bool largest = i == 0 && flags_.largest_batch <= kVerifyLargest;
      const int most = std::min(kVerifyRows, flags_.largest_batch);
      total += largest ? flags_.largest_batch : 1 + static_cast<int64_t>(draw()) % most;
      ends.push_back(total);
    }
    const auto all = random.Make(signature, total);
    if (!all.ok()) return;  // was said of the request before
    std::vector<NamedTensors> parts(ends.size());
    std::vector<std::optional<StatusOr<NamedTensors>>> want(ends.size()), got(ends.size());
    for (size_t i = 0; i < ends.size(); ++i) {
      for (const auto& [key, tensor] : *all) {
        parts[i][key] = tensor.Rows(i == 0 ? 0 : ends[i - 1], ends[i]);
      }
      want[i] = original_->RunSignature(name, parts[i]);
    }
    std::vector<std::thread> threads;
    for (size_t i = 0; i < ends.size(); ++i) {
      threads.emplace_back([&, i] { got[i] = converted_->RunSignature(name, parts[i]); });
    }
    for (std::thread& t : threads) t.join();
    for (size_t i = 0; i < ends.size(); ++i) Judge(name, *want[i], *got[i]);
  }

  void One(const std::string& signature, const NamedTensors& inputs) {
    const auto want = original_->RunSignature(signature, inputs);
    Judge(signature, want, want.ok() ? converted_->RunSignature(signature, inputs) : want);
  }

  // A request that the original model refuses is reported, once a signature, and not compared.
  void Judge(const std::string& signature, const StatusOr<NamedTensors>& want,
             const StatusOr<NamedTensors>& got) {
    if (!want.ok()) {
      if (++refused_[signature] == 1) {
        std::printf("verify: signature '%s': the original fails: %s\n", signature.c_str(),
                    want.status().ToString().c_str());
      }
      return;
    }
    if (!got.ok()) {
      ok_ = false;
      std::printf("verify: signature '%s': the conversion fails: %s\n", signature.c_str(),
                  got.status().ToString().c_str());
      return;
    }
    for (const auto& [name, wanted] : *want) {
      VerifiedOutput& v = outputs_[{signature, name}];
      ++v.requests;
      auto it = got->find(name);
      if (it == got->end()) {
        v.why = "is missing";
        continue;
      }
      // Print judges the numbers, relative to the whole output. With this tolerance only
      // differences that no number tells count: dtype, shape, strings, NaN.
      const Comparison c = Compare(wanted, it->second, {0, INFINITY});
      if (!c.equal) v.why = c.why;
      v.max_abs = std::max(v.max_abs, c.max_abs);
      const double relative = c.max_abs == 0 ? 0 : c.max_abs / std::max(c.max_wanted, 1e-30);
      v.max_relative = std::max(v.max_relative, relative);
    }
  }

  void Print() {
    for (const auto& [key, v] : outputs_) {
      const bool ok = v.why.empty() && v.max_relative <= flags_.tolerance;
      ok_ = ok_ && ok;
      std::printf("verify: signature '%s', output '%s': %s\n", key.first.c_str(),
                  key.second.c_str(),
                  absl::StrFormat("%d requests, max abs %.3g, %.3g of the range: %s%s", v.requests,
                                  v.max_abs, v.max_relative, ok ? "ok" : "differs",
                                  v.why.empty() ? "" : ", " + v.why)
                      .c_str());
    }
    if (outputs_.empty()) std::printf("verify: nothing was compared\n");
  }

  const VerifyFlags& flags_;
  std::unique_ptr<LoadedModel> original_, converted_;
  std::map<std::pair<std::string, std::string>, VerifiedOutput> outputs_;
  std::map<std::string, int> refused_;
  bool ok_ = true;
};

}  // namespace

StatusOr<bool> VerifyConversion(const VerifyFlags& flags) { return Verification(flags).Run(); }

}  // namespace smelt
