// Operators that move elements, and those that make or reduce dimensions.
#include <algorithm>

#include "smelt/lite/lower/lowering.h"

namespace smelt {
namespace {

LoweredEndpoints Concatenation(Node& n, Lowering& l) {
  std::vector<Endpoint> inputs = InputsOf(n);
  inputs.push_back(l.Int(n.Int("axis")));
  ASSIGN_OR_RETURN(const Endpoint e, l.Add("ConcatV2", inputs));
  return OneOf(l.Activated(e, n));
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

constexpr LowerRow kMovementLowering[] = {
    {"tfl.batch_to_space_nd", SameOp, "BatchToSpaceND"},
    {"tfl.broadcast_to", SameOp, "BroadcastTo"},
    {"tfl.cumsum", SameOp, "Cumsum", {{"exclusive", "exclusive"}, {"reverse", "reverse"}}},
    {"tfl.depth_to_space", SameOp, "DepthToSpace", {{"block_size", "block_size"}}},
    {"tfl.expand_dims", SameOp, "ExpandDims"},
    {"tfl.fill", SameOp, "Fill"},
    {"tfl.gather_nd", SameOp, "GatherNd"},
    {"tfl.mean", SameOp, "Mean", {{"keep_dims", "keep_dims"}}},
    {"tfl.mirror_pad", SameOp, "MirrorPad", {{"mode", "mode"}}},
    {"tfl.one_hot", SameOp, "OneHot", {{"axis", "axis"}}},
    {"tfl.pack", SameOp, "Pack", {{"axis", "axis"}}},
    {"tfl.pad", SameOp, "Pad"},
    {"tfl.padv2", SameOp, "PadV2"},
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
    {"tfl.segment_sum", SameOp, "SegmentSum"},
    {"tfl.shape", SameOp, "Shape", {{"out_type", "out_type"}}},
    {"tfl.slice", SameOp, "Slice"},
    {"tfl.space_to_batch_nd", SameOp, "SpaceToBatchND"},
    {"tfl.space_to_depth", SameOp, "SpaceToDepth", {{"block_size", "block_size"}}},
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
    {"tfl.topk_v2", SameOp, "TopKV2"},
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
    {"tfl.arg_min", ArgExtreme, "ArgMin"},
};

}  // namespace

std::span<const LowerRow> MovementLowering() { return kMovementLowering; }

}  // namespace smelt
