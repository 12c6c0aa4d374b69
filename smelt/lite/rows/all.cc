#include <algorithm>

#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/composites/composite.h"
#include "smelt/lite/rows/rows.h"

namespace smelt {

std::span<const std::span<const ExportRow>> AllExportRows() {
  static const std::array families = {
      ElementwiseExport(), MovementExport(),     ReduceExport(),    NnExport(),
      ProductExport(),     CompositeExport(),    ControlExport(),   StateExport(),
      TableExport(),       QuantizationExport(), RandomExport(),    SelectionExport(),
      ComplexExport(),     CompoundExport(),     PlacesExport(),    ImageExport(),
      XlaExport(),         XlaChoiceExport(),    XlaConvExport(),   BatchNormExport(),
      LossExport(),        SpecialExport(),      MatrixExport(),    PartitionExport(),
      TextExport(),        WindowExport(),       DetectionExport(), ScatterExport(),
      CellExport(),        CountingExport(),     FourierExport(),   RaggedExport(),
      SparseExport(),      GradientExport(),     OptimizerExport(), ProjectiveExport()};
  return families;
}

Status CheckType(const Node& n, DtypeSet types) {
  const Dtype type = n.input_types[0];
  if (Has(types, type)) return OkStatus();
  return Unimplemented("its operator does not take ", DtypeName(BaseType(type)));
}

namespace {

// Operators of one tensor that leave its sizes.
constexpr OpSet kKeepSizes = {"tfl.softmax",  "tfl.relu", "tfl.relu6", "tfl.tanh",
                              "tfl.logistic", "tfl.exp",  "tfl.cast",  "tfl.log_softmax"};

// Operators of two tensors, of which a constant may leave the sizes of the other.
constexpr OpSet kWithConstant = {"tfl.add", "tfl.sub", "tfl.mul", "tfl.div"};

// The operand whose size along the axis is the result's; nothing where the other may broadcast it.
std::optional<Endpoint> SizeGiver(const Node& n, int64_t axis, int rank, const Legalizer& l) {
  for (const int i : {0, 1}) {
    const auto value = l.Constant(n.input(1 - i));
    if (!value || l.rank(n.input(i)) != rank || value->rank() > rank) continue;
    const int64_t at = axis - rank + value->rank();
    if (at < 0 || value->dim(static_cast<int>(at)) == 1) return n.input(i);
  }
  return std::nullopt;
}

// Moves to where the dimension comes from, over operators that keep its size.
void FollowSize(Endpoint* e, int64_t* axis, Legalizer& l) {
  for (;;) {
    const Node& n = *e->node;
    if (n.Is("tfl.transpose")) {
      const auto order = l.Integers(n.input(1));
      if (!order || static_cast<size_t>(*axis) >= order->size()) return;
      *axis = (*order)[static_cast<size_t>(*axis)];
    } else if (n.Is("tfl.batch_matmul")) {
      // Rows of the first operand are rows of the result.
      if (n.Bool("adj_x") || *axis != l.rank(*e) - 2 || l.rank(n.input(0)) != l.rank(*e)) return;
    } else if (n.Is("tfl.fully_connected")) {
      if (*axis >= l.rank(*e) - 1 || l.rank(n.input(0)) != l.rank(*e)) return;
    } else if (n.Is(kWithConstant)) {
      const auto from = SizeGiver(n, *axis, l.rank(*e), l);
      if (!from) return;
      *e = *from;
      continue;
    } else if (!n.Is(kKeepSizes)) {
      return;
    }
    *e = n.input(0);
  }
}

}  // namespace

StatusOr<Endpoint> SizeOf(Endpoint e, int64_t axis, Legalizer& l) {
  FollowSize(&e, &axis, l);
  // Who makes a shape of sizes has this one.
  const int at = e.node->Is("tfl.reshape") ? 1 : e.node->Is("tfl.fill") ? 0 : -1;
  if (at >= 0) {
    const Node& shape = *e.node->input(at).node;
    const bool packed = shape.Is("tfl.pack") && axis < shape.num_inputs();
    if (packed && !l.Constant(shape.input(static_cast<int>(axis)))) {
      const Endpoint size = shape.input(static_cast<int>(axis));
      if (l.type(size) == Dtype::kInt32) return size;
    }
  }
  ASSIGN_OR_RETURN(const Endpoint shape, l.ShapeOf(e));
  return l.Add("tfl.gather", {shape, l.Int(axis)}, {}, {Dtype::kInt32, PartialShape::Of({})});
}

StatusOr<Endpoint> BatchOf(Endpoint e, Legalizer& l) {
  const std::vector<int64_t> zero = {0}, one = {1};
  const PartialShape shape = l.shape(e);
  if (shape.rank() > 0 && shape[0] >= 0) return l.Ints(std::vector<int64_t>{shape[0]});
  ASSIGN_OR_RETURN(const Endpoint all, l.ShapeOf(e));
  return l.Add("tfl.slice", {all, l.Ints(zero), l.Ints(one)}, {},
               {Dtype::kInt32, PartialShape::Of({1})});
}

StatusOr<Endpoint> AsInt32(Endpoint e, Legalizer& l) {
  if (l.type(e) == Dtype::kInt32) return e;
  const std::optional<Tensor> value = l.Constant(e);
  if (!value) {
    return l.Add("tfl.cast", {e},
                 Options({{"in_data_type", l.type(e)}, {"out_data_type", Dtype::kInt32}}),
                 {Dtype::kInt32, l.shape(e)});
  }
  Tensor wide = *value;
  if (value->dtype() != Dtype::kInt64) {
    ASSIGN_OR_RETURN(
        const auto cast,
        Evaluate("Cast", {*value}, Options({{"SrcT", value->dtype()}, {"DstT", Dtype::kInt64}})));
    wide = cast[0];
  }
  ASSIGN_OR_RETURN(Tensor narrow, Tensor::Make(Dtype::kInt32, value->shape()));
  for (int64_t i = 0; i < value->num_elements(); ++i) {
    narrow.data<int32_t>()[i] =
        static_cast<int32_t>(std::clamp<int64_t>(wide.data<int64_t>()[i], INT32_MIN, INT32_MAX));
  }
  return l.Const(narrow);
}

}  // namespace smelt
