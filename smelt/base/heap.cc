#include "smelt/base/heap.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

namespace smelt {
namespace {

std::atomic<int64_t> heap_limit{0};
std::atomic<int64_t> heap_live{0};

// How much a thread may take or give before the others see it.
constexpr int64_t kGathered = 1 << 20;
constinit thread_local int64_t gathered = 0;

// The number in a file of a control group; 0 when there is none ("max").
int64_t NumberIn(const char* path) {
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return 0;
  int64_t n = 0;
  if (std::fscanf(file, "%ld", &n) != 1) n = 0;
  std::fclose(file);
  return n;
}

}  // namespace

void SetHeapLimit(int64_t bytes) { heap_limit = bytes; }
int64_t HeapLimit() { return heap_limit; }
int64_t HeapLive() { return heap_live; }

int64_t MachineMemory() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  bytes = std::max<int64_t>(bytes, 0);
  // Versions 2 and 1, as a container sees its own group.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const int64_t group = NumberIn(path);
    if (group > 0) bytes = bytes > 0 ? std::min(bytes, group) : group;
  }
  return bytes;
}

bool HeapTake(int64_t bytes) {
  const int64_t limit = heap_limit.load(std::memory_order_relaxed);
  const int64_t live = heap_live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (bytes >= 0 && (limit == 0 || live <= limit)) return true;
  heap_live.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

void HeapGive(int64_t bytes) { heap_live.fetch_sub(bytes, std::memory_order_relaxed); }

bool HeapChanged(int64_t bytes) {
  gathered += bytes;
  if (gathered < kGathered && gathered > -kGathered) return true;
  const int64_t change = gathered;
  gathered = 0;
  const int64_t limit = heap_limit.load(std::memory_order_relaxed);
  const int64_t live = heap_live.fetch_add(change, std::memory_order_relaxed) + change;
  return change < 0 || limit == 0 || live <= limit;
}

Status HeapExhausted(size_t size) {
  const int64_t limit = HeapLimit();
  return ResourceExhausted(
      "OOM when allocating", size == 0 ? "" : absl::StrCat(" ", size, " bytes"), "; ", HeapLive(),
      " bytes are in use, the limit is ", limit == 0 ? "the machine's" : absl::StrCat(limit));
}

}  // namespace smelt
