#include "smelt/runtime/dataflow.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "smelt/base/denormals.h"

namespace smelt {
namespace {

enum class FlowKind { kPlain, kSwitch, kMerge, kEnter, kExit, kNextIteration, kPass, kTrigger };

FlowKind KindOf(const Node& n) {
  absl::string_view op = n.op();
  if (absl::StartsWith(op, "Ref") && op != "RefSelect") op.remove_prefix(3);
  if (op == "Switch" || op == "_SwitchN") return FlowKind::kSwitch;
  if (op == "Merge") return FlowKind::kMerge;
  if (op == "Enter") return FlowKind::kEnter;
  if (op == "Exit") return FlowKind::kExit;
  if (op == "NextIteration") return FlowKind::kNextIteration;
  if (op == "LoopCond") return FlowKind::kPass;
  if (op == "ControlTrigger") return FlowKind::kTrigger;
  return FlowKind::kPlain;
}

// Visits the nodes that `n` waits for while it runs. Arguments are there from the start, and a
// control edge from one brings nothing.
template <typename F>
void ForEachWaited(const Node& n, F visit) {
  for (const Endpoint& e : n.inputs()) visit(e.node);
  for (const Node* c : n.control_inputs()) {
    if (!c->Is("_Arg")) visit(c);
  }
}

// The static part of a frame: Enter nodes of one frame name in one parent lead to the same one.
struct FrameShape {
  std::string name;
  int parent = -1;
  int num_enters = 0;
  std::vector<int> items;
  int num_inputs = 0;
};

struct FlowItem {
  FlowKind kind = FlowKind::kPlain;
  int frame = 0;          // that it runs in: an index of frames_
  int child_frame = -1;   // Enter: the frame it leads to
  bool constant = false;  // Enter of a loop invariant
  int index_in_frame = 0;
  int first_entry = 0;  // of its inputs, among its frame's entries
  int num_control = 0;
  struct Edge {
    int item;
    int input;  // -1: control
  };
  std::vector<std::vector<Edge>> readers;  // by output port
  std::vector<Edge> control_readers;
  std::vector<std::vector<int>> results;  // by output port: results of the graph
};

// A value on an edge; dead when it is not live, as TensorFlow's executor calls it.
struct Entry {
  Tensor value;
  bool live = false;
};

struct FlowFrame;

// One iteration of a frame.
struct Iteration {
  std::vector<Entry> entries;
  std::vector<int> pending;  // inputs still to come; Merge: control inputs still to come
  std::vector<int> dead;     // dead inputs so far
  std::vector<char> started;
  std::vector<int> merge_input;  // the live input of a Merge, -1 so far
  int outstanding = 0;           // scheduled items and live child frames
};

struct FlowFrame {
  const FrameShape* shape = nullptr;
  int shape_index = 0;
  FlowFrame* parent = nullptr;
  int64_t parent_iteration = 0;
  std::map<int64_t, Iteration> iterations;
  int64_t last_iteration = 0;
  int enters_to_come = 0;  // Enter items that have not run: until then no iteration is freed
  std::vector<std::pair<int, Entry>> invariants;  // Enter item, what it brought
  std::vector<int> dead_exits;  // delivered dead to the parent when the frame ends
};

class DataflowExecutable final : public Executable {
 public:
  Status Init(std::unique_ptr<Graph> graph, std::string function) {
    RETURN_IF_ERROR(Build(std::move(graph), std::move(function), false));
    return BuildFlow();
  }
  Status Run(std::span<Tensor> args, std::vector<Tensor>* results, Step& step) override;

  struct FlowEdges {
    std::vector<std::vector<FlowItem::Edge>> arg_readers;  // by argument
    std::vector<std::vector<int>> arg_results;
  };

 private:
  friend class FlowRun;
  Status BuildFlow();
  Status AssignFrames(const absl::flat_hash_map<const Node*, int>& index);

  std::vector<FlowItem> flow_;
  std::vector<FrameShape> frames_;
  FlowEdges args_;
};

Status DataflowExecutable::AssignFrames(const absl::flat_hash_map<const Node*, int>& index) {
  frames_.push_back({});  // the root frame
  std::map<std::pair<int, std::string>, int> by_name;
  std::vector<int> frame_of(items_.size(), -1);
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_->TopologicalOrder());
  absl::flat_hash_map<const Node*, int> in_frame, out_frame;  // where it runs, where outputs live
  for (const Node* n : order) {
    int frame = 0;
    ForEachWaited(*n, [&](const Node* from) {
      const auto it = out_frame.find(from);
      if (it != out_frame.end()) frame = std::max(frame, it->second);
    });
    int out = frame;
    auto it = index.find(n);
    if (it != index.end()) {
      FlowItem& item = flow_[it->second];
      frame_of[it->second] = frame;
      if (item.kind == FlowKind::kEnter) {
        const std::string name = n->String("frame_name");
        if (name.empty()) {
          return InvalidArgument("The Enter {{node ", n->name(), "}} must have a frame name.");
        }
        auto [at, added] = by_name.try_emplace({frame, name}, static_cast<int>(frames_.size()));
        if (added) {
          frames_.push_back({});
          frames_.back().name = name;
          frames_.back().parent = frame;
        }
        item.child_frame = out = at->second;
        item.constant = n->Bool("is_constant");
        ++frames_[out].num_enters;
      } else if (item.kind == FlowKind::kExit) {
        if (frame == 0) {
          return InvalidArgument("Invalid Exit op: Cannot find a corresponding Enter op.\n\t ",
                                 NodeInError(function_, *n));
        }
        out = frames_[frame].parent;
      }
    }
    in_frame[n] = frame;
    out_frame[n] = out;
  }
  // A value that came from another frame would find no place: each frame has iterations of its own.
  for (const Node* n : order) {
    const Node *first = nullptr, *other = nullptr;
    ForEachWaited(*n, [&](const Node* from) {
      const bool here = out_frame.at(from) == in_frame.at(n);
      (here ? first : other) = from;
    });
    if (other == nullptr) continue;
    const auto frame_name = [&](const Node* from) {
      return from == nullptr ? "" : frames_[static_cast<size_t>(out_frame.at(from))].name;
    };
    return InvalidArgument("{{node ", n->name(), "}} has inputs from different frames. The input ",
                           "{{node ", first == nullptr ? "" : first->name(), "}} is in frame '",
                           frame_name(first), "'. The input {{node ", other->name(),
                           "}} is in frame '", frame_name(other), "'.");
  }
  for (size_t i = 0; i < items_.size(); ++i) {
    FlowItem& item = flow_[i];
    item.frame = frame_of[i];
    FrameShape& shape = frames_[item.frame];
    item.index_in_frame = static_cast<int>(shape.items.size());
    item.first_entry = shape.num_inputs;
    shape.num_inputs += items_[i].num_inputs;
    shape.items.push_back(static_cast<int>(i));
  }
  return OkStatus();
}

Status DataflowExecutable::BuildFlow() {
  absl::flat_hash_map<const Node*, int> index;
  flow_.resize(items_.size());
  for (size_t i = 0; i < items_.size(); ++i) {
    index[items_[i].node] = static_cast<int>(i);
    flow_[i].kind = KindOf(*items_[i].node);
    flow_[i].readers.resize(items_[i].num_outputs);
    flow_[i].results.resize(items_[i].num_outputs);
  }
  RETURN_IF_ERROR(AssignFrames(index));
  args_.arg_readers.resize(arg_slots_.size());
  args_.arg_results.resize(arg_slots_.size());
  for (size_t i = 0; i < items_.size(); ++i) {
    const Node* n = items_[i].node;
    const int item = static_cast<int>(i);
    for (int k = 0; k < n->num_inputs(); ++k) {
      const Endpoint e = n->inputs()[k];
      if (e.node->Is("_Arg")) {
        args_.arg_readers[e.node->Int("index")].push_back({item, k});
      } else {
        flow_[index.at(e.node)].readers[e.port].push_back({item, k});
      }
    }
    for (const Node* c : n->control_inputs()) {
      auto it = index.find(c);
      if (it == index.end()) continue;  // arguments are there from the start
      flow_[it->second].control_readers.push_back({item, -1});
      ++flow_[i].num_control;
    }
  }
  for (const Node* n : graph_->Nodes()) {
    if (!n->Is("_Retval")) continue;
    const Endpoint e = n->inputs()[0];
    const int result = static_cast<int>(n->Int("index"));
    if (e.node->Is("_Arg")) {
      args_.arg_results[e.node->Int("index")].push_back(result);
    } else {
      flow_[index.at(e.node)].results[e.port].push_back(result);
    }
  }
  return OkStatus();
}

// One run, in the calling thread: a queue of items that are ready.
class FlowRun {
 public:
  FlowRun(const DataflowExecutable& e, Step& step) : e_(e), step_(step) {}

  Status Go(std::span<Tensor> args, std::vector<Tensor>* results) {
    results_.resize(e_.results_.size());
    auto root = std::make_unique<FlowFrame>();
    root->shape = &e_.frames_[0];
    FlowFrame* frame = root.get();
    frames_[{nullptr, 0, 0}] = std::move(root);
    Iteration& first = StartIteration(frame, 0);
    ++first.outstanding;  // the root is never freed before the end
    for (size_t a = 0; a < e_.args_.arg_readers.size(); ++a) {
      Deliver(frame, 0, e_.args_.arg_readers[a], Entry{args[a], true}, false);
      for (int r : e_.args_.arg_results[a]) SetResult(r, Entry{args[a], true});
    }
    for (int64_t count = 0; !queue_.empty(); ++count) {
      if (step_.cancellation && count % 16 == 0) RETURN_IF_ERROR(step_.cancellation->Check());
      const Ready ready = queue_.front();
      queue_.pop_front();
      RETURN_IF_ERROR(Process(ready));
      RETURN_IF_ERROR(twice_);
      Finish(ready.frame, ready.iteration);
    }
    for (size_t i = 0; i < results_.size(); ++i) {
      if (!results_[i].live) {
        return InvalidArgument("Retval[", i, "] does not have value");
      }
      if (e_.results_[i].deref) {
        Tensor value;
        RETURN_IF_ERROR(ReadRef(results_[i].value, &value));
        results_[i].value = std::move(value);
      }
    }
    results->clear();
    for (Entry& r : results_) results->push_back(std::move(r.value));
    return OkStatus();
  }

 private:
  struct Ready {
    FlowFrame* frame;
    int64_t iteration;
    int item;
    bool dead;
  };

  Iteration& StartIteration(FlowFrame* frame, int64_t number) {
    Iteration& it = frame->iterations[number];
    const FrameShape& shape = *frame->shape;
    it.entries.resize(shape.num_inputs);
    it.pending.resize(shape.items.size());
    it.dead.resize(shape.items.size(), 0);
    it.started.resize(shape.items.size(), 0);
    it.merge_input.resize(shape.items.size(), -1);
    frame->last_iteration = std::max(frame->last_iteration, number);
    for (size_t i = 0; i < shape.items.size(); ++i) {
      const FlowItem& item = e_.flow_[shape.items[i]];
      it.pending[i] = item.num_control;
      if (item.kind != FlowKind::kMerge) it.pending[i] += e_.items_[shape.items[i]].num_inputs;
      // What waits for nothing runs once, also when the graph outside of loops is iterated.
      if (frame->parent == nullptr && number == 0 && it.pending[i] == 0 &&
          item.kind != FlowKind::kMerge) {
        Schedule(frame, number, shape.items[i], false);
      }
    }
    for (auto& [enter, entry] : frame->invariants) DeliverOutput(frame, number, enter, 0, entry);
    return it;
  }

  void Schedule(FlowFrame* frame, int64_t iteration, int item, bool dead) {
    Iteration& it = frame->iterations.at(iteration);
    char& started = it.started[e_.flow_[item].index_in_frame];
    if (started) return;
    started = 1;
    ++it.outstanding;
    queue_.push_back({frame, iteration, item, dead});
  }

  // Dead values are no results. One that comes again ends the run after the item at hand.
  void SetResult(int r, Entry entry) {
    if (!entry.live) return;
    if (results_[r].live && twice_.ok()) {
      twice_ = Internal("Retval[", r, "] has already been set.");
    }
    results_[r] = std::move(entry);
  }

  // Hands a value (or a dead one) to readers in one iteration.
  void Deliver(FlowFrame* frame, int64_t iteration, const std::vector<FlowItem::Edge>& readers,
               const Entry& entry, bool from_enter) {
    for (const FlowItem::Edge& edge : readers) {
      const FlowItem& to = e_.flow_[edge.item];
      Iteration& it = frame->iterations.at(iteration);
      const int i = to.index_in_frame;
      if (to.kind == FlowKind::kMerge) {
        if (edge.input < 0) {
          --it.pending[i];
        } else if (entry.live) {
          if (it.merge_input[i] < 0) {
            it.merge_input[i] = edge.input;
            it.entries[to.first_entry + edge.input] = entry;
          }
        } else {
          // A dead Enter means a loop on the branch not taken: nothing else will come.
          it.dead[i] += from_enter ? e_.items_[edge.item].num_inputs : 1;
        }
        if (it.pending[i] > 0) continue;
        if (it.merge_input[i] >= 0) {
          Schedule(frame, iteration, edge.item, false);
        } else if (it.dead[i] >= e_.items_[edge.item].num_inputs) {
          Schedule(frame, iteration, edge.item, true);
        }
        continue;
      }
      if (edge.input >= 0) it.entries[to.first_entry + edge.input] = entry;
      if (!entry.live) ++it.dead[i];
      if (--it.pending[i] == 0) {
        Schedule(frame, iteration, edge.item, it.dead[i] > 0 && to.kind != FlowKind::kTrigger);
      }
    }
  }

  void DeliverOutput(FlowFrame* frame, int64_t iteration, int item, int port, const Entry& entry) {
    const FlowItem& from = e_.flow_[item];
    const bool enter = from.kind == FlowKind::kEnter;
    Deliver(frame, iteration, from.readers[port], entry, enter);
    for (int r : from.results[port]) SetResult(r, entry);
    if (port == 0) {
      Entry control{Tensor(), entry.live};
      Deliver(frame, iteration, from.control_readers, control, enter);
    }
  }

  Status Process(const Ready& ready) {
    const FlowItem& flow = e_.flow_[ready.item];
    const Executable::Item& item = e_.items_[ready.item];
    Iteration& it = ready.frame->iterations.at(ready.iteration);
    Entry* in = it.entries.data() + flow.first_entry;
    switch (flow.kind) {
      case FlowKind::kEnter:
        return Enter(ready, ready.dead ? Entry{} : in[0]);
      case FlowKind::kExit:
        if (!ready.dead) {
          DeliverOutput(ready.frame->parent, ready.frame->parent_iteration, ready.item, 0, in[0]);
        } else if (ready.iteration == ready.frame->last_iteration) {
          ready.frame->dead_exits.push_back(ready.item);
        }
        return OkStatus();
      case FlowKind::kNextIteration: {
        if (ready.dead) return OkStatus();
        const int64_t next = ready.iteration + 1;
        Entry value = in[0];
        if (!ready.frame->iterations.contains(next)) {
          ready.frame->dead_exits.clear();
          StartIteration(ready.frame, next);
        }
        DeliverOutput(ready.frame, next, ready.item, 0, value);
        return OkStatus();
      }
      case FlowKind::kSwitch:
        return Switch(ready, item, in);
      case FlowKind::kMerge:
        return Merge(ready, it, flow, in);
      case FlowKind::kPass:
        DeliverOutput(ready.frame, ready.iteration, ready.item, 0, ready.dead ? Entry{} : in[0]);
        return OkStatus();
      default:
        break;
    }
    const int outputs = item.num_outputs;
    if (ready.dead) {
      for (int p = 0; p < outputs; ++p) {
        DeliverOutput(ready.frame, ready.iteration, ready.item, p, Entry{});
      }
      if (outputs == 0) Controls(ready, false);
      return OkStatus();
    }
    outputs_.clear();
    outputs_.resize(outputs);
    RETURN_IF_ERROR(RunKernel(ready, item, in, outputs_));
    for (int p = 0; p < outputs; ++p) {
      DeliverOutput(ready.frame, ready.iteration, ready.item, p,
                    Entry{std::move(outputs_[p]), true});
    }
    if (outputs == 0) Controls(ready, true);
    return OkStatus();
  }

  void Controls(const Ready& ready, bool live) {
    Deliver(ready.frame, ready.iteration, e_.flow_[ready.item].control_readers,
            Entry{Tensor(), live}, false);
  }

  Status RunKernel(const Ready& ready, const Executable::Item& item, Entry* in,
                   std::vector<Tensor>& out) {
    const auto n = static_cast<size_t>(item.num_inputs);
    pointers_.resize(n);
    if (last_use_size_ < n) {
      last_use_ = std::make_unique<bool[]>(n);
      last_use_size_ = n;
    }
    for (size_t k = 0; k < n; ++k) {
      if (e_.inputs_[item.first_input + k].deref) {
        Tensor value;
        if (Status read = ReadRef(in[k].value, &value); !read.ok()) {
          return WithNode(read, e_.function_, *item.node);
        }
        in[k].value = std::move(value);
      }
      pointers_[k] = &in[k].value;
      last_use_[k] = true;  // each reader has an entry of its own
    }
    RETURN_IF_ERROR(e_.RunItem(item, step_, {pointers_.data(), n}, {last_use_.get(), n},
                               std::span<Tensor>(out)));
    for (size_t k = 0; k < n; ++k) in[k].value = Tensor();
    return OkStatus();
  }

  Status Switch(const Ready& ready, const Executable::Item& item, Entry* in) {
    int taken = -1;
    if (!ready.dead) {
      const Tensor& pred = in[1].value;
      if (pred.rank() != 0) {
        return InvalidArgument("The second input must be a scalar, but it has shape ",
                               pred.shape().ToString(), "\n\t ",
                               NodeInError(e_.function_, *item.node));
      }
      if (pred.dtype() == Dtype::kBool) {
        taken = pred.scalar<bool>() ? 1 : 0;
      } else {
        const int32_t branch = pred.scalar<int32_t>();
        taken = branch < 0 || branch >= item.num_outputs ? item.num_outputs - 1 : branch;
      }
    }
    const Entry value = in[0];
    // Control readers wait for the node, whichever way it went.
    for (int p = 0; p < item.num_outputs; ++p) {
      const FlowItem& flow = e_.flow_[ready.item];
      const Entry out = p == taken ? value : Entry{};
      Deliver(ready.frame, ready.iteration, flow.readers[p], out, false);
      for (int r : flow.results[p]) SetResult(r, out);
    }
    Controls(ready, !ready.dead);
    return OkStatus();
  }

  Status Merge(const Ready& ready, Iteration& it, const FlowItem& flow, Entry* in) {
    Entry value, index;
    if (!ready.dead) {
      const int live = it.merge_input[flow.index_in_frame];
      value = in[live];
      index = Entry{Tensor::Scalar<int32_t>(live), true};
    }
    DeliverOutput(ready.frame, ready.iteration, ready.item, 0, value);
    DeliverOutput(ready.frame, ready.iteration, ready.item, 1, index);
    return OkStatus();
  }

  Status Enter(const Ready& ready, Entry value) {
    const FlowItem& flow = e_.flow_[ready.item];
    const FrameShape& shape = e_.frames_[flow.child_frame];
    auto& slot = frames_[{ready.frame, ready.iteration, flow.child_frame}];
    if (!slot) {
      slot = std::make_unique<FlowFrame>();
      slot->shape = &shape;
      slot->shape_index = flow.child_frame;
      slot->parent = ready.frame;
      slot->parent_iteration = ready.iteration;
      slot->enters_to_come = shape.num_enters;
      ++ready.frame->iterations.at(ready.iteration).outstanding;
      StartIteration(slot.get(), 0);
    }
    FlowFrame* frame = slot.get();
    --frame->enters_to_come;
    if (flow.constant) {
      frame->invariants.emplace_back(ready.item, value);
      std::vector<int64_t> numbers;
      for (const auto& [number, it] : frame->iterations) numbers.push_back(number);
      for (int64_t number : numbers) DeliverOutput(frame, number, ready.item, 0, value);
    } else {
      DeliverOutput(frame, 0, ready.item, 0, value);
    }
    Retire(frame);
    return OkStatus();
  }

  void Finish(FlowFrame* frame, int64_t iteration) {
    --frame->iterations.at(iteration).outstanding;
    Retire(frame);
  }

  // Frees iterations that nothing can reach any more, oldest first; the frame with its last one,
  // and then what its parent waited with, outward through however many frames there are.
  void Retire(FlowFrame* frame) {
    while (true) {
      if (frame->parent == nullptr) {
        RetireOutermost(*frame);
        return;
      }
      if (frame->enters_to_come > 0) return;
      while (!frame->iterations.empty() && frame->iterations.begin()->second.outstanding == 0) {
        frame->iterations.erase(frame->iterations.begin());
      }
      if (!frame->iterations.empty()) return;
      FlowFrame* parent = frame->parent;
      const int64_t parent_iteration = frame->parent_iteration;
      const std::vector<int> exits = std::move(frame->dead_exits);
      for (int exit : exits) DeliverOutput(parent, parent_iteration, exit, 0, Entry{});
      frames_.erase({parent, parent_iteration, frame->shape_index});
      --parent->iterations.at(parent_iteration).outstanding;
      frame = parent;
    }
  }

  // The first iteration stays to the end, the others go when nothing of it can reach them.
  static void RetireOutermost(FlowFrame& root) {
    if (root.iterations.begin()->second.outstanding > 1) return;
    for (auto it = std::next(root.iterations.begin());
         it != root.iterations.end() && it->second.outstanding == 0;) {
      it = root.iterations.erase(it);
    }
  }

  const DataflowExecutable& e_;
  Step& step_;
  // By parent frame, iteration of it, and index of the frame.
  using FrameKey = std::tuple<const FlowFrame*, int64_t, int>;
  absl::flat_hash_map<FrameKey, std::unique_ptr<FlowFrame>> frames_;
  std::deque<Ready> queue_;
  std::vector<Entry> results_;
  Status twice_;
  std::vector<Tensor*> pointers_;
  std::vector<Tensor> outputs_;  // of the kernel at hand
  std::unique_ptr<bool[]> last_use_;
  size_t last_use_size_ = 0;
};

Status DataflowExecutable::Run(std::span<Tensor> args, std::vector<Tensor>* results, Step& step) {
  RETURN_IF_ERROR(CheckArgs(args));
  const FlushDenormals flush;
  return FlowRun(*this, step).Go(args, results);
}

}  // namespace

StatusOr<std::unique_ptr<Executable>> MakeDataflow(std::unique_ptr<Graph> graph,
                                                   std::string function) {
  auto e = std::make_unique<DataflowExecutable>();
  RETURN_IF_ERROR(e->Init(std::move(graph), std::move(function)));
  return e;
}

}  // namespace smelt
