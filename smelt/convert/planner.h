// What to convert when nobody says: a plan made by trying, with its reasons.
#ifndef SMELT_CONVERT_PLANNER_H_
#define SMELT_CONVERT_PLANNER_H_

#include <string>
#include <vector>

#include "smelt/convert/conversion.h"

namespace smelt {

struct ConversionPlan {
  // ConverterOptions as text, in parts; each may be empty.
  std::string placement, batching, precision;
  std::string Options() const;
  bool auto_place = false;
  // One line for each of placement, batching and precision: what was chosen and why.
  std::vector<std::string> reasons;
};

// Tries what a TPU serves best and keeps what this model allows: whole signatures on the TPU, else
// the part that it can run; requests in batches where rows are proved independent; bfloat16 where
// both models answer alike on the requests of flags.verify (a few made-up ones without them).
// Without `precision` that is left to others. Writes to temporary folders only; of `flags` the
// input, files, settings and verification count. Errors of the last placement that was tried.
StatusOr<ConversionPlan> PlanConversion(const ConvertFlags& flags, bool precision = true);

}  // namespace smelt

#endif  // SMELT_CONVERT_PLANNER_H_
