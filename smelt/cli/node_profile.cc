#include "smelt/cli/node_profile.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "smelt/analysis/estimate/op_estimate.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/compile/plan.h"

namespace smelt {
namespace {

// One call of an action.
struct CallWork {
  double work = 0, bytes = 0, weights = 0;
  bool counted = false;
};

Dtype PeakTypeOf(const smelt::Plan& plan, const PlanAction& action) {
  Dtype type = Dtype::kFloat;
  for (const int v : action.inputs) {
    const Dtype t = plan.values[static_cast<size_t>(v)].dtype;
    if (t == Dtype::kInt8 || t == Dtype::kQint8 || t == Dtype::kQuint8) return Dtype::kInt8;
    if (t == Dtype::kBfloat16) type = Dtype::kBfloat16;
  }
  return type;
}

ShapeTable ShapesOf(const VisitedProgram& p, const smelt::Plan& plan) {
  std::vector<PartialShape> args;
  for (const PlanValue& v : plan.values) {
    if (!v.of.node->Is("_Arg")) continue;
    const auto number = static_cast<size_t>(v.of.node->Int("index"));
    if (args.size() <= number) args.resize(number + 1);
    args[number] = v.shape;
  }
  // These shapes have been inferred before, without an error.
  auto shapes = InferShapes(p.body, XlaShapeRules(), args);
  return shapes.ok() ? *std::move(shapes) : ShapeTable();
}

CallWork WorkOf(const smelt::Plan& plan, const PlanAction& action, const ShapeTable& shapes) {
  CallWork w;
  const auto value = [&](int v) -> const PlanValue& { return plan.values[static_cast<size_t>(v)]; };
  const OpEstimate own = EstimateOp(*action.node, shapes, KnownOps::kMore);
  w.work = static_cast<double>(own.flops);
  w.counted = own.accurate && own.flops > 0;
  for (const Node* n : action.then) {
    w.work += static_cast<double>(EstimateOp(*n, shapes, KnownOps::kMore).flops);
  }
  double read = 0, operands = 0, written = 0;
  for (size_t i = 0; i < action.inputs.size(); ++i) {
    const PlanValue& v = value(action.inputs[i]);
    const auto bytes = static_cast<double>(v.bytes());
    (i < static_cast<size_t>(action.node->num_inputs()) ? read : operands) += bytes;
    if (v.place == PlanValue::Place::kConstant) w.weights += bytes;
  }
  for (const int v : action.outputs) {
    written += static_cast<double>(value(v).bytes());
    if (!w.counted) w.work += static_cast<double>(value(v).shape.num_elements());
  }
  // Of a table only some rows are read.
  if (own.accurate && own.bytes_read > 0)
    read = std::min(read, static_cast<double>(own.bytes_read));
  w.bytes = read + operands + written;
  w.weights = std::min(w.weights, read + operands);
  return w;
}

class Profiler {
 public:
  Profiler(Session& session, int runs) : session_(session), runs_(runs) {}

  StatusOr<Profile> Run(absl::FunctionRef<Status(StepStats*)> ask) {
    std::vector<std::vector<StepStats::Event>> events;
    for (int i = 0; i < runs_; ++i) {
      StepStats stats;
      RETURN_IF_ERROR(ask(&stats));
      events.push_back(stats.events());
    }
    session_.VisitPrograms([&](const VisitedProgram& p) {
      for (const PartedProgram::Stage& stage : p.program.stages()) {
        AddProgram(p, *stage.program);
        if (stage.tail != nullptr) AddProgram(p, *stage.tail);
      }
    });
    for (auto& run : events) AddRun(run);
    return Finish();
  }

 private:
  void AddProgram(const VisitedProgram& p, const Program& program) {
    const smelt::Plan& plan = program.plan();
    const ShapeTable shapes = ShapesOf(p, plan);
    profile_.data_bytes += static_cast<double>(plan.scratch_offset);
    for (const PlanValue& v : plan.values) {
      if (v.place == PlanValue::Place::kConstant) {
        profile_.data_bytes += static_cast<double>(v.bytes());
      }
    }
    for (const PlanAction& action : plan.actions) {
      const int row = RowOf(action.node, [&] {
        NodeProfile r;
        r.node = action.node->name();
        r.op = std::string(action.node->op());
        r.kernel = std::string(action.kernel->name);
        r.function = p.function;
        r.then = absl::StrJoin(action.then, ", ", [](std::string* out, const Node* n) {
          absl::StrAppend(out, n->op());
        });
        r.in_program = true;
        r.bound = action.bound != nullptr;
        r.type = PeakTypeOf(plan, action);
        return r;
      });
      const CallWork work = WorkOf(plan, action, shapes);
      profile_.nodes[static_cast<size_t>(row)].counted = work.counted;
      calls_[&action] = {row, work};
    }
  }

  template <typename F>
  int RowOf(const void* what, F make) {
    const auto [it, added] = rows_.try_emplace(what, static_cast<int>(profile_.nodes.size()));
    if (added) {
      profile_.nodes.push_back(make());
      times_.emplace_back();
      first_.push_back(INT64_MAX);
    }
    return it->second;
  }

  // The row, and what a call of it takes.
  std::pair<int, CallWork> CallOf(const StepStats::Event& e) {
    if (const auto it = calls_.find(e.what); it != calls_.end()) return it->second;
    const int row = RowOf(e.what, [&] {
      NodeProfile r;
      r.node = e.node;
      r.op = e.op;
      r.kernel = std::string(e.kernel);
      return r;
    });
    // What it reads nobody knows.
    return {row, {0, static_cast<double>(e.output_bytes), 0, false}};
  }

  // At each time the threads that run nodes share it, and on each thread the node that began last
  // has it: a call waits for those that it makes.
  void AddRun(const std::vector<StepStats::Event>& events) {
    std::vector<double> ns(events.size(), 0);
    struct Turn {
      int64_t at;
      bool begins;
      size_t event;
    };
    std::vector<Turn> turns;
    for (size_t i = 0; i < events.size(); ++i) {
      turns.push_back({events[i].start_ns, true, i});
      turns.push_back({std::max(events[i].end_ns, events[i].start_ns), false, i});
    }
    std::ranges::stable_sort(turns, {}, [](const Turn& t) { return std::pair(t.at, !t.begins); });
    std::vector<size_t> running;  // in the order in which they began
    int64_t since = 0;
    for (const Turn& turn : turns) {
      absl::flat_hash_map<uint64_t, size_t> last;
      if (turn.at > since) {
        for (const size_t e : running) last[events[e].thread] = e;
      }
      for (const auto& [thread, e] : last) {
        ns[e] += static_cast<double>(turn.at - since) / static_cast<double>(last.size());
      }
      since = turn.at;
      if (turn.begins) {
        running.push_back(turn.event);
      } else {
        std::erase(running, turn.event);
      }
    }
    const double part = 1.0 / runs_;
    for (auto& times : times_) times.push_back(0);
    for (size_t i = 0; i < events.size(); ++i) {
      const auto [row, work] = CallOf(events[i]);
      const auto at = static_cast<size_t>(row);
      NodeProfile& r = profile_.nodes[at];
      r.calls += part;
      r.work += work.work * part;
      r.bytes += work.bytes * part;
      r.weights += work.weights * part;
      if (times_[at].empty()) times_[at].push_back(0);
      times_[at].back() += ns[i];
      first_[at] = std::min(first_[at], events[i].start_ns);
    }
  }

  Profile Finish() {
    profile_.runs = runs_;
    for (size_t i = 0; i < profile_.nodes.size(); ++i) {
      std::vector<double>& times = times_[i];
      times.resize(static_cast<size_t>(runs_), 0);
      std::ranges::nth_element(times, times.begin() + runs_ / 2);
      profile_.nodes[i].ms = times[static_cast<size_t>(runs_ / 2)] / 1e6;
      profile_.ms += profile_.nodes[i].ms;
    }
    std::vector<size_t> order(profile_.nodes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](size_t i) { return first_[i]; });
    std::vector<NodeProfile> sorted;
    for (const size_t i : order) {
      NodeProfile& r = profile_.nodes[i];
      r.share = profile_.ms > 0 ? r.ms / profile_.ms : 0;
      sorted.push_back(std::move(r));
    }
    profile_.nodes = std::move(sorted);
    return std::move(profile_);
  }

  Session& session_;
  const int runs_;
  Profile profile_;
  absl::flat_hash_map<const void*, int> rows_;                        // by node
  absl::flat_hash_map<const void*, std::pair<int, CallWork>> calls_;  // by action
  std::vector<std::vector<double>> times_;                            // by row, of each run
  std::vector<int64_t> first_;                                        // by row
};

}  // namespace

double NodeProfile::LeastMs(const Peaks& peaks, double data) const {
  const double of_type = type == Dtype::kInt8       ? peaks.int8
                         : type == Dtype::kBfloat16 ? peaks.bfloat16
                                                    : peaks.float32;
  const double peak = of_type > 0 ? of_type : peaks.float32;
  const double compute = counted && peak > 0 ? work / peak : 0;
  const double own = (bytes - weights) / std::max(calls, 1.0);
  const double memory =
      weights / peaks.BandwidthOf(data) + (bytes - weights) / peaks.BandwidthOf(own);
  return std::max(compute, memory) / 1e6;
}

StatusOr<Profile> ProfileNodes(Session& session, int runs,
                               absl::FunctionRef<Status(StepStats*)> ask) {
  return Profiler(session, runs).Run(ask);
}

}  // namespace smelt
