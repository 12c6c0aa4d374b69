#include "smelt/base/suggest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace smelt {
namespace {

// Characters to change, add, take away or swap with their neighbor.
int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> before, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

std::vector<std::string> Nearest(absl::string_view name, const std::vector<std::string>& names) {
  // What was begun but not written to its end is nearer than what merely looks like it.
  constexpr size_t kBeginning = 3;
  std::vector<std::pair<int, std::string>> ranked;
  // Long lists are not searched whole for a hint.
  for (size_t i = 0; i < names.size() && i < 10000; ++i) {
    const int d = EditDistance(name.substr(0, 128), absl::string_view(names[i]).substr(0, 128));
    if (name.size() >= kBeginning && absl::StartsWith(names[i], name)) {
      ranked.emplace_back(0, names[i]);
    } else if (d <= static_cast<int>(std::max(name.size(), names[i].size())) / 2) {
      ranked.emplace_back(d, names[i]);
    }
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> best;
  for (size_t i = 0; i < ranked.size() && i < 3; ++i) best.push_back(ranked[i].second);
  return best;
}

std::string DidYouMean(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  return absl::StrCat(" (did you mean \"", absl::StrJoin(names, "\" or \""), "\"?)");
}

std::string Suggest(absl::string_view name, const std::vector<std::string>& names) {
  return DidYouMean(Nearest(name, names));
}

}  // namespace smelt
