// Graph optimizers of shared libraries that speak TensorFlow's C interface (tf_graph_optimizer.h).
#ifndef SMELT_OPTIMIZE_CUSTOM_PLUGIN_H_
#define SMELT_OPTIMIZE_CUSTOM_PLUGIN_H_

#include <string>

#include "smelt/base/status.h"
#include "smelt/optimize/custom/tf_graph_optimizer.h"

namespace smelt {

// Loads the library and adds its optimizer to this process, for good. NOT_FOUND when it cannot be
// loaded or exports no TF_InitGraph; else as InitOptimizerPlugin. Thread safe.
Status LoadOptimizerLibrary(const std::string& path);

// Adds the optimizer that `init` describes. FAILED_PRECONDITION, in TensorFlow's words, where it
// leaves something out; ALREADY_EXISTS when its kind of device has one; or its own error.
Status InitOptimizerPlugin(void (*init)(TP_OptimizerRegistrationParams* params, TF_Status* status));

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_CUSTOM_PLUGIN_H_
