#include "smelt/cli/show/lite_facts.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/ascii.h"
#include "smelt/wire/tflite/flex.h"

namespace smelt {
namespace {

constexpr size_t kMostMetadataText = 256;

// 0: elements have no size of their own.
int64_t BitsOf(Dtype type) {
  switch (type) {
    case Dtype::kInt2:
      return 2;
    case Dtype::kInt4:
    case Dtype::kUint4:
      return 4;
    default:
      return static_cast<int64_t>(8 * DtypeSize(type));
  }
}

int64_t SizeOf(absl::string_view bytes) { return static_cast<int64_t>(bytes.size()); }

// Counts operators and their bytes.
class KindCounter {
 public:
  explicit KindCounter(const LiteModel& model) : model_(model), read_(model.buffers.size()) {}

  void Add(const LiteSubgraph& graph, const LiteOperator& op) {
    LiteKindFacts& kind = kinds_[{op.op, op.custom}];
    kind.op = op.op;
    kind.custom = op.custom;
    ++kind.count;
    kind.versions.insert(op.version);
    for (const int32_t input : op.inputs) {
      if (input < 0) continue;
      const uint32_t buffer = graph.tensors[static_cast<size_t>(input)].buffer;
      if (read_[buffer]) continue;
      read_[buffer] = true;
      kind.constant_bytes += SizeOf(model_.buffers[buffer].bytes);
    }
    for (const int32_t output : op.outputs) {
      const int64_t bytes = LiteValueBytes(graph.tensors[static_cast<size_t>(output)]);
      int64_t sum = 0;
      if (bytes >= 0 && !__builtin_add_overflow(kind.output_bytes, bytes, &sum)) {
        kind.output_bytes = sum;
      }
    }
  }

  bool read(size_t buffer) const { return read_[buffer]; }

  std::vector<LiteKindFacts> Sorted() const {
    std::vector<LiteKindFacts> out;
    for (const auto& [key, kind] : kinds_) out.push_back(kind);
    std::ranges::sort(out, [](const LiteKindFacts& a, const LiteKindFacts& b) {
      return std::tuple(-a.constant_bytes, -a.count, absl::string_view(a.op), a.custom) <
             std::tuple(-b.constant_bytes, -b.count, absl::string_view(b.op), b.custom);
    });
    return out;
  }

 private:
  const LiteModel& model_;
  std::vector<bool> read_;
  std::map<std::pair<std::string, bool>, LiteKindFacts> kinds_;
};

}  // namespace

int64_t LiteValueBytes(const LiteTensor& tensor) {
  const int64_t bits = BitsOf(tensor.type);
  if (bits == 0) return -1;
  int64_t all = bits;
  for (const int32_t size : tensor.shape) {
    if (__builtin_mul_overflow(all, int64_t{size}, &all)) return -1;
  }
  return all / 8 + (all % 8 != 0 ? 1 : 0);
}

LiteFileFacts LiteFactsOf(const LiteModel& model, const std::string& path, absl::string_view file) {
  LiteFileFacts facts;
  facts.path = path;
  facts.bytes = SizeOf(file);
  for (const LiteBuffer& b : model.buffers) {
    facts.buffer_offsets.push_back(b.bytes.empty() ? -1 : b.bytes.data() - file.data());
  }
  KindCounter kinds(model);
  for (const LiteSubgraph& graph : model.subgraphs) {
    for (const LiteOperator& op : graph.operators) kinds.Add(graph, op);
  }
  facts.kinds = kinds.Sorted();
  std::vector<bool> seen(model.buffers.size());
  for (size_t g = 0; g < model.subgraphs.size(); ++g) {
    const std::vector<LiteTensor>& tensors = model.subgraphs[g].tensors;
    for (size_t t = 0; t < tensors.size(); ++t) {
      const uint32_t buffer = tensors[t].buffer;
      const int64_t bytes = SizeOf(model.buffers[buffer].bytes);
      if (bytes == 0 || seen[buffer]) continue;
      seen[buffer] = true;
      ++facts.constant_buffers;
      facts.constant_bytes += bytes;
      if (!kinds.read(buffer)) facts.unread_bytes += bytes;
      facts.largest.push_back({g, t});
    }
  }
  const auto size_at = [&](const LitePlace& p) {
    return model.buffers[model.subgraphs[p.subgraph].tensors[p.tensor].buffer].bytes.size();
  };
  std::stable_sort(facts.largest.begin(), facts.largest.end(),
                   [&](const LitePlace& a, const LitePlace& b) { return size_at(a) > size_at(b); });
  if (facts.largest.size() > LiteFileFacts::kMostLargest) {
    facts.largest.resize(LiteFileFacts::kMostLargest);
  }
  for (const LiteMetadata& m : model.metadata) {
    facts.metadata_bytes += SizeOf(model.buffers[m.buffer].bytes);
  }
  return facts;
}

std::vector<std::pair<std::string, Attr>> LiteOptionsOf(const LiteOperator& op) {
  std::vector<std::pair<std::string, Attr>> out;
  if (op.custom) {
    auto stated = ReadFlexMap(op.custom_options);
    return stated.ok() ? *std::move(stated) : out;
  }
  for (const LiteOption& option : LiteOptions(op.op)) {
    const Attr* stated = op.options.Find(option.name);
    out.emplace_back(option.name, stated == nullptr ? option.default_value : *stated);
  }
  return out;
}

std::string LiteMetadataText(absl::string_view bytes) {
  if (bytes.size() > kMostMetadataText) return "";
  while (!bytes.empty() && bytes.back() == '\0') bytes.remove_suffix(1);
  const bool text = std::ranges::all_of(
      bytes, [](char c) { return absl::ascii_isprint(static_cast<unsigned char>(c)); });
  return text ? std::string(bytes) : "";
}

std::optional<LiteConversion> LiteConversionOf(const LiteModel& model, const LiteMetadata& m) {
  if (m.name != kConversionMetadata) return std::nullopt;
  auto out = ReadLiteConversion(model.buffers[m.buffer].bytes);
  if (!out.ok()) return std::nullopt;
  return *std::move(out);
}

}  // namespace smelt
