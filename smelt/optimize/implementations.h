// Functions that stand for each other: those of one `api_implements`, each best on its
// `api_preferred_device` (tf.function's experimental_attributes; Keras' LSTM and GRU, TensorFlow
// Probability's samplers). As Grappler's implementation_selector, a call takes the one for the
// device that it runs on.
#ifndef SMELT_OPTIMIZE_IMPLEMENTATIONS_H_
#define SMELT_OPTIMIZE_IMPLEMENTATIONS_H_

#include "smelt/graph/graph.h"

namespace smelt {

// The function of the interface of `called` for `device` ("CPU", "TPU"); `called` itself where
// there is no other, or `device` is empty.
const Function* ImplementationFor(const FunctionLibrary& library, const Function* called,
                                  absl::string_view device);
// Makes every function that the node names, in an attribute or as its op, the one for `device`.
// A function whose types differ from those of the one that is named is no substitute. True where
// another was taken.
bool SelectImplementations(Graph& graph, Node* node, absl::string_view device);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_IMPLEMENTATIONS_H_
