#include "smelt/cli/replay_results.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "smelt/io/json_writer.h"

namespace smelt {

AnswerResult JudgeAnswer(const PredictionRecord& record, const StatusOr<NamedTensors>& answer,
                         const AnswerRules& rules) {
  AnswerResult r;
  r.status = answer.status();
  if (!record.has_response) {
    r.ok = !answer.ok();
    if (!r.ok) r.why = "answers, where the recorded request had no response";
    return r;
  }
  if (!answer.ok()) return r;
  r.ok = true;
  for (const auto& [name, want] : record.outputs) {
    const auto got = answer->find(name);
    Comparison c;
    if (got == answer->end()) {
      c.why = "is missing";
    } else if (std::ranges::find(rules.shapes_only, name) != rules.shapes_only.end()) {
      c.equal = want.dtype() == got->second.dtype() && want.shape() == got->second.shape();
      if (!c.equal) c = Compare(want, got->second, rules.tolerance);
    } else {
      c = Compare(want, got->second, rules.tolerance);
    }
    r.ok = r.ok && c.equal;
    if (!c.equal) {
      absl::StrAppend(&r.why, r.why.empty() ? "" : "; ", "output '", name, "' ", c.why);
    }
    r.outputs[name] = std::move(c);
  }
  return r;
}

void RecordResult::Add(AnswerResult answer, double took_ms) {
  ++answers;
  ms = took_ms;
  if (differing == 0) {
    status = std::move(answer.status);
    why = std::move(answer.why);
  }
  if (!answer.ok) ++differing;
  for (auto& [name, c] : answer.outputs) {
    auto [it, first] = outputs.try_emplace(name, c);
    if (first) continue;
    Comparison& worst = it->second;
    worst.equal = worst.equal && c.equal;
    worst.max_abs = std::max(worst.max_abs, c.max_abs);
    worst.max_rel = std::max(worst.max_rel, c.max_rel);
    worst.max_range = std::max(worst.max_range, c.max_range);
  }
}

std::string RecordResult::Complaint() const {
  return absl::StrCat(
      answers > 1 ? absl::StrFormat("%d of %d answers differ: ", differing, answers) : "",
      status.ok() ? why : absl::StrCat(CodeName(status.code()), ": ", status.message()));
}

std::string SignatureOf(const PredictionRecord& record) {
  return record.signature.empty() ? "serving_default" : record.signature;
}

std::string RecordJson(int number, const std::string& signature, const RecordResult& r) {
  JsonLineWriter w;
  w.Object([&] {
    w.Field("record", number);
    w.Field("signature", signature);
    w.Flag("ok", r.ok());
    w.Field("answers", r.answers);
    w.Field("differing", r.differing);
    w.Field("code", CodeName(r.status.code()));
    w.Field("message", r.status.ok() ? r.why : absl::string_view(r.status.message()));
    w.Object("outputs", [&] {
      for (const auto& output : r.outputs) {
        w.Object(output.first, [&] {
          const Comparison& c = output.second;
          w.Flag("equal", c.equal);
          w.RealField("max_abs", c.max_abs);
          w.RealField("max_rel", c.max_rel);
          w.RealField("max_range", c.max_range);
        });
      }
    });
    w.RealField("ms", std::round(r.ms * 1e4) / 1e4);
  });
  return std::string(w.text());
}

void SignatureResult::Add(const PredictionRecord& record, const RecordResult& r) {
  ++records;
  if (!r.ok()) ++differing;
  for (const auto& [name, c] : r.outputs) {
    max_abs = std::max(max_abs, c.max_abs);
    max_rel = std::max(max_rel, c.max_rel);
    max_range = std::max(max_range, c.max_range);
  }
  if (r.outputs.empty()) return;
  for (const auto& [name, want] : record.outputs) {
    exact = exact && !IsFloating(want.dtype()) && !IsComplex(want.dtype());
  }
}

std::string SignatureResult::Line(const std::string& name, const Tolerance& tolerance) const {
  std::string line = absl::StrFormat("signature '%s': %d records", name, records);
  if (exact && max_abs == 0) {
    line += ", exact";
  } else {
    absl::StrAppendFormat(&line, ", max abs %.3g, max rel %.3g", max_abs, max_rel);
    if (tolerance.range_tol > 0) absl::StrAppendFormat(&line, ", max %.3g of the range", max_range);
  }
  return line + (differing == 0 ? ", equal" : absl::StrFormat(", %d differ", differing));
}

}  // namespace smelt
