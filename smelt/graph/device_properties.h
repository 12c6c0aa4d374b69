// What the optimizer knows of the machines that a graph is for: TensorFlow's NamedDevice, as its
// virtual clusters list them.
#ifndef SMELT_GRAPH_DEVICE_PROPERTIES_H_
#define SMELT_GRAPH_DEVICE_PROPERTIES_H_

#include <map>
#include <optional>
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
// "/job:a/replica:0/task:0" of it, as it is written: what shares memory. Empty where the name does
// not say.
absl::string_view TaskOfDevice(absl::string_view device);
// The parts of a device's name, in lower case; what it does not say is empty or 0.
struct DeviceName {
  std::string job, type;
  int replica = 0, task = 0, number = 0;

  std::string Task() const;   // "/job:a/replica:0/task:0"
  std::string Whole() const;  // "/job:a/replica:0/task:0/device:gpu:0"
};
// "/job:a/replica:0/task:0/device:GPU:0", parts of it, "/gpu:0", "gpu:0" or "gpu", in any case;
// nothing for any other text.
std::optional<DeviceName> ParseDeviceName(absl::string_view text);

}  // namespace smelt

#endif  // SMELT_GRAPH_DEVICE_PROPERTIES_H_
