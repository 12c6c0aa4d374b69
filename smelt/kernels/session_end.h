// For resources that do something in threads of their own.
#ifndef SMELT_KERNELS_SESSION_END_H_
#define SMELT_KERNELS_SESSION_END_H_

#include <functional>

namespace smelt {

// A second face of a FunctionRunner. Thread safe.
class SessionEnd {
 public:
  virtual ~SessionEnd() = default;
  // `stop` is called once, when the session ends and everything that the threads refer to is still
  // there. It returns when they have ended.
  virtual void AtEnd(std::function<void()> stop) = 0;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_SESSION_END_H_
