// Kernel rows: what runs an op.
//
// A kernel is a row of a table: the op, the types it takes, a name that traces and `smelt ops`
// show, and a function. A family lists its rows best first, a plain reference last; families.inc
// lists the families in the order in which FindKernel tries them. A row that does not fit a node
// says why in words (decline). There are no registrars: what exists is what the tables say.
#ifndef SMELT_KERNELS_KERNEL_H_
#define SMELT_KERNELS_KERNEL_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/graph/graph.h"
#include "smelt/kernels/op_context.h"

namespace smelt {

struct Kernel {
  OpName op;  // unknown where AddKernels names it
  // The attribute that `types` constrains ("T"); empty: every type that the definition allows.
  absl::string_view type_attr;
  DtypeSet types = kAnyType;
  absl::string_view name;  // "onednn:matmul"
  // Called each time the node runs, from several threads at once when several steps run. Inputs are
  // as the definition says; outputs must all be set on OK.
  Status (*run)(OpContext& ctx) = nullptr;
  // Called once per node when an executable is made: reads attributes and checks them, so that run
  // need not. All steps share the result and may run at once: what it caches must be guarded.
  StatusOr<std::unique_ptr<KernelState>> (*prepare)(const Node& node) = nullptr;
  // Empty when the row fits the node, else why not. nullptr: always fits.
  std::string (*decline)(const Node& node) = nullptr;
};

// The first row that fits the node. NOT_FOUND in TensorFlow's words when there is none, listing why
// each row of that op declined. Any thread.
StatusOr<const Kernel*> FindKernel(const Node& node);
// Rows of one op, best first: those of its first version (graph/op_facts.h), then its own.
std::vector<const Kernel*> KernelsOf(absl::string_view op);
// Adds rows of an op that no table has (graph/op_name.h) for good, tried after those that are
// there. Executables that were made before keep their kernels. REQUIRES: `op` and the rows live as
// long as the process. Any thread.
void AddKernels(absl::string_view op, std::span<const Kernel> rows);

}  // namespace smelt

#endif  // SMELT_KERNELS_KERNEL_H_
