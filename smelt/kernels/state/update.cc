// Elementwise changes of a variable's bytes.
#include "smelt/kernels/state/update.h"

#include <algorithm>
#include <type_traits>

#include "smelt/tensor/visit_types.h"

namespace smelt {
namespace {

// Integers are computed unsigned: they wrap where signed ones would have undefined behavior.
template <typename T>
T UpdateOne(UpdateKind kind, T a, T b) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
    return T(UpdateOne<float>(kind, static_cast<float>(a), static_cast<float>(b)));
  } else if constexpr (std::is_same_v<T, bool>) {
    switch (kind) {
      case UpdateKind::kAdd:
        return a || b;
      case UpdateKind::kSub:
        return a != b;
      case UpdateKind::kMul:
      case UpdateKind::kMin:
        return a && b;
      case UpdateKind::kMax:
        return a || b;
      default:
        return b;
    }
  } else if constexpr (std::is_integral_v<T>) {
    // In 64 bits: narrower unsigned types are promoted to signed int, whose products may overflow.
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    switch (kind) {
      case UpdateKind::kAdd:
        return static_cast<T>(x + y);
      case UpdateKind::kSub:
        return static_cast<T>(x - y);
      case UpdateKind::kMul:
        return static_cast<T>(x * y);
      case UpdateKind::kDiv:
        if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(0 - x);
        return static_cast<T>(a / b);
      case UpdateKind::kMin:
        return std::min(a, b);
      case UpdateKind::kMax:
        return std::max(a, b);
      default:
        return b;
    }
  } else {
    switch (kind) {
      case UpdateKind::kAdd:
        return a + b;
      case UpdateKind::kSub:
        return a - b;
      case UpdateKind::kMul:
        return a * b;
      case UpdateKind::kDiv:
        return a / b;
      case UpdateKind::kMin:
        if constexpr (std::is_floating_point_v<T>) return std::min(a, b);
        return b;
      case UpdateKind::kMax:
        if constexpr (std::is_floating_point_v<T>) return std::max(a, b);
        return b;
      default:
        return b;
    }
  }
}

template <typename T, UpdateKind kKind>
void UpdateLoop(T* params, const T* updates, int64_t n, int64_t step) {
  if (step == 0) {
    for (int64_t i = 0; i < n; ++i) params[i] = UpdateOne<T>(kKind, params[i], *updates);
  } else {
    for (int64_t i = 0; i < n; ++i) params[i] = UpdateOne<T>(kKind, params[i], updates[i]);
  }
}

template <typename T>
void UpdateTyped(UpdateKind kind, void* params, const void* updates, int64_t n, int64_t step) {
  auto* p = static_cast<T*>(params);
  const auto* u = static_cast<const T*>(updates);
  switch (kind) {
    case UpdateKind::kAdd:
      return UpdateLoop<T, UpdateKind::kAdd>(p, u, n, step);
    case UpdateKind::kSub:
      return UpdateLoop<T, UpdateKind::kSub>(p, u, n, step);
    case UpdateKind::kMul:
      return UpdateLoop<T, UpdateKind::kMul>(p, u, n, step);
    case UpdateKind::kDiv:
      return UpdateLoop<T, UpdateKind::kDiv>(p, u, n, step);
    case UpdateKind::kMin:
      return UpdateLoop<T, UpdateKind::kMin>(p, u, n, step);
    case UpdateKind::kMax:
      return UpdateLoop<T, UpdateKind::kMax>(p, u, n, step);
    case UpdateKind::kSet:
      return;
  }
}

template <typename T>
void SetObjects(void* params, const void* updates, int64_t n, int64_t step) {
  auto* p = static_cast<T*>(params);
  const auto* u = static_cast<const T*>(updates);
  for (int64_t i = 0; i < n; ++i) p[i] = u[i * step];
}

void SetUpdate(Dtype dtype, void* params, const void* updates, int64_t n, int64_t step) {
  switch (dtype) {
    case Dtype::kString:
      return SetObjects<std::string>(params, updates, n, step);
    case Dtype::kResource:
      return SetObjects<ResourceHandle>(params, updates, n, step);
    case Dtype::kVariant:
      return SetObjects<Variant>(params, updates, n, step);
    default:
      break;
  }
  const size_t size = DtypeSize(dtype);
  if (n == 0) return;
  if (step == 1) {
    std::memcpy(params, updates, static_cast<size_t>(n) * size);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(static_cast<char*>(params) + static_cast<size_t>(i) * size, updates, size);
  }
}

}  // namespace

void ApplyUpdate(UpdateKind kind, Dtype dtype, void* params, const void* updates, int64_t n,
                 int64_t step) {
  if (kind == UpdateKind::kSet) return SetUpdate(dtype, params, updates, n, step);
  VisitTypes(NumberTypes() + CppTypes<bool>(), dtype,
             [&]<typename T>() { UpdateTyped<T>(kind, params, updates, n, step); });
}

bool HasZero(const Tensor& t) {
  bool zero = false;
  VisitTypes(NumberTypes(), t.dtype(), [&]<typename T>() {
    const T* v = t.data<T>();
    zero = std::any_of(v, v + t.num_elements(), [](const T& x) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
        return static_cast<float>(x) == 0;
      } else {
        return x == T(0);
      }
    });
  });
  return zero;
}

}  // namespace smelt
