// MutableDenseHashTable: open addressing; Export returns the buckets in their order.
//
// Keys may be tensors of the empty key's shape. A key's first bucket is its hash modulo the bucket
// count (a power of two), the next ones lie 1, 3, 6, ... further on, as in TensorFlow, so that an
// exported table is the same.
#include <algorithm>
#include <vector>

#include "smelt/base/hash.h"
#include "smelt/kernels/state/tables.h"

namespace smelt {
namespace {

// Whether row i of a equals row j of b: rows of `width` elements of one dtype.
bool DenseEqual(const Tensor& a, int64_t i, const Tensor& b, int64_t j, int64_t width) {
  if (a.dtype() == Dtype::kString) {
    return std::equal(a.data<std::string>() + i * width, a.data<std::string>() + (i + 1) * width,
                      b.data<std::string>() + j * width);
  }
  const auto size = static_cast<int64_t>(DtypeSize(a.dtype())) * width;
  return size == 0 ||
         std::memcmp(static_cast<const char*>(a.raw()) + i * size,
                     static_cast<const char*>(b.raw()) + j * size, static_cast<size_t>(size)) == 0;
}

void DenseCopy(const Tensor& from, int64_t i, Tensor& to, int64_t j, int64_t width) {
  switch (from.dtype()) {
    case Dtype::kString:
      std::copy_n(from.data<std::string>() + i * width, width, to.data<std::string>() + j * width);
      return;
    case Dtype::kResource:
      std::copy_n(from.data<ResourceHandle>() + i * width, width,
                  to.data<ResourceHandle>() + j * width);
      return;
    case Dtype::kVariant:
      std::copy_n(from.data<Variant>() + i * width, width, to.data<Variant>() + j * width);
      return;
    default: {
      const auto size = static_cast<int64_t>(DtypeSize(from.dtype())) * width;
      if (size == 0) return;
      std::memcpy(static_cast<char*>(to.raw()) + j * size,
                  static_cast<const char*>(from.raw()) + i * size, static_cast<size_t>(size));
    }
  }
}

uint64_t DenseHashOne(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case Dtype::kInt32:
      return static_cast<uint64_t>(int64_t{t.data<int32_t>()[i]});
    case Dtype::kInt64:
      return static_cast<uint64_t>(t.data<int64_t>()[i]);
    default:
      return Hash64(t.data<std::string>()[i]);
  }
}

class DenseTable final : public LookupTable {
 public:
  explicit DenseTable(const DenseTableOptions& o)
      : LookupTable(o.key_dtype, o.value_dtype, o.empty_key.shape(), o.value_shape),
        max_load_(o.max_load),
        key_width_(o.empty_key.num_elements()),
        value_width_(o.value_shape.num_elements()),
        empty_key_(o.empty_key),
        deleted_key_(o.deleted_key) {}

  Status Reset(int64_t buckets) {
    absl::WriterMutexLock lock(&mutex_);
    return Allocate(buckets);
  }

  int64_t size() const override {
    absl::ReaderMutexLock lock(&mutex_);
    return entries_;
  }

  StatusOr<Tensor> Find(const Tensor& keys, const Tensor& default_value,
                        Allocator* allocator) const override {
    ASSIGN_OR_RETURN(auto counted, CheckKeys(keys));
    const auto& [n, shape] = counted;
    RETURN_IF_ERROR(CheckDefault(default_value, shape).status());
    ASSIGN_OR_RETURN(Tensor out, Tensor::Make(value_dtype(), shape, allocator));
    absl::ReaderMutexLock lock(&mutex_);
    for (int64_t i = 0; i < n; ++i) {
      RETURN_IF_ERROR(RefuseReserved(keys, i));
      int64_t free = -1;
      const int64_t at = Locate(keys, i, &free);
      if (at >= 0) {
        DenseCopy(values_, at, out, i, value_width_);
      } else {
        // The first default is all keys', as TensorFlow has it.
        DenseCopy(default_value, 0, out, i, value_width_);
      }
    }
    return out;
  }

  Status Insert(const Tensor& keys, const Tensor& values) override {
    ASSIGN_OR_RETURN(auto counted, CheckKeys(keys));
    RETURN_IF_ERROR(CheckValues(values, counted.second));
    absl::WriterMutexLock lock(&mutex_);
    return Put(keys, values, counted.first, /*skip_reserved=*/false);
  }

  Status Remove(const Tensor& keys) override {
    ASSIGN_OR_RETURN(auto counted, CheckKeys(keys));
    if (!deleted_key_.valid()) {
      return Unimplemented("Remove not supported by tables without a deleted key");
    }
    absl::WriterMutexLock lock(&mutex_);
    for (int64_t i = 0; i < counted.first; ++i) {
      RETURN_IF_ERROR(RefuseReserved(keys, i));
      int64_t free = -1;
      const int64_t at = Locate(keys, i, &free);
      if (at < 0) continue;
      DenseCopy(deleted_key_, 0, keys_, at, key_width_);
      --entries_;
    }
    return OkStatus();
  }

  // Keys and values are buckets as Export returns them: reserved keys are skipped, and the table
  // has as many buckets, rounded up to a power of two.
  Status Import(const Tensor& key_rows, const Tensor& value_rows) override {
    const Tensor keys = empty_key_.rank() == 0 ? WithoutRowsOfOne(key_rows) : key_rows;
    const Tensor values = value_shape().rank() == 0 ? WithoutRowsOfOne(value_rows) : value_rows;
    ASSIGN_OR_RETURN(auto counted, CheckKeys(keys));
    RETURN_IF_ERROR(CheckValues(values, counted.second));
    int64_t buckets = 4;
    while (buckets < counted.first) buckets *= 2;
    absl::WriterMutexLock lock(&mutex_);
    RETURN_IF_ERROR(Allocate(buckets));
    return Put(keys, values, counted.first, /*skip_reserved=*/true);
  }

  Status Initialize(const Tensor&, const Tensor&) override {
    return InvalidArgument("Table is not initializable.");
  }

  StatusOr<std::pair<Tensor, Tensor>> Export(Allocator* allocator) const override {
    absl::ReaderMutexLock lock(&mutex_);
    ASSIGN_OR_RETURN(Tensor keys, keys_.Clone(allocator));
    ASSIGN_OR_RETURN(Tensor values, values_.Clone(allocator));
    // As in TensorFlow, scalars are exported as rows of one element.
    if (keys.rank() == 1) keys = keys.WithShape(Shape({buckets_, 1}));
    if (values.rank() == 1) values = values.WithShape(Shape({buckets_, 1}));
    return std::make_pair(std::move(keys), std::move(values));
  }

 private:
  static Tensor WithoutRowsOfOne(const Tensor& t) {
    return t.rank() == 2 && t.dim(1) == 1 ? t.WithShape(Shape({t.dim(0)})) : t;
  }

  Status Allocate(int64_t buckets) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Shape key_shape = empty_key_.shape(), shape = value_shape();
    key_shape.Insert(0, buckets);
    shape.Insert(0, buckets);
    ASSIGN_OR_RETURN(key_shape, Shape::Make(key_shape.dims()));
    ASSIGN_OR_RETURN(shape, Shape::Make(shape.dims()));
    ASSIGN_OR_RETURN(keys_, Tensor::Make(key_dtype(), key_shape));
    ASSIGN_OR_RETURN(values_, Tensor::Zeros(value_dtype(), shape));
    for (int64_t i = 0; i < buckets; ++i) DenseCopy(empty_key_, 0, keys_, i, key_width_);
    buckets_ = buckets;
    entries_ = 0;
    return OkStatus();
  }

  Status Put(const Tensor& keys, const Tensor& values, int64_t n, bool skip_reserved)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // All keys are checked first, so that an error leaves the table as it was.
    for (int64_t i = 0; !skip_reserved && i < n; ++i) RETURN_IF_ERROR(RefuseReserved(keys, i));
    if (!skip_reserved) RETURN_IF_ERROR(Reserve(entries_ + n));
    for (int64_t i = 0; i < n; ++i) {
      if (skip_reserved && Reserved(keys, i)) continue;
      int64_t free = -1;
      int64_t at = Locate(keys, i, &free);
      if (at < 0) {
        if (free < 0) return Internal("Internal error in MutableDenseHashTable try insert");
        at = free;
        DenseCopy(keys, i, keys_, at, key_width_);
        ++entries_;
      }
      DenseCopy(values, i, values_, at, value_width_);
    }
    return OkStatus();
  }

  // Room for so many entries within the load factor; the entries are placed anew.
  Status Reserve(int64_t entries) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    int64_t buckets = buckets_;
    while (static_cast<double>(entries) > static_cast<double>(buckets) * max_load_) {
      if (__builtin_mul_overflow(buckets, 2, &buckets)) {
        return ResourceExhausted("too many entries for a table");
      }
    }
    if (buckets == buckets_) return OkStatus();
    const Tensor keys = keys_, values = values_;
    const int64_t old = buckets_;
    RETURN_IF_ERROR(Allocate(buckets));
    return Put(keys, values, old, /*skip_reserved=*/true);
  }

  // The bucket of key i; -1 when it is not there, with *free the first bucket that may take it (-1:
  // none).
  int64_t Locate(const Tensor& keys, int64_t i, int64_t* free) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    uint64_t hash = 0;
    for (int64_t j = 0; j < key_width_; ++j) {
      const uint64_t one = DenseHashOne(keys, i * key_width_ + j);
      hash = keys.rank() == 0 || empty_key_.rank() == 0 ? one : Hash64Combine(hash, one);
    }
    const auto mask = static_cast<uint64_t>(buckets_ - 1);
    uint64_t at = hash & mask;
    for (int64_t probe = 1; probe <= buckets_; ++probe) {
      const auto b = static_cast<int64_t>(at);
      if (DenseEqual(keys_, b, keys, i, key_width_)) return b;
      const bool empty = DenseEqual(keys_, b, empty_key_, 0, key_width_);
      if (*free < 0 &&
          (empty || (deleted_key_.valid() && DenseEqual(keys_, b, deleted_key_, 0, key_width_)))) {
        *free = b;
      }
      if (empty) return -1;
      at = (at + static_cast<uint64_t>(probe)) & mask;
    }
    return -1;
  }

  bool Reserved(const Tensor& keys, int64_t i) const { return !RefuseReserved(keys, i).ok(); }
  Status RefuseReserved(const Tensor& keys, int64_t i) const {
    if (DenseEqual(keys, i, empty_key_, 0, key_width_)) {
      return InvalidArgument("Using the empty_key as a table key is not allowed");
    }
    if (deleted_key_.valid() && DenseEqual(keys, i, deleted_key_, 0, key_width_)) {
      return InvalidArgument("Using the deleted_key as a table key is not allowed");
    }
    return OkStatus();
  }

  const float max_load_;
  const int64_t key_width_;
  const int64_t value_width_;
  const Tensor empty_key_;
  const Tensor deleted_key_;
  mutable absl::Mutex mutex_;
  int64_t buckets_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t entries_ ABSL_GUARDED_BY(mutex_) = 0;
  Tensor keys_ ABSL_GUARDED_BY(mutex_);
  Tensor values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

StatusOr<std::shared_ptr<LookupTable>> MakeDenseTable(const DenseTableOptions& o) {
  if (o.key_dtype != Dtype::kString && o.key_dtype != Dtype::kInt32 &&
      o.key_dtype != Dtype::kInt64) {
    return InvalidArgument("Lookup tables do not have keys of type ", DtypeName(o.key_dtype));
  }
  if (!(o.max_load > 0 && o.max_load < 1)) {
    return InvalidArgument("max_load_factor must be between 0 and 1, got: ", o.max_load);
  }
  if (o.value_shape.rank() > 1) {
    return InvalidArgument("Empty value must be a scalar or a vector, got shape ",
                           o.value_shape.ToString());
  }
  if (o.empty_key.dtype() != o.key_dtype ||
      (o.deleted_key.valid() && o.deleted_key.dtype() != o.key_dtype)) {
    return InvalidArgument("Empty and deleted keys must have type ", DtypeName(o.key_dtype));
  }
  if (o.empty_key.rank() > 1) {
    return InvalidArgument("Empty key must be a scalar or a vector, got shape ",
                           o.empty_key.shape().ToString());
  }
  if (o.empty_key.num_elements() == 0) return InvalidArgument("Empty key has no elements");
  if (o.deleted_key.valid()) {
    if (!(o.deleted_key.shape() == o.empty_key.shape())) {
      return InvalidArgument("Empty and deleted keys must have same shape, got shapes: ",
                             o.empty_key.shape().ToString(), " and ",
                             o.deleted_key.shape().ToString());
    }
    if (o.deleted_key.Identical(o.empty_key)) {
      return InvalidArgument("Empty and deleted keys cannot be equal");
    }
  }
  if (o.buckets < 4 || (o.buckets & (o.buckets - 1)) != 0) {
    return InvalidArgument("Number of buckets must be at least 4 and a power of 2, got: ",
                           o.buckets);
  }
  auto table = std::make_shared<DenseTable>(o);
  RETURN_IF_ERROR(table->Reset(o.buckets));
  return table;
}

}  // namespace smelt
