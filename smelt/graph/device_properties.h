// What the optimizer knows of the machines that a graph is for: TensorFlow's NamedDevice, as its
// virtual clusters list them.
#ifndef SMELT_GRAPH_DEVICE_PROPERTIES_H_
#define SMELT_GRAPH_DEVICE_PROPERTIES_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace smelt {

struct DeviceProperties {
  std::string name;         // whole: "/job:localhost/replica:0/task:0/device:GPU:0"
  std::string type;         // "CPU", "GPU", ...
  int64_t frequency = 0;    // MHz
  int64_t num_cores = 0;    // of a GPU: its multiprocessors
  int64_t memory_size = 0;  // bytes
  int64_t bandwidth = 0;    // of its memory, KB/s
  std::map<std::string, std::string> environment;  // "architecture" of a GPU: "7.0"
};

// "NAME TYPE key=value ...", words separated by blanks or commas; keys that are no fields above
// belong to the environment. INVALID_ARGUMENT says what is wrong.
StatusOr<DeviceProperties> ParseDeviceProperties(absl::string_view text);

// "GPU" of "/job:a/replica:0/task:0/device:GPU:0"; empty where the name does not say.
std::string DeviceType(absl::string_view device);

}  // namespace smelt

#endif  // SMELT_GRAPH_DEVICE_PROPERTIES_H_
