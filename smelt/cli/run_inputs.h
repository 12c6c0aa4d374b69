// What the input flags of `smelt run` say, as tensors. Formats are those of saved_model_cli run.
#ifndef SMELT_CLI_RUN_INPUTS_H_
#define SMELT_CLI_RUN_INPUTS_H_

#include <map>
#include <string>
#include <vector>

#include "smelt/cli/numpy/literal.h"
#include "smelt/model/loaded_model.h"

namespace smelt {

struct InputFlags {
  std::string inputs;    // 'x=a.npy;y=b.npz[key]'
  std::string exprs;     // 'x=[[1.0, 2.0]]'
  std::string examples;  // 'examples=[{"age": [22.0]}]'
};

// An input before it is known what the signature wants.
struct GivenInput {
  Literal value;  // an array when it comes from a file
  absl::string_view flag;
};

// Reads files and parses expressions. Later flags override earlier ones, which `warnings` says.
// INVALID_ARGUMENT names the input and what does not parse.
StatusOr<std::map<std::string, GivenInput>> ReadInputs(const InputFlags& flags,
                                                       std::vector<std::string>* warnings);

// Each input as the signature's type, checked against its shape, as a session's feeds are.
StatusOr<NamedTensors> InputTensors(const std::map<std::string, GivenInput>& given,
                                    const Signature& signature);

}  // namespace smelt

#endif  // SMELT_CLI_RUN_INPUTS_H_
