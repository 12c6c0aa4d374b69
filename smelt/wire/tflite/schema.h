// What tflite.fbs says, for the files of this folder: the generated classes, and its reflection.
#ifndef SMELT_WIRE_TFLITE_SCHEMA_H_
#define SMELT_WIRE_TFLITE_SCHEMA_H_

#include <flatbuffers/reflection.h>

#include <string>

#include "smelt/base/status.h"
#include "smelt/graph/attr.h"
#include "tflite_generated.h"

namespace smelt {

// Which table of options a builtin has, and in which of the two unions.
struct OptionsTable {
  const reflection::Object* table = nullptr;  // nullptr: none
  uint8_t first = 0;                          // its number in BuiltinOptions; 0: not there
  uint8_t second = 0;                         // in BuiltinOptions2
};
OptionsTable OptionsOf(int builtin);

// What is copied out of a file. Tables may share vectors, so that few bytes could stand for many:
// a file whose copies would take far more than itself is refused.
class CopyBudget {
 public:
  explicit CopyBudget(size_t file_bytes) : left_(64 * (file_bytes + 1024)) {}
  // False: there is no more.
  bool Take(size_t bytes) {
    over_ = over_ || bytes > left_;
    if (!over_) left_ -= bytes;
    return !over_;
  }
  Status Check() const {
    return over_ ? InvalidArgument("its tables share vectors beyond any sense") : OkStatus();
  }

 private:
  size_t left_;
  bool over_ = false;
};

// The fields that differ from their defaults. INVALID_ARGUMENT names a field whose value has no
// name. REQUIRES: `table` was verified as one of the kind.
StatusOr<AttrMap> ReadOptions(const flatbuffers::Table& table, const reflection::Object& kind,
                              CopyBudget& budget);
// INVALID_ARGUMENT names an option that the table does not have, or one of another type.
StatusOr<flatbuffers::Offset<void>> WriteOptions(const AttrMap& options,
                                                 const reflection::Object& kind,
                                                 flatbuffers::FlatBufferBuilder& builder);

}  // namespace smelt

#endif  // SMELT_WIRE_TFLITE_SCHEMA_H_
