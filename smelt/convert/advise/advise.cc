#include "smelt/convert/advise/advise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "smelt/base/parallel.h"
#include "smelt/convert/advise/batch_times.h"
#include "smelt/convert/advise/traffic.h"
#include "smelt/model/model_folder.h"

namespace smelt {
namespace {

constexpr int kLargestSize = 1024;
constexpr int kThreadChoices[] = {1, 2, 4, 8};
constexpr int kTimeoutChoices[] = {0, 200, 1000, 2000, 5000, 10000, 20000};
constexpr int kEnqueuedBatches = 100;
constexpr double kAlike = 1.01;  // latencies of which neither is better
constexpr size_t kChoicesShown = 12;

// To the microsecond: no time here is known better.
double Milliseconds(absl::Duration d) { return std::round(absl::ToDoubleMicroseconds(d)) / 1000; }

BatchOptions SchedulerOptions(const BatchOption& o) {
  BatchOptions out;
  out.num_threads = o.num_batch_threads;
  out.max_batch_size = o.max_batch_size;
  out.timeout_micros = o.batch_timeout_micros;
  out.max_enqueued_batches = o.max_enqueued_batches;
  out.allowed_batch_sizes.assign(o.allowed_batch_sizes.begin(), o.allowed_batch_sizes.end());
  out.split = !o.disable_large_batch_splitting;
  return out;
}

Status Try(const SimulatedLoad& load, AdvisedChoice& choice) {
  ASSIGN_OR_RETURN(const SimulationResult r,
                   SimulateBatching(SchedulerOptions(choice.options), load));
  choice.keeps_up = r.KeepsUp();
  choice.rejected = r.rejected;
  choice.mean_wait = Milliseconds(r.mean_wait);
  choice.p99_wait = Milliseconds(r.p99_wait);
  choice.mean_latency = Milliseconds(r.mean_latency);
  choice.p99_latency = Milliseconds(r.p99_latency);
  choice.padding = r.padding;
  choice.rows_per_batch = r.rows_per_batch;
  choice.batches_per_second = r.batches_per_second;
  choice.core_load = r.core_load;
  choice.thread_load = r.thread_load;
  return OkStatus();
}

double Load(const AdvisedChoice& c) { return std::max(c.core_load, c.thread_load); }

// What remains to tell choices apart that are equally fast. Shares count in thousandths.
auto Thrift(const AdvisedChoice& c) {
  return std::tuple(std::lround(c.padding * 1000), c.options.allowed_batch_sizes.size(),
                    c.options.num_batch_threads, c.options.batch_timeout_micros,
                    c.options.allowed_batch_sizes.back());
}

// Of the choices, the best as the header says; those that do not keep up come last. nullptr for
// none.
const AdvisedChoice* Best(const std::vector<const AdvisedChoice*>& choices,
                          std::optional<double> budget) {
  const auto meets = [&](const AdvisedChoice* c) {
    return c->keeps_up && (!budget || c->p99_latency <= *budget);
  };
  if (std::ranges::none_of(choices, meets)) {
    const auto least = std::ranges::min_element(choices, {}, [](const AdvisedChoice* c) {
      return std::tuple(!c->keeps_up, c->rejected, c->keeps_up ? c->p99_latency : Load(*c));
    });
    return least == choices.end() ? nullptr : *least;
  }
  double fastest = INFINITY;
  for (const AdvisedChoice* c : choices) {
    if (meets(c)) fastest = std::min(fastest, c->p99_latency);
  }
  const AdvisedChoice* best = nullptr;
  const auto order = [&](const AdvisedChoice& c) {
    const long load = budget ? std::lround(c.core_load * 1000) : 0;
    return std::tuple(load, budget ? c.p99_latency : 0, Thrift(c));
  };
  for (const AdvisedChoice* c : choices) {
    if (!meets(c) || (!budget && c->p99_latency > fastest * kAlike)) continue;
    if (best == nullptr || order(*c) < order(*best)) best = c;
  }
  return best;
}

Status WhyNone(const AdvisedChoice& least, const SimulatedLoad& load,
               std::optional<double> budget) {
  const std::string with = absl::StrCat("; nearest is ", BatchOptionText(least.options));
  if (least.keeps_up) {
    return FailedPrecondition(
        absl::StrFormat("no choice answers 99 %% of the requests within %g ms: the fastest needs "
                        "%.3g ms",
                        *budget, least.p99_latency),
        with);
  }
  const std::string load_text =
      absl::StrFormat("cores would be busy %.0f %% of the time, threads %.0f %%",
                      least.core_load * 100, least.thread_load * 100);
  return FailedPrecondition(
      "no choice keeps up with ",
      absl::StrFormat(
          "%.6g", static_cast<double>(load.requests.size()) / absl::ToDoubleSeconds(load.duration)),
      " requests a second on ", load.cores, load.cores == 1 ? " core: " : " cores: ", load_text,
      least.rejected == 0 ? "" : absl::StrCat(", ", least.rejected, " requests rejected"), with);
}

}  // namespace

std::vector<std::vector<int>> SizeChoices(const std::vector<SimulatedRequest>& requests) {
  int64_t rows = 0;
  std::map<int64_t, int64_t> sizes;
  for (const SimulatedRequest& r : requests) {
    rows += r.rows;
    if (r.rows > 0 && r.rows <= kLargestSize) ++sizes[r.rows];
  }
  std::set<int> bases = {1};
  if (!sizes.empty()) {
    const auto most = std::ranges::max_element(
        sizes, {}, [](const auto& size_and_count) { return size_and_count.second; });
    int odd = static_cast<int>(most->first);
    while (odd % 2 == 0) odd /= 2;
    if (odd > 1) bases.insert(static_cast<int>(most->first));
  }
  std::set<std::vector<int>> lists;
  for (const int base : bases) {
    std::vector<int> all;
    for (int size = base; size <= kLargestSize; size *= 2) {
      all.push_back(size);
      lists.insert({size});
      lists.insert(all);
      lists.insert(
          std::vector<int>(all.end() - std::min<std::ptrdiff_t>(3, std::ssize(all)), all.end()));
      if (size >= rows) break;
    }
  }
  return {lists.begin(), lists.end()};
}

StatusOr<BatchingAdvice> ChooseBatching(const SimulatedLoad& load,
                                        const std::vector<std::vector<int>>& size_choices,
                                        std::optional<double> latency_budget_ms) {
  if (latency_budget_ms && !(*latency_budget_ms > 0)) {
    return InvalidArgument("--latency_budget_ms ", *latency_budget_ms, " is no time");
  }
  int64_t largest = 0;
  BatchingAdvice out;
  for (const SimulatedRequest& r : load.requests) {
    largest = std::max(largest, r.rows);
    out.rows += r.rows;
  }
  if (largest > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("a request of ", largest, " rows is above any max_batch_size");
  }
  std::set<int> threads(std::begin(kThreadChoices), std::end(kThreadChoices));
  threads.insert({load.cores, 2 * load.cores});
  std::vector<AdvisedChoice> choices;
  for (const std::vector<int>& sizes : size_choices) {
    for (const int n : threads) {
      for (const int timeout : kTimeoutChoices) {
        BatchOption& o = choices.emplace_back().options;
        o.num_batch_threads = n;
        // Larger requests are split.
        o.max_batch_size = std::max(static_cast<int>(largest), sizes.back());
        o.batch_timeout_micros = timeout;
        o.allowed_batch_sizes = sizes;
        o.max_enqueued_batches = kEnqueuedBatches;
      }
    }
  }
  std::vector<Status> failed(choices.size());
  ParallelFor(std::ssize(choices), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      failed[i] = Try(load, choices[i]);
    }
  });
  for (const Status& s : failed) RETURN_IF_ERROR(s);
  std::map<std::vector<int>, std::vector<const AdvisedChoice*>> by_sizes;
  std::vector<const AdvisedChoice*> all;
  for (const AdvisedChoice& c : choices) {
    all.push_back(&c);
    by_sizes[c.options.allowed_batch_sizes].push_back(&c);
    if (c.keeps_up) ++out.kept_up;
  }
  const AdvisedChoice* best = Best(all, latency_budget_ms);
  if (best == nullptr) return Internal("there are no choices of allowed batch sizes");
  if (!best->keeps_up || (latency_budget_ms && best->p99_latency > *latency_budget_ms)) {
    return WhyNone(*best, load, latency_budget_ms);
  }
  out.choices.push_back(*best);
  std::vector<const AdvisedChoice*> others;
  for (const auto& [sizes, these] : by_sizes) {
    if (sizes != best->options.allowed_batch_sizes) {
      others.push_back(Best(these, latency_budget_ms));
    }
  }
  std::ranges::stable_sort(others, {}, [](const AdvisedChoice* c) {
    return std::tuple(!c->keeps_up, c->p99_latency, c->padding);
  });
  for (size_t i = 0; i < others.size() && i + 1 < kChoicesShown; ++i) {
    out.choices.push_back(*others[i]);
  }
  out.done = true;
  out.options = BatchOptionText(best->options);
  out.requests = std::ssize(load.requests);
  out.seconds = absl::ToDoubleSeconds(load.duration);
  out.tried = std::ssize(choices);
  out.objective =
      latency_budget_ms
          ? absl::StrFormat(
                "least load of the cores with a 99th percentile of latency within %g ms",
                *latency_budget_ms)
          : std::string("lowest 99th percentile of latency, within 1 % least padding");
  return out;
}

StatusOr<BatchingAdvice> AdviseBatching(const ConvertFlags& flags, const AdviseFlags& advise) {
  if (!flags.options.batch_options.empty()) {
    return InvalidArgument("--advise_batching chooses batch_options: leave them out");
  }
  if (advise.cores < 1) return InvalidArgument("--advise_cores ", advise.cores, " are none");
  const TpuGeneration* tpu = FindTpuGeneration(flags.tpu);
  if (tpu == nullptr) return InvalidArgument("no TPU generation \"", flags.tpu, "\"");
  if (flags.progress) flags.progress("advise");
  ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(flags.input_dir));
  Conversion c;
  c.options = flags.options;
  BatchOption& probe = c.options.batch_options.emplace_back();
  probe.num_batch_threads = 1;
  probe.max_batch_size = 64;
  c.settings = flags.settings;
  c.count = flags.count;
  c.files = flags.files.With(FoldersOfModel(folder.dir()));
  ASSIGN_OR_RETURN(c.model, ReadSavedModel(folder.dir()));
  RETURN_IF_ERROR(Convert(c));
  ASSIGN_OR_RETURN(Traffic traffic,
                   ReadTraffic(advise.log, c.meta->signatures, advise.arrivals, flags.count));
  const BatchQueues queues = FindBatchQueues(c, traffic);
  SimulatedLoad load;
  load.cores = advise.cores;
  load.queues = static_cast<int>(queues.queues.size());
  load.routes = queues.routes;
  load.duration = traffic.duration;
  for (const TrafficRequest& r : traffic.requests) {
    if (queues.routes[static_cast<size_t>(r.signature)].empty()) continue;
    load.requests.push_back({r.at, r.rows, r.signature});
  }
  if (load.requests.empty()) {
    return InvalidArgument("none of the requests in ", advise.log, " reaches a batched function");
  }
  std::vector<std::vector<int>> lists = SizeChoices(load.requests);
  std::set<int64_t> sizes;
  for (const std::vector<int>& list : lists) sizes.insert(list.begin(), list.end());
  const std::vector<int64_t> wanted(sizes.begin(), sizes.end());
  StatusOr<BatchTimes> times = Internal("not asked");
  if (advise.batch_times == "tpu") {
    times = ComputedBatchTimes(c, queues, traffic, wanted, *tpu);
  } else if (advise.batch_times == "measured") {
    times = MeasuredBatchTimes(c, folder.dir(), queues, traffic, wanted, flags.count);
  } else {
    times = SaidBatchTimes(advise.batch_times, queues, wanted);
  }
  RETURN_IF_ERROR(times.status());
  std::erase_if(lists, [&](const std::vector<int>& list) {
    return std::ranges::any_of(times->of,
                               [&](const auto& of) { return !of.contains(list.back()); });
  });
  load.time = [&](int queue, int64_t rows) {
    return times->of[static_cast<size_t>(queue)].at(rows);
  };
  ASSIGN_OR_RETURN(BatchingAdvice out, ChooseBatching(load, lists, advise.latency_budget_ms));
  out.arrivals = traffic.arrivals;
  out.batch_times = times->how;
  out.notes = traffic.notes;
  out.notes.insert(out.notes.end(), times->notes.begin(), times->notes.end());
  if (const size_t left = traffic.requests.size() - load.requests.size(); left > 0) {
    out.notes.push_back(absl::StrCat(left, " requests reach no batched function: left out"));
  }
  return out;
}

std::string BatchOptionText(const BatchOption& o) {
  std::string out = absl::StrCat("batch_options { num_batch_threads: ", o.num_batch_threads,
                                 " max_batch_size: ", o.max_batch_size,
                                 " batch_timeout_micros: ", o.batch_timeout_micros);
  for (const int size : o.allowed_batch_sizes) {
    absl::StrAppend(&out, " allowed_batch_sizes: ", size);
  }
  absl::StrAppend(&out, " max_enqueued_batches: ", o.max_enqueued_batches, " }");
  return out;
}

std::string AdviceText(const BatchingAdvice& a) {
  std::string out = absl::StrFormat(
      "advice: %d requests with %d rows in %.4g s (%s)\nadvice: times of batches: %s\n"
      "advice: best of %d choices, of which %d keep up: %s\n",
      a.requests, a.rows, a.seconds, a.arrivals, a.batch_times, a.tried, a.kept_up, a.objective);
  for (const std::string& note : a.notes) absl::StrAppend(&out, "note: ", note, "\n");
  absl::StrAppend(&out,
                  "  threads  timeout   wait ms: mean, p99     total: mean, p99  padding  "
                  "rows/batch  batches/s   busy  sizes\n");
  for (const AdvisedChoice& c : a.choices) {
    absl::StrAppendFormat(
        &out,
        "%c %7d  %4.3g ms  %9.4g %9.4g  %9.4g %9.4g  %5.1f %%  %10.4g  %9.4g  %3.0f %%  %s%s\n",
        &c == &a.choices[0] ? '*' : ' ', c.options.num_batch_threads,
        c.options.batch_timeout_micros / 1e3, c.mean_wait, c.p99_wait, c.mean_latency,
        c.p99_latency, c.padding * 100, c.rows_per_batch, c.batches_per_second, c.core_load * 100,
        absl::StrJoin(c.options.allowed_batch_sizes, " "),
        c.keeps_up ? "" : "  (does not keep up)");
  }
  absl::StrAppend(&out, "advice: ", a.options, "\n");
  return out;
}

}  // namespace smelt
