// HASHTABLE_LOOKUP and LSH_PROJECTION of TensorFlow Lite.
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "smelt/base/hash.h"
#include "smelt/kernels/kernel.h"

namespace smelt::lite {
namespace {

// The row of the value whose key is what is looked for, and whether there is one; zeros, or empty
// strings, where there is none. Keys are sorted.
Status RunHashtableLookup(OpContext& ctx) {
  const Tensor &wanted = ctx.input(0), &keys = ctx.input(1), &values = ctx.input(2);
  if (wanted.rank() != 1 || keys.rank() != 1 || values.rank() < 1 || keys.dim(0) != values.dim(0) ||
      keys.dim(0) == 0) {
    return InvalidArgument("it looks ", wanted.shape().ToString(), " up among keys ",
                           keys.shape().ToString(), " of values ", values.shape().ToString());
  }
  Shape shape = values.shape();
  shape.Set(0, wanted.dim(0));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  ASSIGN_OR_RETURN(Tensor * hits, ctx.Allocate(1, wanted.shape()));
  const auto* first = keys.data<int32_t>();
  const auto before = [](const void* a, const void* b) {
    const int32_t x = *static_cast<const int32_t*>(a), y = *static_cast<const int32_t*>(b);
    return x < y ? -1 : (x > y ? 1 : 0);
  };
  const int64_t row = values.num_elements() / values.dim(0);
  const size_t bytes = values.bytes() / static_cast<size_t>(values.dim(0));
  for (int64_t i = 0; i < wanted.dim(0); ++i) {
    const auto* at = static_cast<const int32_t*>(std::bsearch(wanted.data<int32_t>() + i, first,
                                                              static_cast<size_t>(keys.dim(0)),
                                                              sizeof(int32_t), before));
    hits->data<uint8_t>()[i] = at == nullptr ? 0 : 1;
    if (values.dtype() == Dtype::kString) {
      for (int64_t k = 0; at != nullptr && k < row; ++k) {
        out->data<std::string>()[i * row + k] = values.data<std::string>()[(at - first) * row + k];
      }
      continue;
    }
    if (bytes == 0) continue;
    auto* to = static_cast<char*>(out->raw()) + static_cast<size_t>(i) * bytes;
    if (at == nullptr) {
      std::memset(to, 0, bytes);
    } else {
      std::memcpy(to,
                  static_cast<const char*>(values.raw()) + static_cast<size_t>(at - first) * bytes,
                  bytes);
    }
  }
  return OkStatus();
}

std::string DeclineHashtableLookup(const Node& node) {
  if (node.num_inputs() != 3 || node.num_outputs() != 2) {
    return absl::StrCat("it has ", node.num_inputs(), " inputs and ", node.num_outputs(),
                        " outputs");
  }
  if (node.input_types[0] != Dtype::kInt32 || node.input_types[1] != Dtype::kInt32) {
    return "its keys are not int32";
  }
  if (node.input_types[2] != node.output_types[0] || node.output_types[1] != Dtype::kUint8) {
    return "its outputs are of other types than its values, or its hits not uint8";
  }
  if (!IsPod(node.input_types[2]) && node.input_types[2] != Dtype::kString) {
    return absl::StrCat("its values are ", DtypeName(node.input_types[2]));
  }
  return "";
}

struct ProjectionState final : KernelState {
  bool sparse = false;
};

StatusOr<std::unique_ptr<KernelState>> PrepareProjection(const Node& node) {
  auto s = std::make_unique<ProjectionState>();
  const std::string type = node.String("type");
  if (type != "SPARSE" && type != "DENSE") return InvalidArgument("its type is ", type);
  s->sparse = type == "SPARSE";
  return s;
}

// The sign of a sum of hashes: of the seed's bytes and a row's, each by the row's weight.
bool HashBit(float seed, const Tensor& rows, const float* weights) {
  const auto row = rows.bytes() / static_cast<size_t>(rows.dim(0));
  std::string key(sizeof(seed) + row, '\0');
  std::memcpy(key.data(), &seed, sizeof(seed));
  double score = 0;
  for (int64_t i = 0; i < rows.dim(0); ++i) {
    if (row > 0) {
      std::memcpy(key.data() + sizeof(seed),
                  static_cast<const char*>(rows.raw()) + static_cast<size_t>(i) * row, row);
    }
    const auto hash = static_cast<double>(static_cast<int64_t>(Fingerprint64(key)));
    score += weights == nullptr ? hash : static_cast<double>(weights[i]) * hash;
  }
  return score > 0;
}

Status RunProjection(OpContext& ctx) {
  const Tensor &hash = ctx.input(0), &rows = ctx.input(1);
  const Tensor* weight = ctx.num_inputs() > 2 ? &ctx.input(2) : nullptr;
  if (hash.rank() != 2 || hash.dim(1) > 32 || rows.rank() < 1 || rows.dim(0) < 1) {
    return InvalidArgument("it projects ", rows.shape().ToString(), " by hashes ",
                           hash.shape().ToString());
  }
  // An input that is left out is an empty tensor (lite/lower).
  if (weight != nullptr && weight->num_elements() == 0) weight = nullptr;
  if (weight != nullptr && (weight->rank() != 1 || weight->dim(0) != rows.dim(0))) {
    return InvalidArgument("its weights have the shape ", weight->shape().ToString(), " for ",
                           rows.dim(0), " rows");
  }
  const float* weights = weight == nullptr ? nullptr : weight->data<float>();
  const int64_t hashes = hash.dim(0), bits = hash.dim(1);
  const bool sparse = ctx.state<ProjectionState>().sparse;
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({sparse ? hashes : hashes * bits})));
  auto* to = out->data<int32_t>();
  for (int64_t i = 0; i < hashes; ++i) {
    uint32_t number = 0;
    for (int64_t j = 0; j < bits; ++j) {
      const bool bit = HashBit(hash.data<float>()[i * bits + j], rows, weights);
      if (sparse) {
        number = number << 1 | (bit ? 1u : 0u);
      } else {
        *to++ = bit ? 1 : 0;
      }
    }
    if (!sparse) continue;
    // Each hash has values of its own. Those of 32 bits leave no room, as there.
    const uint32_t first = static_cast<uint32_t>(i) * (bits < 32 ? uint32_t{1} << bits : 1u);
    *to++ = static_cast<int32_t>(number + first);
  }
  return OkStatus();
}

std::string DeclineProjection(const Node& node) {
  if (node.num_inputs() < 2 || node.num_inputs() > 3 || node.num_outputs() != 1) {
    return absl::StrCat("it has ", node.num_inputs(), " inputs and ", node.num_outputs(),
                        " outputs");
  }
  if (node.input_types[0] != Dtype::kFloat || !IsPod(node.input_types[1]) ||
      node.output_types[0] != Dtype::kInt32) {
    return absl::StrCat("it projects ", DtypeName(node.input_types[1]), " by hashes of ",
                        DtypeName(node.input_types[0]));
  }
  if (node.num_inputs() > 2 && node.input_types[2] != Dtype::kFloat) {
    return absl::StrCat("its weights are ", DtypeName(node.input_types[2]));
  }
  return "";
}

constexpr Kernel kLiteHashTable[] = {
    {"tfl.hashtable_lookup", "", kAnyType, "lite:hashtable_lookup", RunHashtableLookup, nullptr,
     DeclineHashtableLookup},
    {"tfl.lsh_projection", "", kAnyType, "lite:lsh_projection", RunProjection, PrepareProjection,
     DeclineProjection},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteHashKernels = lite::kLiteHashTable;
}  // namespace smelt
