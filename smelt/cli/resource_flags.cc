#include "smelt/cli/resource_flags.h"

#include <CLI/CLI.hpp>

#include "smelt/base/heap.h"

namespace smelt {

void AddResourceFlags(CLI::App& app, ResourceFlags* flags) {
  app.add_option_function<int64_t>(
         "--memory_limit", [](const int64_t& bytes) { SetHeapLimit(bytes); },
         "Bytes that the process may take; 0: no limit (default: nine tenths of the machine's)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--allow_read", flags->allow_read,
                 "Folder or file that the model may read, beside its own folder");
  app.add_option("--allow_write", flags->allow_write,
                 "Folder or file that the model may write; by default it writes nowhere");
}

void SetDefaultMemoryLimit() { SetHeapLimit(MachineMemory() / 10 * 9); }

}  // namespace smelt
