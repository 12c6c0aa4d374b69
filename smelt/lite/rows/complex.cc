// Complex numbers. Operators make them of real ones by a Fourier transformation and by a cast,
// multiply them, and take them apart; what is in between is computed in two parts, which a node
// Complex holds together until something takes them apart (legalizer.cc).
#include <algorithm>

#include "smelt/lite/rows/rows.h"

namespace smelt {
namespace {

// A cast of real numbers, which are the real part; the imaginary one is zero.
bool IsCastOfReal(Endpoint e) {
  return e.node->Is("tfl.cast") && e.node->output_types[0] == Dtype::kComplex64;
}

StatusOr<Endpoint> AsFloat(Endpoint e, Legalizer& l) {
  if (l.type(e) == Dtype::kFloat) return e;
  return l.Add("tfl.cast", {e},
               Options({{"in_data_type", l.type(e)}, {"out_data_type", Dtype::kFloat}}),
               {Dtype::kFloat, l.shape(e)});
}

}  // namespace

StatusOr<ComplexParts> PartsOfComplex(Endpoint e, Legalizer& l) {
  const LiteOutput part = {Dtype::kFloat, l.shape(e)};
  if (e.node->Is("Complex")) return ComplexParts{e.node->input(0), e.node->input(1)};
  if (const auto value = l.Constant(e)) {
    ASSIGN_OR_RETURN(Tensor real, Tensor::Make(Dtype::kFloat, value->shape()));
    ASSIGN_OR_RETURN(Tensor imaginary, Tensor::Make(Dtype::kFloat, value->shape()));
    for (int64_t i = 0; i < value->num_elements(); ++i) {
      const auto z = value->data<std::complex<float>>()[i];
      real.data<float>()[i] = z.real();
      imaginary.data<float>()[i] = z.imag();
    }
    return ComplexParts{l.Const(real), l.Const(imaginary)};
  }
  ComplexParts out;
  if (IsCastOfReal(e)) {
    ASSIGN_OR_RETURN(out.real, AsFloat(e.node->input(0), l));
    ASSIGN_OR_RETURN(out.imaginary, l.Add("tfl.zeros_like", {out.real}, {}, part));
    return out;
  }
  ASSIGN_OR_RETURN(out.real, l.Add("tfl.real", {e}, {}, part));
  ASSIGN_OR_RETURN(out.imaginary, l.Add("tfl.imag", {e}, {}, part));
  return out;
}

LiteEndpoints TogetherComplex(const ComplexParts& parts, const LiteOutput& out, Legalizer& l) {
  AttrMap attrs;
  attrs.Set("T", Dtype::kFloat);
  attrs.Set("Tout", Dtype::kComplex64);
  attrs.Set(kOutputShapes, std::vector<PartialShape>{out.shape});
  ASSIGN_OR_RETURN(Node * n, l.graph().Add("complex", "Complex", {parts.real, parts.imaginary},
                                           std::move(attrs)));
  return std::vector<Endpoint>{{n, 0}};
}

Status CheckComplex64(const Node& n) {
  if (n.input_types[0] == Dtype::kComplex64) return OkStatus();
  return Unimplemented("operators compute with complex64, not ",
                       DtypeName(BaseType(n.input_types[0])));
}

namespace {

// ---- parts

// REAL, IMAG and COMPLEX_ABS take complex numbers of double precision too, which no other makes.
bool IsWholeDouble(Endpoint e, const Legalizer& l) {
  return l.type(e) == Dtype::kComplex128 && e.node->Is("_Arg");
}

LiteEndpoints Part(Node& n, Legalizer& l) {
  const Endpoint e = n.input(0);
  if (IsWholeDouble(e, l)) return One(l.Add(l.row().lite, {e}, {}, l.OutputOf(n)));
  RETURN_IF_ERROR(CheckComplex64(n));
  if (!e.node->Is("Complex") && !IsCastOfReal(e) && !l.Constant(e)) {
    return One(l.Add(l.row().lite, {e}, {}, l.OutputOf(n)));
  }
  ASSIGN_OR_RETURN(const ComplexParts z, PartsOfComplex(e, l));
  return std::vector<Endpoint>{n.Is("Real") ? z.real : z.imaginary};
}

LiteEndpoints Magnitude(Node& n, Legalizer& l) {
  const LiteOutput out = l.OutputOf(n);
  if (IsWholeDouble(n.input(0), l)) return One(l.Add("tfl.complex_abs", n.inputs(), {}, out));
  RETURN_IF_ERROR(CheckComplex64(n));
  if (IsCastOfReal(n.input(0))) {
    ASSIGN_OR_RETURN(const Endpoint real, AsFloat(n.input(0).node->input(0), l));
    return One(l.Add("tfl.abs", {real}, {}, out));
  }
  if (!n.input(0).node->Is("Complex")) {
    return One(l.Add("tfl.complex_abs", {n.input(0)}, {}, out));
  }
  ASSIGN_OR_RETURN(const ComplexParts z, PartsOfComplex(n.input(0), l));
  ASSIGN_OR_RETURN(const Endpoint a, l.Add("tfl.mul", {z.real, z.real}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint b, l.Add("tfl.mul", {z.imaginary, z.imaginary}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint sum, l.Add("tfl.add", {a, b}, {}, out));
  return One(l.Add("tfl.sqrt", {sum}, {}, out));
}

// What RFFT2D makes, perhaps moved.
bool IsOfTransformation(Endpoint e) {
  while (e.node->output_types[static_cast<size_t>(e.port)] == Dtype::kComplex64) {
    if (e.node->Is("tfl.rfft2d")) return true;
    if (e.node->num_inputs() == 0) return false;
    e = e.node->input(0);
  }
  return false;
}

LiteEndpoints Phase(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckComplex64(n));
  ASSIGN_OR_RETURN(ComplexParts z, PartsOfComplex(n.input(0), l));
  // The kernel makes -0 of the imaginary parts that are zero, whose phase would be -pi, not pi.
  if (IsOfTransformation(n.input(0))) {
    ASSIGN_OR_RETURN(z.imaginary, l.Add("tfl.add", {z.imaginary, l.Const(Tensor::Scalar(0.0F))}, {},
                                        {Dtype::kFloat, l.shape({&n, 0})}));
  }
  return One(l.Add("tfl.atan2", {z.imaginary, z.real}, {}, l.OutputOf(n)));
}

LiteEndpoints Conjugate(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckComplex64(n));
  ASSIGN_OR_RETURN(const ComplexParts z, PartsOfComplex(n.input(0), l));
  const LiteOutput part = {Dtype::kFloat, l.shape({&n, 0})};
  ASSIGN_OR_RETURN(const Endpoint negative, l.Add("tfl.neg", {z.imaginary}, {}, part));
  return TogetherComplex({z.real, negative}, l.OutputOf(n), l);
}

constexpr ExportRow kComplexRows[] = {
    {"Real", Part, "tfl.real"}, {"Imag", Part, "tfl.imag"}, {"ComplexAbs", Magnitude},
    {"Angle", Phase},           {"Conj", Conjugate},
};

}  // namespace

std::span<const ExportRow> ComplexExport() { return kComplexRows; }

LiteEndpoints MovedInParts(Node& n, Legalizer& l) {
  const Endpoint from = n.input(0);
  ASSIGN_OR_RETURN(const ComplexParts z, PartsOfComplex(from, l));
  const LiteOutput whole = l.OutputOf(n);
  const std::string attr = n.def()->inputs[0].type_attr;
  const Dtype type = n.Type(attr);
  const auto set = [&](Endpoint e, Dtype as) -> Status {
    l.graph().SetInput(&n, 0, e);
    n.AttrsToChange().Set(attr, as);
    return l.graph().ResolveTypes(&n);
  };
  std::vector<Endpoint> parts;
  for (const Endpoint& part : {z.real, z.imaginary}) {
    RETURN_IF_ERROR(set(part, Dtype::kFloat));
    const LiteEndpoints by = l.row().convert(n, l);
    if (by.ok() && !by->empty()) {
      parts.push_back((*by)[0]);
      continue;
    }
    RETURN_IF_ERROR(set(from, type));
    RETURN_IF_ERROR(by.status());
    return Unimplemented("no operator moves complex numbers so");
  }
  return TogetherComplex({parts[0], parts[1]}, whole, l);
}

LiteEndpoints MultipliedInParts(Node& n, Legalizer& l) {
  if (n.num_inputs() == 1) return MovedInParts(n, l);
  const Endpoint from[] = {n.input(0), n.input(1)};
  // Of real parts an adjoint is a transpose: the imaginary ones change their sign before.
  const auto parts = [&](int i, absl::string_view adjoint) -> StatusOr<ComplexParts> {
    ASSIGN_OR_RETURN(ComplexParts z, PartsOfComplex(from[i], l));
    if (!n.Bool(adjoint)) return z;
    const LiteOutput part = {Dtype::kFloat, l.shape(from[i])};
    ASSIGN_OR_RETURN(z.imaginary, l.Add("tfl.neg", {z.imaginary}, {}, part));
    return z;
  };
  ASSIGN_OR_RETURN(const ComplexParts x, parts(0, "adj_x"));
  ASSIGN_OR_RETURN(const ComplexParts y, parts(1, "adj_y"));
  const LiteOutput whole = l.OutputOf(n), out = {Dtype::kFloat, whole.shape};
  const std::string attr = n.def()->inputs[0].type_attr;
  const auto set = [&](Endpoint a, Endpoint b, Dtype type) -> Status {
    l.graph().SetInput(&n, 0, a);
    l.graph().SetInput(&n, 1, b);
    n.AttrsToChange().Set(attr, type);
    return l.graph().ResolveTypes(&n);
  };
  const auto product = [&](Endpoint a, Endpoint b) -> StatusOr<Endpoint> {
    RETURN_IF_ERROR(set(a, b, Dtype::kFloat));
    const LiteEndpoints by = l.row().convert(n, l);
    RETURN_IF_ERROR(set(from[0], from[1], Dtype::kComplex64));
    RETURN_IF_ERROR(by.status());
    if (by->empty()) return Unimplemented("no operator multiplies complex numbers so");
    return (*by)[0];
  };
  ASSIGN_OR_RETURN(const Endpoint rr, product(x.real, y.real));
  ASSIGN_OR_RETURN(const Endpoint ii, product(x.imaginary, y.imaginary));
  ASSIGN_OR_RETURN(const Endpoint ri, product(x.real, y.imaginary));
  ASSIGN_OR_RETURN(const Endpoint ir, product(x.imaginary, y.real));
  ASSIGN_OR_RETURN(const Endpoint real, l.Add("tfl.sub", {rr, ii}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint imaginary, l.Add("tfl.add", {ri, ir}, {}, out));
  return TogetherComplex({real, imaginary}, whole, l);
}

LiteEndpoints ComplexArithmetic(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckComplex64(n));
  const LiteOutput whole = l.OutputOf(n), out = {Dtype::kFloat, whole.shape};
  const auto in_two = [&](int i) { return n.input(i).node->Is("Complex"); };
  if (n.Is("Mul") && !in_two(0) && !in_two(1)) {
    return One(l.Add("tfl.mul", Inputs(n), {}, whole));
  }
  const auto add = [&](OpName op, Endpoint a, Endpoint b) { return l.Add(op, {a, b}, {}, out); };
  ASSIGN_OR_RETURN(const ComplexParts x, PartsOfComplex(n.input(0), l));
  if (n.Is("Neg")) {
    ASSIGN_OR_RETURN(const Endpoint real, l.Add("tfl.neg", {x.real}, {}, out));
    ASSIGN_OR_RETURN(const Endpoint imaginary, l.Add("tfl.neg", {x.imaginary}, {}, out));
    return TogetherComplex({real, imaginary}, whole, l);
  }
  if (n.Is("Exp")) {
    ASSIGN_OR_RETURN(const Endpoint size, l.Add("tfl.exp", {x.real}, {}, out));
    ASSIGN_OR_RETURN(const Endpoint cos, l.Add("tfl.cos", {x.imaginary}, {}, out));
    ASSIGN_OR_RETURN(const Endpoint sin, l.Add("tfl.sin", {x.imaginary}, {}, out));
    ASSIGN_OR_RETURN(const Endpoint real, add("tfl.mul", size, cos));
    ASSIGN_OR_RETURN(const Endpoint imaginary, add("tfl.mul", size, sin));
    return TogetherComplex({real, imaginary}, whole, l);
  }
  if (!n.Is({"Add", "AddV2", "Sub", "Mul", "Square", "Div", "RealDiv"})) {
    return Unimplemented("its operator does not take complex64");
  }
  if (n.Is({"Div", "RealDiv"}) && IsCastOfReal(n.input(1))) {
    ASSIGN_OR_RETURN(const Endpoint by, AsFloat(n.input(1).node->input(0), l));
    ASSIGN_OR_RETURN(const Endpoint real, add("tfl.div", x.real, by));
    ASSIGN_OR_RETURN(const Endpoint imaginary, add("tfl.div", x.imaginary, by));
    return TogetherComplex({real, imaginary}, whole, l);
  }
  ASSIGN_OR_RETURN(ComplexParts y, PartsOfComplex(n.input(n.Is("Square") ? 0 : 1), l));
  if (n.Is({"Div", "RealDiv"})) {
    // x / y is x conj(y) / |y|^2; the quotient of y comes first.
    const LiteOutput part = {Dtype::kFloat, l.shape(n.input(1))};
    const auto op = [&](OpName name, Endpoint a, Endpoint b) {
      return l.Add(name, {a, b}, {}, part);
    };
    ASSIGN_OR_RETURN(const Endpoint rr, op("tfl.mul", y.real, y.real));
    ASSIGN_OR_RETURN(const Endpoint ii, op("tfl.mul", y.imaginary, y.imaginary));
    ASSIGN_OR_RETURN(const Endpoint square, op("tfl.add", rr, ii));
    ASSIGN_OR_RETURN(y.real, op("tfl.div", y.real, square));
    ASSIGN_OR_RETURN(const Endpoint opposite, l.Add("tfl.neg", {y.imaginary}, {}, part));
    ASSIGN_OR_RETURN(y.imaginary, op("tfl.div", opposite, square));
  } else if (!n.Is({"Mul", "Square"})) {
    const OpName op = n.Is("Sub") ? OpName("tfl.sub") : OpName("tfl.add");
    ASSIGN_OR_RETURN(const Endpoint real, add(op, x.real, y.real));
    ASSIGN_OR_RETURN(const Endpoint imaginary, add(op, x.imaginary, y.imaginary));
    return TogetherComplex({real, imaginary}, whole, l);
  }
  ASSIGN_OR_RETURN(const Endpoint rr, add("tfl.mul", x.real, y.real));
  ASSIGN_OR_RETURN(const Endpoint ii, add("tfl.mul", x.imaginary, y.imaginary));
  ASSIGN_OR_RETURN(const Endpoint ri, add("tfl.mul", x.real, y.imaginary));
  ASSIGN_OR_RETURN(const Endpoint ir, add("tfl.mul", x.imaginary, y.real));
  ASSIGN_OR_RETURN(const Endpoint real, add("tfl.sub", rr, ii));
  ASSIGN_OR_RETURN(const Endpoint imaginary, add("tfl.add", ri, ir));
  return TogetherComplex({real, imaginary}, whole, l);
}

LiteEndpoints CastToComplex(Node& n, Legalizer& l) {
  constexpr DtypeSet kAtOnce = Types(Dtype::kFloat, Dtype::kHalf, Dtype::kInt32, Dtype::kInt64,
                                     Dtype::kInt8, Dtype::kUint8, Dtype::kInt16, Dtype::kBool);
  Endpoint real = n.input(0);
  if (!Has(kAtOnce, l.type(real))) {
    ASSIGN_OR_RETURN(real, AsFloat(real, l));
  }
  return One(l.Add("tfl.cast", {real},
                   Options({{"in_data_type", l.type(real)}, {"out_data_type", Dtype::kComplex64}}),
                   l.OutputOf(n)));
}

}  // namespace smelt
