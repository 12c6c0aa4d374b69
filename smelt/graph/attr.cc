#include "smelt/graph/attr.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace smelt {

std::shared_ptr<const TensorValue> TensorValue::Of(Tensor t) {
  auto v = std::make_shared<TensorValue>();
  v->dtype = t.dtype();
  v->shape = PartialShape(t.shape());
  v->values = t.WithShape(Shape({t.num_elements()}));
  return v;
}

int64_t TensorValue::num_elements() const {
  if (!shape.fully_known()) return -1;
  auto s = Shape::Make(shape.dims());
  return s.ok() ? s->num_elements() : -1;
}

int64_t TensorValue::needed_values() const {
  if (!values.valid()) return 0;
  int64_t needed = values.num_elements();
  if (needed == 0 || !IsPod(values.dtype())) return needed;
  const auto size = static_cast<int64_t>(DtypeSize(values.dtype()));
  const char* bytes = static_cast<const char*>(values.raw());
  while (needed > 1 && std::memcmp(bytes + (needed - 2) * size, bytes + (needed - 1) * size,
                                   static_cast<size_t>(size)) == 0) {
    --needed;
  }
  const bool zero = needed == 1 && std::all_of(bytes, bytes + size, [](char c) { return c == 0; });
  return zero ? 0 : needed;
}

StatusOr<Tensor> TensorValue::Materialize() const {
  if (!problem.empty()) return InvalidArgument(problem);
  if (!shape.known_rank()) return InvalidArgument("Shape <unknown> is not fully defined");
  ASSIGN_OR_RETURN(Shape s, Shape::Make(shape.dims()));
  const int64_t n = s.num_elements();
  const int64_t stated = values.valid() ? values.num_elements() : 0;
  if (stated > n) {
    return InvalidArgument("Tensor of shape ", s.ToString(), " is given ", stated, " values");
  }
  if (stated == n && values.valid()) return values.WithShape(s);
  ASSIGN_OR_RETURN(Tensor t, Tensor::Zeros(dtype, s));
  if (stated == 0) return t;
  if (dtype == Dtype::kString) {
    auto src = values.flat<std::string>();
    auto dst = t.flat<std::string>();
    std::ranges::copy(src, dst.begin());
    std::fill(dst.begin() + stated, dst.end(), src.back());
    return t;
  }
  if (!IsPod(dtype)) {
    return InvalidArgument("Cannot repeat a value of type ", DtypeName(dtype));
  }
  const size_t size = DtypeSize(dtype);
  const char* src = static_cast<const char*>(values.raw());
  char* dst = static_cast<char*>(t.raw());
  std::memcpy(dst, src, static_cast<size_t>(stated) * size);
  for (int64_t i = stated; i < n; ++i) {
    std::memcpy(dst + static_cast<size_t>(i) * size, src + static_cast<size_t>(stated - 1) * size,
                size);
  }
  return t;
}

namespace {

bool SameTensor(const std::shared_ptr<const TensorValue>& a,
                const std::shared_ptr<const TensorValue>& b) {
  if (a == b) return true;
  if (!a || !b) return false;
  return a->dtype == b->dtype && a->shape == b->shape && a->problem == b->problem &&
         a->wire == b->wire && a->values.Identical(b->values);
}

}  // namespace

bool operator==(const FuncAttr& a, const FuncAttr& b) {
  if (a.name != b.name) return false;
  const bool ea = !a.attrs || a.attrs->empty(), eb = !b.attrs || b.attrs->empty();
  return ea == eb && (ea || *a.attrs == *b.attrs);
}

bool Attr::operator==(const Attr& o) const {
  if (value_.index() != o.value_.index()) return false;
  return std::visit(
      [&](const auto& a) {
        using T = std::decay_t<decltype(a)>;
        const T& b = std::get<T>(o.value_);
        if constexpr (std::is_same_v<T, std::monostate> || std::is_same_v<T, EmptyList>) {
          return true;
        } else if constexpr (std::is_same_v<T, std::shared_ptr<const TensorValue>>) {
          return SameTensor(a, b);
        } else if constexpr (std::is_same_v<T, std::vector<std::shared_ptr<const TensorValue>>>) {
          return std::equal(a.begin(), a.end(), b.begin(), b.end(), SameTensor);
        } else if constexpr (std::is_same_v<T, PlaceholderAttr>) {
          return a.name == b.name;
        } else if constexpr (std::is_same_v<T, float>) {
          return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
        } else if constexpr (std::is_same_v<T, std::vector<float>>) {
          return std::ranges::equal(a, b, {}, std::bit_cast<uint32_t, float>,
                                    std::bit_cast<uint32_t, float>);
        } else {
          return a == b;
        }
      },
      value_);
}

namespace {

auto LowerBound(auto& entries, absl::string_view name) {
  return std::lower_bound(entries.begin(), entries.end(), name,
                          [](const AttrMap::Entry& e, absl::string_view n) { return e.first < n; });
}

}  // namespace

const AttrMap::Entries& AttrMap::None() {
  static const Entries& none = *new Entries();
  return none;
}

AttrMap::Entries& AttrMap::Own() {
  if (shared_ == nullptr) {
    shared_ = new Shared();
  } else if (shared_->maps.load(std::memory_order_acquire) > 1) {
    auto* own = new Shared{.entries = shared_->entries};
    Leave();
    shared_ = own;
  }
  return shared_->entries;
}

void AttrMap::Leave() {
  if (shared_ != nullptr && shared_->maps.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    delete shared_;
  }
}

const Attr* AttrMap::FindEntry(absl::string_view name) const {
  auto it = LowerBound(entries(), name);
  return it != end() && it->first == name ? &it->second : nullptr;
}

Attr* AttrMap::FindToChange(absl::string_view name) {
  if (Find(name) == nullptr) return nullptr;
  may_have_ |= kFunctions;
  return &LowerBound(Own(), name)->second;
}

void AttrMap::Set(absl::string_view name, Attr value) {
  may_have_ |= BitOf(name);
  if (value.get<FuncAttr>() != nullptr || value.get<std::vector<FuncAttr>>() != nullptr) {
    may_have_ |= kFunctions;
  }
  Entries& entries = Own();
  auto it = LowerBound(entries, name);
  if (it != entries.end() && it->first == name) {
    it->second = std::move(value);
  } else {
    entries.emplace(it, std::string(name), std::move(value));
  }
}

bool AttrMap::Erase(absl::string_view name) {
  if (Find(name) == nullptr) return false;
  Entries& entries = Own();
  entries.erase(LowerBound(entries, name));
  return true;
}

}  // namespace smelt
