// Hashes of numbers written out.
#include "smelt/optimize/remap/rules.h"

namespace smelt::remap {
namespace {

// StringToHashBucketFast(AsString(x)) -> _TensorToHashBucketFast(x)
StatusOr<Rewritten> TensorToHashBucket(Node& node, Rewriter& r) {
  const Node* text = node.input(0).node;
  if (!text->Is("AsString")) return r.No();
  if (!r.OnCpu(node) || !r.OnCpu(*text)) return r.No("it is not placed on a CPU");
  const Dtype t = text->Type("T");
  if (t != Dtype::kInt8 && t != Dtype::kInt16 && t != Dtype::kInt32 && t != Dtype::kInt64) {
    return r.No("only integers with a sign are hashed directly");
  }
  if (text->Int("width", -1) != -1 || !text->String("fill").empty()) {
    return r.No("the numbers are filled up to a width");
  }
  if (IsRoot(*text) || NumDataUses(*text) != 1) return r.No("others need the text");
  if (!IsOutOfOrder(*text) || !IsOutOfOrder(node)) return r.No("an order hangs on it");
  AttrMap attrs;
  attrs.Set("T", t);
  attrs.Set("num_buckets", node.Int("num_buckets"));
  r.graph().SetInputs(&node, {text->input(0)});
  RETURN_IF_ERROR(r.Become(&node, "_TensorToHashBucketFast", std::move(attrs)));
  return r.InPlace();
}

}  // namespace

const Rule kTensorToHashBucket = {
    "TensorToHashBucket",
    {"StringToHashBucketFast"},
    TensorToHashBucket,
    "StringToHashBucketFast(AsString(x)) -> _TensorToHashBucketFast(x)"};

}  // namespace smelt::remap
