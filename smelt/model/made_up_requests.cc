#include "smelt/model/made_up_requests.h"

#include <algorithm>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "smelt/kernels/state/tables.h"

namespace smelt {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 28;
constexpr int kMaxDims = 8;
// Of one signature: ways to make requests, and how often each is tried.
constexpr size_t kMaxStyles = 24;
constexpr int kTriesOfStyle = 2;
// Sizes that open dimensions are tried with, the likely ones first, and those of images.
constexpr int64_t kSizes[] = {0, 8, 32, 128, 224, 1, 16, 64, 512};
constexpr int64_t kSides[] = {48, 224, 32, 28, 64, 96, 128, 256};
constexpr int kRanks[] = {2, 1, 0, 3, 4};

bool Worth(const Status& s) {
  // These do not come of values or shapes.
  return s.code() != absl::StatusCode::kUnimplemented &&
         s.code() != absl::StatusCode::kPermissionDenied;
}

bool ReadsImages(const ValueUse& use) {
  return absl::StartsWith(use.decoder, "Decode") ||
         std::ranges::any_of(use.features, [](const auto& f) { return ReadsImages(f->use); });
}

}  // namespace

MadeUpRequests::MadeUpRequests(LoadedModel& model, uint64_t seed, absl::Duration patience)
    : model_(model), seed_(seed), patience_(patience) {
  FindTableKeys();
}

void MadeUpRequests::FindTableKeys() {
  const Session& session = model_.session();
  for (const Node* n : session.graph().Nodes()) {
    if (n->num_outputs() != 1 || !absl::StrContains(n->op(), "HashTable")) continue;
    const ResourceName name(*n);
    const auto found =
        model_.session().resources().Find(name.container, LookupTable::kKind, name.name);
    if (found == nullptr) continue;
    auto all = static_cast<const LookupTable&>(*found).Export(HeapAllocator());
    if (all.ok()) keys_[n] = std::move(all->first);
  }
}

StatusOr<MadeUpRequests::State*> MadeUpRequests::Of(const std::string& signature) {
  if (const auto it = states_.find(signature); it != states_.end()) return &it->second;
  ASSIGN_OR_RETURN(const Signature* s, model_.FindSignature(signature));
  State state(MadeUpValues(seed_, keys_));
  state.slots = LoadedModel::Slots(s->inputs);
  for (const auto& [key, info] : s->inputs) {
    if (info.kind == TensorInfo::Kind::kComposite) {
      return Unimplemented("no made-up values for input '", key, "', which is composite");
    }
    if (info.kind != TensorInfo::Kind::kSparse) continue;
    const PartialShape shape =
        info.shape.known_rank() ? info.shape : PartialShape::UnknownOfRank(Style().rank);
    state.sparse[key + "/dense_shape"] = shape;
    state.slots[key + "/dense_shape"].shape = PartialShape::Of({int64_t{shape.rank()}});
    state.slots[key + "/indices"].shape = PartialShape::Of({-1, int64_t{shape.rank()}});
  }
  std::vector<Endpoint> fed;
  for (const auto& [key, slot] : state.slots) {
    ASSIGN_OR_RETURN(const Endpoint e, model_.session().graph().FindEndpoint(slot.tensor));
    fed.push_back(e);
  }
  std::vector<ValueUse> uses = FindValueUses(model_.session().graph(), fed);
  size_t i = 0;
  for (const auto& [key, slot] : state.slots) state.uses[key] = std::move(uses[i++]);
  for (const auto& [key, shape] : state.sparse) {
    state.uses[key].sparse_shape = true;
    state.uses[absl::StrCat(absl::StripSuffix(key, "dense_shape"), "indices")].sparse_indices =
        true;
  }
  state.styles = StylesFor(state);
  return &states_.emplace(signature, std::move(state)).first->second;
}

// Every way differs from the first in as few things as possible; those that differ in one come
// before those that differ in two.
std::vector<MadeUpRequests::Style> MadeUpRequests::StylesFor(const State& state) {
  bool open_sizes = false, open_batch = false, open_rank = false, integers = false;
  bool lists = false, images = false, indexes = false, sparse = false;
  std::set<int64_t> first_sizes, other_sizes;
  for (const auto& [key, slot] : state.slots) {
    const ValueUse& use = state.uses.at(key);
    open_rank = open_rank || !slot.shape.known_rank();
    for (int i = 0; i < slot.shape.rank(); ++i) {
      (i == 0 ? open_batch : open_sizes) |= slot.shape[i] < 0;
      if (slot.shape[i] >= 0 && !use.sparse_shape) {
        (i == 0 ? first_sizes : other_sizes).insert(slot.shape[i]);
      }
    }
    integers = integers || IsInteger(BaseType(slot.dtype)) || use.rows > 0;
    indexes = indexes || use.rows > 0;
    sparse = sparse || use.sparse_shape;
    lists = lists || !use.features.empty();
    images = images || ReadsImages(use);
  }
  std::vector<int64_t> sizes = {0}, batches = {0}, most = {ValueStyle().most}, list = {1};
  std::vector<int64_t> ranks = {kRanks[0]}, sides = {kSides[0]};
  if (open_sizes || open_rank || sparse) {
    // An open size beside fixed ones is often one of these.
    sizes.insert(sizes.end(), other_sizes.begin(), other_sizes.end());
    for (const int64_t s : kSizes) {
      if (std::ranges::find(sizes, s) == sizes.end()) sizes.push_back(s);
    }
  }
  if (open_batch) {
    batches.push_back(1);
    for (const int64_t s : first_sizes) batches.push_back(s);
  }
  if (integers) most.insert(most.end(), {2, 1});
  if (lists) list.push_back(0);
  if (open_rank) ranks.assign(std::begin(kRanks), std::end(kRanks));
  if (images) sides.assign(std::begin(kSides), std::end(kSides));
  const std::vector<int64_t>* axes[] = {&sizes, &batches, &most, &list, &ranks, &sides};
  std::vector<Style> styles;
  std::vector<size_t> at(std::size(axes), 0);
  const auto add = [&] {
    if (styles.size() >= kMaxStyles) return;
    Style s;
    s.size = sizes[at[0]];
    s.batch = batches[at[1]];
    s.values.most = most[at[2]];
    s.values.list = list[at[3]];
    s.rank = static_cast<int>(ranks[at[4]]);
    s.values.side = sides[at[5]];
    // Beside integers that index something, others are flags and masks.
    s.values.otherwise = indexes ? 2 : ValueStyle().otherwise;
    styles.push_back(s);
  };
  add();
  for (size_t a = 0; a < at.size(); ++a) {
    for (at[a] = 1; at[a] < axes[a]->size(); ++at[a]) add();
    at[a] = 0;
  }
  for (size_t a = 0; a < at.size(); ++a) {
    for (size_t b = a + 1; b < at.size(); ++b) {
      for (at[a] = 1; at[a] < axes[a]->size(); ++at[a]) {
        for (at[b] = 1; at[b] < axes[b]->size(); ++at[b]) {
          add();
        }
      }
      at[a] = at[b] = 0;
    }
  }
  return styles;
}

StatusOr<NamedTensors> MadeUpRequests::MakeIn(State& state, const Style& style, int64_t batch) {
  MadeUpValues& values = state.values;
  ValueStyle drawn = style.values;
  drawn.numbers = static_cast<ValueStyle::Numbers>(state.made++ % 3);
  int64_t sizes[kMaxDims];
  for (int64_t& s : sizes) {
    s = 1 + values.Below(3);
    if (style.size > 0) s = style.size;
  }
  sizes[0] = batch > 0 ? batch : style.batch > 0 ? style.batch : 1 + values.Below(3);
  NamedTensors out;
  std::map<std::string, Tensor> by_tensor;  // keys may name one
  for (const auto& [key, slot] : state.slots) {
    const ValueUse& use = state.uses.at(key);
    const PartialShape shape =
        slot.shape.known_rank() ? slot.shape : PartialShape::UnknownOfRank(style.rank);
    Dims dims;
    int64_t elements = 1;
    for (int i = 0; i < shape.rank(); ++i) {
      const int64_t open = i < kMaxDims ? sizes[i] : 1;
      dims.push_back(shape[i] >= 0 ? shape[i] : open);
      if (__builtin_mul_overflow(elements, dims.back(), &elements) || elements > kMaxElements) {
        return ResourceExhausted("input '", key, "' of shape ", slot.shape.ToString(),
                                 " is too large");
      }
    }
    if (const auto same = by_tensor.find(slot.tensor); same != by_tensor.end()) {
      out[key] = same->second;
      continue;
    }
    ASSIGN_OR_RETURN(Tensor t, values.Make(BaseType(slot.dtype), Shape(dims), use, drawn));
    if (t.dtype() == Dtype::kInt64 && use.sparse_indices && t.rank() == 2) {
      // One value in the first place of each row.
      std::ranges::fill(t.flat<int64_t>(), 0);
      for (int64_t i = 0; i < t.dim(0) && t.dim(1) > 0; ++i) t.data<int64_t>()[i * t.dim(1)] = i;
    } else if (t.dtype() == Dtype::kInt64 && use.sparse_shape && t.rank() == 1) {
      std::ranges::fill(t.flat<int64_t>(), std::max<int64_t>(style.size, 1));
      if (t.num_elements() > 0) t.data<int64_t>()[0] = sizes[0];
      const auto known = state.sparse.find(key);
      for (int64_t i = 0; known != state.sparse.end() && i < t.num_elements(); ++i) {
        const int64_t size = known->second[static_cast<int>(i)];
        if (size >= 0) t.data<int64_t>()[i] = size;
      }
    }
    by_tensor[slot.tensor] = t;
    out[key] = std::move(t);
  }
  return out;
}

StatusOr<NamedTensors> MadeUpRequests::Make(const std::string& signature, int64_t batch) {
  ASSIGN_OR_RETURN(State * state, Of(signature));
  Style style = state->styles[std::min(state->style, state->styles.size() - 1)];
  style.values.strange_words = false;
  return MakeIn(*state, style, batch);
}

StatusOr<MadeUpRequests::Answered> MadeUpRequests::Ask(const std::string& signature,
                                                       int64_t batch) {
  ASSIGN_OR_RETURN(State * state, Of(signature));
  for (; state->style < state->styles.size(); ++state->style) {
    for (int i = 0; i < kTriesOfStyle; ++i) {
      Style style = state->styles[state->style];
      style.values.strange_words = i == 0;
      auto inputs = MakeIn(*state, style, batch);
      auto outputs = inputs.ok() ? model_.RunSignature(signature, *inputs, {.timeout = patience_})
                                 : StatusOr<NamedTensors>(inputs.status());
      if (outputs.ok()) return Answered{*std::move(inputs), *std::move(outputs)};
      if (outputs.status().code() == absl::StatusCode::kDeadlineExceeded) {
        return state->refused = absl::DeadlineExceededError(
                   absl::StrCat("a request that was made up is not answered in ",
                                absl::FormatDuration(patience_)));
      }
      if (state->refused.ok()) state->refused = outputs.status();
      if (!Worth(outputs.status())) return state->refused;
    }
  }
  return state->refused;
}

}  // namespace smelt
