#include "smelt/cli/report/error_curve.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace smelt {
namespace {

constexpr double kWidth = 640, kHeight = 280, kLeft = 64, kRight = 24, kTop = 20, kBottom = 44;
// Errors further above the bound are drawn at the upper edge: the bound stays in the lower part.
constexpr double kBoundsShown = 5;
constexpr int kTicks = 4;

struct Point {
  double cost, error;
  int trial;
  bool ok, chosen;
};

}  // namespace

std::string ErrorCurveSvg(const PrecisionSearch& search) {
  std::vector<Point> points;
  double highest = search.max_error, dearest = 0;
  for (size_t i = 0; i < search.trials.size(); ++i) {
    const PrecisionTrial& t = search.trials[i];
    if (!t.why.empty() || !std::isfinite(t.error)) continue;
    const int number = static_cast<int>(i);
    points.push_back({t.cost, t.error, number + 1, t.ok, number == search.chosen});
    highest = std::max(highest, t.error);
    dearest = std::max(dearest, t.cost);
  }
  if (points.size() < 2 || dearest <= 0 || highest <= 0) return "";
  if (search.max_error > 0) highest = std::min(highest, kBoundsShown * search.max_error);
  highest *= 1.05;
  std::ranges::stable_sort(points, {}, &Point::cost);
  const auto x = [&](double cost) { return kLeft + cost / dearest * (kWidth - kLeft - kRight); };
  const auto y = [&](double error) {
    return kHeight - kBottom - std::min(1.0, error / highest) * (kHeight - kTop - kBottom);
  };

  std::string out = absl::StrFormat(
      "<svg width=\"%.0f\" height=\"%.0f\" font-size=\"11\" role=\"img\" "
      "aria-label=\"error against cost\">",
      kWidth, kHeight);
  for (int i = 0; i <= kTicks; ++i) {
    const double error = highest * i / kTicks, cost = dearest * i / kTicks;
    absl::StrAppendFormat(
        &out,
        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e8eaed\"/>"
        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.3g%s</text>"
        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.2f</text>",
        kLeft, y(error), kWidth - kRight, y(error), kLeft - 6, y(error) + 4, 100 * error,
        search.by_labels ? "" : "%", x(cost), kHeight - kBottom + 16, cost);
  }
  absl::StrAppendFormat(&out,
                        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">cost, of float32's; "
                        "%s upwards</text>",
                        (kLeft + kWidth - kRight) / 2, kHeight - 10,
                        search.by_labels ? "points of accuracy lost" : "error, % of the range,");
  absl::StrAppendFormat(&out,
                        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                        "stroke=\"#b3261e\" stroke-dasharray=\"5 4\"/>",
                        kLeft, y(search.max_error), kWidth - kRight, y(search.max_error));
  // A step at each trial that is better than all cheaper ones.
  std::string line;
  double least = -1;
  for (const Point& p : points) {
    if (least >= 0 && p.error >= least) continue;
    if (least < 0) {
      absl::StrAppendFormat(&line, "M%.1f %.1f", x(p.cost), y(p.error));
    } else {
      absl::StrAppendFormat(&line, "H%.1fV%.1f", x(p.cost), y(p.error));
    }
    least = p.error;
  }
  absl::StrAppendFormat(&out, "<path d=\"%sH%.1f\" fill=\"none\" stroke=\"#1a73e8\"/>", line,
                        x(dearest));
  for (const Point& p : points) {
    absl::StrAppendFormat(&out,
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\" stroke=\"%s\"/>"
                          "<text x=\"%.1f\" y=\"%.1f\"%s>%d</text>",
                          x(p.cost), y(p.error), p.chosen ? 6 : 4, p.ok ? "#1a73e8" : "#fff",
                          p.ok ? "#1a73e8" : "#9aa0a6", x(p.cost) + 7, y(p.error) - 5,
                          p.chosen ? " font-weight=\"bold\"" : "", p.trial);
  }
  return out + "</svg>";
}

}  // namespace smelt
