// Gathers and scatters.
#include <algorithm>

#include "smelt/stablehlo/lower/builder.h"
#include "smelt/wire/xla/dimension_numbers.h"

namespace smelt::stablehlo {
namespace {

// Artifacts of before StableHLO 1.1 (gather_v1, scatter_v1) have no attributes of batch dimensions.
StatusOr<Dims> IntsOrNone(Builder& b, const Operation& op, absl::string_view attribute) {
  if (op.Find(attribute) == nullptr) return Dims();
  return b.IntsOf(op, attribute);
}

StatusOr<Endpoint> IndicesOf(Builder& b, ValueId v) {
  ASSIGN_OR_RETURN(const Endpoint e, b.Full(v));
  const Dtype t = Builder::TypeOf(e);
  return t == Dtype::kInt32 || t == Dtype::kInt64 ? StatusOr<Endpoint>(e)
                                                  : b.Cast(e, Dtype::kInt64);
}

Status AddGather(Builder& b, const Operation& op, Endpoint sizes) {
  GatherDimensions d;
  ASSIGN_OR_RETURN(d.window, b.IntsOf(op, "offset_dims"));
  ASSIGN_OR_RETURN(d.collapsed, b.IntsOf(op, "collapsed_slice_dims"));
  ASSIGN_OR_RETURN(d.index_map, b.IntsOf(op, "start_index_map"));
  ASSIGN_OR_RETURN(d.index_vector, b.IntOf(op, "index_vector_dim"));
  ASSIGN_OR_RETURN(d.operand_batch, IntsOrNone(b, op, "operand_batching_dims"));
  ASSIGN_OR_RETURN(d.indices_batch, IntsOrNone(b, op, "start_indices_batching_dims"));
  ASSIGN_OR_RETURN(const Endpoint x, b.Full(op.operands[0]));
  ASSIGN_OR_RETURN(const Endpoint indices, IndicesOf(b, op.operands[1]));
  ASSIGN_OR_RETURN(sizes, b.Cast(sizes, Builder::TypeOf(indices)));
  AttrMap attrs;
  attrs.Set("dimension_numbers", SerializeGatherDimensions(d));
  attrs.Set("indices_are_sorted", b.IntOr(op, "indices_are_sorted", 0) != 0);
  b.StateShape(op.results[0], &attrs);
  ASSIGN_OR_RETURN(const Endpoint y, b.Add("XlaGather", {x, indices, sizes}, std::move(attrs)));
  b.SetFull(op.results[0], y);
  return OkStatus();
}

Status LowerGather(Builder& b, const Operation& op) {
  RETURN_IF_ERROR(b.Expect(op, 2, 1));
  ASSIGN_OR_RETURN(const Dims sizes, b.IntsOf(op, "slice_sizes"));
  return AddGather(b, op, b.Ints(sizes));
}

Status LowerDynamicGather(Builder& b, const Operation& op) {
  RETURN_IF_ERROR(b.Expect(op, 3, 1));
  ASSIGN_OR_RETURN(const Endpoint sizes, b.Full(op.operands[2]));
  return AddGather(b, op, sizes);
}

Status LowerScatter(Builder& b, const Operation& op) {
  if (op.operands.size() != 3 || op.results.size() != 1 || op.regions.size() != 1) {
    return Unimplemented("a scatter of ", op.results.size(), " tensors at once");
  }
  GatherDimensions d;
  ASSIGN_OR_RETURN(d.window, b.IntsOf(op, "update_window_dims"));
  ASSIGN_OR_RETURN(d.collapsed, b.IntsOf(op, "inserted_window_dims"));
  ASSIGN_OR_RETURN(d.index_map, b.IntsOf(op, "scatter_dims_to_operand_dims"));
  ASSIGN_OR_RETURN(d.index_vector, b.IntOf(op, "index_vector_dim"));
  ASSIGN_OR_RETURN(d.operand_batch, IntsOrNone(b, op, "input_batching_dims"));
  ASSIGN_OR_RETURN(d.indices_batch, IntsOrNone(b, op, "scatter_indices_batching_dims"));
  ModuleLowering::RegionOptions options;
  options.name = "update";
  ASSIGN_OR_RETURN(FuncAttr f, b.owner().RegionFunction(*op.regions[0], options));
  ASSIGN_OR_RETURN(const Endpoint x, b.Full(op.operands[0]));
  ASSIGN_OR_RETURN(const Endpoint indices, IndicesOf(b, op.operands[1]));
  ASSIGN_OR_RETURN(const Endpoint updates, b.Full(op.operands[2]));
  AttrMap attrs;
  attrs.Set("dimension_numbers", SerializeScatterDimensions(d));
  attrs.Set("update_computation", std::move(f));
  attrs.Set("indices_are_sorted", b.IntOr(op, "indices_are_sorted", 0) != 0);
  ASSIGN_OR_RETURN(const Endpoint y, b.Add("XlaScatter", {x, indices, updates}, std::move(attrs)));
  b.SetFull(op.results[0], y);
  return OkStatus();
}

constexpr LowerRow kIndexingTable[] = {
    {"dynamic_gather", LowerDynamicGather},
    {"gather", LowerGather},
    {"scatter", LowerScatter},
};

}  // namespace

extern const std::span<const LowerRow> kIndexingLowering = kIndexingTable;

}  // namespace smelt::stablehlo
