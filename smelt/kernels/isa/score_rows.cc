#include "smelt/kernels/isa/score_rows.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_TABLE_FOR_ISA(IsaScores, FillScores, ScoreLoops)

}  // namespace smelt
