#include "smelt/runtime/sequential.h"

#include <algorithm>

#include "smelt/base/denormals.h"
#include "smelt/base/resting.h"

namespace smelt {
namespace {

class SequentialExecutable final : public Executable {
 public:
  Status Init(std::unique_ptr<Graph> graph, std::string function, std::vector<Region> regions) {
    RETURN_IF_ERROR(Build(std::move(graph), std::move(function), true, std::move(regions)));
    for (const Item& item : items_) {
      kept_.push_back(item.num_inputs == 0 && item.state && item.state->same_for_resources());
    }
    MarkLastUses();
    return OkStatus();
  }

  Status Run(std::span<Tensor> args, std::vector<Tensor>* results, Step& step) override {
    RETURN_IF_ERROR(CheckArgs(args));
    const FlushDenormals flush;
    std::unique_ptr<Frame> frame = TakeFrame();
    Status status = RunIn(*frame, args, results, step);
    if (!status.ok()) frame->Clear();
    frames_.Rest(std::move(frame));
    return status;
  }

 private:
  // Values of one run. Reused by later runs, empty in between but for those of `kept_` items.
  struct Frame {
    const ResourceManager* resources = nullptr;  // that the values of `kept_` items belong to
    std::vector<Tensor> slots;
    std::vector<Tensor> values;  // of ref variables, for the kernel at hand
    std::vector<Tensor*> pointers;
    std::unique_ptr<bool[]> last_use;
    void Clear() {
      for (Tensor& t : slots) t = Tensor();
      for (Tensor& t : values) t = Tensor();
    }
  };

  // The item that reads a slot last may write in place, unless it reads the slot twice or the slot
  // is a result of the graph.
  void MarkLastUses() {
    std::vector<int> last_reader(num_slots_, -1);
    for (size_t i = 0; i < items_.size(); ++i) {
      for (int k = 0; k < items_[i].num_inputs; ++k) {
        const int slot = inputs_[items_[i].first_input + k].slot;
        if (slot >= 0) last_reader[slot] = static_cast<int>(i);
      }
    }
    // Outputs of kept items have no last reader, so they stay in the frame.
    for (size_t i = 0; i < items_.size(); ++i) {
      for (int k = 0; kept_[i] && k < items_[i].num_outputs; ++k) {
        last_reader[items_[i].first_output + k] = static_cast<int>(items_.size());
      }
    }
    std::vector<bool> result(num_slots_, false);
    for (const Input& r : results_) {
      if (r.slot >= 0) result[r.slot] = true;
    }
    release_.resize(items_.size());
    for (size_t i = 0; i < items_.size(); ++i) {
      Item& item = items_[i];
      for (int k = 0; k < item.num_inputs; ++k) {
        Input& in = inputs_[item.first_input + k];
        if (in.slot < 0 || last_reader[in.slot] != static_cast<int>(i) || result[in.slot]) continue;
        bool twice = false;
        for (int j = 0; j < item.num_inputs; ++j) {
          twice = twice || (j != k && inputs_[item.first_input + j].slot == in.slot);
        }
        in.last_use = !twice && !in.deref;
        if (std::ranges::find(release_[i], in.slot) == release_[i].end()) {
          release_[i].push_back(in.slot);
        }
      }
      for (int k = 0; k < item.num_outputs; ++k) {
        const int slot = item.first_output + k;
        if (last_reader[slot] < 0 && !result[slot]) release_[i].push_back(slot);
      }
    }
    for (size_t i = 0; i < arg_slots_.size(); ++i) {
      unread_arg_.push_back(arg_slots_[i] < 0 ||
                            (last_reader[arg_slots_[i]] < 0 && !result[arg_slots_[i]]));
    }
    // Where several results are one slot, the last of them moves the tensor, the others share it.
    for (size_t i = 0; i < results_.size(); ++i) {
      bool again = false;
      for (size_t j = i + 1; j < results_.size(); ++j) {
        again = again || results_[j].slot == results_[i].slot;
      }
      results_[i].last_use = !again;
    }
  }

  Status RunIn(Frame& frame, std::span<Tensor> args, std::vector<Tensor>* results, Step& step) {
    if (frame.resources != step.resources) frame.Clear();
    frame.resources = step.resources;
    Tensor* slots = frame.slots.data();
    for (size_t i = 0; i < arg_slots_.size(); ++i) {
      if (!unread_arg_[i]) slots[arg_slots_[i]] = std::move(args[i]);
    }
    const bool check = step.cancellation != nullptr;
    const size_t n = items_.size();
    for (size_t i = 0; i < n; ++i) {
      const Item& item = items_[i];
      // A request that can only be cancelled asks a flag; only one with a deadline reads the clock.
      if (check) RETURN_IF_ERROR(step.cancellation->Check());
      if (kept_[i] && slots[item.first_output].valid()) continue;
      for (int k = 0; k < item.num_inputs; ++k) {
        const Input& in = inputs_[item.first_input + k];
        Tensor* t = in.slot >= 0 ? &slots[in.slot] : &constants_[-1 - in.slot];
        if (in.deref) [[unlikely]] {
          if (Status read = ReadRef(*t, &frame.values[k]); !read.ok()) {
            return WithNode(read, function_, *item.node);
          }
          t = &frame.values[k];
        }
        frame.pointers[k] = t;
        frame.last_use[k] = in.last_use;
      }
      const auto inputs = static_cast<size_t>(item.num_inputs);
      RETURN_IF_ERROR(RunItem(item, step, {frame.pointers.data(), inputs},
                              {frame.last_use.get(), inputs},
                              {slots + item.first_output, static_cast<size_t>(item.num_outputs)}));
      for (int slot : release_[i]) slots[slot] = Tensor();
    }
    results->resize(results_.size());
    for (size_t i = 0; i < results_.size(); ++i) {
      const Input& r = results_[i];
      if (r.slot < 0) {
        (*results)[i] = constants_[-1 - r.slot];
      } else if (r.deref) {
        Tensor value;
        RETURN_IF_ERROR(ReadRef(slots[r.slot], &value));
        (*results)[i] = std::move(value);
      } else {
        (*results)[i] = r.last_use ? std::move(slots[r.slot]) : slots[r.slot];
      }
    }
    for (const Input& r : results_) {
      if (r.slot >= 0) slots[r.slot] = Tensor();
    }
    for (Tensor& t : frame.values) t = Tensor();
    return OkStatus();
  }

  std::unique_ptr<Frame> TakeFrame() {
    if (auto resting = frames_.Take()) return resting;
    auto frame = std::make_unique<Frame>();
    frame->slots.resize(num_slots_);
    frame->values.resize(max_inputs_);
    frame->pointers.resize(max_inputs_);
    frame->last_use = std::make_unique<bool[]>(max_inputs_);
    return frame;
  }

  std::vector<bool> kept_;                 // per item: its outputs stay in the frame
  std::vector<std::vector<int>> release_;  // per item: slots to empty after it
  std::vector<bool> unread_arg_;
  Resting<Frame> frames_;
};

}  // namespace

StatusOr<std::unique_ptr<Executable>> MakeSequential(std::unique_ptr<Graph> graph,
                                                     std::string function,
                                                     std::vector<Region> regions) {
  auto e = std::make_unique<SequentialExecutable>();
  RETURN_IF_ERROR(e->Init(std::move(graph), std::move(function), std::move(regions)));
  return e;
}

}  // namespace smelt
