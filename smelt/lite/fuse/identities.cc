// Operators that give what they read, and operators in an order of fewer elements.
#include <algorithm>

#include "smelt/graph/shape/rules.h"
#include "smelt/lite/fuse/fusion.h"

namespace smelt {
namespace {

// All rows are written, in their order, once.
StatusOr<bool> RemoveScatter(Node& n, Fuser& f) {
  const PartialShape at = Fuser::shape(n.input(0)), rows = Fuser::shape(n.input(1));
  const auto indices = IntsOf(n.input(0));
  if (!indices || at.rank() != 2 || at[1] != 1) return false;
  for (size_t i = 0; i < indices->size(); ++i) {
    if ((*indices)[i] != static_cast<int64_t>(i)) {
      return f.Declined(n, "it does not write all rows in their order");
    }
  }
  const PartialShape to = Fuser::shape({&n, 0});
  if (!rows.fully_known() || !(rows == to)) return f.Declined(n, "it writes a part of the rows");
  f.Replace(&n, n.input(1));
  return true;
}

// All is written anew.
StatusOr<bool> RemoveUpdate(Node& n, Fuser& f) {
  const PartialShape from = Fuser::shape(n.input(0)), part = Fuser::shape(n.input(1));
  if (!from.fully_known() || !(from == part)) return false;
  f.Replace(&n, n.input(1));
  return true;
}

// A pack of one is a reshape, which others take in.
StatusOr<bool> FusePackOfOne(Node& n, Fuser& f) {
  const PartialShape to = Fuser::shape({&n, 0});
  if (n.num_inputs() != 1 || !to.known_rank()) return false;
  return f.ReplaceByReshape(&n, n.input(0));
}

// gather(cast(x)) of fewer elements than x has.
StatusOr<bool> MoveCastPastGather(Node& n, Fuser& f) {
  const Endpoint e = n.input(0);
  if (!e.node->Is("tfl.cast")) return false;
  const Endpoint x = e.node->input(0);
  constexpr DtypeSet kPicked = Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kInt8,
                                     Dtype::kUint8, Dtype::kInt16, Dtype::kBool);
  if (!Has(kPicked, Fuser::type(x))) return false;
  const PartialShape from = Fuser::shape(x), to = Fuser::shape({&n, 0});
  if (!from.fully_known() || !to.fully_known() || NumElements(to) >= NumElements(from)) {
    return f.Declined(n, "it does not gather fewer elements");
  }
  if (!Fuser::ReadOnce(e)) return f.Declined(n, "others read what it follows");
  ASSIGN_OR_RETURN(const Endpoint picked,
                   f.AddShaped(n.op_name(), {x, n.input(1)}, OptionsOf(n), Fuser::type(x), to, n));
  ASSIGN_OR_RETURN(const Endpoint by, f.Add("tfl.cast", {picked}, OptionsOf(*e.node), n));
  f.Replace(&n, by);
  return true;
}

constexpr Fusion kIdentityFusions[] = {
    {"RemoveScatter", {"tfl.scatter_nd"}, RemoveScatter, "scatter_nd of all rows in order -> x"},
    {"RemoveUpdate",
     {"tfl.dynamic_update_slice"},
     RemoveUpdate,
     "dynamic_update_slice(x, y) of all of x -> y"},
    {"FusePackOfOne", {"tfl.pack"}, FusePackOfOne, "pack(x) of one -> reshape(x)"},
    {"MoveCastPastGather",
     {"tfl.gather"},
     MoveCastPastGather,
     "gather(cast(x)) of fewer elements -> cast(gather(x))"},
};

}  // namespace

std::span<const Fusion> IdentityFusions() { return kIdentityFusions; }

}  // namespace smelt
