// The ranks of what goes around loops of version 1, which shape inference leaves open.
#include "absl/container/flat_hash_set.h"
#include "smelt/optimize/layout/plan.h"

namespace smelt::layout {
namespace {

// A loop whose rank was guessed wrong may make others wrong; after so many rounds all stay open.
constexpr int kRounds = 4;

// Outputs have the rank of each input that changes with the format, or that of the inputs broadcast
// together.
int KeptRank(const Node& n, const LayoutRow& row, Rewriter& r) {
  const bool keeps = row.results_form == Form::kTensor && !row.data.empty() &&
                     !row.each_by_itself && row.change == nullptr &&
                     (row.results_if.empty() || n.Bool(row.results_if));
  if (!keeps || n.Is("Merge") || n.Is("Bitcast")) return -1;
  int rank = -1;
  for (int i = 0; i < n.num_inputs(); ++i) {
    if (!row.data.Has(i, n.num_inputs())) continue;
    const int found = r.shape(n.input(i)).rank();
    if (found < 0 && row.by_rank) return -1;
    rank = std::max(rank, found);
  }
  return rank;
}

// The rank of what enters the loop; -1 where that is not known, or the node begins none.
int EnteringRank(const Node& merge, Rewriter& r) {
  if (!merge.Is("Merge") || IsFed(merge)) return -1;
  if (r.shape({const_cast<Node*>(&merge), 0}).known_rank()) return -1;
  int rank = -1;
  bool begins = false;
  for (const Endpoint& e : merge.inputs()) {
    if (e.node->Is("NextIteration")) {
      begins = true;
      continue;
    }
    const int found = r.shape(e).rank();
    if (found < 0 || (rank >= 0 && found != rank)) return -1;
    rank = found;
  }
  return begins ? rank : -1;
}

bool ComesBackAs(const Node& merge, int rank, Rewriter& r) {
  return std::ranges::all_of(merge.inputs(),
                             [&](const Endpoint& e) { return r.shape(e).rank() == rank; });
}

}  // namespace

void FindLoopRanks(std::span<Node* const> order, Rewriter& r) {
  absl::flat_hash_set<const Node*> wrong;
  for (int round = 0; round < kRounds; ++round) {
    // What enters a loop may come out of one before it: in order, the guess is there by then.
    std::vector<std::pair<Node*, int>> guesses;
    std::vector<Endpoint> found;
    const auto find = [&](Endpoint e, int rank) {
      r.SetShape(e, PartialShape::UnknownOfRank(rank));
      found.push_back(e);
    };
    for (Node* n : order) {
      if (const int rank = EnteringRank(*n, r); rank >= 0) {
        if (wrong.contains(n)) continue;
        guesses.emplace_back(n, rank);
        find({n, 0}, rank);
      }
      // What is fed is of any rank, and without a loop inference has found all there is.
      if (guesses.empty() || IsFed(*n)) continue;
      const LayoutRow* row = FindAgnosticRow(*n);
      const int rank = row == nullptr ? -1 : KeptRank(*n, *row, r);
      for (int i = 0; i < n->num_outputs() && rank >= 0; ++i) {
        if (row->results.Has(i, n->num_outputs()) && !r.shape({n, i}).known_rank()) {
          find({n, i}, rank);
        }
      }
    }
    const size_t before = wrong.size();
    for (const auto& [merge, rank] : guesses) {
      if (!ComesBackAs(*merge, rank, r)) wrong.insert(merge);
    }
    if (wrong.size() == before) return;
    for (const Endpoint& e : found) r.SetShape(e, PartialShape::Unknown());
  }
}

}  // namespace smelt::layout
