// Lists of tensors as tensors of one dimension more, the first.
#ifndef SMELT_LITE_PREPARE_LISTS_H_
#define SMELT_LITE_PREPARE_LISTS_H_

#include <optional>
#include <string>

#include "smelt/graph/graph.h"
#include "smelt/graph/shape/infer.h"

namespace smelt {

// What a list holds.
struct ListType {
  Dtype dtype = Dtype::kInvalid;
  int rank = 0;  // of an element
  // Sizes of elements are not known before the first of them is there: they are 1 so long, and what
  // writes an element widens the list.
  bool loose = false;
  bool operator==(const ListType&) const = default;
};

struct DenseList {
  Endpoint value;
  ListType type;
};

// The ops that LowerListOp knows.
extern const OpSet kListOps;

// What stands for the outputs of a node that makes, reads or writes a list.
struct LoweredListOp {
  std::optional<DenseList> list;    // for the output that is one
  std::optional<Endpoint> tensor;   // for the other
  std::optional<Endpoint> lengths;  // for the second of TensorListConcat
};

// Adds the nodes. `in`: the list that the node reads; nullptr where it makes one; `second`: the one
// that TensorListConcatLists reads beside it. `shapes`: of the
// graph before. `element`: the shape of what is written into the list that the node makes, where
// somebody found out. An error of the code UNIMPLEMENTED says why it cannot be done.
StatusOr<LoweredListOp> LowerListOp(Graph& graph, const Node& node, const DenseList* in,
                                    const ShapeTable& shapes, const PartialShape& element,
                                    const DenseList* second = nullptr);

}  // namespace smelt

#endif  // SMELT_LITE_PREPARE_LISTS_H_
