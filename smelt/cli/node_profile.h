// Where the time of a request goes: each node that runs, with what it computes and moves.
#ifndef SMELT_CLI_NODE_PROFILE_H_
#define SMELT_CLI_NODE_PROFILE_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "smelt/cli/peaks.h"
#include "smelt/kernels/step_stats.h"
#include "smelt/runtime/session.h"

namespace smelt {

// A node of a program with what its kernel does as well, or one that runs by itself. All numbers
// are of one request.
struct NodeProfile {
  std::string node, op, kernel;
  std::string then;      // ops that are done in its pass: "AddV2, Relu"
  std::string function;  // "": the request's own graph
  bool in_program = false;
  bool bound = false;
  Dtype type = Dtype::kFloat;  // kInt8 and kBfloat16: of its inputs, else kFloat: which peak holds
  double calls = 0;
  double ms = 0;     // the median of the runs; threads that run other nodes meanwhile share it
  double share = 0;  // of the sum over all nodes
  // Operations, a multiply-add being two (analysis/estimate); elements of the results where nothing
  // is known of the op.
  double work = 0;
  bool counted = false;  // operations
  double bytes = 0;      // read and written
  double weights = 0;    // of these, of constants

  // The least that peaks allow, where programs hold `data` bytes in all.
  double LeastMs(const Peaks& peaks, double data) const;
};

struct Profile {
  std::vector<NodeProfile> nodes;  // in the order in which they first ran
  double ms = 0;                   // all nodes
  double data_bytes = 0;           // arenas and constants of the programs
  int runs = 0;
};

// Of as many runs: `ask` sends the request, and fills the stats. Every node of every program of the
// session has one entry, also where it did not run.
StatusOr<Profile> ProfileNodes(Session& session, int runs,
                               absl::FunctionRef<Status(StepStats*)> ask);

}  // namespace smelt

#endif  // SMELT_CLI_NODE_PROFILE_H_
