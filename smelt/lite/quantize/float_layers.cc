#include "smelt/lite/quantize/float_layers.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "smelt/lite/quantize/quantized_ops.h"

namespace smelt {
namespace {

// Trials of single layers are many: they take no more samples than this, spread over all.
constexpr size_t kTrialSamples = 16;

std::vector<LiteSample> Spread(std::span<const LiteSample> samples, size_t most) {
  std::vector<LiteSample> out;
  const size_t count = std::min(most, samples.size());
  for (size_t i = 0; i < count; ++i) out.push_back(samples[i * samples.size() / count]);
  return out;
}

bool MovesNumbers(const Node& n) {
  const QuantizedOp* row = FindQuantizedOp(n.op_name());
  return row != nullptr && row->integer && row->results == ResultRange::kAsInput;
}

// The layers of `chosen` with those that stand between them and other floats, and move numbers: in
// integers they would round what was left in float.
Status AddMoves(const Graph& graph, const NodeNames& chosen, NodeNames& out) {
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  absl::flat_hash_set<const Node*> may;
  const auto in_float = [&](const Node* n) {
    return chosen.contains(n->name()) || may.contains(n);
  };
  for (const Node* n : order) {
    if (!MovesNumbers(*n)) continue;
    const bool follows = std::ranges::all_of(n->inputs(), [&](const Endpoint& e) {
      return e.node->Is("Const") || e.node->Is("_Arg") || in_float(e.node) ||
             e.node->output_types[static_cast<size_t>(e.port)] != Dtype::kFloat;
    });
    if (follows) may.insert(n);
  }
  // From the back: who is wanted in float, or came from there and leaves the graph.
  absl::flat_hash_set<const Node*> from_chosen;
  for (const Node* n : order) {
    if (!may.contains(n)) continue;
    for (const Endpoint& e : n->inputs()) {
      if (chosen.contains(e.node->name()) || from_chosen.contains(e.node)) from_chosen.insert(n);
    }
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node* n = *it;
    if (!may.contains(n)) continue;
    const bool wanted = std::ranges::any_of(n->uses(), [&](const Use& use) {
      if (out.contains(use.node->name())) return true;
      return from_chosen.contains(n) && FindQuantizedOp(use.node->op_name()) == nullptr;
    });
    if (wanted) out.insert(n->name());
  }
  return OkStatus();
}

class FloatLayerSearch {
 public:
  FloatLayerSearch(const LiteGraphs& plain, std::span<const LiteSample> samples,
                   const Quantizer& quantize)
      : plain_(plain),
        quantize_(quantize),
        samples_(samples),
        trials_(Spread(samples, kTrialSamples)) {}

  size_t trials() const { return trials_.size(); }

  StatusOr<NodeNames> WithMoves(const NodeNames& chosen) const {
    NodeNames out = chosen;
    for (const Graph* graph : plain_.All()) RETURN_IF_ERROR(AddMoves(*graph, chosen, out));
    return out;
  }

  // The worst result on the samples of trials.
  StatusOr<Noise> Try(const NodeNames& chosen) {
    if (wanted_trials_.empty()) {
      ASSIGN_OR_RETURN(wanted_trials_, AnswersOf(plain_, trials_));
    }
    ASSIGN_OR_RETURN(const std::vector<Noise> noise, Measure(chosen, trials_, wanted_trials_));
    return WorstOf(noise);
  }
  // Each result on all samples.
  StatusOr<std::vector<Noise>> MeasureAll(const NodeNames& chosen) {
    if (trials_.size() == samples_.size()) {
      RETURN_IF_ERROR(Try(chosen).status());
      return Measure(chosen, trials_, wanted_trials_);
    }
    // Answers to all samples may be many: a piece at a time.
    std::vector<Noise> total;
    for (size_t at = 0; at < samples_.size(); at += kTrialSamples) {
      const auto piece = samples_.subspan(at, std::min(kTrialSamples, samples_.size() - at));
      ASSIGN_OR_RETURN(const auto wanted, AnswersOf(plain_, piece));
      ASSIGN_OR_RETURN(const std::vector<Noise> noise, Measure(chosen, piece, wanted));
      total.resize(noise.size());
      for (size_t i = 0; i < noise.size(); ++i) {
        total[i].signal += noise[i].signal;
        total[i].noise += noise[i].noise;
      }
    }
    return total;
  }

 private:
  StatusOr<std::vector<Noise>> Measure(const NodeNames& chosen, std::span<const LiteSample> samples,
                                       std::span<const std::vector<Tensor>> wanted) {
    ASSIGN_OR_RETURN(const NodeNames in_float, WithMoves(chosen));
    ASSIGN_OR_RETURN(const LiteGraphs graphs, quantize_(in_float));
    ASSIGN_OR_RETURN(const auto got, AnswersOf(graphs, samples));
    return NoiseOf(wanted, got);
  }

  const LiteGraphs& plain_;
  const Quantizer& quantize_;
  std::span<const LiteSample> samples_;
  std::vector<LiteSample> trials_;
  std::vector<std::vector<Tensor>> wanted_trials_;
};

// Chooses layers one after the other: that which gains most. What others gain is measured again
// only for those that gained most before, and for the neighbours of what was chosen last, which may
// gain more by it: what lies between two layers in float is rounded no more.
class GreedyChoice {
 public:
  GreedyChoice(const LiteGraphs& plain, FloatLayerSearch& search, LayerErrors& errors,
               NodeNames& chosen)
      : plain_(plain), search_(search), chosen_(chosen) {
    for (auto* layers : {&errors.layers, &errors.in_bodies}) {
      for (LayerError& l : *layers) {
        if (!l.moves) candidates_[l.node].layers.push_back(&l);
      }
    }
  }

  Status Prepare() {
    ASSIGN_OR_RETURN(now_, search_.Try(chosen_));
    for (auto& [name, c] : candidates_) {
      RETURN_IF_ERROR(Measure(name, c));
      for (LayerError* l : c.layers) l->outputs_in_float = c.left;
    }
    DropRefused();
    return OkStatus();
  }

  // The worst result on the samples of trials, with what was chosen so far.
  const Noise& now() const { return now_; }

  // The name; empty where nothing is left to choose.
  StatusOr<std::string> Next() {
    while (!candidates_.empty()) {
      auto best = candidates_.begin();
      for (auto it = candidates_.begin(); it != candidates_.end(); ++it) {
        if (IsBetter(it->second, best->second)) best = it;
      }
      if (best->second.round == round_) {
        const std::string name = best->first;
        now_ = best->second.left;
        candidates_.erase(best);
        chosen_.insert(name);
        ++round_;
        RETURN_IF_ERROR(MeasureNeighbours(name));
        return name;
      }
      RETURN_IF_ERROR(Measure(best->first, best->second));
      DropRefused();
    }
    return std::string();
  }

 private:
  struct Candidate {
    std::vector<LayerError*> layers;  // of that name, one in each graph
    Noise left;                       // of the graph's worst result
    double gain = 0;                  // of the power of that
    int round = -1;                   // in which it was measured
    bool refused = false;
  };

  // Of two that gain as much that whose own error is worse.
  bool IsBetter(const Candidate& a, const Candidate& b) const {
    if (a.gain != b.gain) return a.gain > b.gain;
    return a.layers[0]->alone.Relative() > b.layers[0]->alone.Relative();
  }

  Status Measure(const std::string& name, Candidate& c) {
    NodeNames with = chosen_;
    with.insert(name);
    const auto left = search_.Try(with);
    if (left.ok()) {
      c.left = *left;
      c.gain = std::pow(now_.Relative(), 2) - std::pow(left->Relative(), 2);
      c.round = round_;
    } else if (absl::IsFailedPrecondition(left.status()) || absl::IsUnimplemented(left.status())) {
      c.refused = true;  // the graph wants integers there
    } else {
      return left.status();
    }
    return OkStatus();
  }

  void DropRefused() {
    std::erase_if(candidates_, [](const auto& entry) { return entry.second.refused; });
  }

  // The names of what is before and behind the node, through what only moves numbers.
  static void AddNeighbours(const Node* n, std::set<std::string>& near) {
    const auto add = [&](const Node* other) { near.insert(other->name()); };
    std::vector<const Node*> back = {n}, ahead = {n};
    absl::flat_hash_set<const Node*> seen;
    while (!back.empty()) {
      const Node* at = back.back();
      back.pop_back();
      for (const Endpoint& e : at->inputs()) {
        if (!seen.insert(e.node).second) continue;
        add(e.node);
        if (MovesNumbers(*e.node)) back.push_back(e.node);
      }
    }
    while (!ahead.empty()) {
      const Node* at = ahead.back();
      ahead.pop_back();
      for (const Use& use : at->uses()) {
        if (!seen.insert(use.node).second) continue;
        add(use.node);
        if (MovesNumbers(*use.node)) ahead.push_back(use.node);
      }
    }
  }

  Status MeasureNeighbours(const std::string& name) {
    std::set<std::string> near;
    for (const Graph* graph : plain_.All()) {
      if (const Node* n = graph->Find(name)) AddNeighbours(n, near);
    }
    for (const std::string& other : near) {
      const auto it = candidates_.find(other);
      if (it != candidates_.end()) RETURN_IF_ERROR(Measure(it->first, it->second));
    }
    DropRefused();
    return OkStatus();
  }

  const LiteGraphs& plain_;
  FloatLayerSearch& search_;
  NodeNames& chosen_;
  std::map<std::string, Candidate> candidates_;
  Noise now_;
  int round_ = 0;
};

StatusOr<NodeNames> MatchPatterns(const LiteGraphs& graphs,
                                  const std::vector<std::string>& patterns, NodeNames& matched) {
  NodeNames out;
  const std::vector<Graph*> all = graphs.All();
  for (const std::string& pattern : patterns) {
    const RE2 whole(pattern, RE2::Quiet);
    const bool named =
        std::ranges::any_of(all, [&](const Graph* g) { return g->Find(pattern) != nullptr; });
    if (!whole.ok() && !named) {
      return InvalidArgument("float layers: '", pattern, "' is no pattern: ", whole.error());
    }
    for (const Graph* graph : all) {
      for (const Node* n : graph->Nodes()) {
        if (FindQuantizedOp(n->op_name()) == nullptr) continue;
        if (n->name() != pattern && !(whole.ok() && RE2::FullMatch(n->name(), whole))) continue;
        out.insert(n->name());
        matched.insert(pattern);
      }
    }
  }
  return out;
}

// Those with the greatest part of noise in one of their numbers, no more than kWorstLayers.
std::vector<LayerError*> WorstLayers(std::vector<LayerError>& layers, Noise LayerError::*of) {
  std::vector<LayerError*> worst;
  for (LayerError& l : layers) {
    if ((l.*of).noise > 0) worst.push_back(&l);
  }
  std::ranges::stable_sort(worst, [&](const LayerError* a, const LayerError* b) {
    return (a->*of).Relative() > (b->*of).Relative();
  });
  if (worst.size() > kWorstLayers) worst.resize(kWorstLayers);
  return worst;
}

// What the worst layers would gain.
Status MeasureWorst(FloatLayerSearch& search, const NodeNames& chosen, LayerErrors& errors) {
  std::vector<LayerError*> worst = WorstLayers(errors.layers, &LayerError::alone);
  const auto of_bodies = WorstLayers(errors.in_bodies, &LayerError::weights);
  worst.insert(worst.end(), of_bodies.begin(), of_bodies.end());
  for (LayerError* l : worst) {
    NodeNames with = chosen;
    with.insert(l->node);
    const auto left = search.Try(with);
    if (left.ok()) {
      l->outputs_in_float = *left;
    } else if (!absl::IsFailedPrecondition(left.status()) &&
               !absl::IsUnimplemented(left.status())) {
      return left.status();
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<FloatLayers> ChooseFloatLayers(const LiteGraphs& plain, const LiteRanges& ranges,
                                        std::span<const LiteSample> samples,
                                        const Quantizer& quantize, const FloatLayerFlags& flags) {
  FloatLayerSearch search(plain, samples, quantize);
  FloatLayers out;
  out.samples = samples.size();
  out.trial_samples = search.trials();
  ASSIGN_OR_RETURN(NodeNames chosen, MatchPatterns(plain, flags.patterns, out.matched));
  ASSIGN_OR_RETURN(out.nodes, search.WithMoves(chosen));
  if (!flags.measure && !flags.max_loss) return out;
  if (samples.empty()) return InvalidArgument("there are no samples to measure layers on");
  ASSIGN_OR_RETURN(const LiteGraphs first, quantize(out.nodes));
  ASSIGN_OR_RETURN(out.before, MeasureLayers(plain, first, ranges, samples));
  out.after = out.before.outputs;
  const auto is_within = [&](const Noise& n) { return n.Relative() <= *flags.max_loss; };
  if (!flags.max_loss || is_within(WorstOf(out.after))) {
    RETURN_IF_ERROR(MeasureWorst(search, chosen, out.before));
    return out;
  }
  GreedyChoice choice(plain, search, out.before, chosen);
  RETURN_IF_ERROR(choice.Prepare());
  while (!is_within(WorstOf(out.after))) {
    ASSIGN_OR_RETURN(const std::string name, choice.Next());
    if (!name.empty()) {
      out.chosen.push_back(name);
      if (!is_within(choice.now())) continue;
    }
    ASSIGN_OR_RETURN(out.after, search.MeasureAll(chosen));
    const Noise worst = WorstOf(out.after);
    if (name.empty() && !is_within(worst)) {
      return FailedPrecondition("the loss is ", worst.Relative(), " (", worst.Decibels(),
                                " dB) with all layers in float that may be, and not ",
                                *flags.max_loss);
    }
  }
  ASSIGN_OR_RETURN(out.nodes, search.WithMoves(chosen));
  return out;
}

}  // namespace smelt
