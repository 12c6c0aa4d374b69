// Reference-counted bytes, and where they come from.
//
// A Buffer's count is atomic: buffers may be shared between threads; the bytes themselves are
// written only by whoever holds the single reference.
#ifndef SMELT_TENSOR_BUFFER_H_
#define SMELT_TENSOR_BUFFER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "smelt/base/heap.h"
#include "smelt/base/status.h"

namespace smelt {

// Alignment of every allocation: a cache line, and the widest vector register.
inline constexpr size_t kAlignment = 64;

class Buffer {
 public:
  Buffer(void* data, size_t size) : data_(data), size_(size) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  size_t size() const { return size_; }
  // True when nobody may write the bytes, e.g. of a mapped file.
  virtual bool read_only() const { return false; }
  // Bytes of a file that is mapped for reading: its pages may be dropped and are read again.
  virtual bool mapped_file() const { return false; }

  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    if (refs_.load(std::memory_order_acquire) == 1 ||
        refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      Destroy();
    }
  }
  bool unique() const { return refs_.load(std::memory_order_acquire) == 1; }

 protected:
  virtual ~Buffer() = default;
  // Called when the last reference goes; deletes, or returns the memory to a pool.
  virtual void Destroy() { delete this; }
  void ResetRefs() { refs_.store(1, std::memory_order_relaxed); }

  void* data_;
  size_t size_;

 private:
  std::atomic<int32_t> refs_{1};
};

// One counted reference to a Buffer, or none.
class BufferRef {
 public:
  BufferRef() = default;
  // Takes over one reference.
  explicit BufferRef(Buffer* adopted) : b_(adopted) {}
  BufferRef(const BufferRef& o) : b_(o.b_) {
    if (b_) b_->Ref();
  }
  BufferRef(BufferRef&& o) noexcept : b_(std::exchange(o.b_, nullptr)) {}
  BufferRef& operator=(BufferRef o) noexcept {
    std::swap(b_, o.b_);
    return *this;
  }
  ~BufferRef() {
    if (b_) b_->Unref();
  }
  Buffer* get() const { return b_; }
  Buffer* operator->() const { return b_; }
  explicit operator bool() const { return b_ != nullptr; }

 private:
  Buffer* b_ = nullptr;
};

// Where tensors of one device or one step take their memory. Thread safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // At least `size` bytes, aligned to kAlignment, contents undefined. RESOURCE_EXHAUSTED when the
  // machine or a limit refuses.
  virtual StatusOr<BufferRef> Allocate(size_t size) = 0;
};

// The process's heap, counted and limited by base/heap.h, as pools are with what they keep for
// reuse. Lives as long as the process.
Allocator* HeapAllocator();

// The same for what is kept long and written at once, as packed weights are: large buffers take
// large pages where the system has them, so that touching them first costs little.
Allocator* KeptAllocator();

// Bytes owned by something else: `owner` is kept until the last reference goes.
enum class ForeignBytes { kWritable, kReadOnly, kMappedFile };
BufferRef ForeignBuffer(const void* data, size_t size, ForeignBytes kind,
                        std::shared_ptr<const void> owner);

// Gives the whole pages inside the bytes back to the system, so that large weights that were read
// once (verified, packed) do not count as memory of the process. REQUIRES: bytes of a file mapped
// for reading (mapped_file()); pages that are touched again are read from the file.
void DropMappedPages(const void* data, size_t size);

// Counts the live bytes of a pool by the sizes that were requested, and may limit them. Thread
// safe.
class MemoryMeter {
 public:
  virtual ~MemoryMeter() = default;
  // Before an allocation; an error refuses it.
  virtual Status Take(int64_t bytes) = 0;
  virtual void Give(int64_t bytes) = 0;
};

// Heap memory that reuses freed buffers of similar size (eight size classes for each power of two).
// Meant for the steps of one graph, where sizes repeat. Buffers may be freed on any thread; the
// pool lives until the last one is. `meter` may be nullptr.
std::shared_ptr<Allocator> MakePool(std::shared_ptr<MemoryMeter> meter = nullptr);

}  // namespace smelt

#endif  // SMELT_TENSOR_BUFFER_H_
