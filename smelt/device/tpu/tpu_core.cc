// An accelerator core on host threads: its memory is heap memory, counted against the core's own
// size.
#include <algorithm>
#include <atomic>

#include "absl/strings/str_format.h"
#include "smelt/device/device.h"

namespace smelt {
namespace {

struct HbmCount {
  int ordinal;
  int64_t limit;
  std::atomic<int64_t> used{0};
};

// Counts `bytes` more, or says what a core says when they do not fit.
Status TakeHbm(HbmCount& count, int64_t bytes) {
  const int64_t used = count.used.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (used <= count.limit && bytes >= 0) return OkStatus();
  count.used.fetch_sub(bytes, std::memory_order_relaxed);
  const auto mega = [](int64_t n) { return static_cast<double>(n) / (1 << 20); };
  return ResourceExhausted(absl::StrFormat(
      "Ran out of memory in memory space hbm. Used %.2fM of %.2fM hbm. Exceeded hbm capacity by "
      "%.2fM (TPU:%d, allocating %d bytes).",
      mega(used), mega(count.limit), mega(used - count.limit), count.ordinal, bytes));
}

class HbmBuffer final : public Buffer {
 public:
  HbmBuffer(BufferRef bytes, int64_t counted, std::shared_ptr<HbmCount> count)
      : Buffer(bytes->data(), bytes->size()),
        bytes_(std::move(bytes)),
        counted_(counted),
        count_(std::move(count)) {}
  ~HbmBuffer() override { count_->used.fetch_sub(counted_, std::memory_order_relaxed); }

 private:
  BufferRef bytes_;
  int64_t counted_;
  std::shared_ptr<HbmCount> count_;
};

class HbmAllocator final : public Allocator {
 public:
  explicit HbmAllocator(std::shared_ptr<HbmCount> count)
      : count_(std::move(count)), pool_(MakePool()) {}
  StatusOr<BufferRef> Allocate(size_t size) override {
    const auto bytes = static_cast<int64_t>(size);
    RETURN_IF_ERROR(TakeHbm(*count_, bytes));
    auto buffer = pool_->Allocate(size);
    if (!buffer.ok()) {
      count_->used.fetch_sub(bytes, std::memory_order_relaxed);
      return buffer.status();
    }
    return BufferRef(new HbmBuffer(*std::move(buffer), bytes, count_));
  }

 private:
  std::shared_ptr<HbmCount> count_;
  std::shared_ptr<Allocator> pool_;
};

class TpuCore final : public Device {
 public:
  TpuCore(int ordinal, int64_t hbm_bytes)
      : name_(absl::StrCat("/job:localhost/replica:0/task:0/device:TPU:", ordinal)),
        count_(std::make_shared<HbmCount>()),
        allocator_(std::make_shared<HbmAllocator>(count_)) {
    count_->ordinal = ordinal;
    count_->limit = hbm_bytes;
  }
  const std::string& name() const override { return name_; }
  absl::string_view type() const override { return "TPU"; }
  std::shared_ptr<Allocator> allocator() override { return allocator_; }
  StatusOr<std::shared_ptr<const void>> Reserve(int64_t bytes) override {
    RETURN_IF_ERROR(TakeHbm(*count_, bytes));
    return std::shared_ptr<const void>(count_.get(), [count = count_, bytes](const void*) {
      count->used.fetch_sub(bytes, std::memory_order_relaxed);
    });
  }
  int64_t memory_limit() const override { return count_->limit; }
  int64_t memory_used() const override { return count_->used.load(std::memory_order_relaxed); }

 private:
  std::string name_;
  std::shared_ptr<HbmCount> count_;
  std::shared_ptr<Allocator> allocator_;
};

constexpr absl::string_view kTpuOps[] = {
#include "smelt/device/tpu/compilable_ops.inc"
};

}  // namespace

std::unique_ptr<Device> MakeTpuCore(int ordinal, int64_t hbm_bytes) {
  return std::make_unique<TpuCore>(ordinal, hbm_bytes);
}

bool IsTpuCompilable(absl::string_view op) {
  return std::binary_search(std::begin(kTpuOps), std::end(kTpuOps), op);
}

}  // namespace smelt
