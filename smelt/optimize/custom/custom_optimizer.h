// Optimizers beside those of pipeline.h: TensorFlow's custom optimizers, which a configuration asks
// for by name, and those that shared libraries bring for a kind of device (plugin.h).
//
// Some are built in (batch_ops.cc). A program adds its own before the first graph is optimized;
// what is added stays for good. The functions are thread safe.
#ifndef SMELT_OPTIMIZE_CUSTOM_CUSTOM_OPTIMIZER_H_
#define SMELT_OPTIMIZE_CUSTOM_CUSTOM_OPTIMIZER_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "smelt/optimize/passes.h"

namespace smelt {

// Made for one graph, and used in one thread.
class CustomOptimizer {
 public:
  virtual ~CustomOptimizer() = default;
  // Whether the graph changed; it may be another object of the same library afterwards. ABORTED
  // says, as in TensorFlow, that there was nothing to do. After an error the graph is of no use.
  virtual StatusOr<bool> Optimize(Graph& graph, const PassContext& context) = 0;
};

struct CustomOptimizerRow {
  std::string name;  // in configurations
  std::string pass;  // in reports
  // `parameters`: those of the entry of custom_optimizers that has the name; nullptr: none has.
  std::function<StatusOr<std::unique_ptr<CustomOptimizer>>(const RewriterConfig& config,
                                                           const AttrMap* parameters)>
      make;
};

// nullptr: there is none of that name.
const CustomOptimizerRow* FindCustomOptimizer(absl::string_view name);
// ALREADY_EXISTS for a name that is taken.
Status AddCustomOptimizer(CustomOptimizerRow row);

// An optimizer that runs last on graphs that have nodes on a kind of device.
struct DeviceOptimizerRow {
  std::string device_type;
  std::string pass;
  // Turns off the passes that it does not want beside itself.
  std::function<void(RewriterConfig&)> turn_off;
  std::function<std::unique_ptr<CustomOptimizer>()> make;
};

// Those for devices of these types, by type.
std::vector<const DeviceOptimizerRow*> DeviceOptimizers(const std::set<std::string>& device_types);
// ALREADY_EXISTS for a type that has one.
Status AddDeviceOptimizer(DeviceOptimizerRow row);

// Sets how BatchFunction ops batch, by model: TensorFlow's batch_op_rewrite.
StatusOr<std::unique_ptr<CustomOptimizer>> MakeBatchOpRewriter(const RewriterConfig& config,
                                                               const AttrMap* parameters);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_CUSTOM_CUSTOM_OPTIMIZER_H_
