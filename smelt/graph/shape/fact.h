// What a walk of shape inference knows of one tensor, and of a walked function.
#ifndef SMELT_GRAPH_SHAPE_FACT_H_
#define SMELT_GRAPH_SHAPE_FACT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/graph/shape/rules.h"
#include "smelt/graph/shape/values.h"

namespace smelt {

struct Fact {
  PartialShape shape;
  PartialShape held;
  std::optional<IntVector> value;
  Tensor constant;
};

inline Fact CommonFact(const Fact& a, const Fact& b) {
  Fact out;
  out.shape = CommonShape(a.shape, b.shape);
  out.held = CommonShape(a.held, b.held);
  if (a.value && a.value == b.value) {
    out.value = a.value;
    out.constant = a.constant;
  }
  return out;
}

inline void AppendKey(const PartialShape& shape, std::string* key) {
  absl::StrAppend(key, shape.known_rank() ? absl::StrJoin(shape.dims(), ",") : "?", ";");
}

// Facts with one key are the same.
inline void AppendKey(const Fact& f, std::string* key) {
  AppendKey(f.shape, key);
  AppendKey(f.held, key);
  if (f.constant.valid() && IsPod(f.constant.dtype())) {
    key->append(static_cast<const char*>(f.constant.raw()), f.constant.bytes());
  } else if (f.value) {
    absl::StrAppend(key, f.value->scalar ? "=" : "=v", absl::StrJoin(f.value->values, ","));
  }
  key->push_back(';');
}

// Numbers of symbols, each given once.
class SymbolNames {
 public:
  // Makes sizes that are not known symbols of their own.
  void Name(PartialShape& shape) {
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] == kUnknownDim) shape.Set(i, next_--);
    }
  }
  // Makes symbols that are not among `known` others, so that no two calls of one function share
  // what was first named in it.
  void Rename(PartialShape& shape, absl::flat_hash_map<int64_t, int64_t>& known) {
    for (int i = 0; i < shape.rank(); ++i) {
      if (!IsSymbolicDim(shape[i])) continue;
      const auto [it, added] = known.try_emplace(shape[i], next_);
      if (added) --next_;
      shape.Set(i, it->second);
    }
  }

 private:
  int64_t next_ = kSymbolicDims - 1;
};

// One walk of one function.
struct FunctionWalk {
  ShapeTable table;
  std::vector<Fact> results;
  Status first_error;
};

}  // namespace smelt

#endif  // SMELT_GRAPH_SHAPE_FACT_H_
