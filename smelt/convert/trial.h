// Conversions that are only tried: what they write is gone with the call. Not thread safe.
#ifndef SMELT_CONVERT_TRIAL_H_
#define SMELT_CONVERT_TRIAL_H_

#include <string>

#include "smelt/convert/conversion.h"

namespace smelt {

// In memory, by these options; of `flags` the files and settings count. `dir`: the SavedModel's
// folder. Errors of the options, of reading and of Convert.
StatusOr<Conversion> ConvertInMemory(const ConvertFlags& flags, const std::string& dir,
                                     const std::string& options);

struct TriedConversion {
  Conversion conversion;  // its variables' files are gone
  Verification verification;
};
// Into a temporary folder, by these options, and verified; of `flags` the input, files, settings,
// verification and `count` count. Errors of ConvertSavedModel.
StatusOr<TriedConversion> ConvertAndVerify(const ConvertFlags& flags, const std::string& options);

// What speaks against the conversion most, or how far its answers are off. REQUIRES: v.done.
std::string WorstDifference(const Verification& v);

// The first line, with the next one where it ends in a colon and begins a list.
std::string FirstLine(absl::string_view text);

}  // namespace smelt

#endif  // SMELT_CONVERT_TRIAL_H_
