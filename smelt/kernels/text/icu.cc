#include "smelt/kernels/text/icu.h"

#include <dlfcn.h>
#include <unicode/uscript.h>
#include <unicode/ustring.h>
#include <unicode/uvernum.h>

namespace smelt {
namespace {

#define SMELT_STRING_OF(x) #x
#define SMELT_STRING(x) SMELT_STRING_OF(x)

struct IcuFunctions {
  decltype(&u_strToLower) to_lower = nullptr;
  decltype(&u_strToUpper) to_upper = nullptr;
  decltype(&uscript_getScript) script = nullptr;

  bool ok() const { return to_lower != nullptr && to_upper != nullptr && script != nullptr; }
};

IcuFunctions LoadIcu() {
  IcuFunctions f;
  void* library =
      dlopen("libicuuc.so." SMELT_STRING(U_ICU_VERSION_MAJOR_NUM), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return f;
  // The headers rename functions to versioned ones; the library has them under these names.
  f.to_lower = reinterpret_cast<decltype(f.to_lower)>(dlsym(library, SMELT_STRING(u_strToLower)));
  f.to_upper = reinterpret_cast<decltype(f.to_upper)>(dlsym(library, SMELT_STRING(u_strToUpper)));
  f.script = reinterpret_cast<decltype(f.script)>(dlsym(library, SMELT_STRING(uscript_getScript)));
  return f;
}

StatusOr<const IcuFunctions*> Icu() {
  static const IcuFunctions functions = LoadIcu();
  if (functions.ok()) return &functions;
  return Unimplemented("this op needs ICU " SMELT_STRING(U_ICU_VERSION_MAJOR_NUM),
                       " (libicuuc), which is not installed");
}

template <typename F>
StatusOr<std::u16string> MapCase(F map, const std::u16string& s) {
  std::u16string out(s.size() + 16, u'\0');
  for (int attempt = 0; attempt < 2; ++attempt) {
    UErrorCode error = U_ZERO_ERROR;
    const int32_t n = map(out.data(), static_cast<int32_t>(out.size()), s.data(),
                          static_cast<int32_t>(s.size()), "", &error);
    if (error == U_BUFFER_OVERFLOW_ERROR) {
      out.resize(static_cast<size_t>(n));
      continue;
    }
    if (U_FAILURE(error)) break;
    out.resize(static_cast<size_t>(n));
    return out;
  }
  return Internal("ICU could not map the case of a string");
}

}  // namespace

StatusOr<std::u16string> UnicodeLower(const std::u16string& s) {
  ASSIGN_OR_RETURN(const IcuFunctions* icu, Icu());
  return MapCase(icu->to_lower, s);
}

StatusOr<std::u16string> UnicodeUpper(const std::u16string& s) {
  ASSIGN_OR_RETURN(const IcuFunctions* icu, Icu());
  return MapCase(icu->to_upper, s);
}

Status UnicodeScripts(const int32_t* code_points, int64_t n, int32_t* scripts) {
  ASSIGN_OR_RETURN(const IcuFunctions* icu, Icu());
  for (int64_t i = 0; i < n; ++i) {
    UErrorCode error = U_ZERO_ERROR;
    const auto script = static_cast<int32_t>(icu->script(code_points[i], &error));
    scripts[i] = U_SUCCESS(error) ? script : -1;
  }
  return OkStatus();
}

}  // namespace smelt
