// Elementwise actions that are connected become one, which makes one pass over their elements.
#ifndef SMELT_COMPILE_ELEMENTWISE_CHAIN_H_
#define SMELT_COMPILE_ELEMENTWISE_CHAIN_H_

#include "smelt/compile/readers.h"

namespace smelt {

// Joins actions whose results have one shape, where one reads what another makes, and the actions
// that only take what they read out of larger tensors (BoundKernel::view): that is read where it
// lies. The numbers are those that the actions by themselves give. Comes after BindActions, since
// products and convolutions do what follows them at less cost.
void JoinElementwise(Plan& plan, Reasons* reasons);

}  // namespace smelt

#endif  // SMELT_COMPILE_ELEMENTWISE_CHAIN_H_
