// One request to a signature, for commands that look at what it does: recorded, of zeros, or made
// up; and the model that is to answer it.
#ifndef SMELT_CLI_SAMPLE_REQUEST_H_
#define SMELT_CLI_SAMPLE_REQUEST_H_

#include <memory>
#include <string>

#include "smelt/cli/precision_flag.h"
#include "smelt/cli/resource_flags.h"
#include "smelt/model/loaded_model.h"

namespace CLI {
class App;
}

namespace smelt {

struct SampleFlags {
  std::string tag_set, signature = "serving_default", shapes, log, optimize;
  int64_t batch = 1;
  int threads = 0;
  PrecisionFlags precision;
  ResourceFlags resources;

  // Adds the flags but for --tag_set and --signature_def. REQUIRES: the object outlives the app.
  void Add(CLI::App& app);
};

struct Sample {
  std::unique_ptr<LoadedModel> model;  // has not been asked yet
  NamedTensors inputs;
  std::string origin;  // "recorded", "zeros" or "made up"

  // "x float[1,4], y int32[1]".
  std::string Inputs() const;
};

// INVALID_ARGUMENT for shapes and records that are not the signature's; errors of loading, and of
// the first made-up request where the model refuses them all (model/made_up_requests.h).
StatusOr<Sample> LoadSample(const std::string& model, const SampleFlags& flags);

}  // namespace smelt

#endif  // SMELT_CLI_SAMPLE_REQUEST_H_
