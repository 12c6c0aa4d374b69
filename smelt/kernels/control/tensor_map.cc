// TensorMap: the variant behind the TensorMap ops, a map from tensors to tensors. Maps are values:
// an op that changes one makes another, or changes it in place when nobody else holds it.
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "smelt/kernels/common/summarize.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

struct TensorMap final : VariantValue {
  static constexpr absl::string_view kTypeName = "tensorflow::TensorMap";
  absl::string_view type_name() const override { return kTypeName; }

  struct Entry {
    Tensor key, value;
  };
  // By MapKey.
  absl::flat_hash_map<std::string, Entry> entries;
};

// Type, shape and elements: two keys are one exactly when these texts are equal.
std::string MapKey(const Tensor& key) {
  std::string text = absl::StrCat(DtypeName(key.dtype()), key.shape().ToString());
  if (key.dtype() == Dtype::kString) {
    for (const std::string& s : key.flat<std::string>()) absl::StrAppend(&text, s.size(), ":", s);
  } else {
    text.append(static_cast<const char*>(key.raw()), key.bytes());
  }
  return text;
}

StatusOr<const TensorMap*> MapOf(const Tensor& handle) {
  if (handle.rank() != 0) {
    return InvalidArgument("Input map must be a scalar. Saw: ", handle.shape().ToString());
  }
  const VariantValue* value = handle.scalar<Variant>().value.get();
  if (value == nullptr || value->type_name() != TensorMap::kTypeName) {
    return InvalidArgument("Input handle is not a map. Saw: '",
                           value == nullptr ? "nothing" : value->type_name(), "'");
  }
  return static_cast<const TensorMap*>(value);
}

// Takes input 0 as a map that may be changed and makes it output 0; the pointer names the map
// there.
StatusOr<TensorMap*> MutableMap(OpContext& ctx) {
  RETURN_IF_ERROR(MapOf(ctx.input(0)).status());
  Tensor handle = ctx.TakeInput(0);
  std::shared_ptr<VariantValue> value = handle.scalar<Variant>().value;
  // The handle holds one reference, `value` another.
  if (!handle.Writable() || value.use_count() > 2) {
    value = std::make_shared<TensorMap>(static_cast<const TensorMap&>(*value));
    handle = Tensor::Scalar(Variant{value});
  }
  ctx.set_output(0, std::move(handle));
  return static_cast<TensorMap*>(value.get());
}

Status RunEmptyMap(OpContext& ctx) {
  ctx.set_output(0, Tensor::Scalar(Variant{std::make_shared<TensorMap>()}));
  return OkStatus();
}

Status RunMapSize(OpContext& ctx) {
  ASSIGN_OR_RETURN(const TensorMap* map, MapOf(ctx.input(0)));
  ctx.set_output(0, Tensor::Scalar(static_cast<int32_t>(map->entries.size())));
  return OkStatus();
}

Status RunMapHasKey(OpContext& ctx) {
  ASSIGN_OR_RETURN(const TensorMap* map, MapOf(ctx.input(0)));
  ctx.set_output(0, Tensor::Scalar(map->entries.contains(MapKey(ctx.input(1)))));
  return OkStatus();
}

Status RunMapLookup(OpContext& ctx) {
  ASSIGN_OR_RETURN(const TensorMap* map, MapOf(ctx.input(0)));
  const auto found = map->entries.find(MapKey(ctx.input(1)));
  if (found == map->entries.end()) {
    return InvalidArgument("Trying to lookup non-existent key. Could not find key \"",
                           SummarizeFirst(ctx.input(1), -1), "\".");
  }
  const Tensor& value = found->second.value;
  if (value.dtype() != ctx.output_type(0)) {
    return Internal("Output 0 of type ", DtypeName(value.dtype()),
                    " does not match declared output type ", DtypeName(ctx.output_type(0)),
                    " for node {{node ", ctx.node().name(), "}}");
  }
  ctx.set_output(0, value);
  return OkStatus();
}

Status RunMapInsert(OpContext& ctx) {
  const Tensor key = ctx.TakeInput(1), value = ctx.TakeInput(2);
  ASSIGN_OR_RETURN(TensorMap * map, MutableMap(ctx));
  map->entries[MapKey(key)] = {key, value};
  return OkStatus();
}

Status RunMapErase(OpContext& ctx) {
  ASSIGN_OR_RETURN(const TensorMap* before, MapOf(ctx.input(0)));
  const std::string key = MapKey(ctx.input(1));
  if (!before->entries.contains(key)) {
    return InvalidArgument("Trying to erase non-existent item. Could not find key \"",
                           SummarizeFirst(ctx.input(1), -1), "\".");
  }
  ASSIGN_OR_RETURN(TensorMap * map, MutableMap(ctx));
  map->entries.erase(key);
  return OkStatus();
}

// The order of the keys is unspecified, as in TensorFlow.
Status RunMapStackKeys(OpContext& ctx) {
  ASSIGN_OR_RETURN(const TensorMap* map, MapOf(ctx.input(0)));
  if (map->entries.empty()) {
    return InvalidArgument("TensorMapStackKeys cannot be called on empty map.");
  }
  const Shape& one = map->entries.begin()->second.key.shape();
  for (const auto& [text, entry] : map->entries) {
    if (entry.key.dtype() != ctx.output_type(0)) {
      return InvalidArgument("Key does not match requested dtype.");
    }
    if (!(entry.key.shape() == one)) {
      return InvalidArgument("Keys must all have the same shape.");
    }
  }
  Shape shape = one;
  shape.Insert(0, static_cast<int64_t>(map->entries.size()));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  int64_t row = 0;
  for (const auto& [text, entry] : map->entries) {
    const int64_t n = entry.key.num_elements();
    if (out->dtype() == Dtype::kString) {
      std::copy_n(entry.key.data<std::string>(), n, out->data<std::string>() + row * n);
    } else if (n > 0) {
      std::memcpy(static_cast<char*>(out->raw()) + static_cast<size_t>(row) * entry.key.bytes(),
                  entry.key.raw(), entry.key.bytes());
    }
    ++row;
  }
  return OkStatus();
}

// Handles and variants have no bytes to compare.
std::string DeclineObjectKeys(const Node& node) {
  const Dtype t = node.Type("key_dtype");
  return IsPod(t) || t == Dtype::kString ? "" : "wants keys of plain bytes or strings";
}

constexpr Kernel kTensorMapTable[] = {
    {"EmptyTensorMap", "", kAnyType, "map:empty", RunEmptyMap},
    {"TensorMapSize", "", kAnyType, "map:size", RunMapSize},
    {"TensorMapHasKey", "", kAnyType, "map:has_key", RunMapHasKey, nullptr, DeclineObjectKeys},
    {"TensorMapLookup", "", kAnyType, "map:lookup", RunMapLookup, nullptr, DeclineObjectKeys},
    {"TensorMapInsert", "", kAnyType, "map:insert", RunMapInsert, nullptr, DeclineObjectKeys},
    {"TensorMapErase", "", kAnyType, "map:erase", RunMapErase, nullptr, DeclineObjectKeys},
    {"TensorMapStackKeys", "", kAnyType, "map:stack_keys", RunMapStackKeys, nullptr,
     DeclineObjectKeys},
};

}  // namespace

extern constinit const std::span<const Kernel> kTensorMapKernels = kTensorMapTable;

}  // namespace smelt
