// What rules of passes did to a graph: how often each fired, and on request the story of one node.
#ifndef SMELT_OPTIMIZE_REWRITE_LOG_H_
#define SMELT_OPTIMIZE_REWRITE_LOG_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/graph/graph.h"

namespace smelt {

// Not thread safe.
class RewriteLog {
 public:
  struct Event {
    std::string pass, rule;
    std::string graph;  // a function's name; empty: the main graph
    bool fired = false;
    std::string text;  // what became of the node, or the condition that failed
  };

  // Records what happens to the node of this name, and to those that take its place. Empty: none.
  void Explain(absl::string_view node) { explained_ = {std::string(node)}; }
  bool explaining() const { return !explained_.empty(); }

  // Records what rules rewrite whatever the node, at most so many; the others are only counted.
  void RecordRewrites(size_t most) { most_rewrites_ = most; }
  struct Rewrite {
    std::string pass, rule;
    std::string graph;     // a function's name; empty: the main graph
    std::string node, by;  // what stands in its place; empty: the node itself
  };
  const std::vector<Rewrite>& rewrites() const { return rewrites_; }

  // Where what is recorded from now on happens.
  void Enter(absl::string_view pass, absl::string_view graph) {
    pass_ = std::string(pass);
    graph_ = std::string(graph);
  }
  // The rule rewrote the node; `by` is what stands in its place, empty where that is itself.
  void Fired(absl::string_view rule, const Node& node, absl::string_view by = "");
  // The rule would have, but for the condition `why`.
  void Declined(absl::string_view rule, const Node& node, absl::string_view why);

  // By pass and rule.
  using Counts = std::map<std::pair<std::string, std::string>, int64_t>;
  const Counts& counts() const { return counts_; }
  const std::vector<Event>& events() const { return events_; }

 private:
  bool Explained(absl::string_view node) const;

  std::string pass_, graph_;
  Counts counts_;
  std::vector<std::string> explained_;
  std::vector<Event> events_;
  size_t most_rewrites_ = 0;
  std::vector<Rewrite> rewrites_;
};

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_REWRITE_LOG_H_
