// Fourier transformations: the operator where there is one, and products with matrices of sines.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

// Matrices are of so many elements at most.
constexpr int64_t kMostMatrix = 1 << 22;

StatusOr<std::vector<int64_t>> LengthsOf(Node& n, size_t count, Legalizer& l) {
  const auto length = l.Integers(n.input(1));
  if (!length || length->size() != count ||
      std::ranges::any_of(*length, [](int64_t s) { return s < 1; })) {
    return Unimplemented("its length is no constant");
  }
  return *length;
}

PartialShape WithSize(const PartialShape& shape, int64_t axis, int64_t size) {
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) {
    dims.push_back(i == axis ? size : std::max<int64_t>(shape[i], -1));
  }
  return PartialShape::Of(dims);
}

// A matrix of `rows` x `columns` that f(row, column) says.
template <typename F>
StatusOr<Tensor> Matrix(int64_t rows, int64_t columns, F f) {
  if (rows * columns > kMostMatrix) return Unimplemented("its length is too large for a product");
  ASSIGN_OR_RETURN(Tensor matrix, Tensor::Make(Dtype::kFloat, Shape({rows, columns})));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      matrix.data<float>()[r * columns + c] = static_cast<float>(f(r, c));
    }
  }
  return matrix;
}

// What the matrix makes of each vector along the axis.
StatusOr<Endpoint> TimesAlong(int64_t axis, const Tensor& matrix, Endpoint e, Legalizer& l) {
  const PartialShape from = l.shape(e);
  const int64_t rows = matrix.dim(0), columns = matrix.dim(1);
  if (axis == from.rank() - 1) {
    return l.Add("tfl.fully_connected", {e, l.Const(matrix), l.NoValue()},
                 Options({{"keep_num_dims", from.rank() != 2}}),
                 {Dtype::kFloat, WithSize(from, axis, rows)});
  }
  // What is behind the axis is one dimension.
  int64_t behind = 1, front = 1;
  for (int i = 0; i < from.rank(); ++i) {
    if (i == axis) continue;
    int64_t& size = i < axis ? front : behind;
    size = from[i] < 0 || size < 0 ? -1 : size * from[i];
  }
  OperatorChain c(l);
  const bool flat = axis == from.rank() - 2 && from.rank() <= 4;
  const Endpoint in = flat ? e : c.Reshape(e, {front, columns, behind});
  const PartialShape to = WithSize(from, axis, rows);
  const Endpoint factor = l.Const(flat ? matrix : matrix.WithShape(Shape({1, rows, columns})));
  const Endpoint made =
      c.Make("tfl.batch_matmul", {factor, in}, {},
             {Dtype::kFloat, flat ? to : PartialShape::Of({front, rows, behind})});
  const Endpoint out =
      flat ? made : c.Reshape(made, std::vector<int64_t>(to.dims().begin(), to.dims().end()));
  RETURN_IF_ERROR(c.Done(out).status());
  return out;
}

// The angle of element `b` of frequency `a`.
double AngleOf(int64_t a, int64_t b, int64_t length) {
  return 2 * std::numbers::pi * static_cast<double>(a * b % length) / static_cast<double>(length);
}

// The first `used` elements along the axis.
StatusOr<Endpoint> FirstAlong(int64_t axis, int64_t used, Endpoint e, Legalizer& l) {
  const PartialShape from = l.shape(e);
  const int64_t given = from[static_cast<int>(axis)];
  if (given < 0) return Unimplemented("the size of its input is not known");
  if (used >= given) return e;
  std::vector<int64_t> size(static_cast<size_t>(from.rank()), -1);
  size[static_cast<size_t>(axis)] = used;
  return l.Add("tfl.slice", {e, l.Ints(std::vector<int64_t>(size.size())), l.Ints(size)}, {},
               {Dtype::kFloat, WithSize(from, axis, used)});
}

// `bins` frequencies of real numbers, of which more than there are are zeros.
StatusOr<ComplexParts> OfReal(int64_t axis, int64_t length, int64_t bins, Endpoint e,
                              Legalizer& l) {
  const int64_t given = l.shape(e)[static_cast<int>(axis)];
  if (given < 0) return Unimplemented("the size of its input is not known");
  const int64_t used = std::min(given, length);
  ASSIGN_OR_RETURN(const Endpoint input, FirstAlong(axis, used, e, l));
  ASSIGN_OR_RETURN(const Tensor cosines, Matrix(bins, used, [&](int64_t k, int64_t i) {
                     return std::cos(AngleOf(k, i, length));
                   }));
  ASSIGN_OR_RETURN(const Tensor sines, Matrix(bins, used, [&](int64_t k, int64_t i) {
                     return -std::sin(AngleOf(k, i, length));
                   }));
  ComplexParts out;
  ASSIGN_OR_RETURN(out.real, TimesAlong(axis, cosines, input, l));
  ASSIGN_OR_RETURN(out.imaginary, TimesAlong(axis, sines, input, l));
  return out;
}

// Both parts, one behind the other along the axis.
StatusOr<Endpoint> Both(int64_t axis, const ComplexParts& z, Legalizer& l) {
  const PartialShape from = l.shape(z.real);
  const int64_t given = from[static_cast<int>(axis)];
  if (given < 0) return Unimplemented("the size of its input is not known");
  return l.Add("tfl.concatenation", {z.real, z.imaginary}, Options({{"axis", axis}}),
               {Dtype::kFloat, WithSize(from, axis, 2 * given)});
}

// Of complex numbers, of which those that there are not are zeros; or back.
StatusOr<ComplexParts> OfComplex(int64_t axis, int64_t length, bool back, const ComplexParts& z,
                                 Legalizer& l) {
  ASSIGN_OR_RETURN(const Endpoint both, Both(axis, z, l));
  const int64_t given = l.shape(both)[static_cast<int>(axis)] / 2;
  const double scale = back ? 1 / static_cast<double>(length) : 1, sign = back ? -1 : 1;
  const auto cosine = [&](int64_t k, int64_t i) {
    return i < length ? scale * std::cos(AngleOf(k, i, length)) : 0.0;
  };
  const auto sine = [&](int64_t k, int64_t i) {
    return i < length ? scale * std::sin(AngleOf(k, i, length)) : 0.0;
  };
  ASSIGN_OR_RETURN(const Tensor to_real, Matrix(length, 2 * given, [&](int64_t k, int64_t i) {
                     return i < given ? cosine(k, i) : sign * sine(k, i - given);
                   }));
  ASSIGN_OR_RETURN(const Tensor to_imaginary, Matrix(length, 2 * given, [&](int64_t k, int64_t i) {
                     return i < given ? -sign * sine(k, i) : cosine(k, i - given);
                   }));
  ComplexParts out;
  ASSIGN_OR_RETURN(out.real, TimesAlong(axis, to_real, both, l));
  ASSIGN_OR_RETURN(out.imaginary, TimesAlong(axis, to_imaginary, both, l));
  return out;
}

// The same along one of the last two axes, of a size that is known when it runs: so are the sines.
StatusOr<ComplexParts> OfFreeComplex(int64_t axis, bool back, const ComplexParts& z, Legalizer& l) {
  const PartialShape shape = l.shape(z.real);
  const bool last = axis == shape.rank() - 1;
  if (shape.rank() < 2 || (!last && axis != shape.rank() - 2)) {
    return Unimplemented("the size of its input is not known");
  }
  OperatorChain c(l);
  ASSIGN_OR_RETURN(const Endpoint size, SizeOf(z.real, axis, l));
  const Endpoint places = c.CountTo(size, -1);
  const Endpoint across = c.Reshape(places, {1, -1}), down = c.Reshape(places, {-1, 1});
  const Endpoint steps = c.Mul(down, across);
  // Whole turns are left out while numbers are whole.
  const Endpoint turn = c.Op("tfl.floor_mod", {steps, size}), count = c.Cast(size, Dtype::kFloat);
  const Endpoint angle = c.Mul(c.Div(c.Cast(turn, Dtype::kFloat), count), 2 * std::numbers::pi);
  const Endpoint cosines = c.Op("tfl.cos", {angle}), sines = c.Op("tfl.sin", {angle});
  // The matrices are the same transposed.
  const auto times = [&](Endpoint matrix, Endpoint e) {
    return last ? c.Make("tfl.batch_matmul", {e, matrix}, {}, {Dtype::kFloat, shape})
                : c.Make("tfl.batch_matmul", {matrix, e}, {}, {Dtype::kFloat, shape});
  };
  const Endpoint crossed = times(sines, z.imaginary), other = times(sines, z.real);
  const Endpoint own = times(cosines, z.real), imaginary = times(cosines, z.imaginary);
  ComplexParts out = {back ? c.Sub(own, crossed) : c.Add(own, crossed),
                      back ? c.Add(imaginary, other) : c.Sub(imaginary, other)};
  if (back) out = {c.Div(out.real, count), c.Div(out.imaginary, count)};
  RETURN_IF_ERROR(c.Done(out.real).status());
  return out;
}

// Real numbers of half of their frequencies: each but the first, and the last of an even length,
// stands for two.
StatusOr<Endpoint> BackToReal(int64_t axis, int64_t length, const ComplexParts& z, Legalizer& l) {
  ASSIGN_OR_RETURN(const Endpoint both, Both(axis, z, l));
  const int64_t given = l.shape(both)[static_cast<int>(axis)] / 2;
  const int64_t bins = std::min(given, length / 2 + 1);
  ASSIGN_OR_RETURN(const Tensor matrix, Matrix(length, 2 * given, [&](int64_t i, int64_t c) {
                     const int64_t k = c % given;
                     if (k >= bins) return 0.0;
                     const double weight = k == 0 || 2 * k == length ? 1.0 : 2.0;
                     const double angle = AngleOf(k, i, length);
                     return weight * (c < given ? std::cos(angle) : -std::sin(angle)) /
                            static_cast<double>(length);
                   }));
  return TimesAlong(axis, matrix, both, l);
}

bool IsPowerOfTwo(int64_t n) { return (n & (n - 1)) == 0; }

LiteEndpoints Rfft(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, LengthsOf(n, 1, l));
  const int64_t length = lengths[0];
  const PartialShape from = l.shape(n.input(0));
  if (from.rank() < 1) return Unimplemented("the rank of its input is not known");
  const LiteOutput out = l.OutputOf(n);
  if (!IsPowerOfTwo(length) || length < 2) {
    ASSIGN_OR_RETURN(const ComplexParts z,
                     OfReal(from.rank() - 1, length, length / 2 + 1, n.input(0), l));
    return TogetherComplex(z, out, l);
  }
  std::vector<int64_t> dims, wide;
  for (int i = 0; i + 1 < from.rank(); ++i) dims.push_back(from[i]);
  dims.push_back(1);
  wide = dims;
  dims.push_back(from[from.rank() - 1]);
  wide.push_back(length / 2 + 1);
  ASSIGN_OR_RETURN(const Endpoint rows, l.Add("tfl.expand_dims", {n.input(0), l.Int(-2)}, {},
                                              {Dtype::kFloat, PartialShape::Of(dims)}));
  ASSIGN_OR_RETURN(const Endpoint made,
                   l.Add("tfl.rfft2d", {rows, l.Ints(std::vector<int64_t>{1, length})}, {},
                         {Dtype::kComplex64, PartialShape::Of(wide)}));
  const std::vector<int64_t> squeezed = {int64_t{from.rank()} - 1};
  return One(l.Add("tfl.squeeze", {made}, Options({{"squeeze_dims", squeezed}}), out));
}

// Of real numbers along the last axis, then along those before it.
LiteEndpoints RfftOfMany(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  const size_t count = n.Is("RFFT2D") ? 2 : 3;
  ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, LengthsOf(n, count, l));
  if (count == 2 && IsPowerOfTwo(lengths[0]) && IsPowerOfTwo(lengths[1])) {
    return One(l.Add("tfl.rfft2d", {n.input(0), l.Ints(lengths)}, {}, l.OutputOf(n)));
  }
  const int64_t rank = l.rank(n.input(0));
  if (rank < static_cast<int64_t>(count)) return Unimplemented("its rank is not known");
  ASSIGN_OR_RETURN(ComplexParts z,
                   OfReal(rank - 1, lengths.back(), lengths.back() / 2 + 1, n.input(0), l));
  for (size_t i = 1; i < count; ++i) {
    const int64_t axis = rank - 1 - static_cast<int64_t>(i);
    ASSIGN_OR_RETURN(z, OfComplex(axis, lengths[count - 1 - i], false, z, l));
  }
  return TogetherComplex(z, l.OutputOf(n), l);
}

LiteEndpoints Irfft(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckComplex64(n));
  const size_t count = n.Is("IRFFT") ? 1 : n.Is("IRFFT2D") ? 2 : 3;
  ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, LengthsOf(n, count, l));
  const int64_t rank = l.rank(n.input(0));
  if (rank < static_cast<int64_t>(count)) return Unimplemented("its rank is not known");
  ASSIGN_OR_RETURN(ComplexParts z, PartsOfComplex(n.input(0), l));
  for (size_t i = 0; i + 1 < count; ++i) {
    const int64_t axis = rank - static_cast<int64_t>(count - i);
    ASSIGN_OR_RETURN(z, OfComplex(axis, lengths[i], true, z, l));
  }
  return One(BackToReal(rank - 1, lengths.back(), z, l));
}

// The whole transformation along the last axes, or back.
LiteEndpoints Fft(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckComplex64(n));
  const bool back = n.Is({"IFFT", "IFFT2D", "IFFT3D"});
  const int count = n.Is({"FFT", "IFFT"}) ? 1 : n.Is({"FFT2D", "IFFT2D"}) ? 2 : 3;
  const PartialShape from = l.shape(n.input(0));
  if (from.rank() < count) return Unimplemented("its rank is not known");
  ASSIGN_OR_RETURN(ComplexParts z, PartsOfComplex(n.input(0), l));
  for (int axis = from.rank() - 1; axis >= from.rank() - count; --axis) {
    if (from[axis] < 0) {
      ASSIGN_OR_RETURN(z, OfFreeComplex(axis, back, z, l));
      continue;
    }
    if (from[axis] < 1) return Unimplemented("the size of its input is not known");
    ASSIGN_OR_RETURN(z, OfComplex(axis, from[axis], back, z, l));
  }
  return TogetherComplex(z, l.OutputOf(n), l);
}

constexpr ExportRow kFourierRows[] = {
    {"RFFT", Rfft},     {"RFFT2D", RfftOfMany}, {"RFFT3D", RfftOfMany}, {"IRFFT", Irfft},
    {"IRFFT2D", Irfft}, {"IRFFT3D", Irfft},     {"FFT", Fft},           {"FFT2D", Fft},
    {"FFT3D", Fft},     {"IFFT", Fft},          {"IFFT2D", Fft},        {"IFFT3D", Fft},
};

}  // namespace

std::span<const ExportRow> FourierExport() { return kFourierRows; }

}  // namespace smelt
