// Joins and cuts: concatenations, packs, splits and slices that undo each other or do nothing.
#include <algorithm>

#include "smelt/lite/fuse/fusion.h"

namespace smelt {
namespace {

// An axis counted from the first dimension; -1: the rank is not known.
int64_t AxisOf(int64_t axis, const PartialShape& s) {
  if (!s.known_rank()) return -1;
  return axis < 0 ? axis + s.rank() : axis;
}

// The node whose outputs, all and in order, are the inputs of `n`.
Node* WholeOf(const Node& n, const OpSet& ops) {
  if (n.num_inputs() == 0) return nullptr;
  Node* cut = n.input(0).node;
  if (!cut->Is(ops) || cut->num_outputs() != n.num_inputs()) return nullptr;
  for (int i = 0; i < n.num_inputs(); ++i) {
    if (!(n.input(i) == Endpoint{cut, i})) return nullptr;
  }
  return cut;
}

StatusOr<bool> RemoveConcatenation(Node& n, Fuser& f) {
  if (HasActivation(n)) return false;
  const PartialShape to = Fuser::shape({&n, 0});
  const int64_t axis = AxisOf(n.Int("axis"), to);
  if (n.num_inputs() == 1) {
    f.Replace(&n, n.input(0));
    return true;
  }
  const Node* cut = WholeOf(n, {"tfl.split", "tfl.split_v"});
  if (cut == nullptr && n.input(0).node->Is({"tfl.split", "tfl.split_v"})) {
    return f.Declined(n, "it does not join all that was cut, in its order");
  }
  if (cut == nullptr || axis < 0) return false;
  const Endpoint whole = cut->input(cut->Is("tfl.split") ? 1 : 0);
  const auto cut_axis = IntsOf(cut->input(cut->Is("tfl.split") ? 0 : 2));
  if (!cut_axis || cut_axis->size() != 1 || AxisOf((*cut_axis)[0], to) != axis) {
    return f.Declined(n, "it joins along another dimension than was cut");
  }
  f.Replace(&n, whole);
  return true;
}

// What an unpack takes apart, joined along what then is the next dimension.
StatusOr<bool> FuseUnpackedConcatenation(Node& n, Fuser& f) {
  const Node* cut = WholeOf(n, {"tfl.unpack"});
  const PartialShape to = Fuser::shape({&n, 0});
  if (cut == nullptr || HasActivation(n) || !to.known_rank()) return false;
  const PartialShape x = Fuser::shape(cut->input(0));
  const int64_t axis = AxisOf(cut->Int("axis"), x);
  if (axis < 0 || AxisOf(n.Int("axis"), to) != axis) {
    return f.Declined(n, "it joins along another dimension than the next");
  }
  return f.ReplaceByReshape(&n, cut->input(0));
}

StatusOr<bool> FuseConcatenations(Node& n, Fuser& f) {
  const PartialShape to = Fuser::shape({&n, 0});
  const int64_t axis = AxisOf(n.Int("axis"), to);
  if (axis < 0) return false;
  std::vector<Endpoint> inputs;
  bool any = false;
  for (const Endpoint& e : n.inputs()) {
    const bool inner = e.node->Is("tfl.concatenation") && Fuser::ReadOnce(e) &&
                       !HasActivation(*e.node) && AxisOf(e.node->Int("axis"), to) == axis;
    any = any || inner;
    if (inner) {
      inputs.insert(inputs.end(), e.node->inputs().begin(), e.node->inputs().end());
    } else {
      inputs.push_back(e);
    }
  }
  if (!any) return false;
  AttrMap options;
  options.Set("axis", axis);
  if (const Attr* a = n.attrs().Find("fused_activation_function")) {
    options.Set("fused_activation_function", *a);
  }
  ASSIGN_OR_RETURN(const Endpoint by, f.Add("tfl.concatenation", inputs, std::move(options), n));
  f.Replace(&n, by);
  return true;
}

StatusOr<bool> RemovePack(Node& n, Fuser& f) {
  const Node* cut = WholeOf(n, {"tfl.unpack"});
  if (cut == nullptr) return false;
  const PartialShape to = Fuser::shape({&n, 0});
  const int64_t axis = AxisOf(n.Int("axis"), to);
  if (axis < 0 || AxisOf(cut->Int("axis"), to) != axis) {
    return f.Declined(n, "it packs along another dimension than was unpacked");
  }
  f.Replace(&n, cut->input(0));
  return true;
}

// A slice of everything.
StatusOr<bool> RemoveSlice(Node& n, Fuser& f) {
  const PartialShape x = Fuser::shape(n.input(0)), to = Fuser::shape({&n, 0});
  if (!x.known_rank() || x.rank() != to.rank()) return false;
  std::optional<std::vector<int64_t>> begin = IntsOf(n.input(1)), end = IntsOf(n.input(2));
  const bool strided = n.Is("tfl.strided_slice");
  if (!begin || !end || static_cast<int>(begin->size()) != x.rank()) return false;
  if (strided) {
    const auto strides = IntsOf(n.input(3));
    const bool plain = n.Int("ellipsis_mask") == 0 && n.Int("new_axis_mask") == 0 &&
                       n.Int("shrink_axis_mask") == 0 && !n.Bool("offset");
    if (!plain || !strides || std::ranges::any_of(*strides, [](int64_t s) { return s != 1; })) {
      return false;
    }
  }
  for (int i = 0; i < x.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    if (x[i] >= 0 && x[i] == to[i]) continue;  // as many as there are
    const bool from_first = (*begin)[k] == 0 || (strided && (n.Int("begin_mask") >> i & 1) != 0);
    const bool to_last = strided ? (n.Int("end_mask") >> i & 1) != 0 : (*end)[k] == -1;
    if (!from_first || !to_last) return false;
  }
  f.Replace(&n, n.input(0));
  return true;
}

// Of a strided slice, what is taken of each dimension of what it reads.
struct Taken {
  int64_t begin = 0, end = 0, stride = 1;
  bool from_first = true, to_last = true, one = false;  // one: the dimension goes
  bool Whole() const { return from_first && to_last && stride == 1 && !one; }
};

// nullopt: its places are computed, or it adds dimensions.
std::optional<std::vector<Taken>> TakenOf(const Node& n, int rank) {
  const auto begin = IntsOf(n.input(1)), end = IntsOf(n.input(2)), strides = IntsOf(n.input(3));
  if (!begin || !end || !strides || begin->size() != end->size() ||
      begin->size() != strides->size() || n.Int("new_axis_mask") != 0 || n.Bool("offset")) {
    return std::nullopt;
  }
  const int said = static_cast<int>(begin->size());
  std::vector<Taken> taken;
  for (int i = 0; i < said; ++i) {
    const auto has = [&](absl::string_view mask) { return (n.Int(mask) >> i & 1) != 0; };
    const auto k = static_cast<size_t>(i);
    if (has("ellipsis_mask")) {
      for (int more = rank - said + 1; more > 0; --more) taken.push_back({});
      continue;
    }
    const bool one = has("shrink_axis_mask");
    taken.push_back({(*begin)[k], (*end)[k], (*strides)[k], has("begin_mask") && !one,
                     has("end_mask") && !one, one});
  }
  if (static_cast<int>(taken.size()) > rank) return std::nullopt;
  taken.resize(static_cast<size_t>(rank));
  return taken;
}

// One place along the axis of a pack: what was packed there.
StatusOr<bool> TakeOfPack(Node& n, Fuser& f) {
  const Node* pack = n.input(0).node;
  if (!pack->Is("tfl.pack")) return false;
  const PartialShape packed = Fuser::shape(n.input(0)), to = Fuser::shape({&n, 0});
  const int64_t axis = AxisOf(pack->Int("axis"), packed);
  if (axis < 0 || axis >= packed.rank()) return false;
  auto taken = TakenOf(n, packed.rank());
  if (!taken) return f.Declined(n, "its places are not known, or it adds dimensions");
  const Taken at = (*taken)[static_cast<size_t>(axis)];
  if (!at.one) return f.Declined(n, "it keeps the dimension along which was packed");
  const int64_t place = at.begin < 0 ? at.begin + pack->num_inputs() : at.begin;
  if (place < 0 || place >= pack->num_inputs()) return f.Declined(n, "nothing was packed there");
  const Endpoint value = pack->input(static_cast<int>(place));
  taken->erase(taken->begin() + axis);
  if (std::ranges::all_of(*taken, &Taken::Whole)) {
    f.Replace(&n, value);
    return true;
  }
  std::vector<int32_t> begin, end, strides;
  int64_t from_first = 0, to_last = 0, one = 0;
  for (size_t i = 0; i < taken->size(); ++i) {
    const Taken& t = (*taken)[i];
    begin.push_back(static_cast<int32_t>(t.begin));
    end.push_back(static_cast<int32_t>(t.end));
    strides.push_back(static_cast<int32_t>(t.stride));
    from_first |= static_cast<int64_t>(t.from_first) << i;
    to_last |= static_cast<int64_t>(t.to_last) << i;
    one |= static_cast<int64_t>(t.one) << i;
  }
  AttrMap options = OptionsOf(n);
  options.Set("begin_mask", from_first);
  options.Set("end_mask", to_last);
  options.Set("shrink_axis_mask", one);
  options.Set("ellipsis_mask", int64_t{0});
  std::vector<Endpoint> inputs = {value};
  for (const std::vector<int32_t>* part : {&begin, &end, &strides}) {
    inputs.push_back(f.Const(Tensor::Vector<int32_t>(*part), n));
  }
  ASSIGN_OR_RETURN(const Endpoint by, f.AddShaped("tfl.strided_slice", inputs, std::move(options),
                                                  Fuser::type(value), to, n));
  f.Replace(&n, by);
  return true;
}

constexpr Fusion kJoinFusions[] = {
    {"RemoveConcatenation",
     {"tfl.concatenation"},
     RemoveConcatenation,
     "concatenation(split(x)) -> x; concatenation(x) of one -> x"},
    {"FuseConcatenations",
     {"tfl.concatenation"},
     FuseConcatenations,
     "concatenation(concatenation(x, y), z) -> concatenation(x, y, z)"},
    {"FuseUnpackedConcatenation",
     {"tfl.concatenation"},
     FuseUnpackedConcatenation,
     "concatenation(unpack(x)) -> reshape(x)"},
    {"RemovePack", {"tfl.pack"}, RemovePack, "pack(unpack(x)) -> x"},
    {"RemoveSlice",
     {"tfl.slice", "tfl.strided_slice"},
     RemoveSlice,
     "slice(x) of all that there is -> x"},
    {"TakeOfPack",
     {"tfl.strided_slice"},
     TakeOfPack,
     "strided_slice(pack(x, y)) at one place -> x, or a strided_slice of x"},
};

}  // namespace

std::span<const Fusion> JoinFusions() { return kJoinFusions; }

}  // namespace smelt
