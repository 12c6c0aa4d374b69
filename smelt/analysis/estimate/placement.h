// Which of the known devices a node runs on: TensorFlow's VirtualPlacer.
#ifndef SMELT_ANALYSIS_ESTIMATE_PLACEMENT_H_
#define SMELT_ANALYSIS_ESTIMATE_PLACEMENT_H_

#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "smelt/analysis/estimate/op_estimate.h"

namespace smelt {

// Not thread safe.
class Placement {
 public:
  // Without devices there is one, of unknown kind.
  explicit Placement(std::span<const DeviceProperties> devices);

  int num_devices() const { return static_cast<int>(devices_.size()); }
  const DeviceProperties& device(int i) const { return devices_[static_cast<size_t>(i)]; }
  const DeviceSpeed& speed(int i) const { return speeds_[static_cast<size_t>(i)]; }
  // The device that the node names, whatever the spelling. A node that names none, or one that is
  // not known, runs on the GPU of the smallest number, else on such a CPU, else on any.
  int Of(const Node& node);

 private:
  int Find(absl::string_view name) const;

  std::vector<DeviceProperties> devices_;
  std::vector<DeviceSpeed> speeds_;
  std::string default_job_ = "localhost";
  int default_device_ = 0;
  absl::flat_hash_map<std::string, int> by_whole_name_;
  absl::flat_hash_map<std::string, int> found_;  // by what nodes say
};

}  // namespace smelt

#endif  // SMELT_ANALYSIS_ESTIMATE_PLACEMENT_H_
