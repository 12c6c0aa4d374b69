// smelt bench: how fast a signature answers, and what share of what the machine can do its nodes
// reach.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "smelt/base/team.h"
#include "smelt/base/thread.h"
#include "smelt/cli/bench_report.h"
#include "smelt/cli/command.h"
#include "smelt/cli/progress.h"
#include "smelt/cli/sample_request.h"
#include "smelt/cli/usage.h"
#include "smelt/io/fs.h"

namespace smelt {
namespace {

struct BenchFlags {
  PathArgument model;
  SampleFlags sample;
  double seconds = 2;
  int clients = 0;
  bool json = false, whole = false;
  std::string svg;
};

using Moment = std::chrono::steady_clock::time_point;
Moment Now() { return std::chrono::steady_clock::now(); }
double SecondsSince(Moment start) { return std::chrono::duration<double>(Now() - start).count(); }

class Bench {
 public:
  explicit Bench(const BenchFlags& flags) : flags_(flags) {}

  StatusOr<int> Run() {
    std::string wrong;
    const std::string path = flags_.model.Get(&wrong);
    if (path.empty()) wrong = "smelt bench needs a model";
    if ((flags_.clients > 0 || flags_.whole) && !flags_.svg.empty()) {
      wrong = "--svg shows nodes, --clients and --whole look at none";
    }
    if (!wrong.empty()) return UsageError(wrong);
    line_.Step("bench: loading the model");
    ASSIGN_OR_RETURN(sample_, LoadSample(path, flags_.sample));
    result_.model = path;
    result_.signature = flags_.sample.signature;
    result_.inputs = sample_.Inputs();
    result_.origin = sample_.origin;
    result_.threads = flags_.sample.threads > 0 ? flags_.sample.threads : NumCores();
    line_.Step("bench: asking");
    const Moment start = Now();
    RETURN_IF_ERROR(Ask(nullptr));
    result_.first_ms = SecondsSince(start) * 1e3;
    // What comes after the first answer settles, too: caches, threads.
    ASSIGN_OR_RETURN(Latency ignored, Alone(flags_.seconds / 5));
    static_cast<void>(ignored);
    ASSIGN_OR_RETURN(result_.whole, Alone(flags_.seconds));
    if (flags_.clients > 0) {
      ASSIGN_OR_RETURN(result_.clients, Together());
    } else if (!flags_.whole) {
      RETURN_IF_ERROR(LookAtNodes());
    }
    line_.Step("");
    const std::string text = flags_.json ? BenchJson(result_) : BenchText(result_);
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (!flags_.svg.empty()) RETURN_IF_ERROR(WriteFileAtomically(flags_.svg, RooflineSvg(result_)));
    return kExitOk;
  }

 private:
  Status Ask(StepStats* stats) { return Ask(sample_.inputs, stats); }
  Status Ask(const NamedTensors& inputs, StepStats* stats) {
    RunOptions options;
    options.stats = stats;
    return sample_.model->RunSignature(flags_.sample.signature, inputs, options).status();
  }

  // One request after the other.
  StatusOr<Latency> Alone(double seconds) {
    std::vector<double> ms;
    const Moment begin = Now();
    do {
      const Moment start = Now();
      RETURN_IF_ERROR(Ask(nullptr));
      ms.push_back(SecondsSince(start) * 1e3);
    } while (ms.size() < 3 || SecondsSince(begin) < seconds);
    Latency latency;
    latency.Set(std::move(ms), SecondsSince(begin));
    return latency;
  }

  Status CopyInputs(NamedTensors* copies) {
    for (const auto& [key, tensor] : sample_.inputs) {
      ASSIGN_OR_RETURN((*copies)[key], tensor.Clone());
    }
    return OkStatus();
  }

  // Clients that each send the next request when theirs is answered. RESOURCE_EXHAUSTED when the
  // system gives too few threads.
  StatusOr<Latency> Together() {
    absl::Mutex mutex;
    std::vector<double> all;
    Status failed;
    std::atomic<bool> over{false};
    std::vector<std::thread> clients;
    const Moment begin = Now();
    for (int c = 0; c < flags_.clients && failed.ok(); ++c) {
      auto client = StartThread([&] {
        std::vector<double> own;
        // As requests of clients are, each has bytes of its own.
        NamedTensors inputs;
        Status status = CopyInputs(&inputs);
        while (status.ok() && !over.load(std::memory_order_relaxed)) {
          const Moment start = Now();
          status = Ask(inputs, nullptr);
          own.push_back(SecondsSince(start) * 1e3);
        }
        absl::MutexLock lock(&mutex);
        all.insert(all.end(), own.begin(), own.end());
        if (!status.ok()) failed = status;
      });
      absl::MutexLock lock(&mutex);
      if (client.ok()) {
        clients.push_back(*std::move(client));
      } else {
        failed = client.status();
      }
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(failed.ok() ? flags_.seconds : 0));
    over = true;
    for (std::thread& client : clients) client.join();
    RETURN_IF_ERROR(failed);
    Latency latency;
    latency.clients = flags_.clients;
    latency.Set(std::move(all), SecondsSince(begin));
    return latency;
  }

  Status LookAtNodes() {
    const double wanted = flags_.seconds * 1e3 / 4 / std::max(result_.whole.median_ms, 1e-6);
    const int runs = static_cast<int>(std::clamp(wanted, 5.0, 200.0));
    ASSIGN_OR_RETURN(result_.profile, ProfileNodes(sample_.model->session(), runs,
                                                   [&](StepStats* stats) { return Ask(stats); }));
    line_.Step("bench: measuring the machine");
    const ScopedThreads team(result_.threads);
    ASSIGN_OR_RETURN(result_.peaks, MeasurePeaks());
    return OkStatus();
  }

  const BenchFlags& flags_;
  ProgressLine line_;
  Sample sample_;
  BenchResult result_;
};

}  // namespace

CommandBody SetupBench(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  flags->model.Add(app, "model", "--dir", kModelHelp);
  app.add_option("--tag_set", flags->sample.tag_set,
                 "Tags of the MetaGraph, separated by ','; left out: the only one, or 'serve'");
  app.add_option("--signature_def", flags->sample.signature, "Signature to run")
      ->capture_default_str();
  flags->sample.Add(app);
  app.add_option("--seconds", flags->seconds, "How long to ask; nodes and warming up come on top")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--clients", flags->clients,
                 "In the place of nodes: so many clients at once, with one session")
      ->check(CLI::PositiveNumber);
  app.add_flag("--whole", flags->whole, "Only the whole, no nodes");
  app.add_flag("--json", flags->json, "Print JSON, nodes in the order in which they run");
  app.add_option("--svg", flags->svg,
                 "Write the roofline as a picture: what each node computes for a byte, how fast, "
                 "and the machine's peaks, measured at the end");
  AddUnpackLimitFlag(app);
  return [flags] { return Bench(*flags).Run(); };
}

}  // namespace smelt
