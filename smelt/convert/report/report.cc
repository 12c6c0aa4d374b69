// The conversion report, in the inference converter's form.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "smelt/convert/report/report_data.h"

namespace smelt {
namespace {

double Percent(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

int Digits(int64_t n) { return static_cast<int>(absl::StrCat(n).size()); }

}  // namespace

std::string ConversionReport(const ReportData& data) {
  const int64_t total = data.total_cost;
  std::string out = "-------- Conversion Report --------\n";
  absl::StrAppendFormat(&out, "TPU cost of the model: %5.2f%% (%d/%d)\n",
                        Percent(data.tpu_cost, total), data.tpu_cost, total);
  absl::StrAppendFormat(&out, "CPU cost of the model: %5.2f%% (%d/%d)\n\n",
                        Percent(data.cpu_cost, total), data.cpu_cost, total);
  out += "Cost breakdown\n================================\n";
  // The converter's own columns, as wide as the largest cost needs.
  int width = 7;
  for (const ReportPlacement& p : data.placements) width = std::max(width, Digits(p.cost));
  width = std::max(width, Digits(data.cpu_cost));
  absl::StrAppendFormat(&out, "%-10s%-*s %s\n", "%", width, "Cost", "Name");
  out += "--------------------------------\n";
  const auto row = [&](const std::string& name, int64_t cost) {
    absl::StrAppendFormat(&out, "%-10s%-*d %s\n", absl::StrFormat("%.2f", Percent(cost, total)),
                          width, cost, name);
  };
  row("[CPU cost]", data.cpu_cost);
  for (const ReportPlacement& p : data.placements) row(p.label, p.cost);
  out += "--------------------------------\n";
  return out;
}

}  // namespace smelt
