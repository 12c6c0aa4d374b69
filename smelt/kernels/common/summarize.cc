#include "smelt/kernels/common/summarize.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace smelt {
namespace {

// The short form when it reads back as the same number, else one with all digits.
void AppendNumber(float v, std::string* out) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", static_cast<double>(v));
  if (std::isfinite(v) && std::strtof(text, nullptr) != v) {
    std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(v));
  }
  *out += std::isnan(v) ? "nan" : text;
}
void AppendNumber(double v, std::string* out) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.15g", v);
  if (std::isfinite(v) && std::strtod(text, nullptr) != v) {
    std::snprintf(text, sizeof(text), "%.17g", v);
  }
  *out += std::isnan(v) ? "nan" : text;
}
template <typename T>
void AppendNumber(T v, std::string* out) {
  absl::StrAppend(out, v);
}
template <typename T>
void AppendComplex(std::complex<T> v, std::string* out) {
  *out += "(";
  AppendNumber(v.real(), out);
  *out += ",";
  AppendNumber(v.imag(), out);
  *out += ")";
}

void AppendOne(const Tensor& t, int64_t i, bool quoted, std::string* out) {
  switch (t.dtype()) {
#define SMELT_SUMMARIZE_AS(T, AS)                       \
  case kDtypeOf<T>:                                     \
    AppendNumber(static_cast<AS>(t.data<T>()[i]), out); \
    return;
    SMELT_SUMMARIZE_AS(float, float)
    SMELT_SUMMARIZE_AS(double, double)
    SMELT_SUMMARIZE_AS(Half, float)
    SMELT_SUMMARIZE_AS(Bfloat16, float)
    SMELT_SUMMARIZE_AS(int8_t, int)
    SMELT_SUMMARIZE_AS(int16_t, int)
    SMELT_SUMMARIZE_AS(int32_t, int)
    SMELT_SUMMARIZE_AS(int64_t, int64_t)
    SMELT_SUMMARIZE_AS(uint8_t, int)
    SMELT_SUMMARIZE_AS(uint16_t, int)
    SMELT_SUMMARIZE_AS(uint32_t, uint32_t)
    SMELT_SUMMARIZE_AS(uint64_t, uint64_t)
    SMELT_SUMMARIZE_AS(bool, int)
#undef SMELT_SUMMARIZE_AS
    case Dtype::kComplex64:
      if (!quoted) break;  // the older form knows no complex numbers
      return AppendComplex(t.data<std::complex<float>>()[i], out);
    case Dtype::kComplex128:
      if (!quoted) break;
      return AppendComplex(t.data<std::complex<double>>()[i], out);
    case Dtype::kString: {
      const std::string text = absl::Utf8SafeCEscape(t.data<std::string>()[i]);
      absl::StrAppend(out, quoted ? "\"" : "", text, quoted ? "\"" : "");
      return;
    }
    default:
      break;
  }
  *out += "?";
}

void AppendFirst(const Tensor& t, int d, int64_t limit, int64_t* next, std::string* out) {
  if (*next >= limit) return;
  const bool last = d == t.rank() - 1;
  for (int64_t i = 0; i < t.dim(d); ++i) {
    if (last) {
      if (*next >= limit) {
        if (d != 0) *out += "...";
        return;
      }
      if (i > 0) *out += " ";
      AppendOne(t, (*next)++, /*quoted=*/false, out);
      continue;
    }
    if (*next >= limit) return;
    *out += "[";
    AppendFirst(t, d + 1, limit, next, out);
    *out += "]";
  }
}

void AppendSpacing(int d, int rank, std::string* out) {
  if (d == rank - 1) {
    *out += " ";
    return;
  }
  out->append(static_cast<size_t>(rank - d - 1), '\n');
  out->append(static_cast<size_t>(d + 1), ' ');
}

void AppendEnds(const Tensor& t, int d, int64_t ends, int64_t at, std::string* out) {
  if (d == t.rank()) return AppendOne(t, at, /*quoted=*/true, out);
  *out += "[";
  const int64_t n = t.dim(d), step = t.shape().Product(d + 1, t.rank());
  const int64_t tail = std::max(ends, n - ends);
  for (int64_t i = 0; i < std::min(ends, n); ++i) {
    if (i > 0) AppendSpacing(d, t.rank(), out);
    AppendEnds(t, d + 1, ends, at + i * step, out);
  }
  if (n - ends > ends) {
    AppendSpacing(d, t.rank(), out);
    *out += "...";
  }
  for (int64_t i = tail; i < n; ++i) {
    AppendSpacing(d, t.rank(), out);
    AppendEnds(t, d + 1, ends, at + i * step, out);
  }
  *out += "]";
}

}  // namespace

std::string SummarizeFirst(const Tensor& t, int64_t limit) {
  const int64_t n = t.num_elements();
  limit = limit < 0 ? n : std::min(limit, n);
  std::string out;
  if (t.rank() == 0) {
    if (limit > 0) AppendOne(t, 0, /*quoted=*/false, &out);
  } else {
    int64_t next = 0;
    AppendFirst(t, 0, limit, &next, &out);
  }
  if (n > limit) out += "...";
  return out;
}

std::string SummarizeEnds(const Tensor& t, int64_t ends) {
  const int64_t n = t.num_elements();
  ends = ends < 0 ? n : std::min(ends, n);
  if (t.rank() == 0 && ends == 0) return "...";
  std::string out;
  AppendEnds(t, 0, ends, 0, &out);
  return out;
}

}  // namespace smelt
