// Lookup tables that are filled when the model is loaded, and not written after that.
#include "smelt/kernels/state/tables.h"

#include <algorithm>

#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/init_graph.h"
#include "smelt/lite/rows/rows.h"

namespace smelt {
namespace {

// Tables of other types, for which there is no operator, are looked through: so many entries at
// most.
constexpr int64_t kMostCompared = 8192;

// The operators' tables are from one of these to the other.
bool HasOperators(Dtype key, Dtype value) {
  return (key == Dtype::kString && value == Dtype::kInt64) ||
         (key == Dtype::kInt64 && value == Dtype::kString);
}

LiteEndpoints Table(Node& n, Legalizer& l) {
  const ResourceName at(n);
  return One(l.Add("tfl.hashtable", {},
                   Options({{"key_dtype", n.Type("key_dtype")},
                            {"value_dtype", n.Type("value_dtype")},
                            {kTableContainer, at.container},
                            {kTableName, at.name}}),
                   {Dtype::kResource, PartialShape::Of({1})}));
}

StatusOr<std::pair<Tensor, Tensor>> Entries(const Node& n, const Legalizer& l) {
  const Node& handle = *n.input(0).node;
  if (!handle.Is("tfl.hashtable")) return Unimplemented("its table is not known");
  const auto table = std::dynamic_pointer_cast<LookupTable>(
      l.Held(handle.String(kTableContainer), LookupTable::kKind, handle.String(kTableName)));
  if (table == nullptr) return Unimplemented("its table is not there when the model is loaded");
  if (table->value_shape().rank() != 0) return Unimplemented("its table's values are no scalars");
  return table->Export(HeapAllocator());
}

// Compares each key with all of the table's: their places, then the values there. The default
// stands behind the values.
LiteEndpoints Compared(Node& n, Legalizer& l, const Tensor& keys, const Tensor& values) {
  const Dtype key = keys.dtype(), value = values.dtype();
  const int64_t size = keys.num_elements();
  if (size > kMostCompared) {
    return Unimplemented(
        "there are operators for tables from string to int64 and back, and this "
        "one, from ",
        DtypeName(key), " to ", DtypeName(value), ", has ", size,
        " entries, which are too many to compare with");
  }
  const auto otherwise = l.Constant(n.input(2));
  if (!otherwise || otherwise->num_elements() != 1) {
    return Unimplemented("its default is no constant");
  }
  AttrMap attrs;
  attrs.Set("T", value);
  attrs.Set("N", int64_t{2});
  ASSIGN_OR_RETURN(auto all,
                   Evaluate("ConcatV2",
                            {values.WithShape(Shape({size})), otherwise->WithShape(Shape({1})),
                             Tensor::Scalar(int32_t{0})},
                            attrs));
  const PartialShape from = l.shape(n.input(1));
  if (!from.known_rank()) return Unimplemented("the rank of its keys is not known");
  if (size == 0) return Unimplemented("its table is empty");
  std::vector<int64_t> wide;
  for (int i = 0; i < from.rank(); ++i) wide.push_back(from[i]);
  wide.push_back(1);
  ASSIGN_OR_RETURN(const Endpoint column, l.Add("tfl.expand_dims", {n.input(1), l.Int(-1)}, {},
                                                {key, PartialShape::Of(wide)}));
  wide.back() = size;
  const PartialShape compared = PartialShape::Of(wide);
  ASSIGN_OR_RETURN(const Endpoint equal,
                   l.Add("tfl.equal", {column, l.Const(keys.WithShape(Shape({size})))}, {},
                         {Dtype::kBool, compared}));
  ASSIGN_OR_RETURN(
      const Endpoint number,
      l.Add("tfl.cast", {equal},
            Options({{"in_data_type", Dtype::kBool}, {"out_data_type", Dtype::kFloat}}),
            {Dtype::kFloat, compared}));
  ASSIGN_OR_RETURN(const Endpoint place,
                   l.Add("tfl.arg_max", {number, l.Int(-1)},
                         Options({{"output_type", Dtype::kInt32}}), {Dtype::kInt32, from}));
  ASSIGN_OR_RETURN(const Endpoint there,
                   l.Add("tfl.reduce_any", {equal, l.Ints(std::vector<int64_t>{from.rank()})}, {},
                         {Dtype::kBool, from}));
  ASSIGN_OR_RETURN(const Endpoint index,
                   l.Add("tfl.select_v2", {there, place, l.Int(size)}, {}, {Dtype::kInt32, from}));
  return One(l.Add("tfl.gather", {l.Const(all[0]), index}, {}, l.OutputOf(n)));
}

LiteEndpoints Find(Node& n, Legalizer& l) {
  ASSIGN_OR_RETURN(const auto entries, Entries(n, l));
  if (HasOperators(entries.first.dtype(), entries.second.dtype())) {
    return One(l.Add("tfl.hashtable_find", Inputs(n), {}, l.OutputOf(n)));
  }
  return Compared(n, l, entries.first, entries.second);
}

LiteEndpoints Size(Node& n, Legalizer& l) {
  ASSIGN_OR_RETURN(const auto entries, Entries(n, l));
  return std::vector<Endpoint>{l.Const(Tensor::Scalar(entries.first.num_elements()))};
}

constexpr ExportRow kTableRows[] = {
    {"HashTableV2", Table},
    {"MutableHashTableV2", Table},
    {"LookupTableFindV2", Find},
    {"LookupTableSizeV2", Size},
};

}  // namespace

std::span<const ExportRow> TableExport() { return kTableRows; }

}  // namespace smelt
