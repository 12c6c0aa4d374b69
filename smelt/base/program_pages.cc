#include "smelt/base/program_pages.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace smelt {

void DropProgramPages() {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto drop = [](dl_phdr_info* object, size_t /*size*/, void* /*data*/) {
    for (const ElfW(Phdr)* p = object->dlpi_phdr; p != object->dlpi_phdr + object->dlpi_phnum;
         ++p) {
      // What may be written, or was until it was relocated, is nowhere else.
      if (p->p_type != PT_LOAD || (p->p_flags & PF_W) != 0) continue;
      const uintptr_t begin = (object->dlpi_addr + p->p_vaddr + page - 1) / page * page;
      const uintptr_t end = (object->dlpi_addr + p->p_vaddr + p->p_memsz) / page * page;
      if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
    return 0;
  };
  dl_iterate_phdr(drop, nullptr);
}

}  // namespace smelt
