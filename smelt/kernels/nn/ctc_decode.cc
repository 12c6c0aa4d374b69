// CTCGreedyDecoder, CTCBeamSearchDecoder: from class scores over time to sequences of labels. The
// blank is the last class, or the greedy decoder's blank_index.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/cancellable.h"
#include "smelt/kernels/nn/log_sum.h"

namespace smelt {
namespace {

using nn::kLogZero;
using nn::LogOfSum;

Status CheckCtcInputs(const Tensor& inputs, const Tensor& lengths) {
  if (inputs.rank() != 3) return InvalidArgument("inputs is not a 3-Tensor");
  if (inputs.num_elements() == 0) return InvalidArgument("inputs must not be empty");
  if (lengths.rank() != 1) return InvalidArgument("sequence_length is not a vector");
  if (lengths.dim(0) != inputs.dim(1)) {
    return FailedPrecondition("len(sequence_length) != batch_size.  len(sequence_length):  ",
                              lengths.dim(0), " batch_size: ", inputs.dim(1));
  }
  for (int64_t b = 0; b < lengths.dim(0); ++b) {
    if (lengths.data<int32_t>()[b] > inputs.dim(0)) {
      return FailedPrecondition("sequence_length(", b, ") <= ", inputs.dim(0));
    }
  }
  return OkStatus();
}

using CtcLabels = std::vector<int64_t>;

// A sparse matrix of the batch's label sequences in outputs first, first + stride, ...
Status SetDecoded(OpContext& ctx, const std::vector<CtcLabels>& batch, int first, int stride) {
  int64_t total = 0, longest = 0;
  for (const CtcLabels& labels : batch) {
    total += static_cast<int64_t>(labels.size());
    longest = std::max(longest, static_cast<int64_t>(labels.size()));
  }
  ASSIGN_OR_RETURN(Tensor * indices, ctx.Allocate(first, Shape({total, 2})));
  ASSIGN_OR_RETURN(Tensor * values, ctx.Allocate(first + stride, Shape({total})));
  int64_t *at = indices->data<int64_t>(), *to = values->data<int64_t>();
  for (size_t b = 0; b < batch.size(); ++b) {
    for (size_t i = 0; i < batch[b].size(); ++i) {
      *at++ = static_cast<int64_t>(b);
      *at++ = static_cast<int64_t>(i);
    }
    to = std::copy(batch[b].begin(), batch[b].end(), to);
  }
  return SetInts(ctx, first + 2 * stride, Dims{static_cast<int64_t>(batch.size()), longest});
}

StatusOr<std::unique_ptr<KernelState>> PrepareGreedy(const Node& node) {
  return ReadIntAttrs(node, {"merge_repeated", "blank_index"});
}

template <typename T>
Status GreedyOf(OpContext& ctx, int64_t blank, bool merge) {
  const Tensor &inputs = ctx.input(0), &lengths = ctx.input(1);
  const int64_t batch = inputs.dim(1), classes = inputs.dim(2);
  ASSIGN_OR_RETURN(Tensor * scores, ctx.Allocate(3, Shape({batch, 1})));
  std::vector<CtcLabels> decoded(static_cast<size_t>(batch));
  for (int64_t b = 0; b < batch; ++b) {
    T sum = 0;
    int64_t previous = -1;
    for (int64_t t = 0; t < lengths.data<int32_t>()[b]; ++t) {
      const T* row = inputs.data<T>() + (t * batch + b) * classes;
      const int64_t best = std::max_element(row, row + classes) - row;
      sum -= row[best];
      if (best != blank && !(merge && best == previous)) decoded[b].push_back(best);
      previous = best;
    }
    scores->data<T>()[b] = sum;
  }
  return SetDecoded(ctx, decoded, 0, 1);
}

Status RunGreedy(OpContext& ctx) {
  RETURN_IF_ERROR(CheckCtcInputs(ctx.input(0), ctx.input(1)));
  const bool merge = ctx.state<IntAttrs>()[0] != 0;
  const int64_t given = ctx.state<IntAttrs>()[1], classes = ctx.input(0).dim(2);
  const int64_t blank = given < 0 ? given + classes : given;
  if (blank < 0 || blank >= classes) {
    return InvalidArgument("blank_index expected to be between ", -classes, " and ", classes - 1,
                           " but was ", given);
  }
  return ctx.input(0).dtype() == Dtype::kFloat ? GreedyOf<float>(ctx, blank, merge)
                                               : GreedyOf<double>(ctx, blank, merge);
}

// ---- beam search ----

// Log probabilities of a prefix: of all its paths, of those that end in a blank, and of those that
// end in its last label.
template <typename T>
struct CtcChance {
  T total = kLogZero<T>, blank = kLogZero<T>, label = kLogZero<T>;
};

// A prefix, by its last label and the prefix before.
template <typename T>
struct CtcPrefix {
  CtcPrefix* before = nullptr;
  int64_t label = -1;
  std::map<int64_t, CtcPrefix*> children;
  CtcChance<T> old, now;
  bool active() const { return now.total != kLogZero<T>; }
};

template <typename T>
class CtcBeamSearch {
 public:
  CtcBeamSearch(int64_t classes, int64_t width) : classes_(classes), width_(width) {
    CtcPrefix<T>* root = Add(nullptr, -1);
    root->now.total = root->now.blank = 0;
    leaves_.push_back(root);
  }

  void Step(const T* row) {
    const int64_t blank = classes_ - 1;
    const T largest = *std::max_element(row, row + classes_);
    T sum = 0;
    for (int64_t c = 0; c < classes_; ++c) sum += std::exp(row[c] - largest);
    const T offset = largest + std::log(sum);
    const std::vector<CtcPrefix<T>*> branches = std::move(leaves_);
    leaves_.clear();
    for (CtcPrefix<T>* p : branches) p->old = p->now;
    for (CtcPrefix<T>* p : branches) {
      if (p->before != nullptr) {
        if (p->before->active()) {
          const CtcChance<T>& before = p->before->old;
          p->now.label =
              LogOfSum(p->now.label, p->label == p->before->label ? before.blank : before.total);
        }
        p->now.label += row[p->label] - offset;
      }
      p->now.blank = p->old.total + row[blank] - offset;
      p->now.total = LogOfSum(p->now.blank, p->now.label);
      Keep(p);
    }
    for (CtcPrefix<T>* p : branches) {
      if (!Fits(p->old)) continue;
      for (int64_t label = 0; label < blank; ++label) Grow(p, label, row[label] - offset);
    }
  }

  // The best prefixes, best first.
  StatusOr<std::vector<const CtcPrefix<T>*>> Best(int64_t n) const {
    if (n > static_cast<int64_t>(leaves_.size())) {
      return InvalidArgument("Less leaves in the beam search than requested.");
    }
    return std::vector<const CtcPrefix<T>*>(leaves_.begin(), leaves_.begin() + n);
  }

 private:
  CtcPrefix<T>* Add(CtcPrefix<T>* before, int64_t label) {
    CtcPrefix<T>& p = prefixes_.emplace_back();
    p.before = before;
    p.label = label;
    return &p;
  }
  bool full() const { return static_cast<int64_t>(leaves_.size()) >= width_; }
  bool Fits(const CtcChance<T>& chance) const {
    return chance.total > kLogZero<T> && (!full() || chance.total > leaves_.back()->now.total);
  }
  // Leaves are kept sorted, best first.
  void Keep(CtcPrefix<T>* p) {
    if (full()) {
      if (!(p->now.total > leaves_.back()->now.total)) return;
      leaves_.pop_back();
    }
    leaves_.insert(std::upper_bound(leaves_.begin(), leaves_.end(), p,
                                    [](const CtcPrefix<T>* a, const CtcPrefix<T>* b) {
                                      return a->now.total > b->now.total;
                                    }),
                   p);
  }
  void Grow(CtcPrefix<T>* p, int64_t label, T chance) {
    // Only a prefix that fits into the beam gets an entry.
    auto it = p->children.find(label);
    if (it != p->children.end() && it->second->active()) return;
    CtcChance<T> grown;
    grown.label = chance + (label == p->label ? p->old.blank : p->old.total);
    grown.total = grown.label;
    if (!Fits(grown)) {
      if (it != p->children.end()) it->second->old = it->second->now = CtcChance<T>();
      return;
    }
    if (it == p->children.end()) it = p->children.emplace(label, Add(p, label)).first;
    it->second->now = grown;
    if (full()) leaves_.back()->now = CtcChance<T>();
    Keep(it->second);
  }

  const int64_t classes_, width_;
  std::deque<CtcPrefix<T>> prefixes_;
  std::vector<CtcPrefix<T>*> leaves_;
};

template <typename T>
CtcLabels LabelsOf(const CtcPrefix<T>* p, bool merge) {
  CtcLabels labels;
  int64_t previous = -1;
  for (; p->before != nullptr; p = p->before) {
    if (!merge || p->label != previous) labels.push_back(p->label);
    previous = p->label;
  }
  std::reverse(labels.begin(), labels.end());
  return labels;
}

StatusOr<std::unique_ptr<KernelState>> PrepareBeam(const Node& node) {
  return ReadIntAttrs(node, {"beam_width", "top_paths", "merge_repeated"});
}

template <typename T>
Status BeamOf(OpContext& ctx) {
  const auto& attrs = ctx.state<IntAttrs>();
  const Tensor &inputs = ctx.input(0), &lengths = ctx.input(1);
  const int64_t batch = inputs.dim(1), classes = inputs.dim(2), paths = attrs[1];
  ASSIGN_OR_RETURN(Tensor * scores,
                   ctx.Allocate(3 * static_cast<int>(paths), Shape({batch, paths})));
  std::vector<std::vector<CtcLabels>> decoded(static_cast<size_t>(paths));
  for (int64_t b = 0; b < batch; ++b) {
    CtcBeamSearch<T> search(classes, attrs[0]);
    for (int64_t t = 0; t < lengths.data<int32_t>()[b]; ++t) {
      RETURN_IF_ERROR(CheckStep(ctx.step()));
      search.Step(inputs.data<T>() + (t * batch + b) * classes);
    }
    ASSIGN_OR_RETURN(const auto best, search.Best(paths));
    for (int64_t k = 0; k < paths; ++k) {
      decoded[k].push_back(LabelsOf(best[k], attrs[2] != 0));
      scores->data<T>()[b * paths + k] = best[k]->now.total;
    }
  }
  for (int64_t k = 0; k < paths; ++k) {
    RETURN_IF_ERROR(SetDecoded(ctx, decoded[k], static_cast<int>(k), static_cast<int>(paths)));
  }
  return OkStatus();
}

Status RunBeam(OpContext& ctx) {
  RETURN_IF_ERROR(CheckCtcInputs(ctx.input(0), ctx.input(1)));
  if (ctx.state<IntAttrs>()[1] > ctx.state<IntAttrs>()[0]) {
    return InvalidArgument("requested more paths than the beam width.");
  }
  return ctx.input(0).dtype() == Dtype::kFloat ? BeamOf<float>(ctx) : BeamOf<double>(ctx);
}

constexpr Kernel kCtcDecodeTable[] = {
    {"CTCGreedyDecoder", "T", kFloatTypes, "nn:ctc_greedy", RunGreedy, PrepareGreedy},
    {"CTCBeamSearchDecoder", "T", kFloatTypes, "nn:ctc_beam", RunBeam, PrepareBeam},
};

}  // namespace

extern constinit const std::span<const Kernel> kCtcDecodeKernels = kCtcDecodeTable;

}  // namespace smelt
