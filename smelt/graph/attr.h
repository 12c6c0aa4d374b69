// Attribute values of nodes and functions: what TensorFlow's AttrValue holds, in smelt's own types.
#ifndef SMELT_GRAPH_ATTR_H_
#define SMELT_GRAPH_ATTR_H_

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// A tensor as a file states it: possibly fewer values than elements (the last one repeats, none
// means zeros), possibly a shape that no tensor can have. Immutable.
struct TensorValue {
  Dtype dtype = Dtype::kInvalid;
  PartialShape shape;
  Tensor values;  // rank 1, at most as many elements as `shape`; invalid: none stated
  // Why no Tensor can be made of it, or empty.
  std::string problem;
  // The message as a file had it, where the fields above do not say all of it (handles, odd shapes,
  // unknown fields): written back verbatim. Empty otherwise.
  std::string wire;

  static std::shared_ptr<const TensorValue> Of(Tensor t);
  // The whole tensor. Shares the bytes of `values` when all are stated. INVALID_ARGUMENT when the
  // shape is not fully defined or the values do not fit; RESOURCE_EXHAUSTED when too large.
  StatusOr<Tensor> Materialize() const;
  // Elements of `shape`; -1 unless it is fully known.
  int64_t num_elements() const;
  // How many of the values say all: the last stands for all that follow, none for zeros. All of
  // them where elements are no plain bytes.
  int64_t needed_values() const;
};

// Types of inputs or of outputs; those of most nodes fit without an allocation.
using DtypeVector = absl::InlinedVector<Dtype, 16>;

class AttrMap;

// A function by name, with the attributes that its instantiation gives (AttrValue.func).
struct FuncAttr {
  std::string name;
  std::shared_ptr<const AttrMap> attrs;  // nullptr: none
};

// The name of an attribute of the enclosing function, whose value the caller of the function gives
// (AttrValue.placeholder).
struct PlaceholderAttr {
  std::string name;
};

// An AttrValue.list without elements: the message then does not say their type.
struct EmptyList {};

class Attr {
 public:
  using Value =
      std::variant<std::monostate, std::string, int64_t, float, bool, Dtype, PartialShape,
                   std::shared_ptr<const TensorValue>, FuncAttr, PlaceholderAttr, EmptyList,
                   std::vector<std::string>, std::vector<int64_t>, std::vector<float>,
                   std::vector<bool>, std::vector<Dtype>, std::vector<PartialShape>,
                   std::vector<std::shared_ptr<const TensorValue>>, std::vector<FuncAttr>>;

  Attr() = default;
  template <typename T>
  // Implicit, so that a value of any kind can be given where an attribute is asked for.
  requires(!std::is_same_v<std::decay_t<T>, Attr> && std::is_constructible_v<Value, T>)
      Attr(T&& v)  // NOLINT
      : value_(std::forward<T>(v)) {}
  Attr(const char* s) : value_(std::string(s)) {}        // NOLINT
  Attr(absl::string_view s) : value_(std::string(s)) {}  // NOLINT
  Attr(int i) : value_(int64_t{i}) {}                    // NOLINT
  Attr(const Tensor& t) : value_(TensorValue::Of(t)) {}  // NOLINT
  Attr(const DtypeVector& types)                         // NOLINT
      : value_(std::vector<Dtype>(types.begin(), types.end())) {}

  const Value& value() const { return value_; }
  Value& value() { return value_; }
  // nullptr when it holds something else.
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&value_);
  }
  // True of EmptyList (number 10) and of every vector, which follow it in Value.
  bool is_list() const { return value_.index() >= 10; }
  // Deep equality; floats by their bits, tensors by the bytes of their stated values.
  bool operator==(const Attr& o) const;

 private:
  Value value_;
};

bool operator==(const FuncAttr& a, const FuncAttr& b);

// A small sorted map: nodes have few attributes. Copies share their entries until one of them
// changes, for a node is copied more often than changed: with each graph, and with each body that
// stands for a call. Copies may be used by different threads.
//
// Most questions are for attributes that a node lacks (marks), and whole graphs are searched for
// functions: a few bits beside the entries say no without a look at them.
class AttrMap {
 public:
  using Entry = std::pair<std::string, Attr>;
  using Entries = std::vector<Entry>;  // by name

  AttrMap() = default;
  AttrMap(const AttrMap& o) : shared_(o.shared_), may_have_(o.may_have_) {
    if (shared_ != nullptr) shared_->maps.fetch_add(1, std::memory_order_relaxed);
  }
  AttrMap(AttrMap&& o) noexcept
      : shared_(std::exchange(o.shared_, nullptr)), may_have_(std::exchange(o.may_have_, 0)) {}
  AttrMap& operator=(AttrMap o) noexcept {
    std::swap(shared_, o.shared_);
    std::swap(may_have_, o.may_have_);
    return *this;
  }
  ~AttrMap() { Leave(); }

  const Attr* Find(absl::string_view name) const {
    return (may_have_ & BitOf(name)) == 0 ? nullptr : FindEntry(name);
  }
  // False: no value is a function, nor a list of them.
  bool may_have_functions() const { return (may_have_ & kFunctions) != 0; }
  void Set(absl::string_view name, Attr value);
  // Room for so many, when they are about to be set.
  void Reserve(size_t size) {
    if (size > 0) Own().reserve(size);
  }
  bool Erase(absl::string_view name);  // false when there was none
  bool empty() const { return entries().empty(); }
  size_t size() const { return entries().size(); }
  Entries::const_iterator begin() const { return entries().begin(); }
  Entries::const_iterator end() const { return entries().end(); }
  bool operator==(const AttrMap& o) const {
    return shared_ == o.shared_ || entries() == o.entries();
  }

  // For those who change the value; nullptr when there is none. Valid until the map is changed
  // otherwise, or copied.
  Attr* FindToChange(absl::string_view name);
  // The same for values of any name. The names stay.
  std::span<Entry> EntriesToChange() {
    may_have_ |= kFunctions;
    return Own();
  }

 private:
  struct Shared {
    std::atomic<int> maps = 1;
    Entries entries;
  };
  static const Entries& None();
  static constexpr uint64_t kFunctions = uint64_t{1} << 63;
  // One of the other bits. Those of common attributes and marks differ.
  static uint64_t BitOf(absl::string_view name) {
    if (name.empty()) return 1;
    const auto at = [&](size_t i) { return size_t{static_cast<unsigned char>(name[i])}; };
    const size_t n = name.size();
    return uint64_t{1} << ((5 * n + 5 * at(0) + 3 * at(n / 2) + 7 * at(n - 1)) % 63);
  }
  const Attr* FindEntry(absl::string_view name) const;

  const Entries& entries() const { return shared_ == nullptr ? None() : shared_->entries; }
  // The entries, shared with nobody.
  Entries& Own();
  void Leave();

  Shared* shared_ = nullptr;  // nullptr: there are no entries
  uint64_t may_have_ = 0;     // bits of names that are there, and perhaps of some that were
};

namespace internal {
template <typename A, typename F>
void ForEachFuncOf(A& attr, F& fn) {
  if (auto* f = std::get_if<FuncAttr>(&attr.value())) fn(*f);
  if (auto* l = std::get_if<std::vector<FuncAttr>>(&attr.value())) {
    for (auto& f : *l) fn(f);
  }
}
}  // namespace internal

// Calls fn(const FuncAttr&) for each function that the attributes name. Functions that the
// attributes of a FuncAttr name in turn are not visited.
template <typename F>
void ForEachFunc(const AttrMap& attrs, F fn) {
  if (!attrs.may_have_functions()) return;
  for (const auto& [name, attr] : attrs) internal::ForEachFuncOf(attr, fn);
}
// The same with fn(FuncAttr&).
template <typename F>
void ChangeEachFunc(AttrMap& attrs, F fn) {
  bool any = false;
  ForEachFunc(attrs, [&](const FuncAttr&) { any = true; });
  if (!any) return;
  for (auto& [name, attr] : attrs.EntriesToChange()) internal::ForEachFuncOf(attr, fn);
}

}  // namespace smelt

#endif  // SMELT_GRAPH_ATTR_H_
