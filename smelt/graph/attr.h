// Attribute values of nodes and functions: what TensorFlow's AttrValue holds, in smelt's own types.
#ifndef SMELT_GRAPH_ATTR_H_
#define SMELT_GRAPH_ATTR_H_

#include <memory>
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

// A small sorted map: nodes have few attributes.
class AttrMap {
 public:
  using Entry = std::pair<std::string, Attr>;
  const Attr* Find(absl::string_view name) const;
  Attr* Find(absl::string_view name);
  void Set(absl::string_view name, Attr value);
  bool Erase(absl::string_view name);  // false when there was none
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }
  bool operator==(const AttrMap& o) const { return entries_ == o.entries_; }

 private:
  std::vector<Entry> entries_;  // by name
};

// Calls fn(FuncAttr&) for each function that the attributes name. Functions that the attributes of
// a FuncAttr name in turn are not visited.
template <typename Map, typename F>
void ForEachFunc(Map& attrs, F fn) {
  for (auto& [name, attr] : attrs) {
    if (auto* f = std::get_if<FuncAttr>(&attr.value())) fn(*f);
    if (auto* l = std::get_if<std::vector<FuncAttr>>(&attr.value())) {
      for (auto& f : *l) fn(f);
    }
  }
}

}  // namespace smelt

#endif  // SMELT_GRAPH_ATTR_H_
