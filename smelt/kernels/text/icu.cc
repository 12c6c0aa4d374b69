#include "smelt/kernels/text/icu.h"

#include <dlfcn.h>
#include <unicode/ucnv.h>
#include <unicode/ucnv_err.h>
#include <unicode/uscript.h>
#include <unicode/ustring.h>
#include <unicode/uvernum.h>

#include <type_traits>

namespace smelt {
namespace {

#define SMELT_STRING_OF(x) #x
#define SMELT_STRING(x) SMELT_STRING_OF(x)

struct IcuFunctions {
  decltype(&u_strToLower) to_lower = nullptr;
  decltype(&u_strToUpper) to_upper = nullptr;
  decltype(&uscript_getScript) script = nullptr;
  decltype(&ucnv_open) open = nullptr;
  decltype(&ucnv_close) close = nullptr;
  decltype(&ucnv_getNextUChar) next = nullptr;
  decltype(&ucnv_setToUCallBack) on_malformed = nullptr;
  decltype(&UCNV_TO_U_CALLBACK_SUBSTITUTE) substitute = nullptr;

  bool ok() const {
    return to_lower != nullptr && to_upper != nullptr && script != nullptr && open != nullptr &&
           close != nullptr && next != nullptr && on_malformed != nullptr && substitute != nullptr;
  }
};

IcuFunctions LoadIcu() {
  IcuFunctions f;
  void* library =
      dlopen("libicuuc.so." SMELT_STRING(U_ICU_VERSION_MAJOR_NUM), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return f;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
  };
  // The headers rename functions to versioned ones; the library has them under these names.
  find(f.to_lower, SMELT_STRING(u_strToLower));
  find(f.to_upper, SMELT_STRING(u_strToUpper));
  find(f.script, SMELT_STRING(uscript_getScript));
  find(f.open, SMELT_STRING(ucnv_open));
  find(f.close, SMELT_STRING(ucnv_close));
  find(f.next, SMELT_STRING(ucnv_getNextUChar));
  find(f.on_malformed, SMELT_STRING(ucnv_setToUCallBack));
  find(f.substitute, SMELT_STRING(UCNV_TO_U_CALLBACK_SUBSTITUTE));
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

// Notes in `context` that bytes were malformed, and replaces them as the converter would.
void NoteMalformed(const void* context, UConverterToUnicodeArgs* args, const char* bytes,
                   int32_t length, UConverterCallbackReason reason, UErrorCode* error) {
  if (reason == UCNV_UNASSIGNED || reason == UCNV_ILLEGAL || reason == UCNV_IRREGULAR) {
    *static_cast<bool*>(const_cast<void*>(context)) = true;
  }
  if (const auto icu = Icu(); icu.ok()) {
    (*icu)->substitute(nullptr, args, bytes, length, reason, error);
  }
}

}  // namespace

StatusOr<std::unique_ptr<IcuDecoder>> IcuDecoder::Open(const std::string& encoding) {
  ASSIGN_OR_RETURN(const IcuFunctions* icu, Icu());
  UErrorCode error = U_ZERO_ERROR;
  UConverter* converter = icu->open(encoding.c_str(), &error);
  if (U_FAILURE(error)) {
    return InvalidArgument("Could not create converter for input encoding: ", encoding);
  }
  return std::unique_ptr<IcuDecoder>(new IcuDecoder(converter));
}

IcuDecoder::~IcuDecoder() {
  if (const auto icu = Icu(); icu.ok()) (*icu)->close(static_cast<UConverter*>(converter_));
}

void IcuDecoder::ForEach(absl::string_view text,
                         absl::FunctionRef<void(int32_t, size_t, bool)> fn) {
  const auto icu = Icu();
  if (!icu.ok()) return;
  auto* converter = static_cast<UConverter*>(converter_);
  UErrorCode error = U_ZERO_ERROR;
  bool malformed = false;
  (*icu)->on_malformed(converter, NoteMalformed, &malformed, nullptr, nullptr, &error);
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const char* const from = at;
    const UChar32 c = (*icu)->next(converter, &at, end, &error);
    // Bytes that end a text without a character (a mark, a shift) count as the one ICU hands out.
    if (U_FAILURE(error)) at = end;
    fn(c, static_cast<size_t>(at - from), malformed);
    malformed = false;
  }
  error = U_ZERO_ERROR;
  (*icu)->on_malformed(converter, (*icu)->substitute, nullptr, nullptr, nullptr, &error);
}

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
