// Constants of tensors: plain bytes; strings as a table of offsets and the bytes; elements of less
// than a byte packed, the first in the low bits; sparse ones by blocks of compressed rows.
#include <algorithm>

#include "smelt/base/little_endian.h"
#include "smelt/io/unpack_limit.h"
#include "smelt/wire/tflite/tflite.h"

namespace smelt {
namespace {

// Bits of an element in a file.
int BitsOf(Dtype type) {
  switch (type) {
    case Dtype::kInt4:
    case Dtype::kUint4:
      return 4;
    case Dtype::kInt2:
      return 2;
    default:
      return static_cast<int>(8 * DtypeSize(type));
  }
}

Status WrongSize(absl::string_view bytes, int64_t elements, Dtype type) {
  return InvalidArgument("its buffer has ", bytes.size(), " bytes, which are not ", elements,
                         " elements of ", DtypeName(type));
}

// int32 count, count + 1 int32 offsets from the buffer's start, then the bytes.
StatusOr<Tensor> Strings(absl::string_view bytes, const Shape& shape) {
  const auto n = static_cast<uint64_t>(shape.num_elements());
  if (bytes.size() < 4 || LoadLittle<uint32_t>(bytes.data()) != n || n + 2 > bytes.size() / 4) {
    return WrongSize(bytes, shape.num_elements(), Dtype::kString);
  }
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(Dtype::kString, shape));
  for (uint64_t i = 0; i < n; ++i) {
    const uint32_t begin = LoadLittle<uint32_t>(bytes.data() + 4 + 4 * i);
    const uint32_t end = LoadLittle<uint32_t>(bytes.data() + 8 + 4 * i);
    if (begin > end || end > bytes.size()) {
      return InvalidArgument("string ", i, " of its buffer lies at ", begin, " to ", end, " of ",
                             bytes.size(), " bytes");
    }
    out.data<std::string>()[i] = std::string(bytes.substr(begin, end - begin));
  }
  return out;
}

StatusOr<Tensor> Unpacked(absl::string_view bytes, Dtype type, const Shape& shape) {
  const int bits = BitsOf(type);
  const int64_t n = shape.num_elements(), in_byte = 8 / bits;
  if (static_cast<int64_t>(bytes.size()) != (n + in_byte - 1) / in_byte) {
    return WrongSize(bytes, n, type);
  }
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(type, shape));
  auto* to = static_cast<uint8_t*>(out.raw());
  for (int64_t i = 0; i < n; ++i) {
    const auto byte = static_cast<uint8_t>(bytes[static_cast<size_t>(i / in_byte)]);
    const auto high = static_cast<uint8_t>(byte << (8 - bits - bits * (i % in_byte)));
    to[i] = type == Dtype::kUint4 ? static_cast<uint8_t>(high >> (8 - bits))
                                  : static_cast<uint8_t>(static_cast<int8_t>(high) >> (8 - bits));
  }
  return out;
}

// Walks the dimensions of a sparse tensor, the original ones and behind them those of blocks, in
// their order.
class Densify {
 public:
  Densify(const LiteSparsity& s, const char* from, int64_t stored, size_t width, const Shape& shape,
          char* to)
      : s_(s), from_(from), stored_(stored), width_(width), shape_(shape), to_(to) {}

  Status Run() {
    const size_t rank = static_cast<size_t>(shape_.rank());
    const size_t all = s_.traversal_order.size();
    std::vector<bool> seen(all);
    for (const int32_t d : s_.traversal_order) {
      if (d < 0 || static_cast<size_t>(d) >= all || seen[static_cast<size_t>(d)]) return Wrong();
      seen[static_cast<size_t>(d)] = true;
    }
    if (all != rank + s_.block_map.size() || s_.dimensions.size() != all) return Wrong();
    if (shape_.num_elements() == 0) return stored_ == 0 ? OkStatus() : Wrong();
    block_.assign(rank, 1);
    for (size_t i = 0; i < s_.block_map.size(); ++i) {
      const int32_t d = s_.block_map[i];
      if (d < 0 || static_cast<size_t>(d) >= rank || block_[static_cast<size_t>(d)] != 1) {
        return Wrong();
      }
      // The size of a block is that of its dimension behind the original ones.
      for (size_t k = 0; k < all; ++k) {
        if (static_cast<size_t>(s_.traversal_order[k]) != rank + i) continue;
        if (s_.dimensions[k].compressed || s_.dimensions[k].dense_size <= 0) return Wrong();
        block_[static_cast<size_t>(d)] = s_.dimensions[k].dense_size;
      }
    }
    index_.assign(all, 0);
    RETURN_IF_ERROR(Level(0, 0));
    return next_ == stored_ ? OkStatus() : Wrong();
  }

 private:
  static Status Wrong() { return InvalidArgument("its sparsity makes no sense"); }

  Status Level(size_t level, int64_t position) {
    if (level == s_.dimensions.size()) return Put();
    const LiteSparseDimension& d = s_.dimensions[level];
    const auto at = static_cast<size_t>(s_.traversal_order[level]);
    if (!d.compressed) {
      // A dimension of no elements could be walked through without end.
      if (d.dense_size <= 0) return Wrong();
      for (int64_t i = 0; i < d.dense_size; ++i) {
        index_[at] = i;
        RETURN_IF_ERROR(Level(level + 1, position * d.dense_size + i));
        if (next_ > stored_) return Wrong();
      }
      return OkStatus();
    }
    if (position < 0 || position + 1 >= static_cast<int64_t>(d.segments.size())) return Wrong();
    const int32_t begin = d.segments[static_cast<size_t>(position)];
    const int32_t end = d.segments[static_cast<size_t>(position) + 1];
    if (begin < 0 || end < begin || static_cast<size_t>(end) > d.indices.size()) return Wrong();
    for (int32_t i = begin; i < end; ++i) {
      index_[at] = d.indices[static_cast<size_t>(i)];
      RETURN_IF_ERROR(Level(level + 1, i));
    }
    return OkStatus();
  }

  Status Put() {
    if (next_ >= stored_) return Wrong();
    int64_t place = 0;
    const int rank = shape_.rank();
    for (int d = 0; d < rank; ++d) {
      int64_t i = index_[static_cast<size_t>(d)];
      for (size_t b = 0; b < s_.block_map.size(); ++b) {
        if (s_.block_map[b] == d) {
          i = i * block_[static_cast<size_t>(d)] + index_[static_cast<size_t>(rank) + b];
        }
      }
      if (i < 0 || i >= shape_[d]) return Wrong();
      place = place * shape_[d] + i;
    }
    std::memcpy(to_ + static_cast<size_t>(place) * width_,
                from_ + static_cast<size_t>(next_) * width_, width_);
    ++next_;
    return OkStatus();
  }

  const LiteSparsity& s_;
  const char* from_;
  const int64_t stored_;
  const size_t width_;
  const Shape& shape_;
  char* to_;
  std::vector<int64_t> block_, index_;
  int64_t next_ = 0;
};

}  // namespace

StatusOr<Tensor> LiteConstant(const LiteModel& model, const LiteTensor& tensor) {
  const LiteBuffer& buffer = model.buffers[tensor.buffer];
  const std::vector<int64_t> sizes(tensor.shape.begin(), tensor.shape.end());
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
  // An empty buffer is that of a tensor that is computed, unless there is nothing to state.
  if (tensor.buffer == 0 || (buffer.bytes.empty() && shape.num_elements() > 0)) return Tensor();
  if (tensor.type == Dtype::kString) return Strings(buffer.bytes, shape);
  if (BitsOf(tensor.type) == 0) {
    return InvalidArgument("it states values of type ", DtypeName(tensor.type));
  }
  const size_t width = DtypeSize(tensor.type);
  if (tensor.sparsity != nullptr && BitsOf(tensor.type) >= 8) {
    if (buffer.bytes.size() % width != 0) {
      return WrongSize(buffer.bytes, shape.num_elements(), tensor.type);
    }
    RETURN_IF_ERROR(CheckUnpacked("a sparse tensor",
                                  static_cast<uint64_t>(shape.num_elements()) * width,
                                  UnpackLimit(buffer.bytes.size())));
    ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(tensor.type, shape));
    RETURN_IF_ERROR(Densify(*tensor.sparsity, buffer.bytes.data(),
                            static_cast<int64_t>(buffer.bytes.size() / width), width, shape,
                            static_cast<char*>(out.raw()))
                        .Run());
    return out;
  }
  if (BitsOf(tensor.type) < 8) return Unpacked(buffer.bytes, tensor.type, shape);
  // A quotient, as the product may not fit.
  if (buffer.bytes.size() % width != 0 ||
      static_cast<int64_t>(buffer.bytes.size() / width) != shape.num_elements()) {
    return WrongSize(buffer.bytes, shape.num_elements(), tensor.type);
  }
  if (reinterpret_cast<uintptr_t>(buffer.bytes.data()) % width == 0) {
    return Tensor(tensor.type, shape,
                  ForeignBuffer(buffer.bytes.data(), buffer.bytes.size(), ForeignBytes::kReadOnly,
                                buffer.owner));
  }
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(tensor.type, shape));
  std::memcpy(out.raw(), buffer.bytes.data(), buffer.bytes.size());
  return out;
}

StatusOr<LiteBuffer> LiteBytes(const Tensor& value) {
  if (!LiteTypeOf(value.dtype()) ||
      (value.dtype() != Dtype::kString && BitsOf(value.dtype()) == 0)) {
    return Unimplemented("a .tflite file has no constants of type ", DtypeName(value.dtype()));
  }
  if (value.dtype() != Dtype::kString && BitsOf(value.dtype()) >= 8) {
    auto owner = std::make_shared<const Tensor>(value);
    return LiteBuffer{{static_cast<const char*>(owner->raw()), owner->bytes()}, owner};
  }
  auto bytes = std::make_shared<std::string>();
  if (value.dtype() == Dtype::kString) {
    const auto texts = value.flat<std::string>();
    uint64_t at = 4 * (texts.size() + 2);
    AppendLittle(static_cast<uint32_t>(texts.size()), bytes.get());
    for (const std::string& text : texts) {
      AppendLittle(static_cast<uint32_t>(at), bytes.get());
      at += text.size();
    }
    if (at > INT32_MAX) {
      return InvalidArgument("a .tflite file has no strings of ", at, " bytes in one tensor");
    }
    AppendLittle(static_cast<uint32_t>(at), bytes.get());
    for (const std::string& text : texts) bytes->append(text);
  } else {
    const int bits = BitsOf(value.dtype());
    const int64_t in_byte = 8 / bits;
    const auto* from = static_cast<const uint8_t*>(value.raw());
    bytes->assign(static_cast<size_t>((value.num_elements() + in_byte - 1) / in_byte), '\0');
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      char& byte = (*bytes)[static_cast<size_t>(i / in_byte)];
      byte = static_cast<char>(byte | (from[i] & ((1 << bits) - 1)) << (bits * (i % in_byte)));
    }
  }
  return LiteBuffer{*bytes, bytes};
}

}  // namespace smelt
