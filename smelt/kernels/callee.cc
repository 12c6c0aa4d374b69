#include "smelt/kernels/callee.h"

#include "absl/hash/hash.h"
#include "smelt/graph/attr_key.h"

namespace smelt {

Callee::Callee() {
  static const auto* none = new Callee(std::string());
  made_ = none->made_;
}

Callee::Callee(FuncAttr f, std::string key) {
  const size_t hash = absl::HashOf(f.name, key);
  made_ = std::make_shared<const Made>(Made{std::move(f), std::move(key), hash});
}

StatusOr<Callee> Callee::Of(FuncAttr f) {
  if (f.attrs == nullptr) return Callee(std::move(f), "");
  auto key = CanonicalKey(*f.attrs);
  if (!key.ok()) {
    return Prefix(key.status(), absl::StrCat("cannot instantiate function '", f.name, "': "));
  }
  return Callee(std::move(f), *std::move(key));
}

}  // namespace smelt
