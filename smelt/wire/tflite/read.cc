#include <flatbuffers/verifier.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "smelt/wire/tflite/schema.h"
#include "smelt/wire/tflite/tflite.h"

namespace smelt {
namespace {

// Tables of a file may nest no deeper than the schema's own do, and are as many as their bytes
// allow: a table takes at least four, but may be shared.
constexpr flatbuffers::uoffset_t kMaxDepth = 32;

// What an operator takes here and as a node, about.
constexpr size_t kNodeBytes = 1024;

// What a tensor takes at most.
constexpr int64_t kMostBytes = int64_t{1} << 48;

// Zero points are numbers of the tensor's type, those of other types of 32 bits.
std::pair<int64_t, int64_t> NumbersOf(Dtype type) {
  switch (type) {
    case Dtype::kInt8:
      return {-128, 127};
    case Dtype::kUint8:
      return {0, 255};
    case Dtype::kInt16:
      return {-32768, 32767};
    default:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  }
}

class Reader {
 public:
  Reader(absl::string_view bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)), budget_(bytes.size()) {}

  StatusOr<LiteModel> Read() {
    ASSIGN_OR_RETURN(LiteModel out, ReadModel());
    RETURN_IF_ERROR(budget_.Check());
    return out;
  }

 private:
  template <typename T>
  std::vector<T> Copy(const flatbuffers::Vector<T>* v) {
    if (v == nullptr || v->size() == 0 || !budget_.Take(v->size() * sizeof(T))) return {};
    // Elements of 8 bytes may lie at any multiple of 4.
    std::vector<T> out(v->size());
    std::memcpy(out.data(), v->Data(), out.size() * sizeof(T));
    return out;
  }
  std::string Text(const flatbuffers::String* s) {
    return s == nullptr || !budget_.Take(s->size()) ? "" : s->str();
  }

  StatusOr<LiteModel> ReadModel() {
    const auto* data = reinterpret_cast<const uint8_t*>(bytes_.data());
    if (!IsTflite(bytes_)) {
      return InvalidArgument("this is no TensorFlow Lite model: it has no identifier TFL3");
    }
    // Behind the flatbuffer the file may go on with buffers.
    const size_t size = std::min(bytes_.size(), size_t{FLATBUFFERS_MAX_BUFFER_SIZE} - 1);
    flatbuffers::Verifier verifier(
        data, size, kMaxDepth, static_cast<flatbuffers::uoffset_t>(std::max(size / 4, size_t{64})));
    if (!tflite::VerifyModelBuffer(verifier)) {
      return InvalidArgument("the TensorFlow Lite model is truncated or corrupt");
    }
    const tflite::Model& model = *tflite::GetModel(data);
    LiteModel out;
    out.version = model.version();
    if (out.version != kTfliteVersion) {
      return InvalidArgument("the TensorFlow Lite model has schema version ", out.version, ", not ",
                             kTfliteVersion);
    }
    out.description = Text(model.description());
    RETURN_IF_ERROR(ReadBuffers(model, out));
    if (model.operator_codes() != nullptr) {
      for (const tflite::OperatorCode* code : *model.operator_codes()) {
        RETURN_IF_ERROR(ReadCode(*code));
      }
    }
    if (model.subgraphs() == nullptr || model.subgraphs()->size() == 0) {
      return InvalidArgument("the TensorFlow Lite model has no subgraph");
    }
    for (const tflite::SubGraph* graph : *model.subgraphs()) {
      auto read = ReadSubgraph(*graph, out);
      if (!read.ok()) {
        return Prefix(read.status(), absl::StrCat("subgraph ", out.subgraphs.size(), ": "));
      }
      RETURN_IF_ERROR(budget_.Check());
      out.subgraphs.push_back(*std::move(read));
    }
    RETURN_IF_ERROR(ReadMetadata(model, out));
    RETURN_IF_ERROR(ReadSignatures(model, out));
    return out;
  }

  struct Code {
    std::string op;
    bool custom;
    int builtin;
    int32_t version;
  };

  Status ReadBuffers(const tflite::Model& model, LiteModel& out) {
    if (model.buffers() == nullptr) {
      out.buffers.push_back({});
      return OkStatus();
    }
    for (const tflite::Buffer* buffer : *model.buffers()) {
      LiteBuffer& b = out.buffers.emplace_back();
      b.owner = owner_;
      // 0 and 1 are what writers leave where the bytes are inside.
      if (buffer->offset() > 1) {
        if (buffer->offset() > bytes_.size() || buffer->size() > bytes_.size() - buffer->offset()) {
          return InvalidArgument("buffer ", out.buffers.size() - 1, " of ", buffer->size(),
                                 " bytes at ", buffer->offset(),
                                 " reaches beyond the end of the file");
        }
        b.bytes = bytes_.substr(buffer->offset(), buffer->size());
      } else if (buffer->data() != nullptr) {
        b.bytes = {reinterpret_cast<const char*>(buffer->data()->data()), buffer->data()->size()};
      }
    }
    if (!out.buffers.empty() && out.buffers[0].bytes.empty()) return OkStatus();
    return InvalidArgument("buffer 0 of the TensorFlow Lite model is not empty");
  }

  Status ReadCode(const tflite::OperatorCode& code) {
    // Old files have the number in a byte, which says 127 where it does not fit.
    const int builtin = std::max<int>(code.deprecated_builtin_code(), code.builtin_code());
    if (code.version() < 1) {
      return InvalidArgument("operator code ", codes_.size(), " has version ", code.version());
    }
    if (builtin == tflite::BuiltinOperator_CUSTOM) {
      if (code.custom_code() == nullptr || code.custom_code()->size() == 0) {
        return InvalidArgument("operator code ", codes_.size(), " is a custom op without a name");
      }
      codes_.push_back({Text(code.custom_code()), true, builtin, code.version()});
      return budget_.Check();
    }
    const std::string name =
        tflite::EnumNameBuiltinOperator(static_cast<tflite::BuiltinOperator>(builtin));
    if (LiteBuiltin(name) < 0) {
      return Unimplemented("operator code ", codes_.size(), " is builtin ", builtin,
                           ", which this program does not know");
    }
    codes_.push_back({name, false, builtin, code.version()});
    return OkStatus();
  }

  StatusOr<LiteSubgraph> ReadSubgraph(const tflite::SubGraph& graph, const LiteModel& model) {
    LiteSubgraph out;
    out.name = Text(graph.name());
    if (graph.tensors() != nullptr) {
      for (const tflite::Tensor* tensor : *graph.tensors()) {
        if (!budget_.Take(sizeof(LiteTensor))) return budget_.Check();
        auto read = ReadTensor(*tensor, model);
        if (!read.ok()) {
          return Prefix(read.status(), absl::StrCat("tensor ", out.tensors.size(), " '",
                                                    Text(tensor->name()), "': "));
        }
        out.tensors.push_back(*std::move(read));
      }
    }
    out.inputs = Copy(graph.inputs());
    out.outputs = Copy(graph.outputs());
    RETURN_IF_ERROR(CheckTensors(out.inputs, out, false, "input"));
    RETURN_IF_ERROR(CheckTensors(out.outputs, out, false, "output"));
    if (graph.operators() == nullptr) return out;
    for (const tflite::Operator* op : *graph.operators()) {
      const size_t i = out.operators.size();
      if (op->opcode_index() >= codes_.size()) {
        return InvalidArgument("operator ", i, " has operator code ", op->opcode_index(), " of ",
                               codes_.size());
      }
      const Code& code = codes_[op->opcode_index()];
      if (!budget_.Take(kNodeBytes + code.op.size())) return budget_.Check();
      auto read = ReadOperator(*op, code, out);
      if (!read.ok()) {
        return Prefix(read.status(), absl::StrCat("operator ", i, " (", code.op, "): "));
      }
      out.operators.push_back(*std::move(read));
    }
    return out;
  }

  static Status CheckTensors(const std::vector<int32_t>& indices, const LiteSubgraph& graph,
                             bool may_be_left_out, absl::string_view what) {
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == -1 && may_be_left_out) continue;
      if (indices[i] < 0 || static_cast<size_t>(indices[i]) >= graph.tensors.size()) {
        return InvalidArgument(what, " ", i, " is tensor ", indices[i], " of ",
                               graph.tensors.size());
      }
    }
    return OkStatus();
  }

  StatusOr<LiteTensor> ReadTensor(const tflite::Tensor& tensor, const LiteModel& model) {
    LiteTensor out;
    out.name = Text(tensor.name());
    const std::optional<Dtype> type = DtypeOfLite(static_cast<int8_t>(tensor.type()));
    if (!type) return InvalidArgument("it has the unknown type ", static_cast<int>(tensor.type()));
    out.type = *type;
    out.shape = Copy(tensor.shape());
    out.shape_signature = Copy(tensor.shape_signature());
    out.has_rank = tensor.has_rank();
    for (const int32_t size : out.shape) {
      if (size < 0) return InvalidArgument("its shape has the size ", size);
    }
    const std::vector<int64_t> sizes(out.shape.begin(), out.shape.end());
    const auto shape = Shape::Make(sizes);
    if (!shape.ok()) return Prefix(shape.status(), "its shape: ");
    const auto width = static_cast<int64_t>(std::max(DtypeSize(out.type), size_t{1}));
    if (shape->num_elements() > kMostBytes / width) {
      return InvalidArgument("its shape ", shape->ToString(),
                             " is one of more bytes than there are");
    }
    for (const int32_t size : out.shape_signature) {
      if (size < -1) return InvalidArgument("its shape signature has the size ", size);
    }
    if (!out.shape_signature.empty() && out.shape_signature.size() != out.shape.size()) {
      return InvalidArgument("its shape has ", out.shape.size(), " dimensions and its signature ",
                             out.shape_signature.size());
    }
    if (tensor.external_buffer() != 0) {
      return Unimplemented("its values lie in another file");
    }
    out.buffer = tensor.buffer();
    if (out.buffer >= model.buffers.size()) {
      return InvalidArgument("it has buffer ", out.buffer, " of ", model.buffers.size());
    }
    out.is_variable = tensor.is_variable();
    if (tensor.quantization() != nullptr) {
      RETURN_IF_ERROR(ReadQuantization(*tensor.quantization(), out));
    }
    if (tensor.sparsity() != nullptr) RETURN_IF_ERROR(ReadSparsity(*tensor.sparsity(), out));
    return out;
  }

  Status ReadQuantization(const tflite::QuantizationParameters& q, LiteTensor& tensor) {
    LiteQuantization& out = tensor.quantization;
    out.min = Copy(q.min());
    out.max = Copy(q.max());
    out.scale = Copy(q.scale());
    out.zero_point = Copy(q.zero_point());
    out.dimension = q.quantized_dimension();
    if (const auto* block = q.details_as_BlockwiseQuantization()) {
      out.blockwise = {block->scales(), block->zero_points(), block->block_size()};
      if (block->block_size() <= 0) {
        return InvalidArgument("it is quantized in blocks of ", block->block_size());
      }
    }
    if (const auto* custom = q.details_as_CustomQuantization(); custom && custom->custom()) {
      const std::vector<uint8_t> bytes = Copy(custom->custom());
      out.custom.assign(bytes.begin(), bytes.end());
    }
    const size_t n = out.scale.size();
    if (n == 0) return OkStatus();
    if (out.zero_point.size() != n && !out.zero_point.empty()) {
      return InvalidArgument("it has ", n, " scales and ", out.zero_point.size(), " zero points");
    }
    for (const float scale : out.scale) {
      // Old files have 0 where all numbers are.
      if (!(scale >= 0) || !std::isfinite(scale))
        return InvalidArgument("it has the scale ", scale);
    }
    for (const int64_t zero : out.zero_point) {
      const auto [least, most] = NumbersOf(tensor.type);
      if (zero >= least && zero <= most) continue;
      return InvalidArgument("its zero point ", zero, " is no ", DtypeName(tensor.type));
    }
    if (n == 1) return OkStatus();
    if (out.dimension < 0 || static_cast<size_t>(out.dimension) >= tensor.shape.size() ||
        static_cast<size_t>(tensor.shape[static_cast<size_t>(out.dimension)]) != n) {
      return InvalidArgument("its ", n, " scales do not fit dimension ", out.dimension);
    }
    return OkStatus();
  }

  std::vector<int32_t> Indices(tflite::SparseIndexVector kind, const void* vector) {
    // The verifier lets a union name a kind and hold nothing.
    if (vector == nullptr) return {};
    switch (kind) {
      case tflite::SparseIndexVector_Int32Vector:
        return Copy(static_cast<const tflite::Int32Vector*>(vector)->values());
      case tflite::SparseIndexVector_Uint16Vector: {
        const auto v = Copy(static_cast<const tflite::Uint16Vector*>(vector)->values());
        return {v.begin(), v.end()};
      }
      case tflite::SparseIndexVector_Uint8Vector: {
        const auto v = Copy(static_cast<const tflite::Uint8Vector*>(vector)->values());
        return {v.begin(), v.end()};
      }
      default:
        return {};
    }
  }

  Status ReadSparsity(const tflite::SparsityParameters& s, LiteTensor& tensor) {
    auto out = std::make_shared<LiteSparsity>();
    out->traversal_order = Copy(s.traversal_order());
    out->block_map = Copy(s.block_map());
    if (DtypeSize(tensor.type) == 0 || tensor.type == Dtype::kString ||
        tensor.type == Dtype::kInt4 || tensor.type == Dtype::kUint4 ||
        tensor.type == Dtype::kInt2) {
      return Unimplemented("a sparse tensor of ", DtypeName(tensor.type));
    }
    // A block for each dimension at most: LiteConstant goes as deep as there are.
    if (out->block_map.size() > tensor.shape.size() ||
        out->traversal_order.size() != tensor.shape.size() + out->block_map.size()) {
      return InvalidArgument("its sparsity has ", out->traversal_order.size(), " dimensions and ",
                             out->block_map.size(), " blocks for a shape of ", tensor.shape.size());
    }
    if (s.dim_metadata() != nullptr) {
      for (const tflite::DimensionMetadata* d : *s.dim_metadata()) {
        LiteSparseDimension& to = out->dimensions.emplace_back();
        to.compressed = d->format() == tflite::DimensionType_SPARSE_CSR;
        to.dense_size = d->dense_size();
        to.segments = Indices(d->array_segments_type(), d->array_segments());
        to.indices = Indices(d->array_indices_type(), d->array_indices());
      }
    }
    tensor.sparsity = std::move(out);
    return OkStatus();
  }

  StatusOr<LiteOperator> ReadOperator(const tflite::Operator& op, const Code& code,
                                      const LiteSubgraph& graph) {
    LiteOperator out;
    out.op = code.op;
    out.custom = code.custom;
    out.version = code.version;
    out.inputs = Copy(op.inputs());
    out.outputs = Copy(op.outputs());
    out.intermediates = Copy(op.intermediates());
    RETURN_IF_ERROR(CheckTensors(out.inputs, graph, true, "input"));
    RETURN_IF_ERROR(CheckTensors(out.outputs, graph, false, "output"));
    RETURN_IF_ERROR(CheckTensors(out.intermediates, graph, true, "intermediate"));
    if (op.mutating_variable_inputs() != nullptr &&
        budget_.Take(op.mutating_variable_inputs()->size())) {
      for (const uint8_t m : *op.mutating_variable_inputs()) {
        out.mutating_variable_inputs.push_back(m != 0);
      }
    }
    if (op.custom_options() != nullptr) {
      const std::vector<uint8_t> bytes = Copy(op.custom_options());
      out.custom_options.assign(bytes.begin(), bytes.end());
    }
    if (op.large_custom_options_offset() > 1) {
      const uint64_t at = op.large_custom_options_offset();
      const uint64_t size = op.large_custom_options_size();
      if (at > bytes_.size() || size > bytes_.size() - at) {
        return InvalidArgument("its custom options reach beyond the end of the file");
      }
      if (budget_.Take(size)) out.custom_options = std::string(bytes_.substr(at, size));
    }
    if (code.custom) return out;
    const OptionsTable kind = OptionsOf(code.builtin);
    const bool first = op.builtin_options_type() != tflite::BuiltinOptions_NONE;
    const bool second = op.builtin_options_2_type() != tflite::BuiltinOptions2_NONE;
    // Writers leave the options of another op, or none, where an op needs none.
    const void* table = nullptr;
    if (first && kind.first == op.builtin_options_type()) table = op.builtin_options();
    if (second && kind.second == op.builtin_options_2_type()) table = op.builtin_options_2();
    if (table == nullptr) {
      const bool other = (first && kind.first != op.builtin_options_type()) ||
                         (second && kind.second != op.builtin_options_2_type());
      if (other && kind.table != nullptr && kind.table->fields()->size() > 0) {
        return InvalidArgument("its options are those of another operator");
      }
      return out;
    }
    ASSIGN_OR_RETURN(out.options, ReadOptions(*static_cast<const flatbuffers::Table*>(table),
                                              *kind.table, budget_));
    return out;
  }

  Status ReadMetadata(const tflite::Model& model, LiteModel& out) {
    if (model.metadata() == nullptr) return OkStatus();
    for (const tflite::Metadata* m : *model.metadata()) {
      if (m->buffer() >= out.buffers.size()) {
        return InvalidArgument("metadata '", Text(m->name()), "' has buffer ", m->buffer(), " of ",
                               out.buffers.size());
      }
      out.metadata.push_back({Text(m->name()), m->buffer()});
    }
    return OkStatus();
  }

  Status ReadSignatures(const tflite::Model& model, LiteModel& out) {
    if (model.signature_defs() == nullptr) return OkStatus();
    for (const tflite::SignatureDef* s : *model.signature_defs()) {
      LiteSignature signature;
      signature.key = Text(s->signature_key());
      signature.subgraph = s->subgraph_index();
      if (signature.subgraph >= out.subgraphs.size()) {
        return InvalidArgument("signature '", signature.key, "' is subgraph ", signature.subgraph,
                               " of ", out.subgraphs.size());
      }
      const LiteSubgraph& graph = out.subgraphs[signature.subgraph];
      const auto read = [&](const auto* maps, auto& to) -> Status {
        if (maps == nullptr) return OkStatus();
        for (const tflite::TensorMap* m : *maps) {
          if (m->tensor_index() >= graph.tensors.size()) {
            return InvalidArgument("'", Text(m->name()), "' of signature '", signature.key,
                                   "' is tensor ", m->tensor_index(), " of ", graph.tensors.size());
          }
          to.emplace_back(Text(m->name()), static_cast<int32_t>(m->tensor_index()));
        }
        return OkStatus();
      };
      RETURN_IF_ERROR(read(s->inputs(), signature.inputs));
      RETURN_IF_ERROR(read(s->outputs(), signature.outputs));
      out.signatures.push_back(std::move(signature));
    }
    return OkStatus();
  }

  const absl::string_view bytes_;
  const std::shared_ptr<const void> owner_;
  CopyBudget budget_;
  std::vector<Code> codes_;
};

}  // namespace

StatusOr<LiteModel> ReadTflite(absl::string_view bytes, std::shared_ptr<const void> owner) {
  return Reader(bytes, std::move(owner)).Read();
}

}  // namespace smelt
