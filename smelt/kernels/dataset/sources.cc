#include "smelt/kernels/dataset/sources.h"

#include <algorithm>
#include <utility>

#include "smelt/kernels/common/rows.h"

namespace smelt {

MakeIterator OneElement(Element all) {
  return [all = std::move(all)](Step&) -> StatusOr<ElementIterator> {
    return [all, done = false](Step&) mutable -> NextElement {
      if (std::exchange(done, true)) return EndOfElements();
      return std::optional<Element>(all);
    };
  };
}

MakeIterator RowsOfElement(Element all) {
  const int64_t n = all[0].dim(0);
  return [all = std::move(all), n](Step&) -> StatusOr<ElementIterator> {
    return [all, n, at = int64_t{0}](Step&) mutable -> NextElement {
      if (at == n) return EndOfElements();
      Element row;
      for (const Tensor& t : all) row.push_back(RowOf(t, at));
      ++at;
      return std::optional<Element>(std::move(row));
    };
  };
}

MakeIterator SparseRows(Tensor indices, Tensor values, Tensor row_shape, int64_t rows) {
  const int64_t n = indices.dim(0), rank = indices.dim(1);
  return [=](Step&) -> StatusOr<ElementIterator> {
    return [=, row = int64_t{0}, at = int64_t{0}](Step& step) mutable -> NextElement {
      if (row >= rows) return EndOfElements();
      const int64_t begin = at;
      while (at < n && indices.data<int64_t>()[at * rank] == row) ++at;
      ++row;
      ASSIGN_OR_RETURN(Tensor places,
                       Tensor::Make(Dtype::kInt64, Shape({at - begin, rank - 1}), step.allocator));
      for (int64_t i = begin; i < at; ++i) {
        std::copy_n(indices.data<int64_t>() + i * rank + 1, rank - 1,
                    places.data<int64_t>() + (i - begin) * (rank - 1));
      }
      return std::optional<Element>(Element{places, values.Rows(begin, at), row_shape});
    };
  };
}

StatusOr<Tensor> RangeValue(Dtype dtype, int64_t v) {
  switch (dtype) {
    case Dtype::kInt64:
      return Tensor::Scalar(v);
    case Dtype::kInt32:
      return Tensor::Scalar(static_cast<int32_t>(v));
    case Dtype::kInt16:
      return Tensor::Scalar(static_cast<int16_t>(v));
    case Dtype::kInt8:
      return Tensor::Scalar(static_cast<int8_t>(v));
    case Dtype::kUint8:
      return Tensor::Scalar(static_cast<uint8_t>(v));
    case Dtype::kUint16:
      return Tensor::Scalar(static_cast<uint16_t>(v));
    case Dtype::kUint32:
      return Tensor::Scalar(static_cast<uint32_t>(v));
    case Dtype::kUint64:
      return Tensor::Scalar(static_cast<uint64_t>(v));
    case Dtype::kFloat:
      return Tensor::Scalar(static_cast<float>(v));
    case Dtype::kDouble:
      return Tensor::Scalar(static_cast<double>(v));
    case Dtype::kHalf:
      return Tensor::Scalar(Half(static_cast<float>(v)));
    case Dtype::kBfloat16:
      return Tensor::Scalar(Bfloat16(static_cast<float>(v)));
    default:
      return InvalidArgument("Unsupported data type: ", DtypeName(dtype));
  }
}

MakeIterator RangeElements(Dtype dtype, int64_t start, int64_t step, uint64_t n) {
  return [start, step, n, dtype](Step&) -> StatusOr<ElementIterator> {
    return [=, next = static_cast<uint64_t>(start), left = n](Step&) mutable -> NextElement {
      if (left == 0) return EndOfElements();
      --left;
      ASSIGN_OR_RETURN(Tensor value, RangeValue(dtype, static_cast<int64_t>(next)));
      next += static_cast<uint64_t>(step);
      return std::optional<Element>(Element{std::move(value)});
    };
  };
}

MakeIterator FileElements(size_t n, OpenRecords open) {
  return [n, open](Step&) -> StatusOr<ElementIterator> {
    return [n, open, at = size_t{0},
            file = std::unique_ptr<FileRecords>()](Step&) mutable -> NextElement {
      while (true) {
        if (file == nullptr) {
          if (at == n) return EndOfElements();
          ASSIGN_OR_RETURN(file, open(at++));
        }
        auto record = file->Next();
        if (!record.ok() || !*record) file.reset();
        if (!record.ok()) return record.status();
        if (*record) return std::optional<Element>(Element{Tensor::Scalar(**std::move(record))});
      }
    };
  };
}

}  // namespace smelt
