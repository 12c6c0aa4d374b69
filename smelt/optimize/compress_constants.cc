// Constants state no more values than they need: the last one stands for all that follow, and none
// for zeros (TensorFlow's CompressConstants).
#include <algorithm>
#include <cstring>

#include "smelt/graph/constant.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

constexpr OpSet kConstants = {"Const", "HostConst"};
constexpr int64_t kLeastElements = 64;
// Of bytes before to bytes afterwards.
constexpr int64_t kLeastRatio = 2;

// How many bytes an element has in a list of TensorProto; 0 for types that are left alone.
int64_t ListedSize(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBool:
      return 1;
    case Dtype::kFloat:
    case Dtype::kHalf:
    case Dtype::kBfloat16:
    case Dtype::kInt8:
    case Dtype::kInt16:
    case Dtype::kInt32:
    case Dtype::kUint8:
    case Dtype::kUint16:
    case Dtype::kUint32:
    case Dtype::kQint8:
    case Dtype::kQint16:
    case Dtype::kQint32:
    case Dtype::kQuint8:
    case Dtype::kQuint16:
      return 4;
    case Dtype::kDouble:
    case Dtype::kInt64:
    case Dtype::kUint64:
    case Dtype::kComplex64:
      return 8;
    case Dtype::kComplex128:
      return 16;
    default:
      return 0;
  }
}

// nullptr: the value stays as it is.
StatusOr<std::shared_ptr<const TensorValue>> Compressed(const TensorValue& value) {
  const int64_t elements = value.num_elements();
  const int64_t listed = ListedSize(value.dtype);
  const bool plain = value.problem.empty() && value.wire.empty() && value.values.valid();
  if (!plain || listed == 0 || elements < kLeastElements) return nullptr;
  const int64_t stated = value.values.num_elements();
  if (stated == 0) return nullptr;
  const int64_t needed = value.needed_values();
  // All of them are stated as bytes; fewer as a list.
  const auto element = static_cast<int64_t>(DtypeSize(value.dtype));
  const int64_t before = stated * (stated == elements ? element : listed);
  if (needed * listed > before / kLeastRatio) return nullptr;
  auto fewer = std::make_shared<TensorValue>(value);
  if (needed == 0) {
    fewer->values = Tensor();
    return fewer;
  }
  ASSIGN_OR_RETURN(fewer->values, Tensor::Make(value.dtype, Shape({needed})));
  std::memcpy(fewer->values.raw(), value.values.raw(), fewer->values.bytes());
  return fewer;
}

}  // namespace

Status CompressConstants(Graph& graph, const PassContext&) {
  for (Node* n : graph.Nodes()) {
    if (!n->Is(kConstants)) continue;
    const Attr* stated = n->attrs().Find("value");
    const auto* value =
        stated == nullptr ? nullptr : stated->get<std::shared_ptr<const TensorValue>>();
    if (value == nullptr) continue;
    ASSIGN_OR_RETURN(const auto fewer, Compressed(**value));
    if (fewer != nullptr) n->AttrsToChange().Set("value", fewer);
  }
  return OkStatus();
}

}  // namespace smelt
