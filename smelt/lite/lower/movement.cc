// Operators that move elements, and those that make or reduce dimensions.
#include <algorithm>

#include "smelt/lite/common/attributes.h"
#include "smelt/lite/lower/lowering.h"

namespace smelt {
namespace {

// TensorFlow's op joins two and more.
StatusOr<Endpoint> Joined(const Node& n, int64_t axis, Lowering& l) {
  std::vector<Endpoint> inputs = InputsOf(n);
  if (inputs.size() == 1) {
    const PartialShape& shape = l.shape(inputs[0]);
    if (shape.known_rank() && (axis < -shape.rank() || axis >= shape.rank())) {
      return InvalidArgument("its input of shape ", shape.ToString(), " has no axis ", axis);
    }
    return inputs[0];
  }
  inputs.push_back(l.Int(axis));
  return l.Add("ConcatV2", inputs);
}

LoweredEndpoints Concatenation(Node& n, Lowering& l) {
  ASSIGN_OR_RETURN(const Endpoint e, Joined(n, n.Int("axis"), l));
  return OneOf(l.Activated(e, n));
}

// TensorFlow's ops take blocks of two and more.
LoweredEndpoints Blocks(Node& n, Lowering& l) {
  if (n.Int("block_size") == 1) return std::vector<Endpoint>{n.input(0)};
  return SameOp(n, l);
}

LoweredEndpoints Reshape(Node& n, Lowering& l) {
  if (Lowering::Has(n, 1)) return OneOf(l.Add("Reshape", {n.input(0), n.input(1)}));
  return OneOf(l.Add("Reshape", {n.input(0), l.Ints(n.Ints("new_shape"))}));
}

LoweredEndpoints Gather(Node& n, Lowering& l) {
  AttrMap attrs;
  attrs.Set("batch_dims", n.Int("batch_dims"));
  return OneOf(l.Add("GatherV2", {n.input(0), n.input(1), l.Int(n.Int("axis"))}, std::move(attrs)));
}

LoweredEndpoints EmbeddingLookup(Node& n, Lowering& l) {
  return OneOf(l.Add("GatherV2", {n.input(1), n.input(0), l.Int(0)}));
}

LoweredEndpoints ArgExtreme(Node& n, Lowering& l) {
  AttrMap attrs;
  attrs.Set("output_type", n.output_types[0]);
  return OneOf(l.Add(l.row().tensorflow, InputsOf(n), std::move(attrs)));
}

LoweredEndpoints BroadcastInDim(Node& n, Lowering& l) {
  // Dimension i of the operand is dimensions[i] of the result: the others have size 1 before.
  const std::vector<int64_t> dimensions = n.Ints("broadcast_dimensions");
  const PartialShape &from = l.shape(n.input(0)), &to = StatedShape({&n, 0});
  if (from.rank() != static_cast<int>(dimensions.size()) || !to.fully_known()) {
    return InvalidArgument("its shapes ", from.ToString(), " and ", to.ToString(),
                           " do not fit its dimensions");
  }
  std::vector<int64_t> sizes(static_cast<size_t>(to.rank()), 1), result;
  for (int i = 0; i < to.rank(); ++i) result.push_back(to[i]);
  for (int i = 0; i < from.rank(); ++i) {
    const int64_t d = dimensions[static_cast<size_t>(i)];
    if (d < 0 || d >= to.rank()) return InvalidArgument("it has no dimension ", d);
    sizes[static_cast<size_t>(d)] = from[i];
  }
  ASSIGN_OR_RETURN(const Endpoint e, l.Add("Reshape", {n.input(0), l.Ints(sizes)}));
  return OneOf(l.Add("BroadcastTo", {e, l.Ints(result)}));
}

LoweredEndpoints StablehloTranspose(Node& n, Lowering& l) {
  return OneOf(l.Add("Transpose", {n.input(0), l.Ints(n.Ints("permutation"))}));
}
LoweredEndpoints StablehloConcatenate(Node& n, Lowering& l) {
  return OneOf(Joined(n, n.Int("dimension"), l));
}
LoweredEndpoints StablehloReshape(Node& n, Lowering& l) {
  const PartialShape to = StatedShape({&n, 0});
  std::vector<int64_t> sizes;
  for (int i = 0; i < to.rank(); ++i) sizes.push_back(to[i]);
  return OneOf(l.Add("Reshape", {n.input(0), l.Ints(sizes)}));
}
LoweredEndpoints StablehloSlice(Node& n, Lowering& l) {
  return OneOf(l.Add("StridedSlice", {n.input(0), l.Ints(n.Ints("start_indices")),
                                      l.Ints(n.Ints("limit_indices")), l.Ints(n.Ints("strides"))}));
}

// One scalar for each dimension says where the update begins.
LoweredEndpoints StablehloUpdateSlice(Node& n, Lowering& l) {
  const std::vector<Endpoint> starts(n.inputs().begin() + 2, n.inputs().end());
  ASSIGN_OR_RETURN(const Endpoint start, l.Add("Pack", starts));
  return OneOf(l.Add("XlaDynamicUpdateSlice", {n.input(0), n.input(1), start}));
}

// Places are of any type that the output has.
LoweredEndpoints TopK(Node& n, Lowering& l) {
  ASSIGN_OR_RETURN(Node * made, l.AddNode(l.row().tensorflow, InputsOf(n)));
  Endpoint places = {made, 1};
  if (n.output_types[1] != Dtype::kInt32) {
    AttrMap attrs;
    attrs.Set("DstT", n.output_types[1]);
    ASSIGN_OR_RETURN(places, l.Add("Cast", {places}, std::move(attrs)));
  }
  return std::vector<Endpoint>{{made, 0}, places};
}

LoweredEndpoints SparseToDense(Node& n, Lowering& l) {
  AttrMap attrs;
  attrs.Set("validate_indices", false);
  return OneOf(l.Add("SparseToDense", InputsOf(n), std::move(attrs)));
}

LoweredEndpoints Random(Node& n, Lowering& l) {
  AttrMap attrs;
  attrs.Set("seed", n.Int("seed"));
  attrs.Set("seed2", n.Int("seed2"));
  attrs.Set(n.Is("tfl.multinomial") ? "output_dtype" : "dtype", n.output_types[0]);
  return OneOf(l.Add(l.row().tensorflow, InputsOf(n), std::move(attrs)));
}

// Both operators take a value to fill with, or none.
LoweredEndpoints Pads(Node& n, Lowering& l) {
  return OneOf(l.Add(n.num_inputs() == 3 ? OpName("PadV2") : OpName("Pad"), InputsOf(n)));
}

LoweredEndpoints SameValue(Node& n, Lowering& l) { return std::vector<Endpoint>{n.input(0)}; }

// The sum of the rows that a sparse matrix of ids names, by their weights: over their sum, or the
// root of that of their squares, as the combiner says.
LoweredEndpoints EmbeddingLookupSparse(Node& n, Lowering& l) {
  const Endpoint ids = n.input(0), indices = n.input(1), shape = n.input(2), weights = n.input(3),
                 table = n.input(4);
  const int rank = l.shape(indices).rank() == 2 ? static_cast<int>(l.shape(indices)[1]) : -1;
  const PartialShape& rows = l.shape(table);
  if (rank < 1 || rows.rank() < 1) return InvalidArgument("its ranks are not known");
  // The place of an id's row: all dimensions of the indices but the last, as one number.
  const std::vector<int64_t> zero = {0}, minus = {-1}, outer = {rank - 1};
  Endpoint place;
  Endpoint count = l.Int(1);
  for (int d = 0; d + 1 < rank; ++d) {
    const std::vector<int64_t> at = {d};
    AttrMap shrink;
    shrink.Set("squeeze_dims", std::vector<int64_t>{1});
    ASSIGN_OR_RETURN(const Endpoint column, l.Add("GatherV2", {indices, l.Int(d), l.Int(1)}));
    ASSIGN_OR_RETURN(const Endpoint size, l.Add("GatherV2", {shape, l.Int(d), l.Int(0)}));
    if (d == 0) {
      place = column;
      count = size;
      continue;
    }
    ASSIGN_OR_RETURN(const Endpoint before, l.Add("Mul", {place, size}));
    ASSIGN_OR_RETURN(place, l.Add("AddV2", {before, column}));
    ASSIGN_OR_RETURN(count, l.Add("Mul", {count, size}));
  }
  if (rank == 1) {
    ASSIGN_OR_RETURN(place, l.Add("ZerosLike", {ids}));
  }
  std::vector<int64_t> wide(static_cast<size_t>(rows.rank()), 1);
  wide[0] = -1;
  ASSIGN_OR_RETURN(const Endpoint factor, l.Add("Reshape", {weights, l.Ints(wide)}));
  ASSIGN_OR_RETURN(const Endpoint read, l.Add("GatherV2", {table, ids, l.Int(0)}));
  ASSIGN_OR_RETURN(const Endpoint scaled, l.Add("Mul", {read, factor}));
  ASSIGN_OR_RETURN(Endpoint sum, l.Add("UnsortedSegmentSum", {scaled, place, count}));
  const std::string combiner = n.String("combiner");
  if (combiner != "SUM") {
    Endpoint by = factor;
    if (combiner == "SQRTN") {
      ASSIGN_OR_RETURN(by, l.Add("Square", {factor}));
    }
    ASSIGN_OR_RETURN(by, l.Add("UnsortedSegmentSum", {by, place, count}));
    if (combiner == "SQRTN") {
      ASSIGN_OR_RETURN(by, l.Add("Sqrt", {by}));
    }
    ASSIGN_OR_RETURN(sum, l.Add("DivNoNan", {sum, by}));
  }
  // [outer sizes..., row]
  ASSIGN_OR_RETURN(const Endpoint row_shape, l.Add("Shape", {table}));
  const std::vector<int64_t> one = {1};
  AttrMap to_end;
  to_end.Set("end_mask", int64_t{1});
  ASSIGN_OR_RETURN(const Endpoint row,
                   l.Add("StridedSlice", {row_shape, l.Ints(one), l.Ints(zero), l.Ints(one)},
                         std::move(to_end)));
  ASSIGN_OR_RETURN(const Endpoint first,
                   l.Add("StridedSlice", {shape, l.Ints(zero), l.Ints(outer), l.Ints(one)}));
  ASSIGN_OR_RETURN(const Endpoint all, l.Add("ConcatV2", {first, row, l.Int(0)}));
  return OneOf(l.Add("Reshape", {sum, all}));
}

constexpr LowerRow kMovementLowering[] = {
    {"tfl.batch_to_space_nd", SameOp, "BatchToSpaceND"},
    {"tfl.broadcast_to", SameOp, "BroadcastTo"},
    {"tfl.cumsum", SameOp, "Cumsum", {{"exclusive", "exclusive"}, {"reverse", "reverse"}}},
    {"tfl.depth_to_space", Blocks, "DepthToSpace", {{"block_size", "block_size"}}},
    {"tfl.expand_dims", SameOp, "ExpandDims"},
    {"tfl.fill", SameOp, "Fill"},
    {"tfl.gather_nd", SameOp, "GatherNd"},
    {"tfl.mean", SameOp, "Mean", {{"keep_dims", "keep_dims"}}},
    {"tfl.mirror_pad", SameOp, "MirrorPad", {{"mode", "mode"}}},
    {"tfl.one_hot", SameOp, "OneHot", {{"axis", "axis"}}},
    {"tfl.pack", SameOp, "Pack", {{"axis", "axis"}}},
    {"tfl.pad", Pads},
    {"tfl.padv2", Pads},
    {"tfl.range", SameOp, "Range"},
    {"tfl.rank", SameOp, "Rank"},
    {"tfl.reduce_all", SameOp, "All", {{"keep_dims", "keep_dims"}}},
    {"tfl.reduce_any", SameOp, "Any", {{"keep_dims", "keep_dims"}}},
    {"tfl.reduce_max", SameOp, "Max", {{"keep_dims", "keep_dims"}}},
    {"tfl.reduce_min", SameOp, "Min", {{"keep_dims", "keep_dims"}}},
    {"tfl.reduce_prod", SameOp, "Prod", {{"keep_dims", "keep_dims"}}},
    {"tfl.reverse_sequence",
     SameOp,
     "ReverseSequence",
     {{"seq_dim", "seq_dim"}, {"batch_dim", "batch_dim"}}},
    {"tfl.reverse_v2", SameOp, "ReverseV2"},
    {"tfl.segment_sum", KeptForKernel},
    {"tfl.shape", SameOp, "Shape", {{"out_type", "out_type"}}},
    {"tfl.slice", SameOp, "Slice"},
    {"tfl.space_to_batch_nd", SameOp, "SpaceToBatchND"},
    {"tfl.space_to_depth", Blocks, "SpaceToDepth", {{"block_size", "block_size"}}},
    {"tfl.split", SameOp, "Split", {{"num_splits", "num_split"}}},
    {"tfl.split_v", SameOp, "SplitV", {{"num_splits", "num_split"}}},
    {"tfl.squeeze", SameOp, "Squeeze", {{"squeeze_dims", "squeeze_dims"}}},
    {"tfl.strided_slice",
     SameOp,
     "StridedSlice",
     {{"begin_mask", "begin_mask"},
      {"end_mask", "end_mask"},
      {"ellipsis_mask", "ellipsis_mask"},
      {"new_axis_mask", "new_axis_mask"},
      {"shrink_axis_mask", "shrink_axis_mask"}}},
    {"tfl.sum", SameOp, "Sum", {{"keep_dims", "keep_dims"}}},
    {"tfl.tile", SameOp, "Tile"},
    {"tfl.topk_v2", TopK, "TopKV2"},
    {"tfl.transpose", SameOp, "Transpose"},
    {"tfl.unique", SameOp, "Unique", {{"idx_out_type", "out_idx"}}},
    {"tfl.unpack", SameOp, "Unpack", {{"num", "num"}, {"axis", "axis"}}},
    {"tfl.unsorted_segment_max", SameOp, "UnsortedSegmentMax"},
    {"tfl.unsorted_segment_min", SameOp, "UnsortedSegmentMin"},
    {"tfl.unsorted_segment_prod", SameOp, "UnsortedSegmentProd"},
    {"tfl.unsorted_segment_sum", SameOp, "UnsortedSegmentSum"},
    {"tfl.where", SameOp, "Where"},
    {"tfl.concatenation", Concatenation},
    {"tfl.reshape", Reshape},
    {"tfl.gather", Gather},
    {"tfl.embedding_lookup", EmbeddingLookup},
    {"tfl.scatter_nd", SameOp, "ScatterNd"},
    {"tfl.arg_max", ArgExtreme, "ArgMax"},
    {"tfl.broadcast_args", SameOp, "BroadcastArgs"},
    {"tfl.densify", SameValue},
    {"tfl.dynamic_update_slice", SameOp, "XlaDynamicUpdateSlice"},
    {"tfl.embedding_lookup_sparse", EmbeddingLookupSparse},
    {"tfl.hashtable_lookup", KeptForKernel},
    {"tfl.lsh_projection", KeptForKernel},
    {"tfl.matrix_diag", SameOp, "MatrixDiag"},
    {"tfl.matrix_set_diag", SameOp, "MatrixSetDiag"},
    {"tfl.multinomial", Random, "Multinomial"},
    {"tfl.random_standard_normal", Random, "RandomStandardNormal"},
    {"tfl.random_uniform", Random, "RandomUniform"},
    {"tfl.skip_gram", KeptForKernel},
    {"tfl.sparse_to_dense", SparseToDense},
    {"tfl.stablehlo_broadcast_in_dim", BroadcastInDim},
    {"tfl.stablehlo_concatenate", StablehloConcatenate},
    {"tfl.stablehlo_dynamic_update_slice", StablehloUpdateSlice},
    {"tfl.stablehlo_reshape", StablehloReshape},
    {"tfl.stablehlo_slice", StablehloSlice},
    {"tfl.stablehlo_transpose", StablehloTranspose},
    {"tfl.arg_min", ArgExtreme, "ArgMin"},
};

}  // namespace

std::span<const LowerRow> MovementLowering() { return kMovementLowering; }

}  // namespace smelt
