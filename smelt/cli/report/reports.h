// The reports of smelt convert beside the text report: JSON (docs/report.md), one HTML page, and
// what is printed when it is done; and the comparison of the model with its conversion.
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

struct VerifyFlags {
  std::string original, converted;
  int count = 0;    // random inputs for each signature
  std::string log;  // recorded inputs: a TFRecord file of PredictionLogs
  double tolerance = 1e-3;
  // The largest request of the batching that the conversion added; 0: none.
  int largest_batch = 0;
};
// Runs both models on the inputs of the log or, without one, on random ones; a batched conversion
// also on several requests at the same time, each of which must get what it gets alone. Prints for
// each output the largest difference, absolute and relative to the output's largest magnitude.
// False when a relative one is above the tolerance, an output differs otherwise, or only the
// conversion fails.
StatusOr<bool> VerifyConversion(const VerifyFlags& flags);

// "12.3 MB".
std::string BytesText(int64_t bytes);

}  // namespace smelt

#endif  // SMELT_CLI_REPORT_REPORTS_H_
