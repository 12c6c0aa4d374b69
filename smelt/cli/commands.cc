#include "absl/strings/str_split.h"
#include "smelt/cli/command.h"

namespace smelt {

const std::vector<Command>& Commands() {
  static const auto* commands = new std::vector<Command>{
      {"show", "Print what a SavedModel holds: tag sets, signatures, functions, variables, ops",
       "smelt show my_model --all", SetupShow},
      {"run", "Run a signature on .npy, .npz or literal inputs",
       "smelt run my_model --tag_set serve --signature_def serving_default "
       "--input_exprs 'x=[[1.0,2.0]]'",
       SetupRun},
      {"replay", "Replay recorded requests and compare the answers",
       "smelt replay my_model --log requests.tfrecord --rtol 1e-3 --atol 1e-4", SetupReplay},
      {"convert", "Convert a SavedModel for accelerator serving",
       "smelt convert in out --converter_options_string "
       "'tpu_functions { function_alias: \"tpu_func\" } disable_default_optimizations: true'",
       SetupConvert},
      {"ops", "List the ops, their types and which kernel serves each", "smelt ops MatMul",
       SetupOps},
      {"version", "Print the version", "smelt version", SetupVersion},
  };
  return *commands;
}

std::vector<std::string> SplitTags(const std::string& tags) {
  if (tags.empty()) return {};
  return absl::StrSplit(tags, ',');
}

}  // namespace smelt
