// Deflate streams in memory.
#ifndef SMELT_IO_INFLATE_H_
#define SMELT_IO_INFLATE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace smelt {

enum class DeflateForm { kZlib, kGzip };

// The uncompressed bytes of one stream after another. DATA_LOSS when one is damaged or cut short,
// RESOURCE_EXHAUSTED beyond `limit` bytes. Thread safe.
StatusOr<std::string> Inflate(absl::string_view bytes, DeflateForm form,
                              size_t limit = size_t{1} << 32);

}  // namespace smelt

#endif  // SMELT_IO_INFLATE_H_
