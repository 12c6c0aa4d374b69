// Op cases (docs/formats/op_cases.md) as read from their files.
#ifndef SMELT_TESTS_OP_CASE_H_
#define SMELT_TESTS_OP_CASE_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// The error that a case must give: its code, and a part of its message.
struct Failure {
  bool expected = false;
  std::string code;
  std::string words;
};

// One run of a graph; resources live on from step to step.
struct TestStep {
  std::vector<std::pair<std::string, std::string>> feeds;    // endpoint, literal
  std::vector<std::pair<std::string, std::string>> fetches;  // endpoint, literal or ""
  std::vector<std::string> runs;                             // nodes to run for their effects
  Failure failure;
};

struct TestCase {
  std::string file;
  int line = 0;
  std::string name;
  std::string op;     // "Relu {T=float}", one op
  std::string graph;  // text, several ops
  bool is_graph = false;
  std::vector<std::string> ins;    // literals, of one op
  std::vector<std::string> outs;   // likewise
  std::vector<TestStep> steps{1};  // the first also holds the failure of one op
  double rtol = -1;                // -1: the default of the type
  double atol = -1;
  bool shape_only = false;

  // The op that the case is about: of a graph, the case's name up to its first '_' (not counting
  // one in front).
  std::string OpName() const {
    return is_graph ? name.substr(0, name.find('_', 1))
                    : std::string(absl::string_view(op).substr(0, op.find_first_of(" {")));
  }
  // A line of graph text: the one op as node `name` of the nodes `inputs`.
  std::string NodeText(absl::string_view name, const std::vector<std::string>& inputs) const;
  // The tensors that `ins` stand for; nothing where one is none that can be written.
  std::optional<std::vector<Tensor>> Inputs() const;
};

// Appends the cases of a file. NOT_FOUND when it cannot be opened, INVALID_ARGUMENT names the line
// that does not parse.
Status ReadCases(const std::string& path, std::vector<TestCase>* cases);

// Cases of one op, as a runner was asked for them: [--filter TEXT] [--every N] FILE...
// False, and says why, where a flag or a file is wrong.
bool ReadOneOpCases(int argc, char** argv, std::vector<TestCase>* cases);

}  // namespace smelt

#endif  // SMELT_TESTS_OP_CASE_H_
