#include <CLI/CLI.hpp>

#include "absl/strings/str_split.h"
#include "smelt/cli/command.h"
#include "smelt/io/unpack_limit.h"

namespace smelt {

const std::vector<Command>& Commands() {
  static const auto* commands = new std::vector<Command>{
      {"show",
       "Print what a SavedModel or a .tflite file holds: signatures, functions, variables, ops",
       "smelt show my_model --all", SetupShow},
      {"run", "Run a signature on .npy, .npz or literal inputs",
       "smelt run my_model --tag_set serve --signature_def serving_default "
       "--input_exprs 'x=[[1.0,2.0]]'",
       SetupRun},
      {"replay", "Replay recorded requests and compare the answers",
       "smelt replay my_model --log requests.tfrecord --rtol 1e-3 --atol 1e-4", SetupReplay},
      {"bench", "Measure how fast a signature answers, and its nodes beside the machine's peaks",
       "smelt bench my_model --batch 8 --threads 2", SetupBench},
      {"convert", "Convert a SavedModel for accelerator serving",
       "smelt convert in out --converter_options_string "
       "'tpu_functions { function_alias: \"tpu_func\" } disable_default_optimizations: true'",
       SetupConvert},
      {"optimize", "Rewrite a graph as TensorFlow's Grappler does, and say what was done",
       "smelt optimize --graph_def frozen.pb --feeds x:0 --fetches y out.pb", SetupOptimize},
      {"lite", "Export a SavedModel as a TensorFlow Lite file",
       "smelt lite my_model my_model.tflite", SetupLite},
      {"ops", "List the ops, their types and which kernel serves each", "smelt ops MatMul",
       SetupOps},
      {"version", "Print the version", "smelt version", SetupVersion},
  };
  return *commands;
}

void AddUnpackLimitFlag(CLI::App& app) {
  app.add_option_function<uint64_t>(
         "--unpack_limit", SetUnpackLimit,
         "Bytes that an archive, an array of an .npz or compressed data may unpack to; left out: "
         "100 times what they take, at least 64 MiB, at most 16 GiB")
      ->check(CLI::PositiveNumber);
}

std::vector<std::string> SplitTags(const std::string& tags) {
  if (tags.empty()) return {};
  return absl::StrSplit(tags, ',');
}

}  // namespace smelt
