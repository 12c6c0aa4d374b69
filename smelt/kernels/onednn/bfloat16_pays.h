// Does the processor multiply bfloat16 so much faster than float that conversions pay? Some run the
// instruction at half the pace of float's, so that nothing is won. Any thread.
#ifndef SMELT_KERNELS_ONEDNN_BFLOAT16_PAYS_H_
#define SMELT_KERNELS_ONEDNN_BFLOAT16_PAYS_H_

namespace smelt {

// REQUIRES: CpuHas(kDotBfloat16).
bool Bfloat16Pays();

}  // namespace smelt

#endif  // SMELT_KERNELS_ONEDNN_BFLOAT16_PAYS_H_
