#include "smelt/device/device.h"

namespace smelt {
namespace {

class NullAllocator final : public Allocator {
 public:
  StatusOr<BufferRef> Allocate(size_t size) override {
    return ResourceExhausted("OOM when allocating ", size, " bytes on the null device");
  }
};

class NullDevice final : public Device {
 public:
  const std::string& name() const override { return name_; }
  absl::string_view type() const override { return "NULL"; }
  std::shared_ptr<Allocator> allocator() override { return std::make_shared<NullAllocator>(); }
  StatusOr<std::shared_ptr<const void>> Reserve(int64_t bytes) override {
    return ResourceExhausted("OOM when reserving ", bytes, " bytes on the null device");
  }
  int64_t memory_limit() const override { return 1; }
  int64_t memory_used() const override { return 0; }

 private:
  std::string name_ = "/job:localhost/replica:0/task:0/device:NULL:0";
};

}  // namespace

std::unique_ptr<Device> MakeNullDevice() { return std::make_unique<NullDevice>(); }

}  // namespace smelt
