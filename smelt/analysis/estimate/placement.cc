#include "smelt/analysis/estimate/placement.h"

#include <limits>
#include <set>

namespace smelt {

Placement::Placement(std::span<const DeviceProperties> devices)
    : devices_(devices.begin(), devices.end()) {
  if (devices_.empty()) devices_.push_back({.name = "UNKNOWN", .type = "UNKNOWN"});
  std::set<std::string> jobs;
  // A GPU before a CPU before others, then by number.
  std::pair<int, int> best = {std::numeric_limits<int>::max(), 0};
  for (int i = 0; i < num_devices(); ++i) {
    speeds_.push_back(SpeedOf(device(i)));
    std::optional<DeviceName> parts = ParseDeviceName(device(i).name);
    if (!parts) continue;
    if (parts->job.empty()) parts->job = default_job_;
    jobs.insert(parts->job);
    by_whole_name_[parts->Whole()] = i;
    const std::pair<int, int> rank = {parts->type == "gpu"   ? 0
                                      : parts->type == "cpu" ? 1
                                                             : 2,
                                      parts->number};
    if (rank < best) {
      best = rank;
      default_device_ = i;
    }
  }
  if (jobs.size() == 1) default_job_ = *jobs.begin();
}

int Placement::Find(absl::string_view name) const {
  std::optional<DeviceName> parts = ParseDeviceName(name);
  if (!parts) return default_device_;
  if (parts->job.empty()) parts->job = default_job_;
  const auto found = by_whole_name_.find(parts->Whole());
  return found == by_whole_name_.end() ? default_device_ : found->second;
}

int Placement::Of(const Node& node) {
  if (node.device.empty()) return default_device_;
  const auto [it, added] = found_.try_emplace(node.device, 0);
  if (added) it->second = Find(node.device);
  return it->second;
}

}  // namespace smelt
