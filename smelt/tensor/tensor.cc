#include "smelt/tensor/tensor.h"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"

namespace smelt {
namespace {

// Lets go of what the variants hold. A value may hold tensors of variants that hold others, as deep
// as a loop cared to nest them: what is found while one is released is released after it, so that
// the stack does not grow with the depth.
void ReleaseVariants(std::span<Variant> variants) {
  thread_local std::vector<std::shared_ptr<VariantValue>>* waiting = nullptr;
  if (waiting != nullptr) {
    for (Variant& v : variants) {
      if (v.value != nullptr) waiting->push_back(std::move(v.value));
    }
    return;
  }
  std::vector<std::shared_ptr<VariantValue>> found;
  waiting = &found;
  for (Variant& v : variants) {
    v.value.reset();
    while (!found.empty()) {
      const std::shared_ptr<VariantValue> next = std::move(found.back());
      found.pop_back();
    }
  }
  waiting = nullptr;
}

// Bytes that hold C++ objects, which are constructed and destroyed with the buffer.
template <typename T>
class ObjectBuffer final : public Buffer {
 public:
  ObjectBuffer(BufferRef bytes, size_t n)
      : Buffer(bytes->data(), bytes->size()), bytes_(std::move(bytes)), n_(n) {
    std::uninitialized_value_construct_n(static_cast<T*>(data_), n_);
  }
  ~ObjectBuffer() override {
    if constexpr (std::is_same_v<T, Variant>) ReleaseVariants({static_cast<Variant*>(data_), n_});
    std::destroy_n(static_cast<T*>(data_), n_);
  }

 private:
  BufferRef bytes_;
  size_t n_;
};

template <typename T>
bool FlatEqual(const Tensor& a, const Tensor& b) {
  auto x = a.flat<T>(), y = b.flat<T>();
  return std::equal(x.begin(), x.end(), y.begin());
}

}  // namespace

size_t Tensor::ElementSize(Dtype dtype) {
  switch (dtype) {
    case Dtype::kString:
      return sizeof(std::string);
    case Dtype::kResource:
      return sizeof(ResourceHandle);
    case Dtype::kVariant:
      return sizeof(Variant);
    default:
      return DtypeSize(dtype);
  }
}

StatusOr<Tensor> Tensor::Make(Dtype dtype, const Shape& shape, Allocator* allocator) {
  const size_t size = ElementSize(dtype);
  if (size == 0 || IsRef(dtype)) {
    return InvalidArgument("Cannot make a tensor of type ", DtypeName(dtype));
  }
  // Refused before memory is taken: sizes below zero, and more bytes than can be counted.
  size_t n = 1, bytes = size;
  bool fits = true, empty = false, negative = false;
  for (const int64_t d : shape.dims()) {
    negative = negative || d < 0;
    empty = empty || d == 0;
    fits = !__builtin_mul_overflow(bytes, static_cast<size_t>(d), &bytes) && fits;
    n *= static_cast<size_t>(d);
  }
  if (empty) bytes = 0;
  if (negative || (!fits && !empty)) {
    return ResourceExhausted("OOM when allocating tensor with shape ", shape.ToString(),
                             " and type ", DtypeName(dtype));
  }
  auto buffer = allocator->Allocate(bytes);
  if (!buffer.ok()) {
    return Suffix(buffer.status(), absl::StrCat(" (tensor of shape ", shape.ToString(),
                                                " and type ", DtypeName(dtype), ")"));
  }
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = shape;
  switch (dtype) {
    case Dtype::kString:
      t.buffer_ = BufferRef(new ObjectBuffer<std::string>(*std::move(buffer), n));
      break;
    case Dtype::kResource:
      t.buffer_ = BufferRef(new ObjectBuffer<ResourceHandle>(*std::move(buffer), n));
      break;
    case Dtype::kVariant:
      t.buffer_ = BufferRef(new ObjectBuffer<Variant>(*std::move(buffer), n));
      break;
    default:
      t.buffer_ = *std::move(buffer);
  }
  t.data_ = t.buffer_->data();
  return t;
}

StatusOr<Tensor> Tensor::Zeros(Dtype dtype, const Shape& shape, Allocator* allocator) {
  ASSIGN_OR_RETURN(Tensor t, Make(dtype, shape, allocator));
  if (IsPod(dtype)) std::memset(t.data_, 0, t.bytes());
  return t;
}

Tensor::Tensor(Dtype dtype, const Shape& shape, BufferRef buffer, size_t offset)
    : dtype_(dtype),
      shape_(shape),
      buffer_(std::move(buffer)),
      data_(static_cast<char*>(buffer_->data()) + offset) {}

Tensor Tensor::WithShape(const Shape& shape) const {
  assert(shape.num_elements() == num_elements());
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

Tensor Tensor::WithDtype(Dtype dtype) const {
  Tensor t = *this;
  t.dtype_ = dtype;
  return t;
}

Tensor Tensor::Rows(int64_t begin, int64_t end) const {
  Tensor t = *this;
  const int64_t row = shape_.Product(1, rank());
  t.shape_.Set(0, end - begin);
  t.data_ = static_cast<char*>(data_) + static_cast<size_t>(begin * row) * ElementSize(dtype_);
  return t;
}

StatusOr<Tensor> Tensor::Clone(Allocator* allocator) const {
  ASSIGN_OR_RETURN(Tensor t, Make(dtype_, shape_, allocator));
  switch (dtype_) {
    case Dtype::kString:
      std::ranges::copy(flat<std::string>(), t.data<std::string>());
      break;
    case Dtype::kResource:
      std::ranges::copy(flat<ResourceHandle>(), t.data<ResourceHandle>());
      break;
    case Dtype::kVariant:
      std::ranges::copy(flat<Variant>(), t.data<Variant>());
      break;
    default:
      if (bytes() != 0) std::memcpy(t.data_, data_, bytes());
  }
  return t;
}

bool Tensor::Identical(const Tensor& o) const {
  if (dtype_ != o.dtype_ || !(shape_ == o.shape_)) return false;
  if (!valid() || data_ == o.data_ || num_elements() == 0) return true;
  switch (dtype_) {
    case Dtype::kString:
      return FlatEqual<std::string>(*this, o);
    case Dtype::kResource:
    case Dtype::kVariant:
      return false;
    default:
      return std::memcmp(data_, o.data_, bytes()) == 0;
  }
}

namespace {

template <typename T>
void AppendValue(std::string* out, const Tensor& t, int64_t i) {
  absl::StrAppend(out, t.data<T>()[i]);
}

void AppendElement(std::string* out, const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case Dtype::kFloat:
      return AppendValue<float>(out, t, i);
    case Dtype::kDouble:
      return AppendValue<double>(out, t, i);
    case Dtype::kInt32:
      return AppendValue<int32_t>(out, t, i);
    case Dtype::kInt64:
      return AppendValue<int64_t>(out, t, i);
    case Dtype::kUint32:
      return AppendValue<uint32_t>(out, t, i);
    case Dtype::kUint64:
      return AppendValue<uint64_t>(out, t, i);
    case Dtype::kInt16:
      return AppendValue<int16_t>(out, t, i);
    case Dtype::kUint16:
      return AppendValue<uint16_t>(out, t, i);
    case Dtype::kInt8:
      absl::StrAppend(out, static_cast<int>(t.data<int8_t>()[i]));
      return;
    case Dtype::kUint8:
      absl::StrAppend(out, static_cast<int>(t.data<uint8_t>()[i]));
      return;
    case Dtype::kBool:
      absl::StrAppend(out, t.data<bool>()[i] ? "1" : "0");
      return;
    case Dtype::kHalf:
      absl::StrAppend(out, static_cast<float>(t.data<Half>()[i]));
      return;
    case Dtype::kBfloat16:
      absl::StrAppend(out, static_cast<float>(t.data<Bfloat16>()[i]));
      return;
    case Dtype::kString:
      absl::StrAppend(out, "\"", absl::CHexEscape(t.data<std::string>()[i]), "\"");
      return;
    default:
      absl::StrAppend(out, "<", DtypeName(t.dtype()), ">");
  }
}

}  // namespace

std::string Summarize(const Tensor& t, int64_t max_values) {
  std::string out = "[";
  const int64_t n = std::min(t.num_elements(), max_values);
  for (int64_t i = 0; i < n; ++i) {
    if (i) out += " ";
    AppendElement(&out, t, i);
  }
  if (n < t.num_elements()) out += "...";
  return out + "]";
}

}  // namespace smelt
