#include "smelt/lite/prepare/xla_scatters.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/graph/shape/rules.h"
#include "smelt/lite/common/xla_function.h"
#include "smelt/wire/xla/dimension_numbers.h"

namespace smelt {
namespace {

// By what the function computes of what is there and what comes.
struct ScatterKind {
  OpName function;
  absl::string_view scatter;  // empty: there is none
};
constexpr ScatterKind kScatterKinds[] = {
    {"_Arg", "TensorScatterUpdate"}, {"Add", "TensorScatterAdd"},     {"AddV2", "TensorScatterAdd"},
    {"Maximum", "TensorScatterMax"}, {"Minimum", "TensorScatterMin"}, {"Mul", ""},
};

using Numbers = std::vector<int64_t>;

// So many numbers may stand in the file.
constexpr int64_t kMostStated = int64_t{1} << 16;

bool IsAmong(std::span<const int64_t> numbers, int64_t n) {
  return std::ranges::find(numbers, n) != numbers.end();
}

class XlaScatter {
 public:
  // `batches`: symbols that stand for one size (BatchesOf).
  XlaScatter(Graph& graph, Node* n, const ShapeTable& shapes, const ScatterKind& kind,
             const GatherDimensions& d, const absl::flat_hash_set<int64_t>& batches)
      : batches_(batches),
        graph_(graph),
        n_(n),
        kind_(kind),
        d_(d),
        to_(shapes.of(n->input(0))),
        at_(shapes.of(n->input(1))),
        updates_(shapes.of(n->input(2))),
        type_(n->input_types[0]) {}

  // False: it stays.
  StatusOr<bool> Spell() {
    if (!to_.known_rank() || !at_.known_rank() || !updates_.known_rank() || !IsWellFormed()) {
      return false;
    }
    if (const auto first = OnlyIndex()) return WriteSlice(*first);
    if (kind_.scatter.empty() || !AreWholeElsewhere()) return false;
    return ScatterPlaces();
  }

 private:
  // Dimensions are within ranks, none stands twice, and there are as many as there have to be.
  bool IsWellFormed() const {
    const auto within = [](const Dims& dims, int rank, const Dims& more = {}) {
      Numbers all(dims.begin(), dims.end());
      all.insert(all.end(), more.begin(), more.end());
      std::ranges::sort(all);
      return std::ranges::adjacent_find(all) == all.end() &&
             (all.empty() || (all.front() >= 0 && all.back() < rank));
    };
    const bool vectors = d_.index_vector >= 0 && d_.index_vector < at_.rank();
    const int64_t count = vectors ? at_[static_cast<int>(d_.index_vector)] : 1;
    return within(d_.collapsed, to_.rank(), d_.operand_batch) &&
           within(d_.index_map, to_.rank(), d_.operand_batch) &&
           within(d_.window, updates_.rank()) && d_.index_vector >= 0 &&
           d_.index_vector <= at_.rank() && static_cast<int64_t>(d_.index_map.size()) == count &&
           within(d_.indices_batch, at_.rank()) &&
           d_.operand_batch.size() == d_.indices_batch.size() &&
           !IsAmong(d_.indices_batch, d_.index_vector) &&
           static_cast<int>(d_.window.size() + d_.collapsed.size() + d_.operand_batch.size()) ==
               to_.rank() &&
           updates_.rank() - static_cast<int>(d_.window.size()) == at_.rank() - (vectors ? 1 : 0);
  }

  // Do updates lack the dimension of the operand?
  bool Lacks(int64_t dim) const {
    return IsAmong(d_.collapsed, dim) || IsAmong(d_.operand_batch, dim);
  }

  // The size of an update in a dimension of the operand.
  int64_t SliceSize(int64_t dim) const {
    size_t before = 0;
    for (int64_t i = 0; i < dim; ++i) before += Lacks(i) ? 0 : 1;
    if (Lacks(dim)) return 1;
    return updates_[static_cast<int>(d_.window[before])];
  }

  // Are updates as large as the operand in the dimension, of whatever size?
  bool IsWhole(int64_t dim) const {
    const int64_t size = to_[static_cast<int>(dim)];
    const int64_t given = SliceSize(dim);
    if (batches_.contains(size) && batches_.contains(given)) return true;
    return (size >= 0 || IsSymbolicDim(size)) && given == size;
  }

  // Where the slice begins that one constant index names; nothing: there are several, or it is
  // computed.
  std::optional<Numbers> OnlyIndex() const {
    const auto index = ConstantTensor(*BehindIdentities(n_->input(1)).node);
    if (!index || index->num_elements() != static_cast<int64_t>(d_.index_map.size()) ||
        !d_.operand_batch.empty() || updates_.rank() != static_cast<int>(d_.window.size())) {
      return std::nullopt;
    }
    int free = 0;
    for (int i = 0; i < to_.rank(); ++i) {
      free += to_[i] < 0 ? 1 : 0;
      if (to_[i] < 0 ? !IsWhole(i) || IsAmong(d_.index_map, i) : SliceSize(i) < 0) {
        return std::nullopt;
      }
    }
    if (free > 1) return std::nullopt;
    Numbers first(static_cast<size_t>(to_.rank()), 0);
    for (size_t i = 0; i < d_.index_map.size(); ++i) {
      first[static_cast<size_t>(d_.index_map[i])] = IndexAt(*index, static_cast<int64_t>(i));
    }
    return first;
  }

  StatusOr<bool> WriteSlice(const Numbers& first) {
    Numbers sizes;
    bool inside = true;
    for (int i = 0; i < to_.rank(); ++i) {
      const auto begin = first[static_cast<size_t>(i)];
      sizes.push_back(SliceSize(i));
      inside = inside && (to_[i] < 0 || (begin >= 0 && begin <= to_[i] - sizes.back()));
      sizes.back() = std::max<int64_t>(sizes.back(), -1);
    }
    if (!inside) return Stand(n_->input(0));
    ASSIGN_OR_RETURN(Endpoint slice, Reshape(n_->input(2), sizes));
    if (kind_.function != OpName("_Arg")) {
      ASSIGN_OR_RETURN(const Endpoint old, Add("Slice", {n_->input(0), Ints(first), Ints(sizes)},
                                               {{"T", type_}, {"Index", Dtype::kInt32}}));
      ASSIGN_OR_RETURN(slice, Add(kind_.function.text(), {old, slice}, {{"T", type_}}));
    }
    ASSIGN_OR_RETURN(const Endpoint whole,
                     Add("XlaDynamicUpdateSlice", {n_->input(0), slice, Ints(first)},
                         {{"T", type_}, {"Tindices", Dtype::kInt32}}));
    return Stand(whole);
  }

  // Does an index say where an update is in the dimensions that updates lack, and is it whole in
  // the others?
  bool AreWholeElsewhere() const {
    Numbers mapped(d_.index_map.begin(), d_.index_map.end());
    std::ranges::sort(mapped);
    if (mapped.empty() || !std::ranges::equal(mapped, d_.collapsed)) return false;
    for (int i = 0; i < to_.rank(); ++i) {
      if (!Lacks(i) && !IsWhole(i)) return false;
    }
    // Places in a batch are stated, or those of all there are.
    return d_.operand_batch.empty() || CountsBatch() ||
           (at_.fully_known() && NumElements(at_) <= kMostStated);
  }

  // Is there one index vector for each place of one batch?
  bool CountsBatch() const {
    return d_.operand_batch.size() == 1 &&
           updates_.rank() - static_cast<int>(d_.window.size()) == 1;
  }

  StatusOr<bool> ScatterPlaces() {
    Numbers mapped(d_.operand_batch.begin(), d_.operand_batch.end());
    mapped.insert(mapped.end(), d_.index_map.begin(), d_.index_map.end());
    Numbers order = mapped, pads, sizes, begin;
    for (int64_t i = 0; i < to_.rank(); ++i) {
      if (!IsAmong(mapped, i)) order.push_back(i);
    }
    for (const int64_t i : order) {
      const bool indexed = IsAmong(mapped, i);
      pads.insert(pads.end(), 2, indexed ? 1 : 0);
      begin.push_back(indexed ? 1 : 0);
      sizes.push_back(std::max<int64_t>(to_[static_cast<int>(i)], -1));
    }
    ASSIGN_OR_RETURN(Endpoint into, Transpose(n_->input(0), order));
    ASSIGN_OR_RETURN(Endpoint indices, IndexVectorsLast());
    if (!d_.operand_batch.empty()) {
      ASSIGN_OR_RETURN(indices, BehindPlacesOfBatch(indices));
    }
    Numbers by = Others(d_.window, updates_.rank());
    by.insert(by.end(), d_.window.begin(), d_.window.end());
    ASSIGN_OR_RETURN(Endpoint updates, Transpose(n_->input(2), by));
    if (by.size() == d_.window.size()) {  // one index alone: operators want a list of one
      ASSIGN_OR_RETURN(indices, ExpandDims(indices, 0, Dtype::kInt32));
      ASSIGN_OR_RETURN(updates, ExpandDims(updates, 0, type_));
    }
    const bool fits = AllFit();
    Endpoint whole_sizes;
    if (!fits) {
      const auto count = static_cast<int64_t>(mapped.size());
      const Numbers ends(sizes.begin(), sizes.begin() + count);
      whole_sizes = Ints(sizes);
      Endpoint places = Ints(ends);
      if (IsAmong(ends, -1)) {
        ASSIGN_OR_RETURN(whole_sizes, Add("Shape", {into}, {{"T", type_}}));
        ASSIGN_OR_RETURN(places, Add("Slice", {whole_sizes, Ints({0}), Ints({count})},
                                     {{"T", Dtype::kInt32}, {"Index", Dtype::kInt32}}));
      }
      // What lies outside is written around the tensor: the places before and behind it.
      ASSIGN_OR_RETURN(indices, Of("Minimum", indices, places));
      ASSIGN_OR_RETURN(indices, Of("Maximum", indices, Ints({-1})));
      ASSIGN_OR_RETURN(indices, Of("AddV2", indices, Ints({1})));
      const Endpoint around = Constant(pads, Shape({static_cast<int64_t>(sizes.size()), 2}));
      ASSIGN_OR_RETURN(into, Add("Pad", {into, around}, {{"T", type_}}));
    }
    ASSIGN_OR_RETURN(Endpoint whole, Add(kind_.scatter, {into, indices, updates},
                                         {{"T", type_}, {"Tindices", Dtype::kInt32}}));
    if (!fits) {
      ASSIGN_OR_RETURN(whole, Add("Slice", {whole, Ints(begin), whole_sizes},
                                  {{"T", type_}, {"Index", Dtype::kInt32}}));
    }
    Numbers back(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    }
    ASSIGN_OR_RETURN(whole, Transpose(whole, back));
    return Stand(whole);
  }

  // Are all indices constants that name places of the operand?
  bool AllFit() const {
    const auto index = ConstantTensor(*BehindIdentities(n_->input(1)).node);
    if (!index) return false;
    int64_t behind = 1;
    for (int64_t i = index->rank() - 1; i > d_.index_vector; --i) {
      behind *= index->dim(static_cast<int>(i));
    }
    for (int64_t i = 0; i < index->num_elements(); ++i) {
      const auto component = static_cast<size_t>(i / behind) % d_.index_map.size();
      const int64_t place = IndexAt(*index, i);
      if (place < 0 || place >= to_[static_cast<int>(d_.index_map[component])]) return false;
    }
    return true;
  }

  StatusOr<Endpoint> IndexVectorsLast() {
    Endpoint e = n_->input(1);
    if (const Dtype type = n_->input_types[1]; type != Dtype::kInt32) {
      ASSIGN_OR_RETURN(e, Add("Cast", {e}, {{"SrcT", type}, {"DstT", Dtype::kInt32}}));
    }
    if (d_.index_vector == at_.rank()) {
      return ExpandDims(e, -1, Dtype::kInt32);
    }
    const Numbers last = {d_.index_vector};
    Numbers order = Others(last, at_.rank());
    order.push_back(d_.index_vector);
    return Transpose(e, order, Dtype::kInt32);
  }

  // Index vectors that begin with where they are in the dimensions of the batch.
  StatusOr<Endpoint> BehindPlacesOfBatch(Endpoint indices) {
    const Endpoint axis = {graph_.AddConst(Name("axis"), Tensor::Scalar<int32_t>(-1)), 0};
    const Attrs of_two = {{"T", Dtype::kInt32}, {"N", int64_t{2}}};
    if (!at_.fully_known()) {
      ASSIGN_OR_RETURN(const Endpoint sizes, Add("Shape", {indices}, {{"T", Dtype::kInt32}}));
      const auto number = [&](int32_t value) {
        return Endpoint{graph_.AddConst(Name("number"), Tensor::Scalar(value)), 0};
      };
      ASSIGN_OR_RETURN(
          const Endpoint count,
          Add("GatherV2", {sizes, number(0), number(0)},
              {{"Tparams", Dtype::kInt32}, {"Tindices", Dtype::kInt32}, {"Taxis", Dtype::kInt32}}));
      ASSIGN_OR_RETURN(Endpoint all,
                       Add("Range", {number(0), count, number(1)}, {{"Tidx", Dtype::kInt32}}));
      ASSIGN_OR_RETURN(all, ExpandDims(all, -1, Dtype::kInt32));
      return Add("ConcatV2", {all, indices, axis}, of_two);
    }
    Numbers sizes;
    int64_t count = 1;
    for (int i = 0; i < at_.rank(); ++i) {
      if (i == d_.index_vector) continue;
      sizes.push_back(at_[i]);
      count *= at_[i];
    }
    Numbers places;
    for (int64_t i = 0; i < count; ++i) {
      for (const int64_t dim : d_.indices_batch) {
        int64_t behind = 1;
        auto at = static_cast<size_t>(dim > d_.index_vector ? dim - 1 : dim);
        const int64_t size = sizes[at];
        while (++at < sizes.size()) behind *= sizes[at];
        places.push_back(i / behind % size);
      }
    }
    sizes.push_back(static_cast<int64_t>(d_.indices_batch.size()));
    const Endpoint before = Constant(places, Shape(std::span<const int64_t>(sizes)));
    return Add("ConcatV2", {before, indices, axis}, of_two);
  }

  // The dimensions below `rank` that are not among these.
  static Numbers Others(std::span<const int64_t> dims, int rank) {
    Numbers out;
    for (int64_t i = 0; i < rank; ++i) {
      if (!IsAmong(dims, i)) out.push_back(i);
    }
    return out;
  }

  using Attrs = std::vector<std::pair<absl::string_view, Attr>>;

  std::string Name(absl::string_view what) const { return absl::StrCat(n_->name(), "/", what); }
  StatusOr<Endpoint> Add(absl::string_view op, std::vector<Endpoint> inputs, const Attrs& values) {
    AttrMap attrs;
    for (const auto& [name, value] : values) attrs.Set(name, value);
    ASSIGN_OR_RETURN(Node * made, graph_.Add(Name(op), op, std::move(inputs), std::move(attrs)));
    return Endpoint{made, 0};
  }
  Endpoint Constant(const Numbers& numbers, const Shape& shape) {
    Tensor value = *Tensor::Make(Dtype::kInt32, shape);
    std::ranges::transform(numbers, value.flat<int32_t>().begin(),
                           [](int64_t i) { return static_cast<int32_t>(i); });
    return {graph_.AddConst(Name("const"), value), 0};
  }
  Endpoint Ints(const Numbers& numbers) {
    return Constant(numbers, Shape({static_cast<int64_t>(numbers.size())}));
  }
  StatusOr<Endpoint> Of(absl::string_view op, Endpoint indices, Endpoint numbers) {
    return Add(op, {indices, numbers}, {{"T", Dtype::kInt32}});
  }
  StatusOr<Endpoint> ExpandDims(Endpoint e, int32_t axis, Dtype type) {
    return Add("ExpandDims", {e, {graph_.AddConst(Name("axis"), Tensor::Scalar(axis)), 0}},
               {{"T", type}});
  }
  StatusOr<Endpoint> Reshape(Endpoint e, const Numbers& sizes) {
    return Add("Reshape", {e, Ints(sizes)}, {{"T", type_}});
  }
  StatusOr<Endpoint> Transpose(Endpoint e, const Numbers& order) {
    return Transpose(e, order, type_);
  }
  StatusOr<Endpoint> Transpose(Endpoint e, const Numbers& order, Dtype type) {
    if (std::ranges::is_sorted(order)) return e;
    return Add("Transpose", {e, Ints(order)}, {{"T", type}});
  }

  bool Stand(Endpoint e) {
    graph_.ReplaceAllUses({n_, 0}, e);
    graph_.ReplaceControlUses(n_, e.node);
    graph_.Remove(n_);
    return true;
  }

  const absl::flat_hash_set<int64_t>& batches_;
  Graph& graph_;
  Node* n_;
  const ScatterKind& kind_;
  const GatherDimensions& d_;
  const PartialShape to_, at_, updates_;
  const Dtype type_;
};

// The first sizes that inputs leave free: one batch, as operators that would get two say.
absl::flat_hash_set<int64_t> BatchesOf(const Graph& graph, const ShapeTable& shapes) {
  absl::flat_hash_set<int64_t> out;
  for (Node* n : graph.Nodes()) {
    if (!n->Is("_Arg")) continue;
    const PartialShape& shape = shapes.of({n, 0});
    if (shape.known_rank() && shape.rank() > 0 && IsSymbolicDim(shape[0])) out.insert(shape[0]);
  }
  return out;
}

}  // namespace

Status SpellXlaScatters(Graph& graph) {
  std::vector<Node*> found;
  for (Node* n : graph.Nodes()) {
    if (n->Is("XlaScatter")) found.push_back(n);
  }
  if (found.empty()) return OkStatus();
  const ShapeTable shapes = InferSymbolicShapes(graph, {});
  const absl::flat_hash_set<int64_t> batches = BatchesOf(graph, shapes);
  for (Node* n : found) {
    const OpName function = OpOfTwo(*graph.library(), n->Func("update_computation"));
    const auto* kind = std::ranges::find(kScatterKinds, function, &ScatterKind::function);
    if (kind == std::end(kScatterKinds)) continue;
    ASSIGN_OR_RETURN(const GatherDimensions d,
                     ParseScatterDimensions(n->String("dimension_numbers")));
    RETURN_IF_ERROR(XlaScatter(graph, n, shapes, *kind, d, batches).Spell().status());
  }
  return OkStatus();
}

}  // namespace smelt
