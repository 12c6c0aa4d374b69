#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include "absl/strings/str_replace.h"
#include "smelt/analysis/estimate/schedule.h"

namespace smelt {
namespace {

constexpr OpSet kMergeOps = {"Merge", "RefMerge"};
constexpr OpSet kSendOps = {"_Send", "_HostSend"};
constexpr OpSet kRecvOps = {"_Recv", "_HostRecv"};
// Of a send, and of a receive: TensorFlow's estimator takes them for operations that do nothing.
constexpr int64_t kCopyTime = 1;

// The steps of the run: nodes by id, then for each copy its send and its receive.
class Simulation {
 public:
  Simulation(const Graph& graph, Placement& placement, const ScheduleOptions& options)
      : graph_(graph), placement_(placement), options_(options), steps_(nodes()) {
    busy_.resize(static_cast<size_t>(placement.num_devices()), 0);
    schedule_.nodes.resize(nodes());
  }

  StatusOr<Schedule> Run() {
    FindSends();
    FindNeeded();
    for (const Node* n : needed_) Connect(*n);
    if (ready_.empty()) return InvalidArgument("No ready nodes in the graph.");
    while (!ready_.empty()) {
      const size_t step = ready_.top().step;
      ready_.pop();
      RunStep(step);
    }
    for (const int64_t time : busy_) schedule_.finish = std::max(schedule_.finish, time);
    return std::move(schedule_);
  }

 private:
  struct Step {
    const Node* node = nullptr;
    int device = -1;  // -1: a node that does not run
    int waits = 0;
    int64_t ready = 0;
    bool done = false;
    std::string name;  // of a send or a receive
    std::vector<size_t> readers;

    absl::string_view Name() const { return node == nullptr ? name : node->name(); }
  };
  struct Ready {
    int64_t time;
    size_t step;
  };
  struct Later {
    const std::vector<Step>* steps;
    bool operator()(const Ready& a, const Ready& b) const {
      if (a.time != b.time) return a.time > b.time;
      return (*steps)[a.step].Name() > (*steps)[b.step].Name();
    }
  };

  size_t nodes() const { return static_cast<size_t>(graph_.max_id()); }
  static size_t IdOf(const Node& n) { return static_cast<size_t>(n.id()); }

  void FindSends() {
    for (int id = 0; id < graph_.max_id(); ++id) {
      const Node* n = graph_.NodeOf(id);
      if (n != nullptr && n->Is(kSendOps)) sends_[n->String("tensor_name")] = n;
    }
  }

  // The node that a _Recv waits for; nullptr where the graph does not have it.
  const Node* SendOf(const Node& recv) const {
    const auto found = sends_.find(recv.String("tensor_name"));
    return found == sends_.end() ? nullptr : found->second;
  }

  template <typename F>
  void ForEachInput(const Node& n, F visit) const {
    if (options_.is_fed(n)) return;
    if (n.Is(kRecvOps)) {
      if (const Node* send = SendOf(n)) visit(Endpoint{const_cast<Node*>(send), 0});
      return;
    }
    for (const Endpoint& e : n.inputs()) {
      if (e.node != nullptr) visit(e);
    }
    for (Node* c : n.control_inputs()) visit(Endpoint{c, -1});
  }

  void FindNeeded() {
    const auto need = [this](const Node* n) {
      Step& step = steps_[IdOf(*n)];
      if (step.node != nullptr) return;
      step.node = n;
      step.device = placement_.Of(*n);
      needed_.push_back(n);
    };
    for (const Node* n : options_.fetches) need(n);
    for (size_t i = 0; i < needed_.size(); ++i) {
      ForEachInput(*needed_[i], [&](Endpoint e) { need(e.node); });
    }
  }

  void Connect(const Node& n) {
    const size_t at = IdOf(n);
    ForEachInput(n, [&](Endpoint e) {
      const bool here = steps_[IdOf(*e.node)].device == steps_[at].device;
      const size_t from = here ? IdOf(*e.node) : ReceiveOf(e, steps_[at].device);
      steps_[from].readers.push_back(at);
      ++steps_[at].waits;
    });
    if (steps_[at].waits == 0) ready_.push({0, at});
  }

  // The step that receives the tensor on the device.
  size_t ReceiveOf(Endpoint e, int device) {
    const auto [it, added] = receives_.try_emplace({e.node->id(), e.port, device}, 0);
    if (!added) return it->second;
    const int from = steps_[IdOf(*e.node)].device;
    const auto plain = [this](int i) {
      return absl::StrReplaceAll(placement_.device(i).name, {{":", "_"}});
    };
    const std::string source =
        absl::StrCat(e.node->name(), e.port < 0 ? "_minus1" : absl::StrCat("_", e.port));
    const size_t send = steps_.size(), receive = send + 1;
    steps_.resize(send + 2);
    steps_[send].name = absl::StrCat("Send_", source, "_from_", plain(from), "_to_", plain(device));
    steps_[send].device = ChannelBetween(from, device);
    steps_[send].waits = 1;
    steps_[send].readers.push_back(receive);
    steps_[receive].name = absl::StrCat("Recv_", source, "_on_", plain(device));
    steps_[receive].device = device;
    steps_[receive].waits = 1;
    steps_[IdOf(*e.node)].readers.push_back(send);
    schedule_.copies.push_back({e.node, e.port, device, {}});
    return it->second = receive;
  }

  // A channel carries one tensor at a time, as a device runs one node.
  int ChannelBetween(int from, int to) {
    const auto [it, added] = channels_.try_emplace({from, to}, static_cast<int>(busy_.size()));
    if (added) busy_.push_back(0);
    return it->second;
  }

  void RunStep(size_t at) {
    Step& step = steps_[at];
    const int64_t time =
        step.node == nullptr ? kCopyTime : options_.duration(*step.node, step.device);
    int64_t& busy = busy_[static_cast<size_t>(step.device)];
    const int64_t start = std::max(busy, step.ready);
    busy = AddEstimates(start, time);
    Note(at, {start, busy});
    // A Merge runs again for each further input, and its readers do not.
    if (std::exchange(step.done, true)) return;
    const int64_t now = busy;
    for (const size_t reader : step.readers) {
      Step& next = steps_[reader];
      const bool complete = --next.waits == 0;
      if (!complete && !(next.node != nullptr && next.node->Is(kMergeOps))) continue;
      next.ready = now;
      ready_.push({now, reader});
    }
  }

  // Of what runs again, the whole time from the first run to the end of the last.
  void Note(size_t at, const NodeRun& run) {
    if (at >= nodes() && (at - nodes()) % 2 == 0) return;
    NodeRun& noted = at < nodes() ? schedule_.nodes[at] : schedule_.copies[(at - nodes()) / 2].run;
    noted = {noted.start < 0 ? run.start : noted.start, run.finish};
  }

  const Graph& graph_;
  Placement& placement_;
  const ScheduleOptions& options_;
  std::vector<Step> steps_;
  std::vector<const Node*> needed_;
  absl::flat_hash_map<std::string, const Node*> sends_;              // by tensor_name
  absl::flat_hash_map<std::tuple<int, int, int>, size_t> receives_;  // by source, port, device
  std::map<std::pair<int, int>, int> channels_;
  std::vector<int64_t> busy_;  // until when, by device, channels last
  std::priority_queue<Ready, std::vector<Ready>, Later> ready_{Later{&steps_}};
  Schedule schedule_;
};

}  // namespace

StatusOr<Schedule> SimulateRun(const Graph& graph, Placement& placement,
                               const ScheduleOptions& options) {
  return Simulation(graph, placement, options).Run();
}

}  // namespace smelt
