// Ops that move elements, and those that make shapes and indices.
#include <algorithm>
#include <cstdlib>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

constexpr DtypeSet kText = Types(Dtype::kString), kComplex = Types(Dtype::kComplex64);
constexpr DtypeSet kMoved =
    Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kUint8, Dtype::kInt8, Dtype::kInt16,
          Dtype::kBool, Dtype::kHalf, Dtype::kUint32) |
    kText | kComplex;
constexpr DtypeSet kUniques =
    Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kInt8, Dtype::kInt16, Dtype::kUint8);
constexpr DtypeSet kJoined = kMoved & ~kText & ~kComplex;
constexpr DtypeSet kIntegersAndFloat =
    Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kUint8, Dtype::kInt8, Dtype::kInt16);

// The axis of a constant scalar, counted from the front.
StatusOr<int64_t> Axis(Endpoint e, int rank, const Legalizer& l) {
  const auto axis = l.Integers(e);
  if (!axis || axis->size() != 1) return Unimplemented("its axis is no constant");
  if ((*axis)[0] >= 0) return (*axis)[0];
  if (rank < 0) return Unimplemented("the rank of its input is not known");
  return (*axis)[0] + rank;
}

// Sizes in int32, of which a single one may be no vector.
StatusOr<Endpoint> SizesAsVector(Endpoint sizes, Legalizer& l) {
  ASSIGN_OR_RETURN(const Endpoint e, AsInt32(sizes, l));
  if (l.rank(sizes) != 0) return e;
  const std::vector<int64_t> one = {1};
  return l.Add("tfl.reshape", {e, l.Ints(one)}, Options({{"new_shape", one}}),
               {Dtype::kInt32, PartialShape::Of({1})});
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
  ASSIGN_OR_RETURN(shape, SizesAsVector(shape, l));
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
  RETURN_IF_ERROR(CheckType(n, l.row().types));
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
  RETURN_IF_ERROR(CheckType(n, kJoined));
  ASSIGN_OR_RETURN(const Endpoint pads, AsInt32(n.input(1), l));
  return One(l.Add("tfl.padv2", {n.input(0), pads, n.input(2)}, {}, l.OutputOf(n)));
}

LiteEndpoints MirrorPad(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved & ~kText));
  return One(
      l.Add("tfl.mirror_pad", Inputs(n), Options({{"mode", n.String("mode")}}), l.OutputOf(n)));
}

Status CheckResult(const Node& n, DtypeSet types) {
  if (Has(types, n.output_types[0])) return OkStatus();
  return Unimplemented("its operator does not take ", DtypeName(n.output_types[0]));
}

LiteEndpoints Concat(Node& n, Legalizer& l) {
  std::vector<Endpoint> inputs = Inputs(n);
  const bool last = n.Is("ConcatV2");
  const Endpoint at = last ? inputs.back() : inputs.front();
  inputs.erase(last ? inputs.end() - 1 : inputs.begin());
  ASSIGN_OR_RETURN(const int64_t axis, Axis(at, l.rank({&n, 0}), l));
  // What has nothing along the axis adds nothing, but one of them is left.
  const auto nothing = [&](Endpoint e) {
    const PartialShape shape = l.shape(e);
    return axis < shape.rank() && shape[static_cast<int>(axis)] == 0;
  };
  const Endpoint first = inputs.front();
  std::erase_if(inputs, nothing);
  if (inputs.empty()) inputs.push_back(first);
  if (inputs.size() == 1) return LiteEndpoints({inputs[0]});
  RETURN_IF_ERROR(CheckResult(n, kJoined));
  return One(l.Add("tfl.concatenation", inputs, Options({{"axis", axis}}), l.OutputOf(n)));
}

// Parts of texts, of which no operator makes several.
LiteEndpoints Slices(Node& n, Legalizer& l, Endpoint x, Endpoint at,
                     const std::vector<int64_t>& sizes) {
  const PartialShape shape = l.shape(x);
  ASSIGN_OR_RETURN(const int64_t axis, Axis(at, shape.rank(), l));
  if (axis < 0 || axis >= shape.rank()) return Unimplemented("the rank of its input is not known");
  std::vector<int64_t> begin(static_cast<size_t>(shape.rank())), size(begin.size(), -1);
  std::vector<Endpoint> out;
  for (int i = 0; i < n.num_outputs(); ++i) {
    size[static_cast<size_t>(axis)] = sizes[static_cast<size_t>(i)];
    ASSIGN_OR_RETURN(out.emplace_back(),
                     l.Add("tfl.slice", {x, l.Ints(begin), l.Ints(size)}, {}, l.OutputOf(n, i)));
    begin[static_cast<size_t>(axis)] += sizes[static_cast<size_t>(i)];
  }
  return out;
}

LiteEndpoints Split(Node& n, Legalizer& l) {
  if (n.output_types[0] == Dtype::kString) {
    const PartialShape part = l.shape({&n, 0});
    ASSIGN_OR_RETURN(const int64_t axis, Axis(n.input(0), part.rank(), l));
    if (axis >= part.rank() || part[static_cast<int>(axis)] < 0) {
      return Unimplemented("the size of its parts is not known");
    }
    const std::vector<int64_t> sizes(static_cast<size_t>(n.num_outputs()),
                                     part[static_cast<int>(axis)]);
    return Slices(n, l, n.input(1), n.input(0), sizes);
  }
  RETURN_IF_ERROR(CheckResult(n, kIntegersAndFloat | Types(Dtype::kHalf)));
  ASSIGN_OR_RETURN(const Endpoint axis, AsInt32(n.input(0), l));
  const std::vector<Endpoint> inputs = {axis, n.input(1)};
  return Many(l.AddMany("tfl.split", inputs, Options({{"num_splits", n.Int("num_split")}}),
                        AllOutputs(n, l)));
}

LiteEndpoints SplitV(Node& n, Legalizer& l) {
  if (n.output_types[0] == Dtype::kString) {
    std::vector<int64_t> each;
    for (int i = 0; i < n.num_outputs(); ++i) {
      const PartialShape part = l.shape({&n, i});
      ASSIGN_OR_RETURN(const int64_t at, Axis(n.input(2), part.rank(), l));
      const bool known = at < part.rank() && part[static_cast<int>(at)] >= 0;
      if (!known) return Unimplemented("the sizes of its parts are not known");
      each.push_back(part[static_cast<int>(at)]);
    }
    return Slices(n, l, n.input(0), n.input(2), each);
  }
  RETURN_IF_ERROR(CheckType(n, kIntegersAndFloat | Types(Dtype::kHalf)));
  ASSIGN_OR_RETURN(const Endpoint sizes, AsInt32(n.input(1), l));
  ASSIGN_OR_RETURN(const Endpoint axis, AsInt32(n.input(2), l));
  const std::vector<Endpoint> inputs = {n.input(0), sizes, axis};
  return Many(l.AddMany("tfl.split_v", inputs, Options({{"num_splits", n.Int("num_split")}}),
                        AllOutputs(n, l)));
}

LiteEndpoints Pack(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kJoined));
  int64_t axis = n.Int("axis");
  const int rank = l.rank({&n, 0});
  if (axis < 0 && rank < 0) return Unimplemented("the rank of its inputs is not known");
  if (axis < 0) axis += rank;
  if (n.output_types[0] == Dtype::kBool) {
    // Its operator does not take them, and one that joins does.
    std::vector<Endpoint> parts;
    for (const Endpoint& e : n.inputs()) {
      PartialShape shape = l.shape(e);
      if (!shape.known_rank() || axis > shape.rank()) {
        return Unimplemented("the rank of its inputs is not known");
      }
      std::vector<int64_t> dims;
      for (int i = 0; i < shape.rank(); ++i) dims.push_back(std::max<int64_t>(shape[i], -1));
      dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), 1);
      ASSIGN_OR_RETURN(parts.emplace_back(), l.Add("tfl.expand_dims", {e, l.Int(axis)}, {},
                                                   {Dtype::kBool, PartialShape::Of(dims)}));
    }
    if (parts.size() == 1) return parts;
    return One(l.Add("tfl.concatenation", parts, Options({{"axis", axis}}), l.OutputOf(n)));
  }
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

// [0, 0) of a dimension is nothing, but XNNPACK takes all of it: bits of those that a slice says,
// for which [1, 1) says the same.
int64_t NothingFromFirst(const Node& n, const Legalizer& l) {
  const auto begin = l.Integers(n.input(1)), end = l.Integers(n.input(2)),
             strides = l.Integers(n.input(3));
  if (!begin || !end || !strides) return 0;
  const int64_t others = n.Int("end_mask") | n.Int("ellipsis_mask") | n.Int("new_axis_mask") |
                         n.Int("shrink_axis_mask");
  int64_t bits = 0;
  for (size_t i = 0; i < begin->size() && i < 32; ++i) {
    const bool from_first = (*begin)[i] == 0 || (n.Int("begin_mask") >> i & 1) != 0;
    if (from_first && (*end)[i] == 0 && (*strides)[i] == 1 && (others >> i & 1) == 0) {
      bits |= int64_t{1} << i;
    }
  }
  return bits;
}

LiteEndpoints StridedSlice(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved));
  const int64_t nothing = NothingFromFirst(n, l);
  std::vector<Endpoint> inputs = {n.input(0)};
  for (int i = 1; i < 4; ++i) {
    if (nothing != 0 && i < 3) {
      std::vector<int64_t> places = *l.Integers(n.input(i));
      for (size_t k = 0; k < places.size(); ++k) {
        if ((nothing >> k & 1) != 0) places[k] = 1;
      }
      inputs.push_back(l.Ints(places));
      continue;
    }
    ASSIGN_OR_RETURN(const Endpoint e, AsInt32(n.input(i), l));
    inputs.push_back(e);
  }
  // What masks have behind the last entry says nothing; kernels would take it for dimensions.
  const PartialShape length = l.shape(n.input(1));
  const bool known = length.rank() == 1 && length[0] >= 0 && length[0] < 32;
  const int64_t used = known ? (int64_t{1} << length[0]) - 1 : -1;
  // One place is that which is said, whatever the masks: LiteRT has it the other way.
  const int64_t shrunk = n.Int("shrink_axis_mask");
  return One(l.Add("tfl.strided_slice", inputs,
                   Options({{"begin_mask", n.Int("begin_mask") & ~(nothing | shrunk) & used},
                            {"end_mask", n.Int("end_mask") & ~shrunk & used},
                            {"ellipsis_mask", n.Int("ellipsis_mask") & used},
                            {"new_axis_mask", n.Int("new_axis_mask") & used},
                            {"shrink_axis_mask", shrunk & used}}),
                   l.OutputOf(n)));
}

LiteEndpoints Gather(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kMoved & ~kComplex));
  int64_t axis = 0;
  if (n.Is("GatherV2")) {
    ASSIGN_OR_RETURN(axis, Axis(n.input(2), l.rank(n.input(0)), l));
  }
  int64_t batch = n.Int("batch_dims");
  const int rank = l.rank(n.input(1));
  if (batch < 0 && rank < 0) return Unimplemented("the rank of its indices is not known");
  if (batch < 0) batch += rank;
  if (n.input_types[0] == Dtype::kString && l.rank(n.input(0)) != 1) {
    // The operator takes vectors of texts; rows are taken by another.
    if (axis != 0 || batch != 0 || rank < 0) {
      return Unimplemented("its operator takes texts of one dimension");
    }
    const PartialShape places = l.shape(n.input(1));
    std::vector<int64_t> dims;
    for (int i = 0; i < rank; ++i) dims.push_back(std::max<int64_t>(places[i], -1));
    dims.push_back(1);
    ASSIGN_OR_RETURN(const Endpoint at, l.Add("tfl.expand_dims", {n.input(1), l.Int(-1)}, {},
                                              {l.type(n.input(1)), PartialShape::Of(dims)}));
    return One(l.Add("tfl.gather_nd", {n.input(0), at}, {}, l.OutputOf(n)));
  }
  return One(l.Add("tfl.gather", {n.input(0), n.input(1)},
                   Options({{"axis", axis}, {"batch_dims", batch}}), l.OutputOf(n)));
}

LiteEndpoints Plain(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, l.row().types));
  return One(l.Add(l.row().lite, Inputs(n), {}, l.OutputOf(n)));
}

LiteEndpoints ScatterNd(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckResult(n, kJoined & ~Types(Dtype::kHalf, Dtype::kUint32, Dtype::kInt16)));
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
  const Dtype type = n.output_types[0];
  ASSIGN_OR_RETURN(const Endpoint shape,
                   l.Add("tfl.shape", {n.input(0)}, Options({{"out_type", type}}),
                         {type, PartialShape::Of({l.rank(n.input(0))})}));
  return One(l.Add("tfl.reduce_prod", {shape, l.Ints(std::vector<int64_t>{0})}, {}, l.OutputOf(n)));
}

LiteEndpoints Range(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64)));
  return One(l.Add("tfl.range", Inputs(n), {}, l.OutputOf(n)));
}

LiteEndpoints OneHot(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(
      CheckResult(n, (kIntegersAndFloat & ~Types(Dtype::kInt16)) | Types(Dtype::kBool)));
  ASSIGN_OR_RETURN(const Endpoint depth, AsInt32(n.input(1), l));
  Endpoint indices = n.input(0);
  if (!Has(Types(Dtype::kInt32, Dtype::kInt64), l.type(indices))) {
    ASSIGN_OR_RETURN(indices, AsInt32(indices, l));
  }
  return One(l.Add("tfl.one_hot", {indices, depth, n.input(2), n.input(3)},
                   Options({{"axis", n.Int("axis", -1)}}), l.OutputOf(n)));
}

// Runs of neighbors: kernels reverse no others at once.
LiteEndpoints Reverse(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kIntegersAndFloat | Types(Dtype::kBool)));
  std::optional<std::vector<int64_t>> axes = l.Integers(n.input(1));
  const int rank = l.rank(n.input(0));
  const bool from_end = axes && std::ranges::any_of(*axes, [](int64_t a) { return a < 0; });
  if (!axes || (rank < 0 && from_end)) {
    if (l.shape(n.input(1)).rank() != 1 || l.shape(n.input(1))[0] != 1) {
      return Unimplemented("its axes are no constants");
    }
    ASSIGN_OR_RETURN(const Endpoint axis, AsInt32(n.input(1), l));
    return One(l.Add("tfl.reverse_v2", {n.input(0), axis}, {}, l.OutputOf(n)));
  }
  for (int64_t& a : *axes) a += a < 0 ? rank : 0;
  std::ranges::sort(*axes);
  Endpoint e = n.input(0);
  for (size_t i = 0; i < axes->size();) {
    std::vector<int64_t> run = {(*axes)[i++]};
    while (i < axes->size() && (*axes)[i] == run.back() + 1) run.push_back((*axes)[i++]);
    ASSIGN_OR_RETURN(e, l.Add("tfl.reverse_v2", {e, l.Ints(run)}, {}, l.OutputOf(n)));
  }
  return std::vector<Endpoint>{e};
}

LiteEndpoints ReverseSequence(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kIntegersAndFloat & ~Types(Dtype::kInt8)));
  return One(l.Add("tfl.reverse_sequence", Inputs(n),
                   Options({{"seq_dim", n.Int("seq_dim")}, {"batch_dim", n.Int("batch_dim")}}),
                   l.OutputOf(n)));
}

LiteEndpoints TopK(Node& n, Legalizer& l) {
  if (n.output_types[1] != Dtype::kInt32) return Unimplemented("its indices are not int32");
  ASSIGN_OR_RETURN(const Endpoint k, AsInt32(n.input(1), l));
  const PartialShape to = l.shape({&n, 0});
  if (l.Integers(k) == std::vector<int64_t>{0} && to.fully_known()) {
    // The kernels of some versions end the process.
    std::vector<Endpoint> nothing;
    for (const Dtype type : n.output_types) {
      ASSIGN_OR_RETURN(const Tensor value, Tensor::Make(type, to.ToShape()));
      nothing.push_back(l.Const(value));
    }
    return nothing;
  }
  const std::vector<Endpoint> inputs = {n.input(0), k};
  return Many(l.AddMany("tfl.topk_v2", inputs, {}, AllOutputs(n, l)));
}

LiteEndpoints Unique(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kUniques));
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
  RETURN_IF_ERROR(CheckType(n, kIntegersAndFloat & ~Types(Dtype::kInt16)));
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

// The one diagonal that a node of the second generation says; nothing where it is several.
StatusOr<int64_t> DiagonalNumber(Endpoint e, const Legalizer& l) {
  const auto k = l.Integers(e);
  if (!k || k->empty() || k->front() != k->back()) {
    return Unimplemented("it is of more than one diagonal");
  }
  return k->front();
}

// Matrices of zeros but for diagonal k: those of the main one with zeros beside them.
Endpoint OneDiagonal(Endpoint diagonal, int64_t k, OperatorChain& c) {
  Legalizer& l = c.l();
  std::vector<int64_t> dims;
  for (int i = 0; i < l.rank(diagonal); ++i) {
    dims.push_back(std::max<int64_t>(l.shape(diagonal)[i], -1));
  }
  if (dims.empty()) {
    c.Fail(Unimplemented("the rank of its input is not known"));
    return {};
  }
  dims.push_back(dims.back());
  const Endpoint main =
      c.Make("tfl.matrix_diag", {diagonal}, {}, {l.type(diagonal), PartialShape::Of(dims)});
  if (k == 0 || !c.ok()) return main;
  std::vector<int64_t> pads(2 * dims.size());
  int64_t* rows = pads.data() + pads.size() - 4;
  (k > 0 ? rows[1] : rows[0]) = std::abs(k);
  (k > 0 ? rows[2] : rows[3]) = std::abs(k);
  for (size_t i = dims.size() - 2; i < dims.size(); ++i) {
    if (dims[i] >= 0) dims[i] += std::abs(k);
  }
  return c.Make("tfl.pad", {main, l.IntPairs(pads)}, {},
                {l.type(diagonal), PartialShape::Of(dims)});
}

// Where diagonal k is, of square matrices.
StatusOr<Endpoint> DiagonalMask(int64_t size, int64_t k, Legalizer& l) {
  ASSIGN_OR_RETURN(Tensor mask, Tensor::Zeros(Dtype::kBool, Shape({size, size})));
  for (int64_t i = 0; i < size; ++i) {
    if (i + k >= 0 && i + k < size) mask.data<bool>()[i * size + i + k] = true;
  }
  return l.Const(mask);
}

LiteEndpoints MatrixDiag(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kIntegersAndFloat));
  int64_t k = 0;
  if (n.num_inputs() > 1) {
    ASSIGN_OR_RETURN(k, DiagonalNumber(n.input(1), l));
    const std::vector<int64_t> free = {-1};
    if (l.Integers(n.input(2)) != free || l.Integers(n.input(3)) != free) {
      return Unimplemented("the sizes of its matrices are given");
    }
  }
  OperatorChain c(l);
  const Endpoint made = OneDiagonal(n.input(0), k, c);
  const TensorValue* padding = n.num_inputs() > 4 ? StatedConstant(*n.input(4).node) : nullptr;
  if (n.num_inputs() < 5 || (padding != nullptr && UniformValue(*padding) == 0)) {
    return c.Done(made);
  }
  // Beside the diagonal is what it says.
  const PartialShape shape = l.shape(n.input(0));
  const int64_t size = shape.rank() < 1 ? -1 : shape[shape.rank() - 1];
  if (size < 0) {
    return Unimplemented("what it pads with is not 0, and the size of its matrices is not known");
  }
  ASSIGN_OR_RETURN(const Endpoint diagonal, DiagonalMask(size + std::abs(k), k, l));
  return c.Done(c.Select(diagonal, made, n.input(4)));
}

LiteEndpoints MatrixSetDiag(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kIntegersAndFloat));
  int64_t k = 0;
  if (n.num_inputs() > 2) {
    ASSIGN_OR_RETURN(k, DiagonalNumber(n.input(2), l));
  }
  if (k == 0) {
    return One(l.Add("tfl.matrix_set_diag", {n.input(0), n.input(1)}, {}, l.OutputOf(n)));
  }
  const PartialShape shape = l.shape(n.input(0));
  const int rank = shape.rank();
  if (rank < 2 || shape[rank - 1] < 1 || shape[rank - 1] != shape[rank - 2]) {
    return Unimplemented("it sets another diagonal than the main one, and is not known to be of ",
                         "square matrices");
  }
  // Where the diagonal is, that.
  ASSIGN_OR_RETURN(const Endpoint diagonal, DiagonalMask(shape[rank - 1], k, l));
  OperatorChain c(l);
  return c.Done(c.Select(diagonal, OneDiagonal(n.input(1), k, c), n.input(0)));
}

// Fill takes its sizes first, computed ones of int64 too.
LiteEndpoints Fill(Node& n, Legalizer& l) {
  Endpoint sizes = n.input(0);
  if (l.Constant(sizes) || l.rank(sizes) == 0) {
    ASSIGN_OR_RETURN(sizes, SizesAsVector(sizes, l));
  }
  return One(l.Add("tfl.fill", {sizes, n.input(1)}, {}, l.OutputOf(n)));
}

constexpr ExportRow kMovementRows[] = {
    {"Fill", Fill},
    {"Reshape", Reshape},
    {"Squeeze", Squeeze},
    {"ExpandDims", ExpandDims},
    {"Transpose", WithInt32, "tfl.transpose", kMoved & ~kText},
    {"ConjugateTranspose", ConjugateTranspose, "tfl.transpose", kMoved & ~kText},
    {"Pad", WithInt32, "tfl.pad", kJoined},
    {"PadV2", PadV2},
    {"MirrorPad", MirrorPad},
    {"Concat", Concat},
    {"ConcatV2", Concat},
    {"Split", Split},
    {"SplitV", SplitV},
    {"Pack", Pack},
    {"Unpack", Unpack},
    {"Slice", WithInt32, "tfl.slice", kMoved},
    {"StridedSlice", StridedSlice},
    {"Gather", Gather},
    {"GatherV2", Gather},
    {"GatherNd", Plain, "tfl.gather_nd", kMoved & ~kComplex},
    {"ScatterNd", ScatterNd},
    {"Tile", WithInt32, "tfl.tile", kMoved},
    {"Shape", ShapeOf},
    {"Size", Size},
    {"Rank", Plain, "tfl.rank", kMoved},
    {"Range", Range},
    {"OneHot", OneHot},
    {"BroadcastTo", WithInt32, "tfl.broadcast_to", kMoved & ~kText},
    {"ReverseV2", Reverse},
    {"ReverseSequence", ReverseSequence},
    {"TopKV2", TopK},
    {"Unique", Unique},
    {"Where", Plain, "tfl.where", kMoved},
    {"Cumsum", Cumsum},
    {"SpaceToDepth", Blocks, "tfl.space_to_depth"},
    {"DepthToSpace", Blocks, "tfl.depth_to_space"},
    {"SpaceToBatchND", WithInt32, "tfl.space_to_batch_nd", kIntegersAndFloat},
    {"BatchToSpaceND", WithInt32, "tfl.batch_to_space_nd", kIntegersAndFloat},
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
