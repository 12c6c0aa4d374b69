// What smelt show says of a .tflite file: the file as the schema has it, and what its bytes are
// for. Thread safe.
#ifndef SMELT_CLI_SHOW_LITE_FACTS_H_
#define SMELT_CLI_SHOW_LITE_FACTS_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "smelt/wire/tflite/conversion.h"
#include "smelt/wire/tflite/tflite.h"

namespace smelt {

// Operators of one kind, in all subgraphs.
struct LiteKindFacts {
  std::string op;
  bool custom = false;
  int64_t count = 0;
  std::set<int32_t> versions;
  // Of buffers that they read; one that several operators read counts for the first of them.
  int64_t constant_bytes = 0;
  // Of the tensors that they write, free sizes as the file states them; those without a size, as
  // strings, not counted.
  int64_t output_bytes = 0;
};

// A constant by its place.
struct LitePlace {
  size_t subgraph = 0, tensor = 0;
};

struct LiteFileFacts {
  std::string path;
  int64_t bytes = 0;
  std::vector<int64_t> buffer_offsets;  // from the start of the file; -1: the buffer is empty
  std::vector<LiteKindFacts> kinds;     // most constant bytes first, then most operators, then name
  int64_t constant_bytes = 0;           // of all buffers that tensors have, each once
  int64_t constant_buffers = 0;
  int64_t unread_bytes = 0;  // of these, those that no operator reads
  int64_t metadata_bytes = 0;
  // Tensors with the largest buffers, each buffer once; at most kMostLargest.
  std::vector<LitePlace> largest;
  static constexpr size_t kMostLargest = 10;
};

// `file`: the bytes that the model was read of.
LiteFileFacts LiteFactsOf(const LiteModel& model, const std::string& path, absl::string_view file);

// Bytes of a tensor's values by its shape; -1 where its elements have no size, or it is too large.
int64_t LiteValueBytes(const LiteTensor& tensor);

// All options of a builtin in the schema's order, those that the file leaves out as the schema has
// them; of a custom operator what its FlexBuffer says in numbers, truth values and short texts.
std::vector<std::pair<std::string, Attr>> LiteOptionsOf(const LiteOperator& op);

// A metadata buffer as text, without the zeros at its end: where it has at most 256 bytes, all of
// printable ASCII, else empty.
std::string LiteMetadataText(absl::string_view bytes);
// What CONVERSION_METADATA says; nothing for other metadata, and for bytes that are none.
std::optional<LiteConversion> LiteConversionOf(const LiteModel& model, const LiteMetadata& m);

// For people; a newline at its end.
std::string LiteText(const LiteModel& model, const LiteFileFacts& facts);
// One JSON document of all of the file but the constants' values, a newline at its end.
std::string LiteJson(const LiteModel& model, const LiteFileFacts& facts);
// A picture in SVG: operators in the order in which they run, with what they read and how many
// bytes of constants each has.
std::string LiteSvg(const LiteModel& model, const LiteFileFacts& facts);

}  // namespace smelt

#endif  // SMELT_CLI_SHOW_LITE_FACTS_H_
