// smelt optimize --html: one page that shows a graph before and after each pass.
#ifndef SMELT_CLI_PAGE_PAGE_H_
#define SMELT_CLI_PAGE_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "smelt/optimize/history.h"
#include "smelt/optimize/rewrite_log.h"

namespace smelt {

// The page holds all it needs and loads nothing. The graphs are JSON in a script element that no
// name can end; the page's own scripts alone may run (their hashes stand in its policy), and show
// names as text. REQUIRES: history.End() was called.
std::string OptimizationPage(absl::string_view title, OptimizationHistory& history,
                             const RewriteLog& log);

}  // namespace smelt

#endif  // SMELT_CLI_PAGE_PAGE_H_
