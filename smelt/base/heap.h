// The memory of the process, counted and limited.
//
// What kernels and formats allocate by a size that a model or a request decides counts here:
// tensors, and in the smelt program everything that operator new gives (operator_new.cc). An
// allocation that would bring the count above the limit is refused: HeapTake says no, operator new
// throws std::bad_alloc, which becomes RESOURCE_EXHAUSTED where work begins (out_of_memory.h).
// Mapped files do not count: the system takes their pages back when it needs them. Thread safe.
#ifndef SMELT_BASE_HEAP_H_
#define SMELT_BASE_HEAP_H_

#include <cstddef>
#include <cstdint>

#include "smelt/base/status.h"

namespace smelt {

// In bytes; 0: no limit. Holds for later allocations.
void SetHeapLimit(int64_t bytes);
int64_t HeapLimit();
// Bytes that were taken and not given back.
int64_t HeapLive();
// The memory that this process can hope for, in bytes: the machine's, or what its control group
// leaves it. 0 when that is not known.
int64_t MachineMemory();

// False, and nothing is taken, when the limit refuses.
bool HeapTake(int64_t bytes);
void HeapGive(int64_t bytes);
// What to say when memory was refused. `size`: of the allocation; 0: not known.
Status HeapExhausted(size_t size);

// Small changes of the calling thread are gathered and counted together. False when the limit
// refuses growth; the change counts all the same.
bool HeapChanged(int64_t bytes);

}  // namespace smelt

#endif  // SMELT_BASE_HEAP_H_
