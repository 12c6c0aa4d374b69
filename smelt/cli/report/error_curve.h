// The curve of error against cost that --max_error found, as a drawing.
#ifndef SMELT_CLI_REPORT_ERROR_CURVE_H_
#define SMELT_CLI_REPORT_ERROR_CURVE_H_

#include <string>

#include "smelt/convert/records.h"

namespace smelt {

// An svg element; empty where fewer than two trials could be measured. A point for each trial, with
// its number; the line is the least error that can be had for so much cost.
std::string ErrorCurveSvg(const PrecisionSearch& search);

}  // namespace smelt

#endif  // SMELT_CLI_REPORT_ERROR_CURVE_H_
