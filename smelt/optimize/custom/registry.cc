#include <map>

#include "absl/synchronization/mutex.h"
#include "smelt/optimize/custom/custom_optimizer.h"

namespace smelt {
namespace {

// Rows stay where they are: others keep pointers to them.
struct CustomOptimizers {
  absl::Mutex mutex;
  std::map<std::string, CustomOptimizerRow, std::less<>> by_name ABSL_GUARDED_BY(mutex) = {
      {"batch_op_rewrite", {"batch_op_rewrite", "batch_op_rewriter", MakeBatchOpRewriter}},
  };
  std::map<std::string, DeviceOptimizerRow> by_device ABSL_GUARDED_BY(mutex);
};

CustomOptimizers& Customs() {
  static auto* customs = new CustomOptimizers;
  return *customs;
}

}  // namespace

const CustomOptimizerRow* FindCustomOptimizer(absl::string_view name) {
  CustomOptimizers& customs = Customs();
  absl::MutexLock lock(&customs.mutex);
  const auto it = customs.by_name.find(std::string(name));
  return it == customs.by_name.end() ? nullptr : &it->second;
}

Status AddCustomOptimizer(CustomOptimizerRow row) {
  CustomOptimizers& customs = Customs();
  absl::MutexLock lock(&customs.mutex);
  const std::string name = row.name;
  if (customs.by_name.try_emplace(name, std::move(row)).second) return OkStatus();
  return AlreadyExists("CustomGraphOptimizer is registered twice: ", name);
}

std::vector<const DeviceOptimizerRow*> DeviceOptimizers(const std::set<std::string>& device_types) {
  CustomOptimizers& customs = Customs();
  absl::MutexLock lock(&customs.mutex);
  std::vector<const DeviceOptimizerRow*> rows;
  for (const auto& [type, row] : customs.by_device) {
    if (device_types.contains(type)) rows.push_back(&row);
  }
  return rows;
}

Status AddDeviceOptimizer(DeviceOptimizerRow row) {
  CustomOptimizers& customs = Customs();
  absl::MutexLock lock(&customs.mutex);
  const std::string type = row.device_type;
  if (customs.by_device.try_emplace(type, std::move(row)).second) return OkStatus();
  return AlreadyExists("PluginGraphOptimizer with device_type ", type, " is registered twice.");
}

}  // namespace smelt
