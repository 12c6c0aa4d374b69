// Transpositions that stand around a padding.
#include "smelt/optimize/layout/apply.h"

namespace smelt::layout {
namespace {

constexpr OpSet kPads = {"Pad", "PadV2"};

// The permutation of a transposition that may become an identity; nothing where it is not constant.
std::optional<std::vector<int32_t>> Permutation(const Node& n, Rewriter& r) {
  if (!n.Is("Transpose") || IsFed(n)) return std::nullopt;
  const std::optional<std::vector<int64_t>> stated = r.Integers(n.input(1));
  if (!stated) return std::nullopt;
  const auto rank = static_cast<int64_t>(stated->size());
  std::vector<bool> seen(stated->size());
  std::vector<int32_t> permutation;
  for (const int64_t d : *stated) {
    if (d < 0 || d >= rank || seen[static_cast<size_t>(d)]) return std::nullopt;
    seen[static_cast<size_t>(d)] = true;
    permutation.push_back(static_cast<int32_t>(d));
  }
  return permutation;
}

bool AreInverse(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (b[static_cast<size_t>(a[i])] != static_cast<int32_t>(i)) return false;
  }
  return true;
}

// The rows of `paddings` in the order of `permutation`; nothing where there is no row for each of
// its dimensions.
std::optional<Tensor> PermutedRows(const Tensor& paddings,
                                   const std::vector<int32_t>& permutation) {
  const auto rank = static_cast<int64_t>(permutation.size());
  if (paddings.rank() != 2 || paddings.dim(0) != rank || paddings.dim(1) != 2) return std::nullopt;
  const auto permuted = [&]<typename T>(const T* data) {
    const std::vector<T> values(data, data + paddings.num_elements());
    return Tensor::Vector<T>(Permuted(values, permutation, 2)).WithShape(paddings.shape());
  };
  if (paddings.dtype() == Dtype::kInt32) return permuted(paddings.data<int32_t>());
  if (paddings.dtype() == Dtype::kInt64) return permuted(paddings.data<int64_t>());
  return std::nullopt;
}

class PadCollapser {
 public:
  explicit PadCollapser(Rewriter& r) : r_(r) {}

  Status Visit(Node* pad) {
    Node* before = pad->input(0).node;
    const std::optional<std::vector<int32_t>> in = Permutation(*before, r_);
    if (!in || pad->uses().empty()) return OkStatus();
    std::vector<Node*> after;
    for (const Use& use : pad->OrderedUses()) {
      if (use.is_control()) continue;
      const std::optional<std::vector<int32_t>> out = Permutation(*use.node, r_);
      if (!out || use.input != 0 || !AreInverse(*out, *in))
        return Declined(*pad, "a reader does not undo the transposition");
      after.push_back(use.node);
    }
    if (after.empty()) return OkStatus();
    if (IsRoot(*pad) || IsRoot(*before)) return Declined(*pad, "a value in between must stay");
    if (NumDataUses(*before) != 1) return Declined(*pad, "others read what is transposed");
    const Endpoint x = before->input(0);
    if (IsRef(x.node->output_types[static_cast<size_t>(x.port)])) {
      return Declined(*pad, "the value is read by reference");
    }
    Node* paddings = pad->input(1).node;
    const std::optional<Tensor> stated = r_.Constant(pad->input(1));
    if (!stated || IsRoot(*paddings)) return Declined(*pad, "the paddings must stay");
    if (NumDataUses(*paddings) != 1) return Declined(*pad, "others read the paddings");
    const std::optional<Tensor> permuted = PermutedRows(*stated, *Permutation(*after[0], r_));
    if (!permuted) return Declined(*pad, "the paddings do not fit the permutation");
    r_.context().Fired("CancelAroundPad", *pad);
    paddings->AttrsToChange().Set("value", *permuted);
    RETURN_IF_ERROR(MakeIdentity(before));
    for (Node* transpose : after) RETURN_IF_ERROR(MakeIdentity(transpose));
    return OkStatus();
  }

 private:
  Status Declined(const Node& pad, absl::string_view why) {
    r_.context().Declined("CancelAroundPad", pad, why);
    return OkStatus();
  }

  Status MakeIdentity(Node* transpose) {
    Node* perm = transpose->input(1).node;
    AttrMap attrs = transpose->attrs();
    attrs.Erase("Tperm");
    r_.graph().SetInputs(transpose, {transpose->input(0)});
    RETURN_IF_ERROR(r_.Become(transpose, "Identity", std::move(attrs)));
    // What the permutation waited for the node waits for.
    RETURN_IF_ERROR(r_.WaitAs(transpose, *perm));
    return OkStatus();
  }

  Rewriter& r_;
};

}  // namespace

Status CancelAroundPads(Rewriter& r) {
  PadCollapser collapser(r);
  for (Node* n : r.graph().Nodes()) {
    if (n->Is(kPads)) RETURN_IF_ERROR(collapser.Visit(n));
  }
  return OkStatus();
}

}  // namespace smelt::layout
