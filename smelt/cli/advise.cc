#include "smelt/cli/advise.h"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace smelt {

void AddAdviseFlags(CLI::App& app, AdviseFlags* flags) {
  auto* log = app.add_option(
      "--advise_batching", flags->log,
      "Say which batch_options serve the requests of this TFRecord file of PredictionLogs best "
      "(docs/batching.md); with a folder for the result, convert with them");
  app.add_option("--arrivals", flags->arrivals,
                 "Requests per second, instead of the times in the log")
      ->needs(log);
  app.add_option("--batch_times", flags->batch_times,
                 "How long batches take: tpu (computed for --tpu), measured (on this machine), or "
                 "ROWS:MICROSECONDS,...")
      ->needs(log)
      ->capture_default_str();
  app.add_option("--advise_cores", flags->cores, "Cores that batches run on at the same time")
      ->needs(log)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--latency_budget_ms", flags->latency_budget_ms,
                 "Least load of the cores with 99 % of requests answered in this time, instead of "
                 "the lowest latency")
      ->needs(log);
}

void TakeAdvice(ConvertFlags& convert, std::string* text) {
  const BatchingAdvice& advice = convert.advice;
  absl::StrAppend(text, text->empty() ? "" : " ", advice.options);
  convert.options.batch_options = {advice.choices[0].options};
  std::printf("%sadvice: the same again: %s--converter_options_string '%s'\n",
              AdviceText(advice).c_str(), convert.settings.auto_place ? "--auto_place " : "",
              text->c_str());
}

}  // namespace smelt
