#include <algorithm>
#include <map>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "smelt/base/sampled_hash.h"
#include "smelt/wire/tflite/schema.h"
#include "smelt/wire/tflite/tflite.h"

namespace smelt {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
template <typename T>
using Vector = Offset<flatbuffers::Vector<T>>;

// What files whose buffers lie behind the flatbuffer say of it.
constexpr char kBufferLocation[] = "buffer_location";
constexpr absl::string_view kOutside = "outside flatbuffers";
// Where a reader maps a file, numbers lie as they do in memory.
constexpr size_t kBufferAlignment = 16;
// Room for the tables of most models.
constexpr size_t kTables = 1 << 20;
// Larger buffers are not copied into the flatbuffer before they are written.
constexpr size_t kLeastLeft = 64 << 10;
// A flatbuffer of 2 GiB is none.
constexpr uint64_t kMostTables = (uint64_t{1} << 31) - (uint64_t{16} << 20);

class Writer {
 public:
  Writer(const LiteModel& model, bool outside, uint64_t most_inside)
      : model_(model), outside_(outside), most_inside_(most_inside) {}

  Status Write(absl::FunctionRef<Status(absl::string_view)> write) {
    ShareBuffers();
    uint64_t bytes = 0;
    for (const size_t k : kept_) bytes += model_.buffers[k].bytes.size() + kBufferAlignment;
    for (const LiteSubgraph& graph : model_.subgraphs) {
      for (const LiteOperator& op : graph.operators) bytes += op.custom_options.size();
    }
    outside_ = outside_ || bytes > most_inside_;
    if (outside_) {
      bytes = 0;
      for (const size_t k : kept_) bytes += inside_[k] ? model_.buffers[k].bytes.size() : 0;
    }
    if (bytes > kMostTables) {
      return InvalidArgument("the metadata of a .tflite file are less than 2 GiB, and these are ",
                             bytes, " bytes");
    }
    // All at once: as the builder grows it copies what it has.
    b_ = FlatBufferBuilder(bytes + kTables);
    // The offsets of what lies behind the flatbuffer are not known before its size is: numbers of
    // fixed width stand for them, so that the second turn has the size of the first.
    RETURN_IF_ERROR(Build());
    if (outside_) {
      uint64_t at = Aligned(b_.GetSize());
      for (Piece& piece : pieces_) {
        piece.offset = at;
        at = Aligned(at + piece.bytes.size());
      }
      b_.Clear();
      RETURN_IF_ERROR(Build());
    }
    RETURN_IF_ERROR(WriteFlatbuffer(write));
    uint64_t at = b_.GetSize();
    for (const Piece& piece : pieces_) {
      RETURN_IF_ERROR(write(std::string(piece.offset - at, '\0')));
      RETURN_IF_ERROR(write(piece.bytes));
      at = piece.offset + piece.bytes.size();
    }
    return OkStatus();
  }

 private:
  // Bytes behind the flatbuffer.
  struct Piece {
    absl::string_view bytes;
    uint64_t offset;
  };

  // Bytes that have their place in the flatbuffer, where nothing is written: they go from where
  // they lie into the file.
  struct Left {
    absl::string_view bytes;
    uint64_t from_end;  // of the flatbuffer
  };

  Status WriteFlatbuffer(absl::FunctionRef<Status(absl::string_view)> write) const {
    const absl::string_view all(reinterpret_cast<const char*>(b_.GetBufferPointer()), b_.GetSize());
    uint64_t at = 0;
    // It grows from its end.
    for (auto left = left_.rbegin(); left != left_.rend(); ++left) {
      const uint64_t begin = all.size() - left->from_end;
      RETURN_IF_ERROR(write(all.substr(at, begin - at)));
      RETURN_IF_ERROR(write(left->bytes));
      at = begin + left->bytes.size();
    }
    return write(all.substr(at));
  }

  static uint64_t Aligned(uint64_t at) {
    return (at + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  }

  // Where the bytes lie behind the flatbuffer. Both turns of Build ask for the same ones in the
  // same order. Readers take 0 and 1 for bytes that lie inside.
  uint64_t OffsetOf(absl::string_view bytes) {
    if (next_piece_ == pieces_.size()) pieces_.push_back({bytes, 2});
    return pieces_[next_piece_++].offset;
  }

  // Buffers of equal bytes become one. Empty ones stay apart from buffer 0: a metadata buffer that
  // is filled in later has its own.
  void ShareBuffers() {
    ByBytes<std::optional<uint32_t>> places;
    for (size_t i = 0; i < model_.buffers.size(); ++i) {
      const auto next = static_cast<uint32_t>(kept_.size());
      const absl::string_view bytes = model_.buffers[i].bytes;
      if (bytes.empty()) {
        place_.push_back(i == 0 ? 0 : next);
        kept_.push_back(i);
        continue;
      }
      std::optional<uint32_t>& place = places[bytes];
      if (!place) {
        place = next;
        kept_.push_back(i);
      }
      place_.push_back(*place);
    }
    // Readers look for metadata in the flatbuffer alone.
    inside_.assign(model_.buffers.size(), false);
    for (const LiteMetadata& m : model_.metadata) inside_[kept_[place_[m.buffer]]] = true;
  }

  Status Build() {
    codes_.clear();
    left_.clear();
    vectors_.clear();
    next_piece_ = 0;
    std::vector<Offset<tflite::SubGraph>> subgraphs;
    for (const LiteSubgraph& graph : model_.subgraphs) {
      auto written = WriteSubgraph(graph);
      if (!written.ok()) {
        return Prefix(written.status(), absl::StrCat("subgraph '", graph.name, "': "));
      }
      subgraphs.push_back(*written);
    }
    std::vector<Offset<tflite::Buffer>> buffers;
    for (const size_t k : kept_) buffers.push_back(WriteBuffer(k));
    const bool told = std::ranges::find(model_.metadata, kBufferLocation, &LiteMetadata::name) !=
                      model_.metadata.end();
    const auto location = static_cast<uint32_t>(buffers.size());
    if (outside_ && !told) buffers.push_back(WriteInside(kOutside));
    std::vector<Offset<tflite::Metadata>> metadata;
    for (const LiteMetadata& m : model_.metadata) {
      if (!outside_ && m.name == kBufferLocation) continue;
      metadata.push_back(tflite::CreateMetadata(b_, b_.CreateString(m.name), place_[m.buffer]));
    }
    if (outside_ && !told) {
      metadata.push_back(tflite::CreateMetadata(b_, b_.CreateString(kBufferLocation), location));
    }
    std::vector<Offset<tflite::SignatureDef>> signatures;
    for (const LiteSignature& s : model_.signatures) {
      const auto maps = [&](const auto& from) {
        std::vector<Offset<tflite::TensorMap>> to;
        for (const auto& [name, tensor] : from) {
          to.push_back(
              tflite::CreateTensorMap(b_, b_.CreateString(name), static_cast<uint32_t>(tensor)));
        }
        return b_.CreateVector(to);
      };
      const auto inputs = maps(s.inputs);
      const auto outputs = maps(s.outputs);
      signatures.push_back(
          tflite::CreateSignatureDef(b_, inputs, outputs, b_.CreateString(s.key), s.subgraph));
    }
    const auto codes = b_.CreateVector(WriteCodes());
    const auto all_subgraphs = b_.CreateVector(subgraphs);
    const auto description = b_.CreateString(model_.description);
    const auto all_buffers = b_.CreateVector(buffers);
    const auto all_metadata = b_.CreateVector(metadata);
    const auto all_signatures = b_.CreateVector(signatures);
    tflite::FinishModelBuffer(
        b_, tflite::CreateModel(b_, model_.version, codes, all_subgraphs, description, all_buffers,
                                0, all_metadata, all_signatures));
    return OkStatus();
  }

  Offset<tflite::Buffer> WriteBuffer(size_t k) {
    const absl::string_view bytes = model_.buffers[k].bytes;
    Align();
    if (bytes.empty()) return tflite::CreateBuffer(b_);
    if (!outside_ || inside_[k]) return WriteInside(bytes);
    return tflite::CreateBuffer(b_, 0, OffsetOf(bytes), bytes.size());
  }

  Offset<tflite::Buffer> WriteInside(absl::string_view bytes) {
    b_.ForceVectorAlignment(bytes.size(), 1, kBufferAlignment);
    if (bytes.size() < kLeastLeft) {
      return tflite::CreateBuffer(
          b_, b_.CreateVector(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
    }
    uint8_t* place = nullptr;
    const Vector<uint8_t> data = b_.CreateUninitializedVector(bytes.size(), &place);
    left_.push_back({bytes, b_.GetSize() - sizeof(flatbuffers::uoffset_t)});
    return tflite::CreateBuffer(b_, data);
  }

  // Tables of equal fields have one layout, which a file states once, where they begin alike.
  void Align() { b_.Align(sizeof(flatbuffers::uoffset_t)); }

  std::vector<Offset<tflite::OperatorCode>> WriteCodes() {
    std::vector<Offset<tflite::OperatorCode>> out(codes_.size());
    for (const auto& [code, place] : codes_) {
      const auto& [op, custom, version] = code;
      const int builtin = custom ? tflite::BuiltinOperator_CUSTOM : LiteBuiltin(op);
      const int in_byte =
          std::min<int>(builtin, tflite::BuiltinOperator_PLACEHOLDER_FOR_GREATER_OP_CODES);
      const auto name = custom ? b_.CreateString(op) : Offset<flatbuffers::String>();
      Align();
      out[place] = tflite::CreateOperatorCode(b_, static_cast<int8_t>(in_byte), name, version,
                                              static_cast<tflite::BuiltinOperator>(builtin));
    }
    return out;
  }

  StatusOr<Offset<tflite::SubGraph>> WriteSubgraph(const LiteSubgraph& graph) {
    std::vector<Offset<tflite::Tensor>> tensors;
    for (const LiteTensor& tensor : graph.tensors) {
      auto written = WriteTensor(tensor);
      if (!written.ok()) {
        return Prefix(written.status(), absl::StrCat("tensor '", tensor.name, "': "));
      }
      tensors.push_back(*written);
    }
    std::vector<Offset<tflite::Operator>> operators;
    for (const LiteOperator& op : graph.operators) {
      auto written = WriteOperator(op);
      if (!written.ok()) {
        return Prefix(written.status(),
                      absl::StrCat("operator ", operators.size(), " (", op.op, "): "));
      }
      operators.push_back(*written);
    }
    const auto all_tensors = b_.CreateVector(tensors);
    const auto inputs = b_.CreateVector(graph.inputs);
    const auto outputs = b_.CreateVector(graph.outputs);
    const auto all_operators = b_.CreateVector(operators);
    return tflite::CreateSubGraph(b_, all_tensors, inputs, outputs, all_operators,
                                  b_.CreateString(graph.name));
  }

  template <typename T>
  Vector<T> Maybe(const std::vector<T>& v) {
    return v.empty() ? Vector<T>() : b_.CreateVector(v);
  }

  // Many tensors have one shape, and channels whose zero points are all 0: a file states equal
  // vectors once.
  template <typename T>
  Vector<T> Shared(const std::vector<T>& v) {
    std::string bytes(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T));
    const auto [known, added] = vectors_.try_emplace({sizeof(T), std::move(bytes)});
    if (added) known->second = b_.CreateVector(v).o;
    return {known->second};
  }
  template <typename T>
  Vector<T> SharedOrNone(const std::vector<T>& v) {
    return v.empty() ? Vector<T>() : Shared(v);
  }

  StatusOr<Offset<tflite::Tensor>> WriteTensor(const LiteTensor& tensor) {
    const std::optional<int8_t> type = LiteTypeOf(tensor.type);
    if (!type) return Unimplemented("a .tflite file has no type ", DtypeName(tensor.type));
    const LiteQuantization& q = tensor.quantization;
    Offset<tflite::QuantizationParameters> quantization;
    if (!q.empty()) {
      const auto min = Maybe(q.min), max = Maybe(q.max);
      // Those of channels stay apart: a reader's copies are bounded by the bytes that stand for
      // them.
      const auto scale = q.scale.size() == 1 ? Shared(q.scale) : Maybe(q.scale);
      const auto zero_point = SharedOrNone(q.zero_point);
      auto kind = tflite::QuantizationDetails_NONE;
      Offset<void> details;
      if (q.blockwise) {
        kind = tflite::QuantizationDetails_BlockwiseQuantization;
        details = tflite::CreateBlockwiseQuantization(
                      b_, q.blockwise->scales, q.blockwise->zero_points, q.blockwise->block_size)
                      .Union();
      } else if (!q.custom.empty()) {
        kind = tflite::QuantizationDetails_CustomQuantization;
        b_.ForceVectorAlignment(q.custom.size(), 1, kBufferAlignment);
        const auto custom =
            b_.CreateVector(reinterpret_cast<const uint8_t*>(q.custom.data()), q.custom.size());
        details = tflite::CreateCustomQuantization(b_, custom).Union();
      }
      Align();
      quantization = tflite::CreateQuantizationParameters(b_, min, max, scale, zero_point, kind,
                                                          details, q.dimension);
    }
    const auto shape = Shared(tensor.shape);
    const auto name = b_.CreateString(tensor.name);
    const auto signature = SharedOrNone(tensor.shape_signature);
    const auto sparsity = tensor.sparsity == nullptr ? Offset<tflite::SparsityParameters>()
                                                     : WriteSparsity(*tensor.sparsity);
    Align();
    tflite::TensorBuilder table(b_);
    table.add_shape_signature(signature);
    table.add_sparsity(sparsity);
    table.add_quantization(quantization);
    table.add_name(name);
    table.add_buffer(place_[tensor.buffer]);
    table.add_shape(shape);
    table.add_has_rank(tensor.has_rank);
    table.add_is_variable(tensor.is_variable);
    // Stated though it be the default: tensors of all types share a layout.
    b_.AddElement<int8_t>(tflite::Tensor::VT_TYPE, *type, -1);
    return table.Finish();
  }

  // As narrow as they are.
  std::pair<tflite::SparseIndexVector, Offset<void>> WriteIndices(const std::vector<int32_t>& v) {
    const int32_t most = v.empty() ? 0 : std::ranges::max(v);
    if (most <= UINT8_MAX) {
      const auto values = b_.CreateVector(std::vector<uint8_t>(v.begin(), v.end()));
      return {tflite::SparseIndexVector_Uint8Vector, tflite::CreateUint8Vector(b_, values).Union()};
    }
    if (most <= UINT16_MAX) {
      const auto values = b_.CreateVector(std::vector<uint16_t>(v.begin(), v.end()));
      return {tflite::SparseIndexVector_Uint16Vector,
              tflite::CreateUint16Vector(b_, values).Union()};
    }
    return {tflite::SparseIndexVector_Int32Vector,
            tflite::CreateInt32Vector(b_, b_.CreateVector(v)).Union()};
  }

  Offset<tflite::SparsityParameters> WriteSparsity(const LiteSparsity& s) {
    std::vector<Offset<tflite::DimensionMetadata>> dimensions;
    for (const LiteSparseDimension& d : s.dimensions) {
      if (!d.compressed) {
        dimensions.push_back(
            tflite::CreateDimensionMetadata(b_, tflite::DimensionType_DENSE, d.dense_size));
        continue;
      }
      const auto segments = WriteIndices(d.segments);
      const auto indices = WriteIndices(d.indices);
      dimensions.push_back(tflite::CreateDimensionMetadata(
          b_, tflite::DimensionType_SPARSE_CSR, d.dense_size, segments.first, segments.second,
          indices.first, indices.second));
    }
    const auto order = b_.CreateVector(s.traversal_order);
    const auto blocks = b_.CreateVector(s.block_map);
    return tflite::CreateSparsityParameters(b_, order, blocks, b_.CreateVector(dimensions));
  }

  StatusOr<Offset<tflite::Operator>> WriteOperator(const LiteOperator& op) {
    const int builtin = op.custom ? -1 : LiteBuiltin(op.op);
    if (!op.custom && builtin < 0) return InvalidArgument("there is no such builtin operator");
    const auto code =
        codes_.try_emplace({op.op, op.custom, op.version}, static_cast<uint32_t>(codes_.size()))
            .first->second;
    const OptionsTable kind = op.custom ? OptionsTable() : OptionsOf(builtin);
    if (kind.table == nullptr && !op.options.empty()) {
      return InvalidArgument("it has no options");
    }
    Offset<void> first, second;
    if (kind.table != nullptr) {
      ASSIGN_OR_RETURN(const Offset<void> options, WriteOptions(op.options, *kind.table, b_));
      (kind.first != 0 ? first : second) = options;
    }
    const auto inputs = b_.CreateVector(op.inputs);
    const auto outputs = b_.CreateVector(op.outputs);
    const auto intermediates = Maybe(op.intermediates);
    const std::vector<uint8_t> mutating(op.mutating_variable_inputs.begin(),
                                        op.mutating_variable_inputs.end());
    const auto all_mutating = Maybe(mutating);
    Vector<uint8_t> custom;
    uint64_t large_offset = 0, large_size = 0;
    if (outside_ && !op.custom_options.empty()) {
      large_offset = OffsetOf(op.custom_options);
      large_size = op.custom_options.size();
    } else if (op.custom) {
      custom = b_.CreateVector(reinterpret_cast<const uint8_t*>(op.custom_options.data()),
                               op.custom_options.size());
    }
    Align();
    return tflite::CreateOperator(
        b_, code, inputs, outputs, static_cast<tflite::BuiltinOptions>(kind.first), first, custom,
        tflite::CustomOptionsFormat_FLEXBUFFERS, all_mutating, intermediates, large_offset,
        large_size, static_cast<tflite::BuiltinOptions2>(kind.second), second);
  }

  const LiteModel& model_;
  bool outside_;
  const uint64_t most_inside_;
  FlatBufferBuilder b_;
  std::vector<uint32_t> place_;  // of each buffer, in the file
  std::vector<size_t> kept_;     // the buffers that the file has
  std::vector<bool> inside_;     // by buffer: it lies in the flatbuffer, come what may
  std::vector<Piece> pieces_;
  std::vector<Left> left_;  // in the order of building
  size_t next_piece_ = 0;
  // By the size of an element and the bytes: where the vector begins, from the end.
  absl::flat_hash_map<std::pair<size_t, std::string>, flatbuffers::uoffset_t> vectors_;
  // (op, custom, version) in the order of their first use.
  std::map<std::tuple<std::string, bool, int32_t>, uint32_t> codes_;
};

}  // namespace

Status WriteTflite(const LiteModel& model, bool buffers_outside,
                   absl::FunctionRef<Status(absl::string_view bytes)> write, uint64_t most_inside) {
  return Writer(model, buffers_outside, most_inside).Write(write);
}

}  // namespace smelt
