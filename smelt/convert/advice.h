// What --advise_batching found, for what is printed and for the reports: plain data.
#ifndef SMELT_CONVERT_ADVICE_H_
#define SMELT_CONVERT_ADVICE_H_

#include <string>
#include <vector>

#include "smelt/wire/options/converter_options.h"

namespace smelt {

// One choice of options, and what the recorded requests would have met with it. Times are
// milliseconds, shares are of 1.
struct AdvisedChoice {
  BatchOption options;
  bool keeps_up = false;  // nothing rejected, and cores and threads have time left
  int64_t rejected = 0;
  double mean_wait = 0, p99_wait = 0, mean_latency = 0, p99_latency = 0;
  double padding = 0;  // of the rows that are computed
  double rows_per_batch = 0, batches_per_second = 0;
  double core_load = 0, thread_load = 0;
};

struct BatchingAdvice {
  bool done = false;
  std::string options;  // `batch_options { ... }` of the best choice
  int64_t requests = 0, rows = 0;
  double seconds = 0;       // that the requests came in
  std::string arrivals;     // where their times come from
  std::string batch_times;  // where the times of batches come from
  std::string objective;    // what makes a choice the best
  int64_t tried = 0, kept_up = 0;
  // The best of each list of allowed sizes, the best of all first.
  std::vector<AdvisedChoice> choices;
  std::vector<std::string> notes;
};

}  // namespace smelt

#endif  // SMELT_CONVERT_ADVICE_H_
