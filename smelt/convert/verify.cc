#include "smelt/convert/verify.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_format.h"
#include "smelt/base/out_of_memory.h"
#include "smelt/base/thread.h"
#include "smelt/convert/conversion.h"
#include "smelt/io/fs.h"
#include "smelt/io/record.h"
#include "smelt/model/loaded_model.h"
#include "smelt/model/made_up_requests.h"
#include "smelt/tensor/compare.h"
#include "smelt/wire/records/prediction_log.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt {
namespace {

constexpr uint64_t kVerifySeed = 7;
// Largest differences relative to an output's range, by the narrowest numbers of the conversion.
constexpr double kSameTypes = 1e-3, kWithBfloat16 = 2e-2, kWithInt8 = 5e-2;
// Of requests that are joined: how often, how many, and the most rows of one.
constexpr int kJoinRounds = 4;
constexpr uint64_t kMaxJoined = 4, kMaxRowsOfOne = 3;
// Of the model's own warm-up requests; and of each signature, those that tell random outputs.
constexpr int64_t kMaxWarmup = 32;
constexpr int kMaxRepeated = 16;

bool Quantized(const Conversion& c) {
  return std::ranges::any_of(c.records.layers, [](const QuantizedLayer& l) { return l.quantized; });
}

bool RoundsToBfloat16(const Conversion& c) {
  return std::ranges::any_of(c.records.precision,
                             [](const PrecisionChoice& p) { return p.converted; });
}

// The most rows that a request of the batched functions may have.
int64_t MaxBatchRows(const ConverterOptions& options) {
  int64_t rows = 0;
  for (const BatchOption& b : options.batch_options) {
    rows = rows == 0 ? b.max_batch_size : std::min<int64_t>(rows, b.max_batch_size);
  }
  return rows;
}

// Every input's dimension 0 is open: requests can be joined along it.
bool HasOpenRows(const Signature& s) {
  const auto slots = LoadedModel::Slots(s.inputs);
  return !slots.empty() && std::ranges::all_of(slots, [](const auto& slot) {
    const PartialShape& shape = slot.second.shape;
    return shape.known_rank() && shape.rank() > 0 && shape[0] < 0;
  });
}

class Verifier {
 public:
  Verifier(const VerifyFlags& flags, const Conversion& c,
           const std::function<void(int64_t, int64_t)>& count)
      : flags_(flags), c_(c), count_(count) {
    out_.done = true;
    const bool int8 = Quantized(c), bfloat16 = RoundsToBfloat16(c);
    out_.tolerance = int8 ? kWithInt8 : bfloat16 ? kWithBfloat16 : kSameTypes;
    out_.tolerance_for = int8 ? "int8" : bfloat16 ? "bfloat16" : "the same types";
    if (flags.tolerance) {
      out_.tolerance = *flags.tolerance;
      out_.tolerance_for = flags.tolerance_from;
    }
  }

  StatusOr<Verification> Run(const std::string& original, const std::string& converted) {
    ASSIGN_OR_RETURN(original_, Open(original));
    ASSIGN_OR_RETURN(converted_, Open(converted));
    made_up_.emplace(*original_, kVerifySeed);
    if (flags_.log.empty()) {
      Warmup(original + "/assets.extra/tf_serving_warmup_requests");
      MadeUp();
    } else {
      RETURN_IF_ERROR(Recorded());
    }
    if (!c_.options.batch_options.empty()) Joined();
    RETURN_IF_ERROR(FindRandom(original));
    Judge();
    return std::move(out_);
  }

 private:
  // The MetaGraph that conversions are about.
  StatusOr<std::unique_ptr<LoadedModel>> Open(const std::string& dir) const {
    const SessionOptions options{.files = c_.files};
    ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(dir));
    ASSIGN_OR_RETURN(MetaGraph * meta, ChosenMetaGraph(model));
    return LoadedModel::Load(std::move(*meta), dir, options);
  }

  Status Recorded() {
    ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(flags_.log));
    for (int64_t i = 0;; ++i) {
      ASSIGN_OR_RETURN(auto bytes, reader.Next());
      if (!bytes && i == 0) return InvalidArgument(flags_.log, " holds no records");
      if (!bytes) return OkStatus();
      auto record = ParsePredictionLog(*bytes);
      if (!record.ok()) return Prefix(record.status(), absl::StrCat("record ", i, ": "));
      if (count_) count_(i, 0);
      One(record->signature.empty() ? "serving_default" : record->signature,
          NamedTensors(record->inputs.begin(), record->inputs.end()));
    }
  }

  // Requests that the model brings along say best what it wants. A file that does not parse is
  // noted: the model works without.
  void Warmup(const std::string& path) {
    if (!Exists(path)) return;
    auto reader = RecordReader::Open(path);
    Status bad = reader.status();
    for (int64_t i = 0; bad.ok() && i < kMaxWarmup; ++i) {
      auto bytes = reader->Next();
      bad = bytes.status();
      if (!bad.ok() || !*bytes) break;
      auto record = ParsePredictionLog(**bytes);
      // Logs of other kinds of calls are TensorFlow Serving's to use.
      if (record.status().code() == absl::StatusCode::kUnimplemented) continue;
      bad = record.status();
      if (!bad.ok()) break;
      const std::string name = record->signature.empty() ? "serving_default" : record->signature;
      if (One(name, NamedTensors(record->inputs.begin(), record->inputs.end()))) ++brought_[name];
    }
    if (!bad.ok()) out_.notes.push_back(absl::StrCat(path, ": ", bad.ToString()));
  }

  void MadeUp() {
    int64_t asked = 0;
    const auto& signatures = original_->meta().signatures;
    const int64_t served = std::ssize(signatures) -
                           static_cast<int64_t>(signatures.count(std::string(kInitSignature)));
    for (const auto& [name, signature] : signatures) {
      if (name == kInitSignature) continue;
      for (int64_t i = brought_[name]; i < flags_.count; ++i) {
        if (count_) count_(asked++, served * flags_.count);
        auto request = made_up_->Ask(name, 0);
        if (!request.ok()) {
          Note(name, absl::StrCat("the original fails: ", request.status().ToString()));
          break;
        }
        Answer(name, request->inputs, request->outputs);
      }
    }
  }

  // A request that the original refuses is noted, once a signature, and not compared: false.
  bool One(const std::string& signature, const NamedTensors& inputs) {
    auto want = original_->RunSignature(signature, inputs);
    if (want.ok()) {
      Answer(signature, inputs, *want);
    } else if (++refused_[signature] == 1) {
      Note(signature, absl::StrCat("the original fails: ", want.status().ToString()));
    }
    return want.ok();
  }

  void Answer(const std::string& signature, const NamedTensors& inputs, const NamedTensors& want) {
    if (++answered_[signature] <= kMaxRepeated) repeated_.emplace_back(signature, inputs);
    auto got = converted_->RunSignature(signature, inputs);
    if (!got.ok()) {
      out_.ok = false;
      Note(signature, absl::StrCat("the conversion fails: ", got.status().ToString()));
      return;
    }
    if (flags_.on_answers) flags_.on_answers(want, *got);
    CompareAll(signature, want, *got);
  }

  void CompareAll(const std::string& signature, const NamedTensors& want, const NamedTensors& got) {
    for (const auto& [name, wanted] : want) {
      VerifiedOutput& v = outputs_[{signature, name}];
      ++v.requests;
      auto it = got.find(name);
      if (it == got.end()) {
        v.why = "is missing";
        continue;
      }
      if (it->second.dtype() != wanted.dtype() || !(it->second.shape() == wanted.shape())) {
        v.why =
            absl::StrCat("is ", DtypeName(it->second.dtype()), " ", it->second.shape().ToString(),
                         " instead of ", DtypeName(wanted.dtype()), " ", wanted.shape().ToString());
        continue;
      }
      if (std::ranges::find(flags_.shapes_only, name) != flags_.shapes_only.end()) continue;
      // Judge looks at the numbers, relative to the whole output. With this tolerance only
      // differences that no number tells count: strings, NaN, integers.
      const Comparison c = Compare(wanted, it->second, {0, INFINITY});
      if (!c.equal) odd_values_[{signature, name}] = c.why;
      v.max_abs = std::max(v.max_abs, c.max_abs);
      v.max_relative = std::max(v.max_relative, Relative(c));
    }
  }

  static double Relative(const Comparison& c) {
    return c.max_abs == 0 ? 0 : c.max_abs / std::max(c.max_wanted, 1e-30);
  }

  // Outputs whose values differ are random where the original does not repeat itself, either.
  Status FindRandom(const std::string& original) {
    std::set<std::pair<std::string, std::string>> differ;
    for (const auto& [key, v] : outputs_) {
      if (odd_values_.contains(key) || v.max_relative > out_.tolerance) differ.insert(key);
    }
    if (differ.empty()) return OkStatus();
    ASSIGN_OR_RETURN(const auto first, Open(original));
    ASSIGN_OR_RETURN(const auto second, Open(original));
    for (const auto& [signature, inputs] : repeated_) {
      const auto want = first->RunSignature(signature, inputs);
      const auto again = second->RunSignature(signature, inputs);
      if (!want.ok() || !again.ok()) continue;
      for (const auto& [name, wanted] : *want) {
        const auto it = again->find(name);
        if (!differ.contains({signature, name}) || it == again->end()) continue;
        const Comparison c = Compare(wanted, it->second, {0, INFINITY});
        if (c.equal && Relative(c) <= out_.tolerance) continue;
        VerifiedOutput& v = outputs_[{signature, name}];
        odd_values_.erase({signature, name});
        differ.erase({signature, name});
        v.max_abs = v.max_relative = 0;
        v.random = true;
      }
    }
    return OkStatus();
  }

  // Requests of random sizes against each alone of the original: as one request, whose rows meet
  // and are padded, and at the same time, when the server joins and splits them as they come.
  void Joined() {
    const int64_t most = MaxBatchRows(c_.options);
    for (const auto& [name, signature] : original_->meta().signatures) {
      if (name == kInitSignature || !HasOpenRows(signature) || answered_[name] == 0) continue;
      uint64_t drawn = kVerifySeed;
      const auto draw = [&](uint64_t limit) {
        drawn = drawn * 6364136223846793005u + 1442695040888963407u;
        return static_cast<int64_t>((drawn >> 33) % limit) + 1;
      };
      for (int round = 0; round < kJoinRounds; ++round) {
        std::vector<int64_t> ends;
        int64_t rows = 0;
        for (int64_t n = draw(kMaxJoined); n > 0; --n) {
          const int64_t size = draw(kMaxRowsOfOne);
          if (rows + size <= most) ends.push_back(rows += size);
        }
        if (rows == 0) continue;
        const auto whole = made_up_->Make(name, rows);
        if (!whole.ok()) return;  // noted before
        AskJoined(name, *whole, ends);
      }
    }
  }

  static NamedTensors Part(const NamedTensors& whole, const std::vector<int64_t>& ends, size_t i) {
    NamedTensors part;
    for (const auto& [key, t] : whole) part[key] = t.Rows(i == 0 ? 0 : ends[i - 1], ends[i]);
    return part;
  }

  void AskJoined(const std::string& signature, const NamedTensors& whole,
                 const std::vector<int64_t>& ends) {
    std::vector<NamedTensors> wanted;
    for (size_t i = 0; i < ends.size(); ++i) {
      auto want = original_->RunSignature(signature, Part(whole, ends, i),
                                          {.timeout = MadeUpRequests::kPatience});
      if (!want.ok()) return;  // it has no answer to compare with
      wanted.push_back(*std::move(want));
    }
    const auto fails = [&](absl::string_view how, const Status& s) {
      out_.ok = false;
      Note(signature, absl::StrCat("the conversion fails on ", ends.size(), " requests ", how, ": ",
                                   s.ToString()));
    };
    const auto got = converted_->RunSignature(signature, whole);
    if (!got.ok()) return fails("in one", got.status());
    for (size_t i = 0; i < ends.size(); ++i) {
      NamedTensors mine, its;
      for (const auto& [key, t] : *got) {
        // Outputs without a row for each row of the input belong to no request.
        const auto want = wanted[i].find(key);
        if (t.rank() == 0 || t.dim(0) != ends.back() || want == wanted[i].end()) continue;
        mine[key] = t.Rows(i == 0 ? 0 : ends[i - 1], ends[i]);
        its[key] = want->second;
      }
      CompareAll(signature, its, mine);
      ++out_.joined;
    }
    std::vector<StatusOr<NamedTensors>> answers(ends.size(), OutOfRange("not asked"));
    std::vector<std::thread> clients;
    Status started;
    for (size_t i = 0; i < ends.size() && started.ok(); ++i) {
      auto client = StartThread([&, i] {
        answers[i] = OrOutOfMemory(
            [&] { return converted_->RunSignature(signature, Part(whole, ends, i)); });
      });
      if (client.ok()) clients.push_back(*std::move(client));
      started = client.status();
    }
    for (std::thread& client : clients) client.join();
    if (!started.ok()) return Note(signature, started.message());
    for (size_t i = 0; i < ends.size(); ++i) {
      if (!answers[i].ok()) return fails("at once", answers[i].status());
      CompareAll(signature, wanted[i], *answers[i]);
      ++out_.joined;
    }
  }

  void Judge() {
    for (auto& [key, v] : outputs_) {
      v.signature = key.first;
      v.output = key.second;
      const auto odd = odd_values_.find(key);
      if (v.why.empty() && odd != odd_values_.end()) v.why = odd->second;
      v.ok = v.why.empty() && v.max_relative <= out_.tolerance;
      out_.ok = out_.ok && v.ok;
      out_.outputs.push_back(v);
    }
    if (out_.outputs.empty()) {
      out_.ok = false;
      out_.notes.push_back("nothing was compared");
    }
    if (!out_.ok) Advise();
  }

  void Advise() {
    if (out_.outputs.empty()) {
      out_.advice.push_back(
          "record requests that the model answers (smelt replay --record) and give them by "
          "--verify_log");
      return;
    }
    if (Quantized(c_)) {
      out_.advice.push_back(
          "if int8 is why, keep the layers with the largest errors in the report float by "
          "--exclude, or give more representative samples");
    }
    if (RoundsToBfloat16(c_)) {
      out_.advice.push_back(
          "if bfloat16 is why, set bfloat16_optimization: DISABLED, or keep op types in float32 by "
          "bfloat16_optimization_options { filterlist: \"...\" } (docs/bfloat16.md)");
    }
    if (out_.joined > 0) {
      out_.advice.push_back("if batching is why, convert without batch_options");
    }
    out_.advice.push_back(
        "outputs that are random are compared by type and shape alone with --shapes_only OUTPUT");
  }

  void Note(const std::string& signature, absl::string_view text) {
    out_.notes.push_back(absl::StrCat("signature '", signature, "': ", text));
  }

  const VerifyFlags& flags_;
  const Conversion& c_;
  const std::function<void(int64_t, int64_t)>& count_;
  std::unique_ptr<LoadedModel> original_, converted_;
  std::map<std::pair<std::string, std::string>, VerifiedOutput> outputs_;
  // Values that no number tells the difference of.
  std::map<std::pair<std::string, std::string>, std::string> odd_values_;
  std::vector<std::pair<std::string, NamedTensors>> repeated_;  // what FindRandom asks again
  std::map<std::string, int> refused_, brought_, answered_;
  std::optional<MadeUpRequests> made_up_;
  Verification out_;
};

}  // namespace

StatusOr<Verification> VerifyConversion(const VerifyFlags& flags, const Conversion& c,
                                        const std::string& original, const std::string& converted,
                                        const std::function<void(int64_t, int64_t)>& count) {
  return Verifier(flags, c, count).Run(original, converted);
}

std::string VerificationText(const Verification& v) {
  std::string text;
  for (const std::string& note : v.notes) absl::StrAppend(&text, "verify: ", note, "\n");
  for (const VerifiedOutput& o : v.outputs) {
    absl::StrAppendFormat(&text,
                          "verify: signature '%s', output '%s': %d requests, max abs %.3g, %.3g of "
                          "the range: %s%s\n",
                          o.signature, o.output, o.requests, o.max_abs, o.max_relative,
                          o.ok ? "ok" : "differs",
                          o.random        ? ", random: only dtype and shape are compared"
                          : o.why.empty() ? ""
                                          : ", " + o.why);
  }
  if (v.joined > 0) {
    absl::StrAppend(&text, "verify: ", v.joined, " of them joined with others, padded or split\n");
  }
  if (v.ok) return text;
  absl::StrAppendFormat(&text, "verify: differs: at most %.3g of the range is allowed (%s)\n",
                        v.tolerance, v.tolerance_for);
  for (const std::string& advice : v.advice) absl::StrAppend(&text, "verify: ", advice, "\n");
  return text;
}

}  // namespace smelt
