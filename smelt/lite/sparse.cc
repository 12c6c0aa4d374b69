#include "smelt/lite/sparse.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>

namespace smelt {
namespace {

// TensorFlow's: fewer zeros are not worth it, and blocks must leave out most of them.
constexpr double kLeastZeros = 0.3;
constexpr double kMostOfZeros = 0.9, kMostOfZerosInt8 = 0.8;

constexpr absl::string_view kSparseOps[] = {"CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV",
                                            "FULLY_CONNECTED"};
constexpr size_t kWeights = 1;

bool IsZero(const char* bytes, Dtype type, size_t width) {
  // Minus zero, too.
  if (type == Dtype::kFloat) {
    float v;
    std::memcpy(&v, bytes, sizeof v);
    return v == 0;
  }
  if (type == Dtype::kHalf) return bytes[0] == 0 && (bytes[1] & 0x7f) == 0;
  return std::all_of(bytes, bytes + width, [](char c) { return c == 0; });
}

// The last dimension in blocks, of which those that are all zeros are left out.
struct SparseForm {
  std::string bytes;
  LiteSparsity sparsity;
};

class SparseEncoder {
 public:
  SparseEncoder(const Tensor& value, const std::vector<int32_t>& shape)
      : value_(value),
        shape_(shape),
        width_(DtypeSize(value.dtype())),
        row_(shape.back()),
        rows_(row_ == 0 ? 0 : value.num_elements() / row_) {}

  double ZeroPart() const {
    int64_t zeros = 0;
    for (int64_t i = 0; i < value_.num_elements(); ++i) zeros += Zero(i) ? 1 : 0;
    return static_cast<double>(zeros) / static_cast<double>(value_.num_elements());
  }

  SparseForm Encode(int64_t block) const {
    SparseForm out;
    const auto rank = static_cast<int32_t>(shape_.size());
    for (int32_t i = 0; i < rank; ++i) out.sparsity.traversal_order.push_back(i);
    for (int32_t i = 0; i + 1 < rank; ++i) {
      out.sparsity.dimensions.push_back({false, shape_[static_cast<size_t>(i)], {}, {}});
    }
    LiteSparseDimension last = {true, 0, {0}, {}};
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t b = 0; b < row_ / block; ++b) {
        const int64_t at = r * row_ + b * block;
        bool zero = true;
        for (int64_t i = at; i < at + block && zero; ++i) zero = Zero(i);
        if (zero) continue;
        last.indices.push_back(static_cast<int32_t>(b));
        out.bytes.append(Place(at), static_cast<size_t>(block) * width_);
      }
      last.segments.push_back(static_cast<int32_t>(last.indices.size()));
    }
    out.sparsity.dimensions.push_back(std::move(last));
    if (block > 1) {
      out.sparsity.traversal_order.push_back(rank);
      out.sparsity.block_map.push_back(rank - 1);
      out.sparsity.dimensions.push_back({false, static_cast<int32_t>(block), {}, {}});
    }
    return out;
  }

  // The part of the elements that is left out.
  double LeftOut(const SparseForm& form) const {
    const auto kept = static_cast<double>(form.bytes.size() / width_);
    return 1 - kept / static_cast<double>(value_.num_elements());
  }

 private:
  const char* Place(int64_t i) const {
    return static_cast<const char*>(value_.raw()) + static_cast<size_t>(i) * width_;
  }
  bool Zero(int64_t i) const { return IsZero(Place(i), value_.dtype(), width_); }

  const Tensor& value_;
  const std::vector<int32_t>& shape_;
  const size_t width_;
  const int64_t row_, rows_;
};

// Who reads a tensor in place `input`.
struct SparseReader {
  size_t op, input;
};

class SparseGraph {
 public:
  SparseGraph(LiteModel& model, LiteSubgraph& graph) : model_(model), graph_(graph) {}

  Status Run() {
    for (size_t o = 0; o < graph_.operators.size(); ++o) {
      const std::vector<int32_t>& inputs = graph_.operators[o].inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] >= 0) readers_[inputs[i]].push_back({o, i});
      }
    }
    for (auto& [tensor, readers] : readers_) {
      // Of float16 it is a DEQUANTIZE that reads them first.
      if (std::ranges::all_of(readers, [&](const SparseReader& r) { return IsWeights(r); })) {
        RETURN_IF_ERROR(Encode(tensor, readers));
      }
    }
    Insert();
    return OkStatus();
  }

 private:
  bool IsWeights(const SparseReader& r) const {
    const LiteOperator& op = graph_.operators[r.op];
    if (op.custom) return false;
    if (op.op == "DEQUANTIZE") {
      const auto floats = readers_.find(op.outputs[0]);
      return floats != readers_.end() &&
             std::ranges::all_of(floats->second, [&](const SparseReader& f) {
               return graph_.operators[f.op].op != "DEQUANTIZE" && IsWeights(f);
             });
    }
    return r.input == kWeights && std::ranges::find(kSparseOps, op.op) != std::end(kSparseOps);
  }

  Status Encode(int32_t tensor, const std::vector<SparseReader>& readers) {
    const LiteTensor t = graph_.tensors[static_cast<size_t>(tensor)];
    const bool int8 = t.type == Dtype::kInt8;
    if ((t.type != Dtype::kFloat && t.type != Dtype::kHalf && !int8) || t.sparsity != nullptr ||
        (t.shape.size() != 2 && t.shape.size() != 4)) {
      return OkStatus();
    }
    ASSIGN_OR_RETURN(const Tensor value, LiteConstant(model_, t));
    if (!value.valid() || value.num_elements() == 0) return OkStatus();
    const SparseEncoder encoder(value, t.shape);
    const double zeros = encoder.ZeroPart();
    if (zeros < kLeastZeros) return OkStatus();
    SparseForm form;
    bool blocks = false;
    const int64_t block = int8 ? 16 : 4;
    const bool product = std::ranges::all_of(readers, [&](const SparseReader& r) {
      return graph_.operators[r.op].op == "FULLY_CONNECTED";
    });
    if (product && t.shape[1] % block == 0) {
      form = encoder.Encode(block);
      blocks = encoder.LeftOut(form) / zeros > (int8 ? kMostOfZerosInt8 : kMostOfZeros);
    }
    if (!blocks) form = encoder.Encode(1);
    Put(tensor, std::move(form), !blocks);
    return OkStatus();
  }

  void Put(int32_t tensor, SparseForm form, bool densify) {
    LiteTensor& t = graph_.tensors[static_cast<size_t>(tensor)];
    const auto bytes = std::make_shared<const std::string>(std::move(form.bytes));
    t.buffer = static_cast<uint32_t>(model_.buffers.size());
    t.sparsity = std::make_shared<const LiteSparsity>(std::move(form.sparsity));
    model_.buffers.push_back({*bytes, bytes});
    if (!densify) return;
    LiteTensor dense = t;
    dense.name += "/dense";
    dense.buffer = 0;
    dense.sparsity = nullptr;
    dense_[tensor] = static_cast<int32_t>(graph_.tensors.size());
    graph_.tensors.push_back(std::move(dense));
  }

  // A DENSIFY in front of the first that reads what it makes.
  void Insert() {
    std::vector<LiteOperator> operators;
    std::map<int32_t, bool> there;
    for (LiteOperator& op : graph_.operators) {
      for (int32_t& input : op.inputs) {
        const auto dense = dense_.find(input);
        if (dense == dense_.end()) continue;
        if (!there[input]) {
          LiteOperator densify;
          densify.op = "DENSIFY";
          densify.inputs = {input};
          densify.outputs = {dense->second};
          operators.push_back(std::move(densify));
          there[input] = true;
        }
        input = dense->second;
      }
      operators.push_back(std::move(op));
    }
    graph_.operators = std::move(operators);
  }

  LiteModel& model_;
  LiteSubgraph& graph_;
  std::map<int32_t, std::vector<SparseReader>> readers_;  // by tensor
  std::map<int32_t, int32_t> dense_;                      // of a sparse tensor
};

}  // namespace

Status EncodeSparse(LiteModel& model) {
  for (LiteSubgraph& graph : model.subgraphs) RETURN_IF_ERROR(SparseGraph(model, graph).Run());
  return OkStatus();
}

}  // namespace smelt
