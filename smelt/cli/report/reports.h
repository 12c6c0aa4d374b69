// The reports of smelt convert beside the text report: JSON (docs/report.md), one HTML page, and
// what is printed when it is done.
#ifndef SMELT_CLI_REPORT_REPORTS_H_
#define SMELT_CLI_REPORT_REPORTS_H_

#include <string>

#include "smelt/convert/report/report_data.h"

namespace smelt {

std::string ConvertReportJson(const Conversion& c, const ReportData& data);
// Names from the model are untrusted: all text is escaped, nothing is loaded from elsewhere.
std::string ConvertReportHtml(const Conversion& c, const ReportData& data);
// What was done in a few lines; at most so many notes that it fits a screen.
std::string ConvertSummary(const Conversion& c, const ReportData& data);

// "12.3 MB".
std::string BytesText(int64_t bytes);

}  // namespace smelt

#endif  // SMELT_CLI_REPORT_REPORTS_H_
