// Constant folding proper: nodes of constants become constants where they stand.
#ifndef SMELT_OPTIMIZE_CONSTANT_FOLD_H_
#define SMELT_OPTIMIZE_CONSTANT_FOLD_H_

#include "absl/container/flat_hash_set.h"
#include "smelt/optimize/constant/evaluate.h"
#include "smelt/optimize/rewrite/rewriter.h"

namespace smelt::constant {

// One for each run of the pass. Not thread safe.
class Folder {
 public:
  explicit Folder(Rewriter& rewriter) : r_(rewriter) {}
  // Folds until nothing more folds. Was anything?
  StatusOr<bool> Run();

 private:
  bool MayFold(const Node& node) const;
  bool IsFoldable(const Node& node);
  bool IsSmallEnough(const Node& node);
  std::optional<Tensor> Value(Endpoint e) const;
  bool Dequantizes(const Node& node);
  StatusOr<bool> Fold(Node* node);
  StatusOr<bool> FoldMerge(Node* node);
  StatusOr<bool> FoldSwitch(Node* node);
  StatusOr<bool> Replace(Node* node, std::vector<Tensor> outputs);

  Rewriter& r_;
  Evaluator evaluator_;
  // Ids of nodes whose evaluation failed, or gave too much.
  absl::flat_hash_set<int> given_up_;
  // Ids of constants that were int8.
  absl::flat_hash_set<int> from_int8_;
};

}  // namespace smelt::constant

#endif  // SMELT_OPTIMIZE_CONSTANT_FOLD_H_
