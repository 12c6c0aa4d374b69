// Why kernels are not bound to the shapes that they are asked for: told to whoever listens in the
// same thread, so that Bind need not compose text that nobody reads.
#ifndef SMELT_KERNELS_DECLINE_TO_BIND_H_
#define SMELT_KERNELS_DECLINE_TO_BIND_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"

namespace smelt {

// Listens in this thread while it lives; the innermost one hears. Made and destroyed by one thread.
class BindListener {
 public:
  BindListener();
  ~BindListener();
  BindListener(const BindListener&) = delete;
  BindListener& operator=(const BindListener&) = delete;

  // What the last kernel that declined said since Clear; empty: nothing.
  const std::string& why() const { return why_; }
  void Clear() { why_.clear(); }

  // nullptr: nobody listens in this thread.
  static BindListener* Current();
  void Hear(std::string why) { why_ = std::move(why); }

 private:
  BindListener* const outer_;
  std::string why_;
};

// `return DeclineToBind(...)` is what Bind and BindThen say in the place of nullptr.
template <typename... Parts>
std::nullptr_t DeclineToBind(const Parts&... parts) {
  if (BindListener* listener = BindListener::Current()) listener->Hear(absl::StrCat(parts...));
  return nullptr;
}

}  // namespace smelt

#endif  // SMELT_KERNELS_DECLINE_TO_BIND_H_
