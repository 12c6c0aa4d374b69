// numpy's array files. Bytes are untrusted: memory stays in proportion to them. Thread safe.
//
//   .npy   "\x93NUMPY" major minor  header length (uint16 LE; uint32 from version 2)  header  data
//          header: a Python dict literal {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3),
//          } padded with spaces and a newline to a multiple of 64 bytes; data row-major (or
//          column-major) without gaps. Object arrays are one pickle instead of data.
//   .npz   a zip file whose members are NAME.npy, stored or deflated
//
// Types: bool, (u)int8 ... (u)int64, float16/32/64, complex64/128 of either byte order; 'S' (bytes,
// trailing zeros dropped) and 'U' (UCS-4, given as UTF-8) as strings; object arrays of bytes or str
// as strings; the two-byte void that numpy writes of bfloat16 as bfloat16.
#ifndef SMELT_WIRE_NUMPY_NPY_H_
#define SMELT_WIRE_NUMPY_NPY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

enum class NumpyFileKind { kNpy, kNpz, kPickle, kUnknown };
// By the first bytes, as numpy.load decides.
NumpyFileKind NumpyFileKindOf(absl::string_view bytes);

// One array. INVALID_ARGUMENT or DATA_LOSS says what is wrong with the file, UNIMPLEMENTED names a
// type that no tensor has.
StatusOr<Tensor> ParseNpy(absl::string_view bytes);
// The file that numpy.save writes of the array that TensorFlow returns for the tensor: strings as
// an object array of bytes, a scalar string as 'S'. UNIMPLEMENTED for resources and variants.
StatusOr<std::string> SerializeNpy(const Tensor& tensor);

// Names of the arrays in an .npz, without ".npy", in the file's order.
StatusOr<std::vector<std::string>> NpzNames(absl::string_view bytes);
// One array of an .npz, once its checksum was found right. NOT_FOUND when there is none of that
// name, RESOURCE_EXHAUSTED beyond UnpackLimit of the whole file; else errors as ParseNpy.
StatusOr<Tensor> ParseNpzArray(absl::string_view bytes, absl::string_view name);

// The pickle of an object array: `shape` is the header's, which must agree. Private to npy.cc.
StatusOr<Tensor> UnpickleStrings(absl::string_view pickle, const Shape& shape);
std::string PickleStrings(const Tensor& strings);

}  // namespace smelt

#endif  // SMELT_WIRE_NUMPY_NPY_H_
