// Ops that reduce dimensions.
#include "smelt/lite/rows/rows.h"

namespace smelt {
namespace {

LiteEndpoints ReduceAxes(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, l.row().types));
  ASSIGN_OR_RETURN(const Endpoint axes, AsInt32(n.input(1), l));
  return One(l.Add(l.row().lite, {n.input(0), axes}, Options({{"keep_dims", n.Bool("keep_dims")}}),
                   l.OutputOf(n)));
}

LiteEndpoints ArgExtreme(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(
      CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt8, Dtype::kUint8, Dtype::kBool)));
  const Dtype type = n.output_types[0];
  if (type != Dtype::kInt32 && type != Dtype::kInt64) {
    return Unimplemented("its indices are ", DtypeName(type));
  }
  ASSIGN_OR_RETURN(const Endpoint axis, AsInt32(n.input(1), l));
  return One(
      l.Add(l.row().lite, {n.input(0), axis}, Options({{"output_type", type}}), l.OutputOf(n)));
}

LiteEndpoints L2Loss(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  const int rank = l.rank(n.input(0));
  if (rank < 0) return Unimplemented("the rank of its input is not known");
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  ASSIGN_OR_RETURN(const Endpoint square,
                   l.Add("tfl.square", {n.input(0)}, {}, {Dtype::kFloat, l.shape(n.input(0))}));
  ASSIGN_OR_RETURN(const Endpoint sum, l.Add("tfl.sum", {square, l.Ints(axes)}, {}, l.OutputOf(n)));
  return One(l.Add("tfl.mul", {sum, l.Floats(0.5f)}, {}, l.OutputOf(n)));
}

LiteEndpoints Segments(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32)));
  std::vector<Endpoint> inputs = {n.input(0)};
  for (int i = 1; i < n.num_inputs(); ++i) {
    ASSIGN_OR_RETURN(const Endpoint e, AsInt32(n.input(i), l));
    inputs.push_back(e);
  }
  return One(l.Add(l.row().lite, inputs, {}, l.OutputOf(n)));
}

constexpr DtypeSet kSummed = Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64);
constexpr DtypeSet kChosen = kSummed | Types(Dtype::kInt8, Dtype::kUint8, Dtype::kInt16);
constexpr ExportRow kReduceRows[] = {
    {"Mean", ReduceAxes, "tfl.mean", kSummed},
    {"Sum", ReduceAxes, "tfl.sum", kSummed},
    {"Prod", ReduceAxes, "tfl.reduce_prod", kSummed},
    {"Max", ReduceAxes, "tfl.reduce_max", kChosen},
    {"Min", ReduceAxes, "tfl.reduce_min", kChosen},
    {"Any", ReduceAxes, "tfl.reduce_any", Types(Dtype::kBool)},
    {"All", ReduceAxes, "tfl.reduce_all", Types(Dtype::kBool)},
    {"ArgMax", ArgExtreme, "tfl.arg_max"},
    {"ArgMin", ArgExtreme, "tfl.arg_min"},
    {"L2Loss", L2Loss},
    {"UnsortedSegmentSum", Segments, "tfl.unsorted_segment_sum"},
    {"UnsortedSegmentProd", Segments, "tfl.unsorted_segment_prod"},
    {"UnsortedSegmentMax", Segments, "tfl.unsorted_segment_max"},
    {"UnsortedSegmentMin", Segments, "tfl.unsorted_segment_min"},
};

}  // namespace

std::span<const ExportRow> ReduceExport() { return kReduceRows; }

}  // namespace smelt
