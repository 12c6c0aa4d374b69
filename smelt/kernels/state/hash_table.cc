// The hash table behind HashTable, MutableHashTable and MutableHashTableOfTensors.
#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "smelt/kernels/state/tables.h"

namespace smelt {
namespace {

// Values, as rows of `width` elements. Strings and variants are kept as objects, the rest as bytes.
class TableRows {
 public:
  TableRows(Dtype dtype, int64_t width) : dtype_(dtype), width_(static_cast<size_t>(width)) {}

  void Set(size_t row, const Tensor& from, int64_t i) {
    Put(row, from, static_cast<size_t>(i), objects_, strings_);
  }
  void Get(size_t row, Tensor& to, int64_t i) const {
    const size_t at = static_cast<size_t>(i) * width_;
    if (dtype_ == Dtype::kString) {
      std::copy_n(strings_.begin() + static_cast<ptrdiff_t>(row * width_), width_,
                  to.data<std::string>() + at);
    } else if (dtype_ == Dtype::kVariant) {
      std::copy_n(objects_.begin() + static_cast<ptrdiff_t>(row * width_), width_,
                  to.data<Variant>() + at);
    } else {
      const size_t size = DtypeSize(dtype_);
      Copy(static_cast<char*>(to.raw()) + at * size, bytes_.data() + row * width_ * size,
           width_ * size);
    }
  }
  // Removes row `to`: the last row takes its place.
  void Drop(size_t to, size_t last) {
    const size_t size = DtypeSize(dtype_) * width_;
    if (dtype_ == Dtype::kString) {
      MoveRow(strings_, to, last);
    } else if (dtype_ == Dtype::kVariant) {
      MoveRow(objects_, to, last);
    } else {
      if (to != last) std::memcpy(bytes_.data() + to * size, bytes_.data() + last * size, size);
      bytes_.resize(last * size);
    }
  }
  void Clear() {
    strings_.clear();
    objects_.clear();
    bytes_.clear();
  }

 private:
  // Most tables hold single numbers: a copy of a constant size is no call.
  static void Copy(char* to, const char* from, size_t n) {
    if (n == 8) {
      std::memcpy(to, from, 8);
    } else if (n == 4) {
      std::memcpy(to, from, 4);
    } else if (n != 0) {
      std::memcpy(to, from, n);
    }
  }
  void Put(size_t row, const Tensor& from, size_t i, std::vector<Variant>& objects,
           std::vector<std::string>& strings) {
    const size_t end = (row + 1) * width_;
    if (dtype_ == Dtype::kString) {
      if (strings.size() < end) strings.resize(end);
      std::copy_n(from.data<std::string>() + i * width_, width_,
                  strings.begin() + static_cast<ptrdiff_t>(row * width_));
    } else if (dtype_ == Dtype::kVariant) {
      if (objects.size() < end) objects.resize(end);
      std::copy_n(from.data<Variant>() + i * width_, width_,
                  objects.begin() + static_cast<ptrdiff_t>(row * width_));
    } else {
      const size_t size = DtypeSize(dtype_);
      if (bytes_.size() < end * size) bytes_.resize(end * size);
      Copy(bytes_.data() + row * width_ * size,
           static_cast<const char*>(from.raw()) + i * width_ * size, width_ * size);
    }
  }
  template <typename T>
  void MoveRow(std::vector<T>& v, size_t to, size_t last) {
    if (to != last) {
      std::move(v.begin() + static_cast<ptrdiff_t>(last * width_), v.end(),
                v.begin() + static_cast<ptrdiff_t>(to * width_));
    }
    v.resize(last * width_);
  }

  const Dtype dtype_;
  const size_t width_;
  std::vector<std::string> strings_;
  std::vector<Variant> objects_;
  std::vector<char> bytes_;
};

template <typename K>
K TableKeyAt(const Tensor& keys, int64_t i) {
  return keys.data<K>()[i];
}

template <typename K>
class HashTableOf final : public LookupTable {
 public:
  HashTableOf(Dtype value_dtype, const Shape& value_shape, bool fill_once)
      : LookupTable(kDtypeOf<K>, value_dtype, Shape(), value_shape),
        fill_once_(fill_once),
        filled_(!fill_once),
        rows_(value_dtype, value_shape.num_elements()) {}

  int64_t size() const override {
    absl::ReaderMutexLock lock(&mutex_);
    return static_cast<int64_t>(keys_.size());
  }

  StatusOr<Tensor> Find(const Tensor& keys, const Tensor& default_value,
                        Allocator* allocator) const override {
    ASSIGN_OR_RETURN(auto counted, CheckKeys(keys));
    const auto& [n, shape] = counted;
    ASSIGN_OR_RETURN(const bool per_key, CheckDefault(default_value, shape));
    // Tables that are filled once take the first default for all keys, as TensorFlow's do.
    const bool each = per_key && !fill_once_;
    ASSIGN_OR_RETURN(Tensor out, Tensor::Make(value_dtype(), shape, allocator));
    const int64_t width = value_shape().num_elements();
    absl::ReaderMutexLock lock(&mutex_);
    if (!filled_) return FailedPrecondition("Table not initialized.");
    for (int64_t i = 0; i < n; ++i) {
      auto it = index_.find(TableKeyAt<K>(keys, i));
      if (it != index_.end()) {
        rows_.Get(it->second, out, i);
      } else {
        CopyDefault(default_value, each ? i * width : 0, out, i * width, width);
      }
    }
    return out;
  }

  Status Insert(const Tensor& keys, const Tensor& values) override {
    ASSIGN_OR_RETURN(auto counted, CheckKeys(keys));
    RETURN_IF_ERROR(CheckValues(values, counted.second));
    if (fill_once_) {
      return Unimplemented("Insert not supported by InitializableLookupTable implementations");
    }
    absl::WriterMutexLock lock(&mutex_);
    for (int64_t i = 0; i < counted.first; ++i) Put(keys, values, i);
    return OkStatus();
  }

  Status Remove(const Tensor& keys) override {
    ASSIGN_OR_RETURN(auto counted, CheckKeys(keys));
    if (fill_once_) {
      return Unimplemented("Remove not supported by InitializableLookupTable implementations");
    }
    absl::WriterMutexLock lock(&mutex_);
    for (int64_t i = 0; i < counted.first; ++i) {
      auto it = index_.find(TableKeyAt<K>(keys, i));
      if (it == index_.end()) continue;
      const size_t row = it->second, last = keys_.size() - 1;
      index_.erase(it);
      if (row != last) {
        index_[keys_[last]] = row;
        keys_[row] = std::move(keys_[last]);
      }
      keys_.pop_back();
      rows_.Drop(row, last);
    }
    return OkStatus();
  }

  Status Import(const Tensor& keys, const Tensor& values) override {
    if (fill_once_) return Initialize(keys, values);
    ASSIGN_OR_RETURN(auto counted, CheckKeys(keys));
    RETURN_IF_ERROR(CheckValues(values, counted.second));
    absl::WriterMutexLock lock(&mutex_);
    Clear();
    for (int64_t i = 0; i < counted.first; ++i) Put(keys, values, i);
    return OkStatus();
  }

  Status Initialize(const Tensor& keys, const Tensor& values) override {
    if (!fill_once_) return InvalidArgument("Table is not initializable.");
    ASSIGN_OR_RETURN(auto counted, CheckKeys(keys));
    RETURN_IF_ERROR(CheckValues(values, counted.second));
    const int64_t n = counted.first;
    if (n == 0) return InvalidArgument("keys and values cannot be empty tensors.");
    absl::WriterMutexLock lock(&mutex_);
    if (filled_) {
      if (n == static_cast<int64_t>(keys_.size())) return OkStatus();
      return FailedPrecondition("Table was already initialized with different data.");
    }
    index_.reserve(static_cast<size_t>(n));
    auto old = Tensor::Make(value_dtype(), value_shape());
    RETURN_IF_ERROR(old.status());
    for (int64_t i = 0; i < n; ++i) {
      auto it = index_.find(TableKeyAt<K>(keys, i));
      if (it == index_.end()) {
        Put(keys, values, i);
        continue;
      }
      rows_.Get(it->second, *old, 0);
      auto now = Tensor::Make(value_dtype(), value_shape());
      RETURN_IF_ERROR(now.status());
      CopyDefault(values, i, *now, 0, 1);
      if (old->Identical(*now)) continue;
      Clear();
      std::string before = Summarize(*old, 1), after = Summarize(*now, 1);
      for (std::string* s : {&before, &after}) {
        *s = s->substr(1, s->size() - 2);
        if (s->size() > 1 && s->front() == '"') *s = s->substr(1, s->size() - 2);
      }
      return FailedPrecondition("HashTable has different value for same key. Key ",
                                TableKeyAt<K>(keys, i), " has ", before,
                                " and trying to add value ", after);
    }
    filled_ = true;
    return OkStatus();
  }

  StatusOr<std::pair<Tensor, Tensor>> Export(Allocator* allocator) const override {
    absl::ReaderMutexLock lock(&mutex_);
    if (!filled_) return absl::AbortedError("HashTable is not initialized.");
    const auto n = static_cast<int64_t>(keys_.size());
    ASSIGN_OR_RETURN(Tensor keys, Tensor::Make(key_dtype(), Shape({n}), allocator));
    Shape shape = value_shape();
    shape.Insert(0, n);
    ASSIGN_OR_RETURN(Tensor values, Tensor::Make(value_dtype(), shape, allocator));
    std::copy(keys_.begin(), keys_.end(), keys.data<K>());
    for (int64_t i = 0; i < n; ++i) rows_.Get(static_cast<size_t>(i), values, i);
    return std::make_pair(std::move(keys), std::move(values));
  }

 private:
  void Put(const Tensor& keys, const Tensor& values, int64_t i)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto [it, added] = index_.try_emplace(TableKeyAt<K>(keys, i), keys_.size());
    if (added) keys_.push_back(it->first);
    rows_.Set(it->second, values, i);
  }
  void Clear() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    index_.clear();
    keys_.clear();
    rows_.Clear();
  }
  void CopyDefault(const Tensor& from, int64_t i, Tensor& to, int64_t j, int64_t width) const {
    if (value_dtype() == Dtype::kString) {
      std::copy_n(from.data<std::string>() + i, width, to.data<std::string>() + j);
    } else if (value_dtype() == Dtype::kVariant) {
      std::copy_n(from.data<Variant>() + i, width, to.data<Variant>() + j);
    } else {
      const auto size = static_cast<int64_t>(DtypeSize(value_dtype()));
      if (width == 0) return;
      std::memcpy(static_cast<char*>(to.raw()) + j * size,
                  static_cast<const char*>(from.raw()) + i * size,
                  static_cast<size_t>(width * size));
    }
  }

  const bool fill_once_;
  mutable absl::Mutex mutex_;
  bool filled_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<K, size_t> index_ ABSL_GUARDED_BY(mutex_);
  std::vector<K> keys_ ABSL_GUARDED_BY(mutex_);
  TableRows rows_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

StatusOr<std::pair<int64_t, Shape>> LookupTable::CheckKeys(const Tensor& keys) const {
  const int extra = key_shape_.rank();
  bool fits = keys.rank() >= extra;
  for (int d = 0; fits && d < extra; ++d) {
    fits = keys.shape().back(extra - d) == key_shape_[d];
  }
  if (!fits) {
    return InvalidArgument("Input key shape ", keys.shape().ToString(),
                           " must end with the table's key shape ", key_shape_.ToString());
  }
  Shape shape(keys.shape().dims().subspan(0, static_cast<size_t>(keys.rank() - extra)));
  const int64_t n = shape.num_elements();
  for (int64_t size : value_shape_.dims()) shape.Add(size);
  ASSIGN_OR_RETURN(shape, Shape::Make(shape.dims()));
  return std::make_pair(n, std::move(shape));
}

Status LookupTable::CheckValues(const Tensor& values, const Shape& want) const {
  if (values.shape() == want) return OkStatus();
  return InvalidArgument("Expected shape ", want.ToString(), " for value, got ",
                         values.shape().ToString());
}

StatusOr<bool> LookupTable::CheckDefault(const Tensor& value, const Shape& want) const {
  if (value.shape() == want) return true;
  if (value.shape() == value_shape_) return false;
  return InvalidArgument("Expected shape ", value_shape_.ToString(), " or ", want.ToString(),
                         " for default value, got ", value.shape().ToString());
}

StatusOr<std::shared_ptr<LookupTable>> MakeHashTable(Dtype key_dtype, Dtype value_dtype,
                                                     const Shape& value_shape, bool fill_once) {
  if (value_dtype == Dtype::kResource || Tensor::ElementSize(value_dtype) == 0) {
    return InvalidArgument("Lookup tables do not hold values of type ", DtypeName(value_dtype));
  }
  switch (key_dtype) {
    case Dtype::kString:
      return std::make_shared<HashTableOf<std::string>>(value_dtype, value_shape, fill_once);
    case Dtype::kInt32:
      return std::make_shared<HashTableOf<int32_t>>(value_dtype, value_shape, fill_once);
    case Dtype::kInt64:
      return std::make_shared<HashTableOf<int64_t>>(value_dtype, value_shape, fill_once);
    default:
      return InvalidArgument("Lookup tables do not have keys of type ", DtypeName(key_dtype));
  }
}

}  // namespace smelt
