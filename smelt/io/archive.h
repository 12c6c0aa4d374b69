// Unpacking of tar files, compressed by gzip or not.
#ifndef SMELT_IO_ARCHIVE_H_
#define SMELT_IO_ARCHIVE_H_

#include <string>

#include "smelt/base/status.h"

namespace smelt {

// Unpacks the files and folders of the archive at `path` into `folder`, which exists; names keep
// their bytes, in PAX archives UTF-8, whatever the locale. INVALID_ARGUMENT for entries that would
// leave the folder and for entries that are neither file nor folder (links, devices); DATA_LOSS for
// a file that is no archive, where the archive breaks off, has no end or goes on behind it, and
// where a gzip checksum is wrong (headers of a tar file have checksums, contents have none);
// RESOURCE_EXHAUSTED beyond UnpackLimit, where files and folders count by what they take of a disk;
// errors of MapFile. What was unpacked before an error stays, and may be damaged: only OK says that
// it is what was packed. Thread safe.
Status ExtractArchive(const std::string& path, const std::string& folder);

}  // namespace smelt

#endif  // SMELT_IO_ARCHIVE_H_
