// What the processor that this program runs on computes in narrow numbers. Any thread.
#ifndef SMELT_OPTIMIZE_PRECISION_PROCESSOR_H_
#define SMELT_OPTIMIZE_PRECISION_PROCESSOR_H_

namespace smelt {

// Does it read half as fast as float, as TensorFlow asks before it makes graphs for a CPU half?
bool ProcessorHasHalf();

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_PRECISION_PROCESSOR_H_
