// smelt convert --max_error: the cheapest types of the layers by which the model still answers as
// the bound says, found by trying whole conversions.
#ifndef SMELT_CONVERT_SEARCH_PRECISION_SEARCH_H_
#define SMELT_CONVERT_SEARCH_PRECISION_SEARCH_H_

#include <optional>
#include <string>

#include "smelt/convert/conversion.h"

namespace smelt {

struct PrecisionBound {
  double max_error = 0;  // ParseMaxError
  std::string labels;    // as --labels gives them, or empty
};

// "1%" or "0.01". INVALID_ARGUMENT for what is no number from 0 to 1, or 0% to 100%.
StatusOr<double> ParseMaxError(const std::string& text);

struct PrecisionPlan {
  std::string options;  // ConverterOptions as text: the given ones, and the types of the layers
  PrecisionSearch search;
  // What VerifyFlags::tolerance of the conversion is to be; nothing: its default.
  std::optional<double> tolerance;
};

// Tries conversions by `flags.options_text` and types for each layer on the requests of
// flags.verify, all of them in temporary folders; a bounded number, one after the other. The same
// model, options and requests give the same plan. float32 where nothing narrower stays within the
// bound, whether float32 does or not: the notes say so. `flags.progress` gets a name for each
// trial.
//
// INVALID_ARGUMENT without requests, with options that say themselves what is narrowed, with
// labels that do not fit the answers; ALREADY_EXISTS for an output folder that may not be replaced;
// errors of reading the log, and of the conversion in float32.
StatusOr<PrecisionPlan> SearchPrecision(const ConvertFlags& flags, const PrecisionBound& bound);

// What is printed of it: a line for each trial, and what was chosen.
std::string PrecisionSearchText(const PrecisionSearch& search);

}  // namespace smelt

#endif  // SMELT_CONVERT_SEARCH_PRECISION_SEARCH_H_
