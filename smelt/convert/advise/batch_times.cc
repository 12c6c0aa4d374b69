#include "smelt/convert/advise/batch_times.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/convert/advise/tpu_time.h"
#include "smelt/convert/stages.h"
#include "smelt/kernels/batch/batch_rows.h"

namespace smelt {
namespace {

// Of a computed time: what the host does for each batch, whatever its size, what the core takes to
// begin, and how fast tensors cross to the chip and back (PCIe 3.0 with 16 lanes, less its
// protocol).
constexpr absl::Duration kForEachBatch = absl::Microseconds(200);
constexpr absl::Duration kLaunch = absl::Microseconds(20);
constexpr double kCrossingBytesPerSecond = 12e9;

constexpr int kTries = 3;
constexpr absl::Duration kLongestTry = absl::Seconds(2);

// The same at every BatchFunction of one queue.
std::string QueueName(const Node& n, const std::string& where) {
  const std::string shared = n.String("shared_name");
  return absl::StrCat(n.String("container"), "/", shared.empty() ? n.name() : shared, "/",
                      shared.empty() ? where : "");
}

class QueueFinder {
 public:
  explicit QueueFinder(const Conversion& c) : c_(c), library_(*c.meta->graph->library()) {}

  BatchQueues Run(const Traffic& traffic) {
    for (const TrafficSignature& s : traffic.signatures) {
      route_.clear();
      seen_.clear();
      // The needed nodes come from the outputs; a request goes the other way.
      std::vector<Node*> nodes = NodesOf(*c_.meta, c_.meta->signatures.at(s.name));
      std::ranges::reverse(nodes);
      for (const Node* n : nodes) Visit(*n, "");
      out_.routes.push_back(route_);
    }
    return std::move(out_);
  }

 private:
  void Visit(const Node& n, const std::string& where) {
    if (n.Is("BatchFunction")) return Add(n, where);
    ForEachCallee(library_, n, [&](absl::string_view name) {
      const Function* f = library_.Find(name);
      if (f == nullptr || f->body == nullptr || !seen_.insert(f).second) return;
      for (const Node* inner : f->body->Nodes()) Visit(*inner, f->name());
    });
  }

  void Add(const Node& n, const std::string& where) {
    const FuncAttr* attr = n.Func("f");
    const Function* f = attr == nullptr ? nullptr : library_.Find(attr->name);
    if (f == nullptr || f->body == nullptr) return;
    const std::string name = QueueName(n, where);
    auto [it, added] = by_name_.try_emplace(name, static_cast<int>(out_.queues.size()));
    if (added) out_.queues.push_back({where.empty() ? n.name() : where, f, {}, {}});
    BatchQueues::Queue& queue = out_.queues[static_cast<size_t>(it->second)];
    if (std::ranges::find(queue.nodes, &n) == queue.nodes.end()) {
      queue.nodes.push_back(&n);
      queue.at.push_back(where);
    }
    if (std::ranges::find(route_, it->second) == route_.end()) route_.push_back(it->second);
  }

  const Conversion& c_;
  const FunctionLibrary& library_;
  std::map<std::string, int> by_name_;
  BatchQueues out_;
  std::vector<int> route_;
  absl::flat_hash_set<const Function*> seen_;
};

// Gives the placeholders of the traffic's signatures the shapes of `rows` rows.
void SetInputShapes(Conversion& c, const Traffic& traffic, int64_t rows) {
  for (const TrafficSignature& s : traffic.signatures) {
    for (const auto& [name, info] : c.meta->signatures.at(s.name).inputs) {
      const auto seen = s.shapes.find(name);
      if (info.kind != TensorInfo::Kind::kDense || seen == s.shapes.end()) continue;
      const auto e = c.meta->graph->FindEndpoint(info.name);
      if (!e.ok()) continue;
      PartialShape shape = seen->second;
      const bool has_rows = std::ranges::find(s.row_inputs, name) != s.row_inputs.end();
      if (has_rows && shape.rank() > 0) shape.Set(0, rows);
      e->node->AttrsToChange().Set("shape", shape);
    }
  }
}

// What arrives at a BatchFunction. Its rows come first, what is captured behind them.
std::vector<PartialShape> ArgumentsOf(const Node& n, const ShapeTable& shapes, int64_t rows) {
  const int batched = InputRange(n, "in_tensors").second;
  std::vector<PartialShape> out;
  for (int i = 0; i < n.num_inputs(); ++i) {
    PartialShape shape = shapes.AsArgument(n.input(i));
    if (i < batched && shape.rank() > 0) shape.Set(0, rows);
    out.push_back(std::move(shape));
  }
  return out;
}

}  // namespace

BatchQueues FindBatchQueues(const Conversion& c, const Traffic& traffic) {
  return QueueFinder(c).Run(traffic);
}

StatusOr<BatchTimes> ComputedBatchTimes(Conversion& c, const BatchQueues& queues,
                                        const Traffic& traffic, const std::vector<int64_t>& sizes,
                                        const TpuGeneration& tpu) {
  BatchTimes out;
  out.of.resize(queues.queues.size());
  const CoreRates rates{tpu.peak_flops / 2, tpu.hbm_bytes_per_second};
  std::vector<int> unknown(queues.queues.size());
  for (const int64_t rows : sizes) {
    SetInputShapes(c, traffic, rows);
    const ModelShapes shapes = InferModelShapes(*c.meta->graph, XlaShapeRules());
    for (size_t q = 0; q < queues.queues.size(); ++q) {
      const BatchQueues::Queue& queue = queues.queues[q];
      const auto table = shapes.functions.find(queue.at[0]);
      const ShapeTable& around = table == shapes.functions.end() ? shapes.graph : table->second;
      auto time = TimeOnCore(*queue.function, ArgumentsOf(*queue.nodes[0], around, rows), rates);
      if (!time.ok()) {
        return Prefix(time.status(), absl::StrCat("In function '", queue.function->name(),
                                                  "' with a batch of ", rows, " rows: "));
      }
      if (time->calls == 0) {
        return FailedPrecondition("function '", queue.title, "' is batched but runs nothing on a ",
                                  "TPU: give --batch_times measured, or times");
      }
      unknown[q] = time->unknown;
      out.of[q][rows] = {kForEachBatch + absl::Seconds(time->transferred / kCrossingBytesPerSecond),
                         kLaunch + absl::Seconds(time->seconds)};
    }
  }
  for (size_t q = 0; q < queues.queues.size(); ++q) {
    if (unknown[q] == 0) continue;
    out.notes.push_back(absl::StrCat("function '", queues.queues[q].title, "': ", unknown[q],
                                     " products are of unknown size, real times are longer"));
  }
  out.how = absl::StrFormat(
      "computed for a %s core (peaks: %g Tflop/s, %g GB/s), %s, %s to launch and "
      "transfers for each batch",
      tpu.name, tpu.peak_flops / 1e12, tpu.hbm_bytes_per_second / 1e9,
      absl::FormatDuration(kForEachBatch), absl::FormatDuration(kLaunch));
  return out;
}

StatusOr<BatchTimes> MeasuredBatchTimes(const Conversion& c, const std::string& dir,
                                        const BatchQueues& queues, const Traffic& traffic,
                                        const std::vector<int64_t>& sizes,
                                        const std::function<void(int64_t, int64_t)>& count) {
  BatchTimes out;
  out.of.resize(queues.queues.size());
  ASSIGN_OR_RETURN(auto model, LoadedModel::Load(dir, c.meta->tags, {.files = c.files}));
  for (size_t s = 0; s < traffic.signatures.size(); ++s) {
    const TrafficSignature& signature = traffic.signatures[s];
    const std::vector<int>& route = queues.routes[s];
    if (route.size() > 1) {
      return Unimplemented("signature '", signature.name, "' passes ", route.size(),
                           " batched functions, whose times are not measured apart: give ",
                           "--batch_times tpu, or times");
    }
    if (route.empty()) continue;
    if (signature.example.empty()) {
      return InvalidArgument("no request for signature '", signature.name, "' has rows: there is ",
                             "nothing to measure");
    }
    auto& times = out.of[static_cast<size_t>(route[0])];
    if (!times.empty()) continue;  // of another signature of this queue
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (count) count(static_cast<int64_t>(i), std::ssize(sizes));
      NamedTensors inputs = signature.example;
      for (const std::string& name : signature.row_inputs) {
        auto given = inputs.find(name);
        if (given == inputs.end()) continue;
        const Tensor first = given->second.Rows(0, 1);
        ASSIGN_OR_RETURN(given->second, JoinRows({&first, 1}, sizes[i] - 1, HeapAllocator()));
      }
      absl::Duration best = absl::InfiniteDuration();
      // The first answer makes what is made once.
      for (int t = 0; t <= kTries && (t < 2 || best < kLongestTry); ++t) {
        const absl::Time start = absl::Now();
        auto answer = model->RunSignature(signature.name, inputs);
        if (!answer.ok()) {
          return Prefix(answer.status(), absl::StrCat("signature '", signature.name, "' with ",
                                                      sizes[i], " rows: "));
        }
        if (t > 0) best = std::min(best, absl::Now() - start);
      }
      times[sizes[i]] = {absl::ZeroDuration(), best};
      if (best >= kLongestTry) break;
    }
  }
  out.how = "measured on this machine, whole signatures with all that the host does";
  return out;
}

StatusOr<BatchTimes> SaidBatchTimes(const std::string& text, const BatchQueues& queues,
                                    const std::vector<int64_t>& sizes) {
  std::vector<std::pair<int64_t, double>> points;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(part, ':');
    std::pair<int64_t, double> point;
    if (!absl::SimpleAtoi(halves.first, &point.first) ||
        !absl::SimpleAtod(halves.second, &point.second) || point.first <= 0 ||
        !(point.second > 0 && point.second <= 1e9) ||
        (!points.empty() && points.back().first >= point.first)) {
      return InvalidArgument("--batch_times \"", text, "\" is neither tpu nor measured nor a list ",
                             "ROWS:MICROSECONDS,... with rows that increase: \"", part, "\"");
    }
    points.push_back(point);
  }
  const auto micros = [&](int64_t rows) {
    if (rows <= points[0].first) return points[0].second;
    for (size_t i = 1; i < points.size(); ++i) {
      const auto& [few, less] = points[i - 1];
      const auto& [many, more] = points[i];
      if (rows > many) continue;
      return less +
             (more - less) * static_cast<double>(rows - few) / static_cast<double>(many - few);
    }
    return points.back().second * static_cast<double>(rows) /
           static_cast<double>(points.back().first);
  };
  BatchTimes out;
  out.of.resize(queues.queues.size());
  for (auto& times : out.of) {
    for (const int64_t rows : sizes) {
      times[rows] = {absl::ZeroDuration(), absl::Microseconds(micros(rows))};
    }
  }
  out.how = absl::StrCat("given by --batch_times: ", text);
  return out;
}

}  // namespace smelt
