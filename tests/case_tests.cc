// smelt_case_tests KIND [FLAG...] FILE...: runs text cases.
#include "tests/case_tests.h"

#include <cstdio>

#include "absl/strings/string_view.h"

namespace smelt {
namespace {

constexpr struct {
  absl::string_view name;
  int (*run)(int argc, char** argv);
} kKinds[] = {
    {"ops", OpTests},            // one op, or a graph step after step: docs/formats/op_cases.md
    {"sessions", SessionTests},  // the graphs among them as a session runs them
    {"op_programs", OpProgramTests},  // single ops, compiled
    {"shapes", ShapeTests},           // what shape inference says of the same files
    {"passes", PassTests},            // graph in, graph out
    {"programs", ProgramTests},       // graph and shapes in, plan of the program out
    {"grappler", GrapplerTests},      // the optimizer beside TensorFlow's
    {"rows", RowTests},               // what the row analysis finds of functions
    {"op_rows", OpRowTests},          // and what ops make of parts of their rows
    {"op_lite", OpLiteTests},         // single ops as .tflite files
    {"estimates", EstimateTests},     // what nodes take, beside TensorFlow's virtual cluster
    {"convert", ConvertTests},        // a model and options in, what must come out
    {"lite", LiteTests},              // graphs on their way to a .tflite file and back
};

}  // namespace
}  // namespace smelt

int main(int argc, char** argv) {
  for (const auto& kind : smelt::kKinds) {
    if (argc > 2 && argv[1] == kind.name) return kind.run(argc - 1, argv + 1);
  }
  std::fprintf(
      stderr,
      "usage: smelt_case_tests "
      "ops|sessions|op_programs|op_lite|shapes|passes|programs|grappler|rows|op_rows|estimates|"
      "convert|lite "
      "[FLAG...] FILE...\n");
  return 2;
}
