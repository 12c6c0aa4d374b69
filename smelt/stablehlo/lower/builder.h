// What the lowering functions work with: the graph of one function that is being made, and the
// endpoint that stands for each value of the module in it. For the files of this folder.
//
// Broadcasts are put off: a value may be held as a smaller tensor that broadcasts to it by numpy's
// rules, because TensorFlow's elementwise ops broadcast by themselves. Full() adds the BroadcastTo.
#ifndef SMELT_STABLEHLO_LOWER_BUILDER_H_
#define SMELT_STABLEHLO_LOWER_BUILDER_H_

#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "smelt/graph/graph.h"
#include "smelt/stablehlo/lower.h"
#include "smelt/stablehlo/module.h"

namespace smelt::stablehlo {

struct Value {
  Endpoint narrow;  // broadcasts to the value; is the value when `full`
  Dims dims;        // of `narrow`, -1 where not known
  bool full = true;
  Endpoint shape;  // of the whole value, int64; without a node: the module's type is static
};

// The functions that one module becomes.
class ModuleLowering;

class Builder {
 public:
  Builder(ModuleLowering& owner, Graph& graph) : owner_(owner), graph_(graph) {}

  const Module& module() const;
  ModuleLowering& owner() { return owner_; }
  Graph& graph() { return graph_; }
  const TypeData& type(ValueId v) const { return module().type(v); }
  // Has a node say its result's shape, for ops that shape inference has no rule for.
  void StateShape(ValueId v, AttrMap* attrs) const {
    attrs->Set("_output_shapes",
               std::vector<PartialShape>{PartialShape::Of(std::span<const int64_t>(type(v).dims))});
  }

  // ---- nodes ----
  // A node with a free name, attributes inferred from its inputs where `attrs` lacks them; Add
  // gives its output 0. UNIMPLEMENTED when the op does not take inputs of these types.
  StatusOr<Endpoint> Add(absl::string_view op, std::vector<Endpoint> inputs, AttrMap attrs = {});
  StatusOr<Node*> AddNode(absl::string_view op, std::vector<Endpoint> inputs, AttrMap attrs = {});
  Endpoint Const(const Tensor& t);
  Endpoint Ints(std::span<const int64_t> values);  // a vector of int64
  Endpoint Int(int64_t value);                     // a scalar of int64
  Endpoint Int32(int32_t value);
  // A scalar of any number type. REQUIRES: IsPod(dtype).
  Endpoint Number(Dtype dtype, double value);
  StatusOr<Endpoint> Cast(Endpoint e, Dtype to);
  static Dtype TypeOf(Endpoint e) { return BaseType(e.node->output_types[e.port]); }

  // ---- values ----
  StatusOr<const Value*> Find(ValueId v) const;
  void Set(ValueId v, Value value);
  // `e` has the type and shape that the module states for the value.
  void SetFull(ValueId v, Endpoint e);
  bool Has(ValueId v) const { return values_.contains(v); }
  StatusOr<Endpoint> Full(ValueId v);
  StatusOr<std::vector<Endpoint>> FullAll(std::span<const ValueId> values);
  // The shape of the value as a vector of int64 numbers.
  StatusOr<Endpoint> ShapeOf(ValueId v);
  StatusOr<Endpoint> DynamicShape(Endpoint e);
  // The value where the module states it: a constant, or one number broadcast or reshaped; else
  // nullptr. A single element stands for all, whatever the value's shape.
  const AttributeData* ConstantOf(ValueId v) const;
  // Whether the value is known to hold `number` everywhere.
  bool IsSplat(ValueId v, double number) const;

  // ---- reading operations ----
  // Integers of an attribute that is a list or a tensor of int64 or bool. INVALID_ARGUMENT when it
  // is missing or something else, as is IntOf; IntOr gives `otherwise` then.
  StatusOr<Dims> IntsOf(const Operation& op, absl::string_view attribute) const;
  StatusOr<int64_t> IntOf(const Operation& op, absl::string_view attribute) const;
  int64_t IntOr(const Operation& op, absl::string_view attribute, int64_t otherwise) const;
  // INVALID_ARGUMENT unless the operation has so many of each.
  Status Expect(const Operation& op, size_t operands, size_t results) const;

  // Lowers the region's operations into this graph, its arguments bound to `arguments`, and answers
  // the values that the region returns.
  StatusOr<std::vector<ValueId>> Inline(const Region& region, std::span<const Value> arguments);
  Status Lower(const Operation& op);
  void CopyValue(ValueId from, ValueId to) { values_[to] = values_.at(from); }
  int depth() const { return depth_; }

 private:
  Status CheckResults(const Operation& op) const;

  ModuleLowering& owner_;
  Graph& graph_;
  absl::flat_hash_map<ValueId, Value> values_;
  int depth_ = 0;
};

// The functions made of one module, each once. A call of a function in the module makes it first.
class ModuleLowering {
 public:
  ModuleLowering(const Module& module, std::shared_ptr<FunctionLibrary> library,
                 const LowerOptions& options)
      : module_(module), library_(std::move(library)), options_(options) {}

  const Module& module() const { return module_; }
  const LowerOptions& options() const { return options_; }
  const std::shared_ptr<FunctionLibrary>& library() const { return library_; }

  // The library's function for a function of the module, made when first asked for.
  // INVALID_ARGUMENT for a function that calls itself.
  StatusOr<FuncAttr> Function(absl::string_view symbol);
  // RegionFunction makes a function of the region's arguments and then of `captured`. Of other
  // values around the region it may read constants only; these are made anew in the function.
  struct RegionOptions {
    std::vector<ValueId> captured;
    bool pass_captured = false;  // results end with `captured` too, as a loop's body needs
    absl::string_view name = "region";
  };
  StatusOr<FuncAttr> RegionFunction(const Region& region, const RegionOptions& options);
  // Values that the regions read from around them, constants left out.
  std::vector<ValueId> Captured(std::span<const Region* const> regions) const;

  // Removes from the library every function that was added to it.
  void Undo();

 private:
  StatusOr<std::string> AddFunction(absl::string_view name, const Region& region,
                                    const RegionOptions& options);

  const Module& module_;
  std::shared_ptr<FunctionLibrary> library_;
  const LowerOptions& options_;
  absl::flat_hash_map<std::string, std::string> made_;  // symbol -> name; "": being made
  std::vector<std::string> added_;
};

// How one operation becomes nodes.
struct LowerRow {
  absl::string_view name;
  Status (*lower)(Builder& b, const Operation& op);
};
std::span<const std::span<const LowerRow>> AllLowerTables();

}  // namespace smelt::stablehlo

#endif  // SMELT_STABLEHLO_LOWER_BUILDER_H_
