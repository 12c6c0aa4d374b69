// What a SymbolicGradient runs: the gradient of a function, or of an op, as a function of its own.
#ifndef SMELT_OPTIMIZE_GRADIENTS_GRADIENTS_H_
#define SMELT_OPTIMIZE_GRADIENTS_GRADIENTS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "smelt/graph/graph.h"

namespace smelt {

// The gradient of `f`: takes what f takes and then a gradient of each result, and gives one of each
// argument. The body is f's, whose effects stay, and behind it a SymbolicGradient of each op that
// the results came through; where several gradients meet an AddN, where none arrives ZerosLike. The
// gradient of a resource is that of the float variable behind it. `attrs` fills placeholders and
// may be nullptr. INVALID_ARGUMENT where f does not verify, an attribute is missing, or a loop of
// version 1 stands between arguments and results. The library of f must outlive the result.
StatusOr<std::unique_ptr<Function>> GradientOfFunction(const Function& f, const AttrMap* attrs);

// Finds and makes them, each once. Not thread safe.
class Gradients {
 public:
  // The library must outlive this, and functions that gradients were asked of must not change.
  explicit Gradients(const FunctionLibrary& library) : library_(library) {}

  struct Gradient {
    const Function* function;
    const AttrMap* attrs;  // what its signature and placeholders take; nullptr: nothing
  };
  // Of a function of the library: the one that the library states for it, or GradientOfFunction; of
  // an op: its row (rows.h). NOT_FOUND "No gradient defined for op: X"; RESOURCE_EXHAUSTED where
  // functions ask for gradients of ever new instances of themselves. What `f` points to must
  // outlive what is returned.
  StatusOr<Gradient> Of(const FuncAttr& f);

 private:
  struct Made {
    std::unique_ptr<Graph> owner;  // of what was read as text
    std::unique_ptr<Function> of_function;
    const Function* function = nullptr;
    Status status;
  };
  Made Make(const FuncAttr& f);
  Made OfOp(const FuncAttr& f);

  const FunctionLibrary& library_;
  std::map<std::string, Made> made_;                 // by name and attributes
  absl::flat_hash_map<std::string, int> instances_;  // by function
};

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_GRADIENTS_GRADIENTS_H_
