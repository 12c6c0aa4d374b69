// What is printed either arrives or the program says that it did not.
#ifndef SMELT_CLI_STANDARD_STREAMS_H_
#define SMELT_CLI_STANDARD_STREAMS_H_

#include "smelt/base/status.h"

namespace smelt {

// Call first in main. Descriptors 0 to 2 that are closed are taken, so that no file that is opened
// later is printed into; SIGPIPE no longer ends the process, so that temporary files are removed
// when a reader leaves.
void PrepareStandardStreams();

// Whether something printed was lost, for whatever reason: what only prints can stop.
bool OutputLost();

// Flushes standard output. DATA_LOSS when something printed did not arrive, except where a reader
// that left is why.
Status FinishOutput();

// Whether the reader of standard output (`| head`) left before the end. Asked after FinishOutput.
bool ReaderLeft();
// Ends the process by SIGPIPE, as tools that do not catch it end when their reader leaves.
[[noreturn]] void EndWithoutReader();

}  // namespace smelt

#endif  // SMELT_CLI_STANDARD_STREAMS_H_
