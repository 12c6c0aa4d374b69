// Device: something that computes and has memory of its own.
#ifndef SMELT_DEVICE_DEVICE_H_
#define SMELT_DEVICE_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/tensor/buffer.h"

namespace smelt {

// Thread safe.
class Device {
 public:
  virtual ~Device() = default;
  // "/job:localhost/replica:0/task:0/device:CPU:0"
  virtual const std::string& name() const = 0;
  virtual absl::string_view type() const = 0;  // "CPU", "TPU"
  // Memory of tensors that live on the device.
  virtual std::shared_ptr<Allocator> allocator() = 0;
  // Counts `bytes` as used until the returned token goes, without taking host memory: weights that
  // the device holds a copy of. RESOURCE_EXHAUSTED when they do not fit.
  virtual StatusOr<std::shared_ptr<const void>> Reserve(int64_t bytes) = 0;
  // Bytes; 0: not limited.
  virtual int64_t memory_limit() const = 0;
  virtual int64_t memory_used() const = 0;
};

// The host: heap memory.
std::unique_ptr<Device> MakeCpuDevice(int ordinal);
// Refuses every allocation: to copy from, and to test what refuses.
std::unique_ptr<Device> MakeNullDevice();
// One accelerator core simulated by host threads, with `hbm_bytes` of memory of its own.
std::unique_ptr<Device> MakeTpuCore(int ordinal, int64_t hbm_bytes);

// Can TensorFlow's bridge compile the op for an accelerator?
bool IsTpuCompilable(absl::string_view op);

}  // namespace smelt

#endif  // SMELT_DEVICE_DEVICE_H_
