// Lookup tables, the resource behind the LookupTable ops.
#ifndef SMELT_KERNELS_STATE_TABLES_H_
#define SMELT_KERNELS_STATE_TABLES_H_

#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "smelt/kernels/kernel.h"

namespace smelt {

// A map from keys (string, int32, int64) to values (any type, each of one shape). Thread safe.
// Callers have checked dtypes; implementations check shapes.
class LookupTable : public Resource {
 public:
  static constexpr absl::string_view kKind = "hash_table";
  LookupTable(Dtype key_dtype, Dtype value_dtype, const Shape& key_shape, const Shape& value_shape)
      : key_dtype_(key_dtype),
        value_dtype_(value_dtype),
        key_shape_(key_shape),
        value_shape_(value_shape) {}
  absl::string_view kind() const final { return kKind; }

  Dtype key_dtype() const { return key_dtype_; }
  Dtype value_dtype() const { return value_dtype_; }
  const Shape& value_shape() const { return value_shape_; }

  virtual int64_t size() const = 0;
  // The values of the keys, of shape [keys..., value_shape]. Keys that are not there take the
  // default, which is one value or one for each key. FAILED_PRECONDITION before a table is
  // initialized.
  virtual StatusOr<Tensor> Find(const Tensor& keys, const Tensor& default_value,
                                Allocator* allocator) const = 0;
  // Adds or replaces entries; UNIMPLEMENTED, as Remove, for tables that are filled once.
  virtual Status Insert(const Tensor& keys, const Tensor& values) = 0;
  virtual Status Remove(const Tensor& keys) = 0;
  // Replaces all entries.
  virtual Status Import(const Tensor& keys, const Tensor& values) = 0;
  // Fills a table that is filled once. FAILED_PRECONDITION when it is filled with another number of
  // entries, or a key has two values; INVALID_ARGUMENT for other tables.
  virtual Status Initialize(const Tensor& keys, const Tensor& values) = 0;
  // All keys and their values.
  virtual StatusOr<std::pair<Tensor, Tensor>> Export(Allocator* allocator) const = 0;

 protected:
  // How many keys a tensor of shape [..., key_shape] holds, and the shape of their values.
  StatusOr<std::pair<int64_t, Shape>> CheckKeys(const Tensor& keys) const;
  Status CheckValues(const Tensor& values, const Shape& want) const;
  // Whether `value` is one default for each key (of shape `want`), not one for all.
  StatusOr<bool> CheckDefault(const Tensor& value, const Shape& want) const;

 private:
  const Dtype key_dtype_;
  const Dtype value_dtype_;
  const Shape key_shape_;
  const Shape value_shape_;
};

// A hash table with one value per key, each of value_shape. `fill_once`: only Initialize and an
// equal Import fill it.
StatusOr<std::shared_ptr<LookupTable>> MakeHashTable(Dtype key_dtype, Dtype value_dtype,
                                                     const Shape& value_shape, bool fill_once);

// An open-addressing table whose export is its buckets, empty ones included. INVALID_ARGUMENT for
// parameters that TensorFlow refuses.
struct DenseTableOptions {
  Dtype key_dtype;
  Dtype value_dtype;
  Shape value_shape;
  int64_t buckets;
  float max_load;
  Tensor empty_key;
  Tensor deleted_key;  // invalid: keys are never removed
};
StatusOr<std::shared_ptr<LookupTable>> MakeDenseTable(const DenseTableOptions& options);

// What of a text file's lines becomes a key and a value: a column, the whole line or its number.
struct TextColumns {
  static constexpr int64_t kWholeLine = -2;
  static constexpr int64_t kLineNumber = -1;
  int64_t key_index = kWholeLine;
  int64_t value_index = kLineNumber;
  int64_t vocab_size = -1;  // lines to read; -1: all
  int64_t offset = 0;       // added to line numbers
  char delimiter = '\t';
};
// Initializes the table from the lines of the file. INVALID_ARGUMENT for lines that do not parse or
// are too few, and for columns that do not fit the table's types; OUT_OF_RANGE for an empty file;
// PERMISSION_DENIED for one that `files` does not permit.
Status InitializeFromText(const std::string& path, const TextColumns& columns, LookupTable& table,
                          const FileSystem& files);

// The table whose handle is input i; a handle that holds no resource is looked up by its name in
// the step's resources. Errors as ResourceOfKind.
StatusOr<std::shared_ptr<LookupTable>> FindTable(const OpContext& ctx, int i);

}  // namespace smelt

#endif  // SMELT_KERNELS_STATE_TABLES_H_
