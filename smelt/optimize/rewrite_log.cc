#include "smelt/optimize/rewrite_log.h"

#include <algorithm>

namespace smelt {

bool RewriteLog::Explained(absl::string_view node) const {
  return std::ranges::find(explained_, node) != explained_.end();
}

void RewriteLog::Fired(absl::string_view rule, const Node& node, absl::string_view by) {
  ++counts_[{pass_, std::string(rule)}];
  if (rewrites_.size() < most_rewrites_) {
    rewrites_.push_back({pass_, std::string(rule), graph_, node.name(), std::string(by)});
  }
  if (!explaining() || !Explained(node.name())) return;
  events_.push_back({pass_, std::string(rule), graph_, true,
                     by.empty() ? "rewritten" : absl::StrCat("became '", by, "'")});
  if (!by.empty() && !Explained(by)) explained_.emplace_back(by);
}

void RewriteLog::Declined(absl::string_view rule, const Node& node, absl::string_view why) {
  if (!explaining() || !Explained(node.name())) return;
  Event event{pass_, std::string(rule), graph_, false, std::string(why)};
  // A rule looks at a node several times.
  const bool known = std::ranges::any_of(events_, [&](const Event& e) {
    return e.pass == event.pass && e.rule == event.rule && e.graph == event.graph && !e.fired &&
           e.text == event.text;
  });
  if (!known) events_.push_back(std::move(event));
}

}  // namespace smelt
