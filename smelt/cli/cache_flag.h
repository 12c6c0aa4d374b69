// --cache DIR of the commands that ask models (docs/cache.md).
#ifndef SMELT_CLI_CACHE_FLAG_H_
#define SMELT_CLI_CACHE_FLAG_H_

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "smelt/model/model_cache.h"

namespace smelt {

// REQUIRES: `folder` outlives the app.
inline void AddCacheFlag(CLI::App& app, std::string* folder) {
  app.add_option("--cache", *folder,
                 "Folder, made where it is missing, for what later starts with the same model need "
                 "not make anew: packed weights (docs/cache.md). Whoever writes it decides on "
                 "answers");
}

// Warnings go to stderr.
inline void SaveCache(ModelCache& cache) {
  for (const std::string& warning : cache.Save()) {
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
}

}  // namespace smelt

#endif  // SMELT_CLI_CACHE_FLAG_H_
