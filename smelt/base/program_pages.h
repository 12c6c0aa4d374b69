// The memory that the process's own code takes.
#ifndef SMELT_BASE_PROGRAM_PAGES_H_
#define SMELT_BASE_PROGRAM_PAGES_H_

namespace smelt {

// Gives the pages of code and constants, of the program and its libraries, back to the system:
// those of a phase that is over do not count as memory of the process, the others are mapped again
// as they are touched, without reading the disk. For commands that have phases; thread safe.
void DropProgramPages();

}  // namespace smelt

#endif  // SMELT_BASE_PROGRAM_PAGES_H_
