// Complex numbers. Operators make them of real ones by a Fourier transformation alone, and take
// them apart; what is in between is computed in two parts, which a node Complex holds together
// until something takes them apart (legalizer.cc).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "smelt/lite/rows/rows.h"

namespace smelt {
namespace {

// The transformation is a product with a matrix where there is no operator: of so many elements.
constexpr int64_t kMostMatrix = 1 << 22;

struct Parts {
  Endpoint real, imaginary;
};

StatusOr<Parts> PartsOf(Endpoint e, Legalizer& l) {
  const LiteOutput part = {Dtype::kFloat, l.shape(e)};
  if (e.node->Is("Complex")) return Parts{e.node->input(0), e.node->input(1)};
  if (const auto value = l.Constant(e)) {
    ASSIGN_OR_RETURN(Tensor real, Tensor::Make(Dtype::kFloat, value->shape()));
    ASSIGN_OR_RETURN(Tensor imaginary, Tensor::Make(Dtype::kFloat, value->shape()));
    for (int64_t i = 0; i < value->num_elements(); ++i) {
      const auto z = value->data<std::complex<float>>()[i];
      real.data<float>()[i] = z.real();
      imaginary.data<float>()[i] = z.imag();
    }
    return Parts{l.Const(real), l.Const(imaginary)};
  }
  Parts out;
  ASSIGN_OR_RETURN(out.real, l.Add("tfl.real", {e}, {}, part));
  ASSIGN_OR_RETURN(out.imaginary, l.Add("tfl.imag", {e}, {}, part));
  return out;
}

LiteEndpoints Together(Endpoint real, Endpoint imaginary, const LiteOutput& out, Legalizer& l) {
  AttrMap attrs;
  attrs.Set("T", Dtype::kFloat);
  attrs.Set("Tout", Dtype::kComplex64);
  attrs.Set(kOutputShapes, std::vector<PartialShape>{out.shape});
  ASSIGN_OR_RETURN(Node * n,
                   l.graph().Add("complex", "Complex", {real, imaginary}, std::move(attrs)));
  return std::vector<Endpoint>{{n, 0}};
}

Status CheckComplex64(const Node& n) {
  if (n.input_types[0] == Dtype::kComplex64) return OkStatus();
  return Unimplemented("operators compute with complex64, not ",
                       DtypeName(BaseType(n.input_types[0])));
}

// ---- Fourier transformations

StatusOr<int64_t> LengthOf(Node& n, Legalizer& l) {
  const auto length = l.Integers(n.input(1));
  if (!length || length->size() != 1 || (*length)[0] < 1) {
    return Unimplemented("its length is no constant");
  }
  return (*length)[0];
}

PartialShape WithLast(const PartialShape& shape, int64_t last) {
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(i + 1 < shape.rank() ? shape[i] : last);
  return PartialShape::Of(dims);
}

// Rows times the transposed matrix of `rows` x `columns` that f(row, column) says.
template <typename F>
StatusOr<Endpoint> Product(Endpoint e, int64_t rows, int64_t columns, Legalizer& l, F f) {
  if (rows * columns > kMostMatrix) return Unimplemented("its length is too large for a product");
  ASSIGN_OR_RETURN(Tensor matrix, Tensor::Make(Dtype::kFloat, Shape({rows, columns})));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      matrix.data<float>()[r * columns + c] = static_cast<float>(f(r, c));
    }
  }
  const PartialShape from = l.shape(e);
  return l.Add("tfl.fully_connected", {e, l.Const(matrix), l.NoValue()},
               Options({{"keep_num_dims", from.rank() != 2}}),
               {Dtype::kFloat, WithLast(from, rows)});
}

double Angle(int64_t a, int64_t b, int64_t length) {
  return 2 * std::numbers::pi * static_cast<double>(a * b % length) / static_cast<double>(length);
}

LiteEndpoints Rfft(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  ASSIGN_OR_RETURN(const int64_t length, LengthOf(n, l));
  const PartialShape from = l.shape(n.input(0));
  if (from.rank() < 1) return Unimplemented("the rank of its input is not known");
  const LiteOutput out = l.OutputOf(n);
  if ((length & (length - 1)) == 0 && length > 1) {
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
  const int64_t given = from[from.rank() - 1];
  if (given < 0) return Unimplemented("the size of its input is not known");
  Endpoint input = n.input(0);
  const int64_t used = std::min(given, length);
  if (used < given) {
    std::vector<int64_t> size(static_cast<size_t>(from.rank()), -1);
    size.back() = used;
    ASSIGN_OR_RETURN(
        input, l.Add("tfl.slice", {input, l.Ints(std::vector<int64_t>(size.size())), l.Ints(size)},
                     {}, {Dtype::kFloat, WithLast(from, used)}));
  }
  const int64_t bins = length / 2 + 1;
  ASSIGN_OR_RETURN(const Endpoint real, Product(input, bins, used, l, [&](int64_t k, int64_t i) {
                     return std::cos(Angle(k, i, length));
                   }));
  ASSIGN_OR_RETURN(const Endpoint imaginary,
                   Product(input, bins, used, l,
                           [&](int64_t k, int64_t i) { return -std::sin(Angle(k, i, length)); }));
  return Together(real, imaginary, out, l);
}

LiteEndpoints Rfft2d(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  const auto length = l.Integers(n.input(1));
  if (!length) return Unimplemented("its length is no constant");
  for (const int64_t s : *length) {
    if (s < 1 || (s & (s - 1)) != 0) return Unimplemented("its lengths are no powers of two");
  }
  return One(l.Add("tfl.rfft2d", {n.input(0), l.Ints(*length)}, {}, l.OutputOf(n)));
}

// Each frequency but the first, and the last of an even length, stands for two.
LiteEndpoints Irfft(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckComplex64(n));
  ASSIGN_OR_RETURN(const int64_t length, LengthOf(n, l));
  const PartialShape from = l.shape(n.input(0));
  const int64_t given = from.rank() < 1 ? -1 : from[from.rank() - 1];
  if (given < 0) return Unimplemented("the size of its input is not known");
  const int64_t bins = std::min(given, length / 2 + 1);
  ASSIGN_OR_RETURN(const Parts z, PartsOf(n.input(0), l));
  ASSIGN_OR_RETURN(Endpoint both, l.Add("tfl.concatenation", {z.real, z.imaginary},
                                        Options({{"axis", int64_t{from.rank()} - 1}}),
                                        {Dtype::kFloat, WithLast(from, 2 * given)}));
  return One(Product(both, length, 2 * given, l, [&](int64_t i, int64_t c) {
    const int64_t k = c % given;
    if (k >= bins) return 0.0;
    const double weight = k == 0 || 2 * k == length ? 1.0 : 2.0;
    const double angle = Angle(k, i, length);
    return weight * (c < given ? std::cos(angle) : -std::sin(angle)) / static_cast<double>(length);
  }));
}

// The whole transformation, or back.
LiteEndpoints Fft(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckComplex64(n));
  const PartialShape from = l.shape(n.input(0));
  const int64_t length = from.rank() < 1 ? -1 : from[from.rank() - 1];
  if (length < 1) return Unimplemented("the size of its input is not known");
  const bool back = n.Is("IFFT");
  const double scale = back ? 1 / static_cast<double>(length) : 1, sign = back ? -1 : 1;
  ASSIGN_OR_RETURN(const Parts z, PartsOf(n.input(0), l));
  ASSIGN_OR_RETURN(const Endpoint both, l.Add("tfl.concatenation", {z.real, z.imaginary},
                                              Options({{"axis", int64_t{from.rank()} - 1}}),
                                              {Dtype::kFloat, WithLast(from, 2 * length)}));
  const auto cosine = [&](int64_t k, int64_t i) { return scale * std::cos(Angle(k, i, length)); };
  const auto sine = [&](int64_t k, int64_t i) { return scale * std::sin(Angle(k, i, length)); };
  ASSIGN_OR_RETURN(const Endpoint real,
                   Product(both, length, 2 * length, l, [&](int64_t k, int64_t i) {
                     return i < length ? cosine(k, i) : sign * sine(k, i - length);
                   }));
  ASSIGN_OR_RETURN(const Endpoint imaginary,
                   Product(both, length, 2 * length, l, [&](int64_t k, int64_t i) {
                     return i < length ? -sign * sine(k, i) : cosine(k, i - length);
                   }));
  return Together(real, imaginary, l.OutputOf(n), l);
}

// ---- parts

LiteEndpoints Part(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckComplex64(n));
  ASSIGN_OR_RETURN(const Parts z, PartsOf(n.input(0), l));
  return std::vector<Endpoint>{n.Is("Real") ? z.real : z.imaginary};
}

LiteEndpoints Magnitude(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckComplex64(n));
  const LiteOutput out = l.OutputOf(n);
  if (!n.input(0).node->Is("Complex")) {
    return One(l.Add("tfl.complex_abs", {n.input(0)}, {}, out));
  }
  ASSIGN_OR_RETURN(const Parts z, PartsOf(n.input(0), l));
  ASSIGN_OR_RETURN(const Endpoint a, l.Add("tfl.mul", {z.real, z.real}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint b, l.Add("tfl.mul", {z.imaginary, z.imaginary}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint sum, l.Add("tfl.add", {a, b}, {}, out));
  return One(l.Add("tfl.sqrt", {sum}, {}, out));
}

LiteEndpoints Phase(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckComplex64(n));
  ASSIGN_OR_RETURN(const Parts z, PartsOf(n.input(0), l));
  return One(l.Add("tfl.atan2", {z.imaginary, z.real}, {}, l.OutputOf(n)));
}

LiteEndpoints Conjugate(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckComplex64(n));
  ASSIGN_OR_RETURN(const Parts z, PartsOf(n.input(0), l));
  const LiteOutput part = {Dtype::kFloat, l.shape({&n, 0})};
  ASSIGN_OR_RETURN(const Endpoint negative, l.Add("tfl.neg", {z.imaginary}, {}, part));
  return Together(z.real, negative, l.OutputOf(n), l);
}

constexpr ExportRow kComplexRows[] = {
    {"RFFT", Rfft},   {"RFFT2D", Rfft2d},  {"IRFFT", Irfft}, {"Real", Part},
    {"FFT", Fft},     {"IFFT", Fft},       {"Imag", Part},   {"ComplexAbs", Magnitude},
    {"Angle", Phase}, {"Conj", Conjugate},
};

}  // namespace

std::span<const ExportRow> ComplexExport() { return kComplexRows; }

LiteEndpoints ComplexArithmetic(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckComplex64(n));
  const LiteOutput whole = l.OutputOf(n), out = {Dtype::kFloat, whole.shape};
  const auto add = [&](OpName op, Endpoint a, Endpoint b) { return l.Add(op, {a, b}, {}, out); };
  ASSIGN_OR_RETURN(const Parts x, PartsOf(n.input(0), l));
  if (n.Is("Neg")) {
    ASSIGN_OR_RETURN(const Endpoint real, l.Add("tfl.neg", {x.real}, {}, out));
    ASSIGN_OR_RETURN(const Endpoint imaginary, l.Add("tfl.neg", {x.imaginary}, {}, out));
    return Together(real, imaginary, whole, l);
  }
  if (n.Is("Exp")) {
    ASSIGN_OR_RETURN(const Endpoint size, l.Add("tfl.exp", {x.real}, {}, out));
    ASSIGN_OR_RETURN(const Endpoint cos, l.Add("tfl.cos", {x.imaginary}, {}, out));
    ASSIGN_OR_RETURN(const Endpoint sin, l.Add("tfl.sin", {x.imaginary}, {}, out));
    ASSIGN_OR_RETURN(const Endpoint real, add("tfl.mul", size, cos));
    ASSIGN_OR_RETURN(const Endpoint imaginary, add("tfl.mul", size, sin));
    return Together(real, imaginary, whole, l);
  }
  if (!n.Is({"Add", "AddV2", "Sub", "Mul"})) {
    return Unimplemented("its operator does not take complex64");
  }
  ASSIGN_OR_RETURN(const Parts y, PartsOf(n.input(1), l));
  if (!n.Is("Mul")) {
    const OpName op = n.Is("Sub") ? OpName("tfl.sub") : OpName("tfl.add");
    ASSIGN_OR_RETURN(const Endpoint real, add(op, x.real, y.real));
    ASSIGN_OR_RETURN(const Endpoint imaginary, add(op, x.imaginary, y.imaginary));
    return Together(real, imaginary, whole, l);
  }
  ASSIGN_OR_RETURN(const Endpoint rr, add("tfl.mul", x.real, y.real));
  ASSIGN_OR_RETURN(const Endpoint ii, add("tfl.mul", x.imaginary, y.imaginary));
  ASSIGN_OR_RETURN(const Endpoint ri, add("tfl.mul", x.real, y.imaginary));
  ASSIGN_OR_RETURN(const Endpoint ir, add("tfl.mul", x.imaginary, y.real));
  ASSIGN_OR_RETURN(const Endpoint real, add("tfl.sub", rr, ii));
  ASSIGN_OR_RETURN(const Endpoint imaginary, add("tfl.add", ri, ir));
  return Together(real, imaginary, whole, l);
}

LiteEndpoints CastToComplex(Node& n, Legalizer& l) {
  const LiteOutput part = {Dtype::kFloat, l.shape(n.input(0))};
  Endpoint real = n.input(0);
  if (l.type(real) != Dtype::kFloat) {
    ASSIGN_OR_RETURN(
        real,
        l.Add("tfl.cast", {real},
              Options({{"in_data_type", l.type(real)}, {"out_data_type", Dtype::kFloat}}), part));
  }
  ASSIGN_OR_RETURN(const Endpoint zeros, l.Add("tfl.zeros_like", {real}, {}, part));
  return Together(real, zeros, l.OutputOf(n), l);
}

}  // namespace smelt
