// SEGMENT_SUM of TensorFlow Lite.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "smelt/kernels/kernel.h"

namespace smelt::lite {
namespace {

// How many segments there are. They are numbered from 0 on and none is left out, so that there are
// no more of them than rows, whatever a file or request says.
StatusOr<int64_t> CountSegments(const Tensor& ids) {
  int64_t count = 0;
  for (int64_t i = 0; i < ids.num_elements(); ++i) {
    const int64_t id = ids.data<int32_t>()[i];
    if (id == count) {
      ++count;
    } else if (id != count - 1 || count == 0) {
      return InvalidArgument("segment id ", id, " at ", i, " comes behind ", count - 1,
                             ": they begin at 0 and grow by 0 or 1");
    }
  }
  return count;
}

// In int32 sums wrap.
float Summed(float a, float b) { return a + b; }
int32_t Summed(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

template <typename T>
Status RunSegmentSum(OpContext& ctx) {
  const Tensor &rows = ctx.input(0), &ids = ctx.input(1);
  if (rows.rank() < 1 || ids.rank() != 1 || ids.dim(0) != rows.dim(0)) {
    return InvalidArgument("it sums ", rows.shape().ToString(), " by segments ",
                           ids.shape().ToString());
  }
  ASSIGN_OR_RETURN(const int64_t segments, CountSegments(ids));
  Shape shape = rows.shape();
  shape.Set(0, segments);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (out->num_elements() == 0) return OkStatus();
  const int64_t size = out->num_elements() / segments;
  T* to = out->data<T>();
  std::fill_n(to, out->num_elements(), T(0));
  for (int64_t i = 0; i < ids.num_elements(); ++i) {
    T* sum = to + ids.data<int32_t>()[i] * size;
    const T* row = rows.data<T>() + i * size;
    for (int64_t k = 0; k < size; ++k) sum[k] = Summed(sum[k], row[k]);
  }
  return OkStatus();
}

std::string DeclineSegmentSum(const Node& node) {
  if (node.num_inputs() != 2 || node.num_outputs() != 1) {
    return absl::StrCat("it has ", node.num_inputs(), " inputs and ", node.num_outputs(),
                        " outputs");
  }
  if (node.input_types[1] != Dtype::kInt32) return "its segments are not int32";
  if (node.input_types[0] != node.output_types[0]) return "its output is of another type";
  return "";
}

template <Dtype kType>
std::string DeclineUnlessOf(const Node& node) {
  if (node.num_inputs() > 0 && node.input_types[0] != kType) {
    return absl::StrCat("it sums ", DtypeName(node.input_types[0]));
  }
  return DeclineSegmentSum(node);
}

constexpr Kernel kLiteSegmentTable[] = {
    {"tfl.segment_sum", "", kAnyType, "lite:segment_sum", RunSegmentSum<float>, nullptr,
     DeclineUnlessOf<Dtype::kFloat>},
    {"tfl.segment_sum", "", kAnyType, "lite:segment_sum", RunSegmentSum<int32_t>, nullptr,
     DeclineUnlessOf<Dtype::kInt32>},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteSegmentKernels = lite::kLiteSegmentTable;
}  // namespace smelt
