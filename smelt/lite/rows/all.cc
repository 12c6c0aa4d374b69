#include <algorithm>

#include "smelt/lite/composites/composite.h"
#include "smelt/lite/rows/rows.h"

namespace smelt {

std::span<const std::span<const ExportRow>> AllExportRows() {
  static const std::array families = {
      ElementwiseExport(), MovementExport(),     ReduceExport(),  NnExport(),
      ProductExport(),     CompositeExport(),    ControlExport(), StateExport(),
      TableExport(),       QuantizationExport(), RandomExport(),  SelectionExport(),
      ComplexExport(),     CompoundExport(),     PlacesExport(),  ImageExport(),
      XlaExport(),         BatchNormExport(),    LossExport(),    SpecialExport(),
      MatrixExport(),      PartitionExport(),    TextExport()};
  return families;
}

Status CheckType(const Node& n, DtypeSet types) {
  const Dtype type = n.input_types[0];
  if (Has(types, type)) return OkStatus();
  return Unimplemented("its operator does not take ", DtypeName(BaseType(type)));
}

Status CheckBroadcast(const Node& n, const Legalizer& l) {
  if (n.num_inputs() < 2) return OkStatus();
  const PartialShape a = l.shape(n.input(0)), b = l.shape(n.input(1));
  const bool same = a.known_rank() && a == b;
  if (same || std::max(a.rank(), b.rank()) <= kMaxBroadcastRank) return OkStatus();
  return Unimplemented("operators do not broadcast beyond ", kMaxBroadcastRank, " dimensions");
}

StatusOr<Endpoint> AsInt32(Endpoint e, Legalizer& l) {
  if (l.type(e) == Dtype::kInt32) return e;
  const std::optional<Tensor> value = l.Constant(e);
  if (!value) {
    return l.Add("tfl.cast", {e},
                 Options({{"in_data_type", l.type(e)}, {"out_data_type", Dtype::kInt32}}),
                 {Dtype::kInt32, l.shape(e)});
  }
  ASSIGN_OR_RETURN(Tensor narrow, Tensor::Make(Dtype::kInt32, value->shape()));
  for (int64_t i = 0; i < value->num_elements(); ++i) {
    narrow.data<int32_t>()[i] =
        static_cast<int32_t>(std::clamp<int64_t>(IndexAt(*value, i), INT32_MIN, INT32_MAX));
  }
  return l.Const(narrow);
}

}  // namespace smelt
