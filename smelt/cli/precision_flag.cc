#include "smelt/cli/precision_flag.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "smelt/cli/replay_results.h"
#include "smelt/convert/narrow.h"
#include "smelt/io/record.h"

namespace smelt {
namespace {

// Enough to tell how far off a model is, and few beside those that it will answer.
constexpr size_t kMeasured = 8;

void SayError(const NarrowError& error, const std::string& precision) {
  if (error.requests == 0) {
    std::fprintf(stderr, "note: %s: the float model answers none of the requests to compare\n",
                 precision.c_str());
    return;
  }
  std::fprintf(stderr, "%s\n",
               absl::StrFormat("note: %s: answers to %d request%s differ from float32's by %.3g at "
                               "most, by %.3g of the range of output '%s'",
                               precision, error.requests, error.requests == 1 ? "" : "s",
                               error.max_abs, error.max_relative, error.output)
                   .c_str());
  for (const std::string& odd : error.odd) {
    std::fprintf(stderr, "note: %s: %s\n", precision.c_str(), odd.c_str());
  }
}

}  // namespace

void AddPrecisionFlags(CLI::App& app, PrecisionFlags* flags) {
  app.add_option("--precision", flags->precision,
                 "What a plain model computes in: its float32 layers as smelt convert makes them "
                 "bfloat16 or int8, for this process alone")
      ->capture_default_str()
      ->check(CLI::IsMember({"float32", "bfloat16", "int8"}));
  app.add_option("--calibration_log", flags->calibration_log,
                 "TFRecord file of PredictionLogs: the requests that the ranges of --precision "
                 "int8 come from");
}

StatusOr<NamedRequests> FirstRequests(const std::string& log) {
  NamedRequests requests;
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(log));
  while (requests.size() < kMeasured) {
    ASSIGN_OR_RETURN(const auto bytes, reader.Next());
    if (!bytes) break;
    auto record = ParsePredictionLog(*bytes);
    if (!record.ok()) {
      return Prefix(record.status(), absl::StrCat("record ", requests.size(), ": "));
    }
    requests.emplace_back(SignatureOf(*record),
                          NamedTensors(record->inputs.begin(), record->inputs.end()));
  }
  return requests;
}

StatusOr<std::unique_ptr<LoadedModel>> LoadInPrecision(MetaGraph meta, const std::string& dir,
                                                       const SessionOptions& options,
                                                       const PrecisionFlags& flags,
                                                       NamedRequests requests) {
  if (!flags.narrow()) {
    if (!flags.calibration_log.empty()) {
      return InvalidArgument("--calibration_log is for --precision int8");
    }
    return LoadedModel::Load(std::move(meta), dir, options);
  }
  NarrowFlags narrow;
  narrow.precision = flags.precision == "int8" ? Precision::kInt8 : Precision::kBfloat16;
  narrow.calibration_log = flags.calibration_log;
  narrow.files = options.files;
  ASSIGN_OR_RETURN(MetaGraph narrowed, Narrow(meta, dir, narrow));
  if (!flags.calibration_log.empty()) {
    ASSIGN_OR_RETURN(requests, FirstRequests(flags.calibration_log));
  }
  if (requests.size() > kMeasured) requests.resize(kMeasured);
  ASSIGN_OR_RETURN(const NarrowError error, MeasureNarrow(meta, narrowed, dir, options, requests));
  SayError(error, flags.precision);
  return LoadedModel::Load(std::move(narrowed), dir, options);
}

}  // namespace smelt
