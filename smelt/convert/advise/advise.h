// Batching options from recorded traffic: the choices of sizes, threads and timeout are simulated
// (simulate.h) on the requests of a log, and the best is said as converter options.
#ifndef SMELT_CONVERT_ADVISE_ADVISE_H_
#define SMELT_CONVERT_ADVISE_ADVISE_H_

#include <optional>
#include <string>
#include <vector>

#include "smelt/convert/advice.h"
#include "smelt/convert/advise/simulate.h"
#include "smelt/convert/conversion.h"

namespace smelt {

struct AdviseFlags {
  std::string log;                  // a TFRecord file of PredictionLogs
  std::optional<double> arrivals;   // requests per second; left out: the log's times
  std::string batch_times = "tpu";  // or "measured", or "ROWS:MICROSECONDS,..."
  int cores = 1;                    // of the accelerator, that batches run on at the same time
  std::optional<double> latency_budget_ms;
};

// Converts in memory with the options of `flags`, batched, and simulates what recorded requests
// then meet. `flags.options` must have no batch_options. INVALID_ARGUMENT where they have, for
// numbers that are none, and as Convert says for a model that cannot be batched;
// FAILED_PRECONDITION when no choice keeps up with the traffic or meets the latency budget; errors
// of ReadTraffic and of the times of batches.
StatusOr<BatchingAdvice> AdviseBatching(const ConvertFlags& flags, const AdviseFlags& advise);

// ---- pieces of it, for tests

// Lists of allowed sizes for requests of these sizes: {L}, {L/4, L/2, L} and {1, ..., L} for
// doubled sizes L up to the largest that the rows of all requests fill; the same from the most
// frequent size of a request, where that is no power of two.
std::vector<std::vector<int>> SizeChoices(const std::vector<SimulatedRequest>& requests);

// Simulates every choice; `choices` of the result have the best of each list of sizes, the best of
// all first. Of the choices that keep up, the best has the lowest 99th percentile of latency; where
// others are within 1 % the least padding, then the fewest sizes and threads, then the shortest
// timeout. With a budget, the best is the one that meets it with the least load of the cores.
// Errors as AdviseBatching's. REQUIRES: load.time knows every size.
StatusOr<BatchingAdvice> ChooseBatching(const SimulatedLoad& load,
                                        const std::vector<std::vector<int>>& size_choices,
                                        std::optional<double> latency_budget_ms);

// The text of the options' fields that an advice sets.
std::string BatchOptionText(const BatchOption& options);

// What is printed of it: a line for each source of the numbers, then a table.
std::string AdviceText(const BatchingAdvice& advice);

}  // namespace smelt

#endif  // SMELT_CONVERT_ADVISE_ADVISE_H_
