// Whether graphs are optimized for TensorFlow's oneDNN.
#ifndef SMELT_OPTIMIZE_ONEDNN_H_
#define SMELT_OPTIMIZE_ONEDNN_H_

namespace smelt {

// Does TF_ENABLE_ONEDNN_OPTS in the environment say so ("1", "true")? Where it says nothing
// TensorFlow asks the processor; a graph for others does not depend on who wrote it: false. Read at
// each call; any thread.
bool IsForOneDnn();

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_ONEDNN_H_
