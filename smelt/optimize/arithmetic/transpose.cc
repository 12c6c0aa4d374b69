// Transpositions that undo each other or that the node beside them computes as well, and factors
// that a convolution's filter takes in.
#include <algorithm>

#include "smelt/optimize/arithmetic/common.h"
#include "smelt/optimize/arithmetic/rules.h"
#include "smelt/optimize/rewrite/number_tensors.h"

namespace smelt::arithmetic {
namespace {

constexpr OpSet kTransposes = {"Transpose", "ConjugateTranspose"};

// The dimensions that the node's second input names, each once; nothing where it is not constant.
std::optional<std::vector<int64_t>> Permutation(const Node& transpose, Rewriter& r) {
  std::optional<std::vector<int64_t>> p = r.Integers(transpose.input(1));
  if (!p) return std::nullopt;
  const auto rank = static_cast<int64_t>(p->size());
  std::vector<bool> seen(p->size());
  for (int64_t& d : *p) {
    if (d < 0) d += rank;
    if (d < 0 || d >= rank || seen[static_cast<size_t>(d)]) return std::nullopt;
    seen[static_cast<size_t>(d)] = true;
  }
  return p;
}

bool IsIdentity(const std::vector<int64_t>& p) {
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

bool AreInverse(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (b[static_cast<size_t>(a[i])] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// conj(transpose(x)) and transpose(conj(x)) -> conjugate_transpose(x), and the other way.
StatusOr<Rewritten> FoldConjugateIntoTranspose(Node& node, Rewriter& r) {
  const bool outer_conj = node.Is("Conj");
  Node* input = outer_conj ? Producer(node.input(0), kTransposes) : Producer(node.input(0), "Conj");
  if (input == nullptr || !IsComplex(node.Type("T"))) return r.No();
  const Node& transpose = outer_conj ? *input : node;
  AttrMap attrs;
  attrs.Set("T", transpose.Type("T"));
  attrs.Set("Tperm", transpose.Type("Tperm"));
  ASSIGN_OR_RETURN(
      Node * folded,
      r.Add(r.Name(node), transpose.Is("Transpose") ? "ConjugateTranspose" : "Transpose",
            {input->input(0), transpose.input(1)}, std::move(attrs), transpose));
  RETURN_IF_ERROR(r.WaitAs(folded, node));
  RETURN_IF_ERROR(r.WaitAs(folded, *input));
  r.CopyShape({&node, 0}, {folded, 0});
  return r.ReplaceBy({folded, 0});
}

constexpr OpSet kMuls = {"Mul", "MulNoNan"};
// Gives a scaled result for a scaled input.
constexpr OpSet kKeepsFactors = {
    "Identity",       "Snapshot",     "StopGradient",  "PreventGradient", "DebugGradientIdentity",
    "Reshape",        "Squeeze",      "ExpandDims",    "Reverse",         "ReverseV2",
    "Roll",           "Transpose",    "DepthToSpace",  "SpaceToDepth",    "BatchToSpace",
    "BatchToSpaceND", "SpaceToBatch", "SpaceToBatchND"};

// conv(x * c, w) -> conv(x, w * c)
StatusOr<Rewritten> FoldMultiplyIntoConv(Node& node, Rewriter& r) {
  const Endpoint weights = node.input(1);
  Node* tail = TailOfChain(node, kKeepsFactors);
  Node* mul = Producer(tail->input(0), kMuls);
  if (mul == nullptr) return r.No();
  if (r.ConstantValue(weights) == nullptr) return r.No("the filter is no constant");
  if (NumDataUses(*mul) != 1) return r.No("others read the product");
  if (IsRoot(*mul)) return r.No("the product must stay");
  const bool second = r.ConstantValue(mul->input(1)) != nullptr;
  const Endpoint scale = mul->input(second ? 1 : 0), x = mul->input(second ? 0 : 1);
  const TensorValue* factor = r.ConstantValue(scale);
  if (factor == nullptr) return r.No("neither factor is a constant");
  if (factor->shape.rank() != 0) return r.No("the factor is no scalar");
  if (factor->dtype != weights.node->output_types[0]) {
    return r.No("the factor is of another type than the filter");
  }
  if (GivesReference(x)) return r.No("the value is read by reference");
  if (mul->Is("MulNoNan")) {
    // Zero times NaN is zero for this op alone.
    const std::optional<double> value = UniformValue(*factor);
    if (!second || !value || *value == 0) return r.No("a filter of zeros makes no zeros of NaN");
  }
  AttrMap attrs;
  attrs.Set("T", factor->dtype);
  ASSIGN_OR_RETURN(Node * scaled,
                   r.Add(r.Name(*weights.node, "", absl::StrCat("scaled_", node.name(), "_")),
                         mul->op(), {weights, scale}, std::move(attrs), *weights.node));
  RETURN_IF_ERROR(r.WaitAs(scaled, *mul));
  r.CopyShape(weights, {scaled, 0});
  r.graph().SetInput(&node, 1, {scaled, 0});
  r.graph().SetInput(tail, 0, x);
  r.Visit(tail);
  return r.InPlace();
}

// Are only the last two dimensions exchanged?
bool TransposesMatrices(const Node& transpose, Rewriter& r) {
  std::optional<std::vector<int64_t>> p = Permutation(transpose, r);
  if (!p || p->size() < 2) return false;
  std::swap((*p)[p->size() - 2], (*p)[p->size() - 1]);
  return IsIdentity(*p);
}

// matmul(transpose(a), b) -> matmul(a, b) {transpose_a}
StatusOr<Rewritten> FoldTransposeIntoMatMul(Node& node, Rewriter& r) {
  const bool batch = node.Is("BatchMatMul") || node.Is("BatchMatMulV2");
  Node* folded[2] = {nullptr, nullptr};
  for (const int i : {0, 1}) {
    Node* transpose = Producer(node.input(i), kTransposes);
    if (transpose == nullptr) continue;
    // What a product does to matrices before it is adjoint for batches, a transposition otherwise.
    const bool complex = IsComplex(node.input_types[static_cast<size_t>(i)]);
    if (complex && transpose->Is("ConjugateTranspose") != batch) {
      r.No(batch ? "the product would conjugate too" : "the product would not conjugate");
      continue;
    }
    if (!TransposesMatrices(*transpose, r)) {
      r.No("the transposition is not known to be one of the last two dimensions");
      continue;
    }
    if (GivesReference(transpose->input(0))) continue;
    folded[i] = transpose;
  }
  if (folded[0] == nullptr && folded[1] == nullptr) return r.No();
  ASSIGN_OR_RETURN(Node * product, r.Copy(node, r.Name(node)));
  for (const int i : {0, 1}) {
    if (folded[i] == nullptr) continue;
    const absl::string_view names[] = {batch ? "adj_x" : "transpose_a",
                                       batch ? "adj_y" : "transpose_b"};
    product->AttrsToChange().Set(names[i], !node.Bool(names[i]));
    r.graph().SetInput(product, i, folded[i]->input(0));
    RETURN_IF_ERROR(r.WaitAs(product, *folded[i]));
  }
  return r.ReplaceBy({product, 0});
}

// transpose(transpose(x)) -> x, also with nodes in between that only pass on, and
// transpose(x, [0, 1, ...]) -> x.
StatusOr<Rewritten> RemoveIdentityTranspose(Node& node, Rewriter& r) {
  Node* tail = TailOfChain(node, kPassesOn);
  Node* first = Producer(tail->input(0), kTransposes);
  const std::optional<std::vector<int64_t>> p = Permutation(node, r);
  if (!p) return first == nullptr ? r.No() : r.No("its permutation is not known");
  if (IsIdentity(*p)) {
    if (GivesReference(node.input(0))) return r.No("the value is read by reference");
    RETURN_IF_ERROR(r.WaitAs(&node, *node.input(1).node));
    if (node.Is("Transpose") || !IsComplex(node.Type("T"))) return r.ReplaceBy(node.input(0));
    AttrMap attrs;
    attrs.Set("T", node.Type("T"));
    ASSIGN_OR_RETURN(Node * conj,
                     r.Add(r.Name(node), "Conj", {node.input(0)}, std::move(attrs), node));
    RETURN_IF_ERROR(r.WaitAs(conj, node));
    r.CopyShape({&node, 0}, {conj, 0});
    return r.ReplaceBy({conj, 0});
  }
  if (first == nullptr) return r.No();
  if (first->op_name() != node.op_name()) return r.No("one of them conjugates");
  const std::optional<std::vector<int64_t>> q = Permutation(*first, r);
  if (!q) return r.No("the permutation before it is not known");
  if (!AreInverse(*p, *q)) return r.No("they do not undo each other");
  const Endpoint x = first->input(0);
  if (GivesReference(x)) return r.No("the value is read by reference");
  Node* waits = tail == &node ? &node : tail;
  // Whatever follows reads what the first transposition reads, and waits for what that waited for.
  r.graph().RemoveControlInput(&node, first);
  RETURN_IF_ERROR(r.WaitAs(waits, *first));
  RETURN_IF_ERROR(r.WaitAs(waits, *first->input(1).node));
  RETURN_IF_ERROR(r.WaitAs(&node, *node.input(1).node));
  if (tail == &node) return r.ReplaceBy(x);
  r.graph().SetInput(tail, 0, x);
  for (Node* n = &node; n != tail;) {
    n = n->input(0).node;
    r.CopyShape({&node, 0}, {n, 0});
  }
  r.Visit(tail);
  return r.ReplaceBy(node.input(0));
}

}  // namespace

const Rule kFoldConjugateIntoTranspose = {"FoldConjugateIntoTranspose",
                                          {"Conj", "Transpose", "ConjugateTranspose"},
                                          FoldConjugateIntoTranspose,
                                          "conj(transpose(x)) -> conjugate_transpose(x)"};
const Rule kFoldMultiplyIntoConv = {"FoldMultiplyIntoConv",
                                    {"Conv2D", "Conv3D"},
                                    FoldMultiplyIntoConv,
                                    "conv(x * c, w) -> conv(x, w * c)"};
const Rule kFoldTransposeIntoMatMul = {
    "FoldTransposeIntoMatMul",
    {"MatMul", "SparseMatMul", "BatchMatMul", "BatchMatMulV2", "QuantizedMatMul"},
    FoldTransposeIntoMatMul,
    "matmul(transpose(a), b) -> matmul(a, b) {transpose_a}"};
const Rule kRemoveIdentityTranspose = {"RemoveIdentityTranspose", kTransposes,
                                       RemoveIdentityTranspose, "transpose(transpose(x)) -> x"};

}  // namespace smelt::arithmetic
