// What smelt lite says of an export: what it wrote, or what it refused.
#ifndef SMELT_CLI_LITE_REPORT_H_
#define SMELT_CLI_LITE_REPORT_H_

#include <string>

#include "smelt/lite/export.h"

namespace smelt {

// The ops of TensorFlow that become builtin operators, sorted: each with the operator that
// gives its result ("-": which one depends on the node), and the types of its first input. A row
// may refuse a node all the same, and says why.
std::string OperatorTable();

// For people: an op in a line, its nodes under it, and what could be done.
std::string RefusalTable(const LiteReport& report);
// {"error", "refused": [{"op", "count", "why", "nodes": [{"name", "signature", "functions"}],
// "remedies"}]}; with `explain` "fusions", too, as below.
std::string RefusalJson(const Status& error, const LiteReport& report, bool explain);

// {"file", "bytes", "min_runtime_version", "quantization", "signatures", "operators", ...,
// "differs"}: the last are fusions whose operator computes something else than the graph did. With
// `explain` "fusions": [{"node", "fusion", "fired", "why_not"}], what --explain says.
std::string WrittenJson(const LiteModel& model, const std::string& path, uint64_t bytes,
                        const std::string& quantization, const LiteReport& report, bool explain);

// The names of operators that a program must bring kernels for, sorted: those of the Flex delegate,
// or the others.
std::vector<std::string> CustomCodes(const LiteModel& model, bool flex);

}  // namespace smelt

#endif  // SMELT_CLI_LITE_REPORT_H_
