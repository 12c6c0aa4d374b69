// EMBEDDING_LOOKUP of TensorFlow Lite: rows of a quantized table, as floats or as they are.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "smelt/kernels/lite/fixed_point.h"

namespace smelt::lite {
namespace {

struct EmbeddingState final : KernelState {
  Affine table;
};

StatusOr<std::unique_ptr<KernelState>> PrepareEmbedding(const Node& node) {
  auto s = std::make_unique<EmbeddingState>();
  s->table = InputAffine(node, 1);
  return s;
}

// Row by row, of which each has `size` elements and as many scales as blocks: one where the row has
// one, or the table has.
void FloatRow(const int8_t* from, float* to, int64_t size, const Affine& a, int64_t row) {
  const int64_t block = a.block > 0 ? a.block : size;
  const int64_t blocks = size / block;
  for (int64_t b = 0; b < blocks; ++b) {
    const auto at = static_cast<size_t>(a.scales.size() == 1 ? 0 : row * blocks + b);
    const auto zero = static_cast<float>(at < a.zeros.size() ? a.zeros[at] : 0);
    for (int64_t i = b * block; i < (b + 1) * block; ++i) {
      to[i] = a.scales[at] * (static_cast<float>(from[i]) - zero);
    }
  }
}

Status RunEmbedding(OpContext& ctx) {
  const auto& s = ctx.state<EmbeddingState>();
  const Tensor &ids = ctx.input(0), &table = ctx.input(1);
  if (table.rank() < 2 || ids.rank() != 1 || table.dim(0) < 1) {
    return InvalidArgument("it looks ", ids.shape().ToString(), " up in a table of shape ",
                           table.shape().ToString());
  }
  Shape shape = table.shape();
  shape.Set(0, ids.num_elements());
  const int64_t rows = table.dim(0), size = table.num_elements() / rows;
  const int64_t blocks = s.table.block > 0 ? size / s.table.block : 1;
  if (s.table.block > 0 && size % s.table.block != 0) {
    return InvalidArgument("rows of ", size, " have no blocks of ", s.table.block);
  }
  if ((s.table.block > 0 || s.table.scales.size() != 1) &&
      static_cast<int64_t>(s.table.scales.size()) != rows * blocks) {
    return InvalidArgument("there are ", s.table.scales.size(), " scales for ", rows * blocks,
                           " rows and blocks");
  }
  for (int64_t i = 0; i < ids.num_elements(); ++i) {
    const int64_t id = ids.data<int32_t>()[i];
    if (id < 0 || id >= rows) {
      return InvalidArgument("indices[", i, "] = ", id, " is not in [0, ", rows, ")");
    }
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  for (int64_t i = 0; i < ids.num_elements() && size > 0; ++i) {
    const int64_t id = ids.data<int32_t>()[i];
    const auto* from = static_cast<const char*>(table.raw()) + id * size;
    if (out->dtype() != Dtype::kFloat) {
      std::memcpy(static_cast<char*>(out->raw()) + i * size, from, static_cast<size_t>(size));
    } else {  // of uint8 too, as old files keep int8
      FloatRow(reinterpret_cast<const int8_t*>(from), out->data<float>() + i * size, size, s.table,
               id);
    }
  }
  return OkStatus();
}

std::string DeclineEmbedding(const Node& node) {
  if (node.num_inputs() != 2 || node.input_types[0] != Dtype::kInt32) {
    return "its indices are not int32";
  }
  const Dtype table = node.input_types[1], out = node.output_types[0];
  if (table != Dtype::kInt8 && table != Dtype::kUint8 && table != Dtype::kInt4) {
    return absl::StrCat("its table is ", DtypeName(table));
  }
  if (out != Dtype::kFloat && out != table) {
    return absl::StrCat("it makes ", DtypeName(out), " of ", DtypeName(table));
  }
  const Affine a = InputAffine(node, 1);
  if (a.scales.empty()) return "its table has no scales";
  if (a.block < 0 || (a.scales.size() > 1 && a.dim != 0)) return "its scales are not of rows";
  return "";
}

constexpr Kernel kLiteEmbeddingTable[] = {
    {"tfl.embedding_lookup", "", kAnyType, "lite:embedding", RunEmbedding, PrepareEmbedding,
     DeclineEmbedding},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteEmbeddingKernels = lite::kLiteEmbeddingTable;
}  // namespace smelt
