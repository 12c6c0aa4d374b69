// What a model may take of the machine: memory and files, as flags of every command that runs one.
#ifndef SMELT_CLI_RESOURCE_FLAGS_H_
#define SMELT_CLI_RESOURCE_FLAGS_H_

#include <string>
#include <vector>

#include "smelt/io/file_system.h"

namespace CLI {
class App;
}

namespace smelt {

struct ResourceFlags {
  std::vector<std::string> allow_read, allow_write;

  // What the model may use beside its own folder.
  FileSystem Files() const { return FileSystem::Of(allow_read, allow_write); }
};

// Adds --memory_limit, --allow_read and --allow_write. The memory limit holds from when the flag is
// read. REQUIRES: `flags` outlives the app.
void AddResourceFlags(CLI::App& app, ResourceFlags* flags);

// Limits the process to nine tenths of the machine's memory, until a flag says otherwise.
void SetDefaultMemoryLimit();

}  // namespace smelt

#endif  // SMELT_CLI_RESOURCE_FLAGS_H_
