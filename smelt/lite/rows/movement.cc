// Ops that move elements, and those that make shapes and indices.
#include <algorithm>
#include <cstring>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

constexpr DtypeSet kMoved =
    Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kUint8, Dtype::kInt8, Dtype::kInt16,
          Dtype::kBool, Dtype::kString, Dtype::kHalf, Dtype::kUint32, Dtype::kComplex64);

// The axis of a constant scalar, counted from the front.
StatusOr<int64_t> Axis(Endpoint e, int rank, const Legalizer& l) {
  const auto axis = l.Integers(e);
  if (!axis || axis->size() != 1) return Unimplemented("its axis is no constant");
  if ((*axis)[0] >= 0) return (*axis)[0];
  if (rank < 0) return Unimplemented("the rank of its input is not known");
  return (*axis)[0] + rank;
}

LiteEndpoints Reshape(Node& n, Legalizer& l) {
  const PartialShape out = l.shape({&n, 0});
  int free = 0;
  for (int i = 0; i < out.rank(); ++i) free += out[i] < 0 ? 1 : 0;
  AttrMap options;
  Endpoint shape = n.input(1);
  if (out.known_rank() && free <= 1) {
    // What the shape is computed of does not matter: one free size is what is left.
    std::vector<int64_t> sizes;
    for (int i = 0; i < out.rank(); ++i) sizes.push_back(std::max<int64_t>(out[i], -1));
    // Beside a size of zero it cannot be told.
    const bool empty = std::ranges::find(sizes, 0) != sizes.end();
    if (free == 0 || !empty) {
      options.Set("new_shape", sizes);
      shape = l.Ints(sizes);
    }
  }
  ASSIGN_OR_RETURN(shape, AsInt32(shape, l));
  return One(l.Add("tfl.reshape", {n.input(0), shape}, std::move(options), l.OutputOf(n)));
}

LiteEndpoints Squeeze(Node& n, Legalizer& l) {
  std::vector<int64_t> dims = n.Ints("squeeze_dims");
  const int rank = l.rank(n.input(0));
  for (int64_t& d : dims) {
    if (d >= 0) continue;
    if (rank < 0) return Unimplemented("the rank of its input is not known");
    d += rank;
  }
  return One(l.Add("tfl.squeeze", {n.input(0)}, Options({{"squeeze_dims", dims}}), l.OutputOf(n)));
}

LiteEndpoints ExpandDims(Node& n, Legalizer& l) {
  ASSIGN_OR_RETURN(const Endpoint axis, AsInt32(n.input(1), l));
  return One(l.Add("tfl.expand_dims", {n.input(0), axis}, {}, l.OutputOf(n)));
}

// Ops whose inputs behind the first are int32 there.
LiteEndpoints WithInt32(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  std::vector<Endpoint> inputs = {n.input(0)};
  for (int i = 1; i < n.num_inputs(); ++i) {
    ASSIGN_OR_RETURN(const Endpoint e, AsInt32(n.input(i), l));
    inputs.push_back(e);
  }
  return One(l.Add(l.row().lite, inputs, {}, l.OutputOf(n)));
}

LiteEndpoints ConjugateTranspose(Node& n, Legalizer& l) {
  if (IsComplex(n.input_types[0])) return Unimplemented("its numbers are complex");
  return WithInt32(n, l);
}

LiteEndpoints PadV2(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  ASSIGN_OR_RETURN(const Endpoint pads, AsInt32(n.input(1), l));
  return One(l.Add("tfl.padv2", {n.input(0), pads, n.input(2)}, {}, l.OutputOf(n)));
}

LiteEndpoints MirrorPad(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  return One(
      l.Add("tfl.mirror_pad", Inputs(n), Options({{"mode", n.String("mode")}}), l.OutputOf(n)));
}

LiteEndpoints Concat(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  std::vector<Endpoint> inputs = Inputs(n);
  const bool last = n.Is("ConcatV2");
  const Endpoint at = last ? inputs.back() : inputs.front();
  inputs.erase(last ? inputs.end() - 1 : inputs.begin());
  ASSIGN_OR_RETURN(const int64_t axis, Axis(at, l.rank({&n, 0}), l));
  if (inputs.size() == 1) return LiteEndpoints({inputs[0]});
  return One(l.Add("tfl.concatenation", inputs, Options({{"axis", axis}}), l.OutputOf(n)));
}

LiteEndpoints Split(Node& n, Legalizer& l) {
  ASSIGN_OR_RETURN(const Endpoint axis, AsInt32(n.input(0), l));
  const std::vector<Endpoint> inputs = {axis, n.input(1)};
  return Many(l.AddMany("tfl.split", inputs, Options({{"num_splits", n.Int("num_split")}}),
                        AllOutputs(n, l)));
}

LiteEndpoints SplitV(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  ASSIGN_OR_RETURN(const Endpoint sizes, AsInt32(n.input(1), l));
  ASSIGN_OR_RETURN(const Endpoint axis, AsInt32(n.input(2), l));
  const std::vector<Endpoint> inputs = {n.input(0), sizes, axis};
  return Many(l.AddMany("tfl.split_v", inputs, Options({{"num_splits", n.Int("num_split")}}),
                        AllOutputs(n, l)));
}

LiteEndpoints Pack(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  int64_t axis = n.Int("axis");
  const int rank = l.rank({&n, 0});
  if (axis < 0 && rank < 0) return Unimplemented("the rank of its inputs is not known");
  if (axis < 0) axis += rank;
  return One(l.Add("tfl.pack", Inputs(n),
                   Options({{"values_count", int64_t{n.num_inputs()}}, {"axis", axis}}),
                   l.OutputOf(n)));
}

LiteEndpoints Unpack(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  int64_t axis = n.Int("axis");
  const int rank = l.rank(n.input(0));
  if (axis < 0 && rank < 0) return Unimplemented("the rank of its input is not known");
  if (axis < 0) axis += rank;
  constexpr DtypeSet kUnpacked =
      kMoved & ~Types(Dtype::kInt64, Dtype::kString, Dtype::kUint32, Dtype::kComplex64);
  if (!Has(kUnpacked, l.type(n.input(0)))) {
    if (rank < 0) return Unimplemented("the rank of its input is not known");
    const auto mask = int64_t{1} << axis;
    std::vector<int64_t> begin(static_cast<size_t>(rank)), end(begin), steps(begin.size(), 1);
    std::vector<Endpoint> out;
    for (int i = 0; i < n.num_outputs(); ++i) {
      begin[static_cast<size_t>(axis)] = i;
      end[static_cast<size_t>(axis)] = i + 1;
      ASSIGN_OR_RETURN(
          const Endpoint e,
          l.Add("tfl.strided_slice", {n.input(0), l.Ints(begin), l.Ints(end), l.Ints(steps)},
                Options({{"begin_mask", (int64_t{1} << rank) - 1 - mask},
                         {"end_mask", (int64_t{1} << rank) - 1 - mask},
                         {"shrink_axis_mask", mask}}),
                l.OutputOf(n, i)));
      out.push_back(e);
    }
    return out;
  }
  return Many(l.AddMany("tfl.unpack", Inputs(n), Options({{"num", n.Int("num")}, {"axis", axis}}),
                        AllOutputs(n, l)));
}

LiteEndpoints StridedSlice(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  std::vector<Endpoint> inputs = {n.input(0)};
  for (int i = 1; i < 4; ++i) {
    ASSIGN_OR_RETURN(const Endpoint e, AsInt32(n.input(i), l));
    inputs.push_back(e);
  }
  return One(l.Add("tfl.strided_slice", inputs,
                   Options({{"begin_mask", n.Int("begin_mask")},
                            {"end_mask", n.Int("end_mask")},
                            {"ellipsis_mask", n.Int("ellipsis_mask")},
                            {"new_axis_mask", n.Int("new_axis_mask")},
                            {"shrink_axis_mask", n.Int("shrink_axis_mask")}}),
                   l.OutputOf(n)));
}

LiteEndpoints Gather(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  int64_t axis = 0;
  if (n.Is("GatherV2")) {
    ASSIGN_OR_RETURN(axis, Axis(n.input(2), l.rank(n.input(0)), l));
  }
  int64_t batch = n.Int("batch_dims");
  const int rank = l.rank(n.input(1));
  if (batch < 0 && rank < 0) return Unimplemented("the rank of its indices is not known");
  if (batch < 0) batch += rank;
  return One(l.Add("tfl.gather", {n.input(0), n.input(1)},
                   Options({{"axis", axis}, {"batch_dims", batch}}), l.OutputOf(n)));
}

LiteEndpoints Plain(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  return One(l.Add(l.row().lite, Inputs(n), {}, l.OutputOf(n)));
}

LiteEndpoints ScatterNd(Node& n, Legalizer& l) {
  std::vector<Endpoint> inputs;
  for (const int i : {0, 2}) {
    ASSIGN_OR_RETURN(const Endpoint e, AsInt32(n.input(i), l));
    inputs.push_back(e);
  }
  return One(l.Add("tfl.scatter_nd", {inputs[0], n.input(1), inputs[1]}, {}, l.OutputOf(n)));
}

LiteEndpoints ShapeOf(Node& n, Legalizer& l) {
  return One(
      l.Add("tfl.shape", Inputs(n), Options({{"out_type", n.output_types[0]}}), l.OutputOf(n)));
}

// The product of the shape.
LiteEndpoints Size(Node& n, Legalizer& l) {
  if (n.output_types[0] != Dtype::kInt32) return Unimplemented("no operator multiplies int64");
  const int rank = l.rank(n.input(0));
  ASSIGN_OR_RETURN(const Endpoint shape,
                   l.Add("tfl.shape", Inputs(n), Options({{"out_type", Dtype::kInt32}}),
                         {Dtype::kInt32, PartialShape::Of({rank})}));
  return One(l.Add("tfl.reduce_prod", {shape, l.Ints(std::vector<int64_t>{0})}, {}, l.OutputOf(n)));
}

LiteEndpoints Range(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64)));
  return One(l.Add("tfl.range", Inputs(n), {}, l.OutputOf(n)));
}

LiteEndpoints OneHot(Node& n, Legalizer& l) {
  ASSIGN_OR_RETURN(const Endpoint depth, AsInt32(n.input(1), l));
  return One(l.Add("tfl.one_hot", {n.input(0), depth, n.input(2), n.input(3)},
                   Options({{"axis", n.Int("axis", -1)}}), l.OutputOf(n)));
}

LiteEndpoints ReverseSequence(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  return One(l.Add("tfl.reverse_sequence", Inputs(n),
                   Options({{"seq_dim", n.Int("seq_dim")}, {"batch_dim", n.Int("batch_dim")}}),
                   l.OutputOf(n)));
}

LiteEndpoints TopK(Node& n, Legalizer& l) {
  if (n.output_types[1] != Dtype::kInt32) return Unimplemented("its indices are not int32");
  ASSIGN_OR_RETURN(const Endpoint k, AsInt32(n.input(1), l));
  const std::vector<Endpoint> inputs = {n.input(0), k};
  return Many(l.AddMany("tfl.topk_v2", inputs, {}, AllOutputs(n, l)));
}

LiteEndpoints Unique(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  return Many(l.AddMany("tfl.unique", Inputs(n), Options({{"idx_out_type", n.output_types[1]}}),
                        AllOutputs(n, l)));
}

LiteEndpoints Cumsum(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64)));
  ASSIGN_OR_RETURN(const Endpoint axis, AsInt32(n.input(1), l));
  return One(l.Add("tfl.cumsum", {n.input(0), axis},
                   Options({{"exclusive", n.Bool("exclusive")}, {"reverse", n.Bool("reverse")}}),
                   l.OutputOf(n)));
}

LiteEndpoints Blocks(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  const std::string format = n.String("data_format", "NHWC");
  const AttrMap options = Options({{"block_size", n.Int("block_size")}});
  if (format == "NHWC") return One(l.Add(l.row().lite, Inputs(n), options, l.OutputOf(n)));
  const PartialShape to = l.shape({&n, 0});
  if (format != "NCHW" || to.rank() != 4) return Unimplemented("its data format is ", format);
  // Channels that come second come last, and back.
  OperatorChain c(l);
  const Endpoint last = c.Transpose(n.input(0), {0, 2, 3, 1});
  const LiteOutput made = {l.type(n.input(0)), PartialShape::Of({to[0], to[2], to[3], to[1]})};
  return c.Done(c.Transpose(c.Make(l.row().lite, {last}, options, made), {0, 3, 1, 2}));
}

// The diagonals of the second generation, where they are those of the first.
LiteEndpoints MatrixDiag(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  if (n.num_inputs() > 1) {
    const auto k = l.Integers(n.input(1)), rows = l.Integers(n.input(2)),
               cols = l.Integers(n.input(3));
    const bool main = k == std::vector<int64_t>{0} && rows == std::vector<int64_t>{-1} &&
                      cols == std::vector<int64_t>{-1};
    if (!main) return Unimplemented("it makes other diagonals than the main one");
    const auto padding = l.Constant(n.input(4));
    const auto zero = Tensor::Zeros(BaseType(n.input_types[4]), Shape());
    if (!padding || !zero.ok() || padding->num_elements() != 1 ||
        std::memcmp(padding->raw(), zero->raw(), zero->bytes()) != 0) {
      return Unimplemented("what is beside its diagonal is not zero");
    }
  }
  return One(l.Add("tfl.matrix_diag", {n.input(0)}, {}, l.OutputOf(n)));
}

LiteEndpoints MatrixSetDiag(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  if (n.num_inputs() > 2 && l.Integers(n.input(2)) != std::vector<int64_t>{0}) {
    return Unimplemented("it sets other diagonals than the main one");
  }
  return One(l.Add("tfl.matrix_set_diag", {n.input(0), n.input(1)}, {}, l.OutputOf(n)));
}

// Fill takes its sizes first, computed ones of int64 too.
LiteEndpoints Fill(Node& n, Legalizer& l) {
  Endpoint sizes = n.input(0);
  if (l.Constant(sizes)) {
    ASSIGN_OR_RETURN(sizes, AsInt32(sizes, l));
  }
  return One(l.Add("tfl.fill", {sizes, n.input(1)}, {}, l.OutputOf(n)));
}

constexpr ExportRow kMovementRows[] = {
    {"Fill", Fill},
    {"Reshape", Reshape},
    {"Squeeze", Squeeze},
    {"ExpandDims", ExpandDims},
    {"Transpose", WithInt32, "tfl.transpose"},
    {"ConjugateTranspose", ConjugateTranspose, "tfl.transpose"},
    {"Pad", WithInt32, "tfl.pad"},
    {"PadV2", PadV2},
    {"MirrorPad", MirrorPad},
    {"Concat", Concat},
    {"ConcatV2", Concat},
    {"Split", Split},
    {"SplitV", SplitV},
    {"Pack", Pack},
    {"Unpack", Unpack},
    {"Slice", WithInt32, "tfl.slice"},
    {"StridedSlice", StridedSlice},
    {"Gather", Gather},
    {"GatherV2", Gather},
    {"GatherNd", Plain, "tfl.gather_nd"},
    {"ScatterNd", ScatterNd},
    {"Tile", WithInt32, "tfl.tile"},
    {"Shape", ShapeOf},
    {"Size", Size},
    {"Rank", Plain, "tfl.rank"},
    {"Range", Range},
    {"OneHot", OneHot},
    {"BroadcastTo", WithInt32, "tfl.broadcast_to"},
    {"ReverseV2", WithInt32, "tfl.reverse_v2"},
    {"ReverseSequence", ReverseSequence},
    {"TopKV2", TopK},
    {"Unique", Unique},
    {"Where", Plain, "tfl.where"},
    {"Cumsum", Cumsum},
    {"SpaceToDepth", Blocks, "tfl.space_to_depth"},
    {"DepthToSpace", Blocks, "tfl.depth_to_space"},
    {"SpaceToBatchND", WithInt32, "tfl.space_to_batch_nd"},
    {"BatchToSpaceND", WithInt32, "tfl.batch_to_space_nd"},
    {"MatrixDiag", MatrixDiag},
    {"MatrixDiagV2", MatrixDiag},
    {"MatrixDiagV3", MatrixDiag},
    {"MatrixSetDiag", MatrixSetDiag},
    {"MatrixSetDiagV2", MatrixSetDiag},
    {"MatrixSetDiagV3", MatrixSetDiag},
};

}  // namespace

std::span<const ExportRow> MovementExport() { return kMovementRows; }

}  // namespace smelt
