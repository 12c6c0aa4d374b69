// What smelt optimize tells: passes, rules, the story of a node.
#ifndef SMELT_CLI_OPTIMIZE_REPORT_H_
#define SMELT_CLI_OPTIMIZE_REPORT_H_

#include <string>

#include "smelt/optimize/meta_optimizer.h"

namespace smelt {

// For people: a table for each graph that was optimized, then how often each rule fired; for a
// `node` that is not empty, its story, as `log` recorded it.
std::string OptimizationText(const OptimizationReport& report, const RewriteLog& log,
                             const std::string& node);
// The same for scripts; docs/optimizer.md names the fields.
std::string OptimizationJson(const OptimizationReport& report, const RewriteLog& log,
                             const std::string& node);

}  // namespace smelt

#endif  // SMELT_CLI_OPTIMIZE_REPORT_H_
