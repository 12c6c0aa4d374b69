// What smelt optimize tells: passes, rules, the story of a node.
#ifndef SMELT_CLI_OPTIMIZE_REPORT_H_
#define SMELT_CLI_OPTIMIZE_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "smelt/cli/roofline.h"
#include "smelt/optimize/estimate_item.h"
#include "smelt/optimize/meta_optimizer.h"

namespace smelt {

// What --measure found out.
struct MeasuredReport {
  std::optional<Roofline> machine;       // nothing: nobody asked
  std::vector<GraphEstimate> estimates;  // before and after
};

// For people: a table for each graph that was optimized, then how often each rule fired; for a
// `node` that is not empty, its story, as `log` recorded it.
std::string OptimizationText(const OptimizationReport& report, const RewriteLog& log,
                             const std::string& node, const MeasuredReport& measured);
// The same for scripts; docs/optimizer.md names the fields.
std::string OptimizationJson(const OptimizationReport& report, const RewriteLog& log,
                             const std::string& node, const MeasuredReport& measured);

}  // namespace smelt

#endif  // SMELT_CLI_OPTIMIZE_REPORT_H_
