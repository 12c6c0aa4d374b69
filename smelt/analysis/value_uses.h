// What a model does with the values that it is fed: which tables integers index, what strings hold.
// For requests that are made up: a model refuses an index beyond its table, and bytes that are no
// image.
#ifndef SMELT_ANALYSIS_VALUE_USES_H_
#define SMELT_ANALYSIS_VALUE_USES_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

struct FeatureUse;

// Everything that is known to be done with one tensor's elements. A use that is not found leaves
// its field as it is: makers must not rely on what stands here being all.
struct ValueUse {
  // They index tables or ranges; this is the least number of rows. 0: none that is known.
  int64_t rows = 0;
  std::vector<const Node*> tables;  // lookup tables in which they are looked up, without repetition
  // Of strings: what reads them.
  bool number = false;   // StringToNumber
  bool integer = false;  // StringToNumber to integers
  bool words = false;    // split into words first
  bool base64 = false;   // DecodeBase64 first
  std::string decoder;   // the op that decodes an image or sound: "DecodeJpeg"
  DtypeVector columns;   // DecodeCSV: the types of its fields
  // tf.Examples: the features that are read, by key.
  std::vector<std::unique_ptr<FeatureUse>> features;
  // Parts of sparse tensors: indices [n, rank], one value each, and the shape [rank].
  bool sparse_indices = false, sparse_shape = false;
};

struct FeatureUse {
  std::string key;
  Dtype dtype = Dtype::kInvalid;
  // Of one example; unknown sizes, and an unknown rank, are as many values as there are.
  PartialShape shape;
  ValueUse use;
};

// By position in `fed`, endpoints of the main graph. Values are followed through ops that move or
// convert them, control flow, calls and lists; constants through the arguments of functions.
std::vector<ValueUse> FindValueUses(const Graph& main, std::span<const Endpoint> fed);

}  // namespace smelt

#endif  // SMELT_ANALYSIS_VALUE_USES_H_
