#include "smelt/kernels/custom/lite_library.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/custom/lite_operator.h"

namespace smelt {
namespace {

constexpr absl::string_view kRegister = "Register_", kOperator = "Operator";

struct LiteOps {
  absl::Mutex mutex;
  // Of functions, so that a library that is named twice brings nothing twice.
  std::map<std::string, std::pair<void*, LiteOp>, std::less<>> ops ABSL_GUARDED_BY(mutex);
};

LiteOps& KnownLiteOps() {
  static auto* ops = new LiteOps;
  return *ops;
}

// How many symbols the library's table has: its hash table ends with the chain of its last bucket.
uint32_t CountSymbols(const uint32_t* hash) {
  const uint32_t buckets = hash[0], first = hash[1], bloom_words = hash[2];
  const uint32_t* bucket = hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i) last = std::max(last, bucket[i]);
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

struct LibrarySymbols {
  std::vector<std::string> functions;  // that it defines for others
  bool makes_operators = false;        // it reads TfLiteOperatorCreate, or has it itself
};

// Empty where the library has no table of symbols that is known here.
LibrarySymbols SymbolsOf(void* library) {
  link_map* map = nullptr;
  LibrarySymbols out;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return out;
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  uint32_t count = 0;
  for (const ElfW(Dyn)* d = map->l_ld; d->d_tag != DT_NULL; ++d) {
    const auto address = static_cast<uintptr_t>(d->d_un.d_ptr);
    if (d->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (d->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(address);
    // The number of chains is that of symbols.
    if (d->d_tag == DT_HASH) count = reinterpret_cast<const uint32_t*>(address)[1];
    if (d->d_tag == DT_GNU_HASH && count == 0) {
      count = CountSymbols(reinterpret_cast<const uint32_t*>(address));
    }
  }
  if (symbols == nullptr || names == nullptr) return out;
  for (uint32_t i = 0; i < count; ++i) {
    const ElfW(Sym)& s = symbols[i];
    const absl::string_view name = names + s.st_name;
    out.makes_operators |= absl::StartsWith(name, "TfLiteOperatorCreate");
    if ((s.st_info & 0xf) == STT_FUNC && s.st_shndx != SHN_UNDEF) out.functions.emplace_back(name);
  }
  return out;
}

// A function's name without what C++ adds, of one that takes nothing; else empty. Of C it is not
// known what it takes. Those of TensorFlow Lite's own operators are no custom ones.
std::string PlainName(const std::string& symbol) {
  if (!absl::StartsWith(symbol, "_Z")) return symbol;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0) return "";
  absl::string_view name = demangled.get();
  if (!absl::ConsumeSuffix(&name, "()")) return "";
  if (absl::StartsWith(name, "tflite::ops::builtin::")) return "";
  const size_t colons = name.rfind("::");
  if (colons != absl::string_view::npos) name.remove_prefix(colons + 2);
  return std::string(name);
}

bool Brings(const LibrarySymbols& library, const std::string& symbol) {
  const std::string name = PlainName(symbol);
  if (absl::StartsWith(name, kRegister)) return true;
  return library.makes_operators && absl::EndsWith(name, kOperator) &&
         !absl::StartsWith(name, "TfLite");
}

template <typename Result>
const void* Call(void* address) {
  Result* (*function)() = nullptr;
  std::memcpy(&function, &address, sizeof(address));
  return function();
}

// What the function says of its operator.
StatusOr<MadeLiteOp> AskFor(const LibrarySymbols& library, void* address,
                            const std::string& symbol) {
  const void* said = nullptr;
  try {
    said =
        library.makes_operators ? Call<TfLiteOperator>(address) : Call<TfLiteRegistration>(address);
  } catch (...) {
    return Internal("'", symbol, "' throws an exception");
  }
  if (said == nullptr) return Internal("'", symbol, "' returns nothing");
  if (std::optional<MadeLiteOp> made = FindMadeLiteOp(said)) {
    if (!made->custom) return InvalidArgument("the operator of '", symbol, "' is no custom one");
    return *std::move(made);
  }
  if (library.makes_operators && absl::EndsWith(PlainName(symbol), kOperator)) {
    return InvalidArgument("'", symbol, "' returns no operator of TfLiteOperatorCreate");
  }
  const auto& r = *static_cast<const TfLiteRegistration*>(said);
  return MadeLiteOp{
      r.custom_name == nullptr ? "" : r.custom_name, true, {r.init, r.free, r.prepare, r.invoke}};
}

Status AddLiteOp(void* library, const LibrarySymbols& symbols, const LiteSymbol& s) {
  void* address = dlsym(library, s.symbol.c_str());
  if (address == nullptr) return NotFound("it exports no '", s.symbol, "'");
  ASSIGN_OR_RETURN(const MadeLiteOp made, AskFor(symbols, address, s.symbol));
  if (!made.op.invoke) {
    return InvalidArgument("the operator of '", s.symbol, "' has no invoke");
  }
  std::string name = s.op.empty() ? made.name : s.op;
  if (name.empty()) {
    const std::string function = PlainName(s.symbol);
    absl::string_view rest = function;
    if (!absl::ConsumePrefix(&rest, kRegister)) absl::ConsumeSuffix(&rest, kOperator);
    name = std::string(rest.empty() ? absl::string_view(s.symbol) : rest);
  }
  LiteOps& known = KnownLiteOps();
  absl::MutexLock lock(&known.mutex);
  const auto [at, added] = known.ops.try_emplace(name, address, made.op);
  if (!added && at->second.first != address) {
    return AlreadyExists("the custom operator '", name, "' is known already");
  }
  return OkStatus();
}

}  // namespace

StatusOr<int> AddLiteOps(void* library, std::span<const LiteSymbol> symbols) {
  std::vector<LiteSymbol> all(symbols.begin(), symbols.end());
  const LibrarySymbols of = SymbolsOf(library);
  if (symbols.empty()) {
    for (const std::string& name : of.functions) {
      if (Brings(of, name)) all.push_back({"", name});
    }
  }
  for (const LiteSymbol& s : all) RETURN_IF_ERROR(AddLiteOp(library, of, s));
  return static_cast<int>(all.size());
}

const LiteOp* FindLiteOp(absl::string_view code) {
  LiteOps& known = KnownLiteOps();
  absl::MutexLock lock(&known.mutex);
  const auto at = known.ops.find(std::string(code));
  return at == known.ops.end() ? nullptr : &at->second.second;  // nobody removes one
}

std::vector<std::string> LiteOpNames() {
  LiteOps& known = KnownLiteOps();
  absl::MutexLock lock(&known.mutex);
  std::vector<std::string> out;
  for (const auto& [name, op] : known.ops) out.push_back(name);
  return out;
}

}  // namespace smelt
