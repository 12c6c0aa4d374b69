// The model and its conversion on the same inputs, before the conversion is put in its place.
#ifndef SMELT_CONVERT_VERIFY_H_
#define SMELT_CONVERT_VERIFY_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "smelt/io/file_system.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

struct Conversion;

struct VerifyFlags {
  int count = 0;    // made-up requests for each signature
  std::string log;  // recorded requests instead: a TFRecord file of PredictionLogs
  // The largest difference relative to an output's range; left out: by what the conversion changed.
  std::optional<double> tolerance;
  std::string tolerance_from = "--verify_tolerance";  // the flag that says so
  // Called with both models' answers to each request of which both have one; may be empty.
  std::function<void(const std::map<std::string, Tensor>& want,
                     const std::map<std::string, Tensor>& got)>
      on_answers;
  std::vector<std::string> shapes_only;  // outputs (random ones) whose values are not compared
  bool keep_failed = false;  // a conversion that differs is put in its place all the same
  bool wanted() const { return count > 0 || !log.empty(); }
};

// One output of a signature over all requests.
struct VerifiedOutput {
  std::string signature, output;
  int64_t requests = 0;
  double max_abs = 0, max_relative = 0;  // the latter to the largest magnitude of the whole output
  bool ok = false;
  bool random = false;  // the original does not repeat itself: only dtype and shape are compared
  std::string why;      // a difference that no tolerance allows: dtype, shape, strings, NaN
};

struct Verification {
  bool done = false;
  bool ok = true;
  double tolerance = 0;
  std::string tolerance_for;  // what the tolerance allows for: "int8", "bfloat16", "the same types"
  int64_t joined = 0;         // requests of which several were answered at once, padded or split
  std::vector<VerifiedOutput> outputs;
  std::vector<std::string> notes;   // requests that could not be compared, and failures
  std::vector<std::string> advice;  // what may be why they differ, and what to do
};

// Runs the model in `original` and the one in `converted`: on the requests of the log, else on
// those that the model brings to warm up with and on made-up ones (model/made_up_requests.h) up to
// the number that is asked for. Functions that the conversion batches also get several requests at
// once: joined, padded and split they must answer as one by one. INVALID_ARGUMENT for a log that
// does not parse or is empty; errors of loading. Not an error, but `ok` is false: outputs that
// differ, requests that only the conversion refuses, nothing compared.
StatusOr<Verification> VerifyConversion(
    const VerifyFlags& flags, const Conversion& c, const std::string& original,
    const std::string& converted, const std::function<void(int64_t done, int64_t all)>& count);

// What is printed of it.
std::string VerificationText(const Verification& v);

}  // namespace smelt

#endif  // SMELT_CONVERT_VERIFY_H_
