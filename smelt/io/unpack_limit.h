// How far packed bytes may unpack: one limit for archives, arrays in .npz files and compressed
// strings and records. It keeps a small file from filling memory or the disk. Thread safe.
#ifndef SMELT_IO_UNPACK_LIMIT_H_
#define SMELT_IO_UNPACK_LIMIT_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace smelt {

// The most bytes that `packed` bytes may unpack to: a hundred for each, but at least 64 MiB and at
// most 16 GiB; what does not grow is never refused. SetUnpackLimit replaces all of this.
uint64_t UnpackLimit(size_t packed);
// For all that is unpacked later, in bytes; 0: the limit above.
void SetUnpackLimit(uint64_t bytes);

// RESOURCE_EXHAUSTED when `reached` exceeds `limit`. `what` is what unpacks; the text names the
// flag that raises the limit.
Status CheckUnpacked(absl::string_view what, uint64_t reached, uint64_t limit);

}  // namespace smelt

#endif  // SMELT_IO_UNPACK_LIMIT_H_
