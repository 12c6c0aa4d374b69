// Operators of StableHLO that need more than another name, and those like them: XLA's ops.
#include <algorithm>

#include "smelt/lite/common/attributes.h"
#include "smelt/lite/lower/lowering.h"
#include "smelt/wire/xla/dimension_numbers.h"

namespace smelt {
namespace {

Endpoint Longs(std::span<const int64_t> values, Lowering& l) {
  return l.Const(Tensor::Vector(values));
}

using Dims64 = std::vector<int64_t>;

Dims DimsOption(const Node& n, absl::string_view option) {
  const Dims64 values = n.Ints(option);
  return Dims(values.begin(), values.end());
}

// The option, or `rank` times the default where the file leaves it out.
StatusOr<Dims64> PerDimension(const Node& n, absl::string_view option, size_t rank,
                              int64_t otherwise) {
  Dims64 out = n.Ints(option);
  if (out.empty()) out.assign(rank, otherwise);
  if (out.size() == rank) return out;
  return InvalidArgument("its ", option, " are ", out.size(), " for ", rank, " dimensions");
}

StatusOr<Endpoint> Padded(Endpoint x, Endpoint fill, const Dims64& low, const Dims64& high,
                          const Dims64& interior, Lowering& l) {
  return l.Add("XlaPad", {x, fill, Longs(low, l), Longs(high, l), Longs(interior, l)});
}

LoweredEndpoints StablehloPad(Node& n, Lowering& l) {
  const Dims64 low = n.Ints("edge_padding_low"), high = n.Ints("edge_padding_high"),
               interior = n.Ints("interior_padding");
  return OneOf(Padded(n.input(0), n.input(1), low, high, interior, l));
}

// Between two elements lie one less than the dilation says.
LoweredEndpoints Dilate(Node& n, Lowering& l) {
  ASSIGN_OR_RETURN(const Endpoint gaps, l.Add("Sub", {n.input(1), l.Int(1)}));
  ASSIGN_OR_RETURN(const Endpoint none, l.Add("ZerosLike", {gaps}));
  return OneOf(l.Add("XlaPad", {n.input(0), n.input(2), none, none, gaps}));
}

LoweredEndpoints StablehloGather(Node& n, Lowering& l) {
  GatherDimensions d;
  d.window = DimsOption(n, "offset_dims");
  d.collapsed = DimsOption(n, "collapsed_slice_dims");
  d.index_map = DimsOption(n, "start_index_map");
  d.index_vector = n.Int("index_vector_dim");
  AttrMap attrs;
  attrs.Set("dimension_numbers", SerializeGatherDimensions(d));
  attrs.Set("indices_are_sorted", n.Bool("indices_are_sorted"));
  const Dims64 sizes = n.Ints("slice_sizes");
  const Endpoint slices = l.type(n.input(1)) == Dtype::kInt32 ? l.Ints(sizes) : Longs(sizes, l);
  return OneOf(l.Add("XlaGather", {n.input(0), n.input(1), slices}, std::move(attrs)));
}

LoweredEndpoints StablehloScatter(Node& n, Lowering& l) {
  GatherDimensions d;
  d.window = DimsOption(n, "update_window_dims");
  d.collapsed = DimsOption(n, "inserted_window_dims");
  d.index_map = DimsOption(n, "scatter_dims_to_operand_dims");
  d.index_vector = n.Int("index_vector_dim");
  AttrMap attrs;
  attrs.Set("dimension_numbers", SerializeScatterDimensions(d));
  attrs.Set("indices_are_sorted", n.Bool("indices_are_sorted"));
  attrs.Set("update_computation", *n.Find("update"));
  return OneOf(l.Add("XlaScatter", InputsOf(n), std::move(attrs)));
}

StatusOr<Endpoint> Windows(Endpoint x, Endpoint init, const Dims64& size, const Dims64& strides,
                           const Dims64& dilations, FuncAttr computation, Lowering& l) {
  const Dims64 ones(size.size(), 1);
  ASSIGN_OR_RETURN(Tensor pairs,
                   Tensor::Zeros(Dtype::kInt64, Shape({static_cast<int64_t>(size.size()), 2})));
  AttrMap attrs;
  attrs.Set("computation", std::move(computation));
  return l.Add("XlaReduceWindow",
               {x, init, Longs(size, l), Longs(strides, l), Longs(ones, l), Longs(dilations, l),
                l.Const(pairs)},
               std::move(attrs));
}

// Gaps and edges are the initial value there, whether or not that is neutral.
LoweredEndpoints StablehloReduceWindow(Node& n, Lowering& l) {
  const Dims64 size = n.Ints("window_dimensions");
  ASSIGN_OR_RETURN(const Dims64 strides, PerDimension(n, "window_strides", size.size(), 1));
  ASSIGN_OR_RETURN(const Dims64 dilations, PerDimension(n, "window_dilations", size.size(), 1));
  ASSIGN_OR_RETURN(Dims64 gaps, PerDimension(n, "base_dilations", size.size(), 1));
  ASSIGN_OR_RETURN(const Dims64 padding, PerDimension(n, "padding", 2 * size.size(), 0));
  Endpoint x = n.input(0);
  Dims64 low, high;
  for (size_t i = 0; i < size.size(); ++i) {
    if (gaps[i] < 1) return InvalidArgument("its base_dilations have ", gaps[i]);
    --gaps[i];
    low.push_back(padding[2 * i]);
    high.push_back(padding[2 * i + 1]);
  }
  const auto nothing = [](const Dims64& v) {
    return std::ranges::all_of(v, [](int64_t i) { return i == 0; });
  };
  if (!nothing(padding) || !nothing(gaps)) {
    ASSIGN_OR_RETURN(x, Padded(x, n.input(1), low, high, gaps, l));
  }
  return OneOf(Windows(x, n.input(1), size, strides, dilations, *n.Func("body"), l));
}

// A function of two scalars that REDUCE_WINDOW names.
StatusOr<FuncAttr> Reducer(const std::string& named, Dtype type, Lowering& l) {
  struct Known {
    absl::string_view name;
    OpName of_numbers, of_truths;
    bool truth;
  };
  constexpr Known kReducers[] = {
      {"ADD", "AddV2", "LogicalOr", false},        {"MUL", "Mul", "LogicalAnd", false},
      {"MINIMUM", "Minimum", "LogicalAnd", false}, {"MAXIMUM", "Maximum", "LogicalOr", false},
      {"ALL", "LogicalAnd", "LogicalAnd", true},   {"ANY", "LogicalOr", "LogicalOr", true},
  };
  const Known* known = std::ranges::find(kReducers, named, &Known::name);
  if (known == std::end(kReducers)) return Unimplemented("it reduces by ", named);
  FunctionLibrary& library = *l.graph().library();
  FuncAttr out{absl::StrCat("lite_reduce_", named, "_", DtypeName(type)), nullptr};
  if (library.Find(out.name) != nullptr) return out;
  auto f = std::make_unique<Function>();
  f->signature.name = out.name;
  f->body = std::make_unique<Graph>(l.graph().library());
  std::vector<Endpoint> values;
  for (int64_t i = 0; i < 2; ++i) {
    AttrMap attrs;
    attrs.Set("T", type);
    attrs.Set("index", i);
    ASSIGN_OR_RETURN(Node * arg, f->body->Add(i == 0 ? "a" : "b", "_Arg", {}, std::move(attrs)));
    f->args.push_back(arg);
    ArgDef def;
    def.name = arg->name();
    def.type = type;
    f->signature.inputs.push_back(std::move(def));
    values.push_back({arg, 0});
  }
  const auto cast = [&](Endpoint e, Dtype from, Dtype to) -> StatusOr<Endpoint> {
    AttrMap attrs;
    attrs.Set("SrcT", from);
    attrs.Set("DstT", to);
    ASSIGN_OR_RETURN(Node * n,
                     f->body->Add(f->body->FreeName("cast"), "Cast", {e}, std::move(attrs)));
    return Endpoint{n, 0};
  };
  const bool casts = known->truth && type != Dtype::kBool;
  for (Endpoint& e : values) {
    if (!casts) break;
    ASSIGN_OR_RETURN(e, cast(e, type, Dtype::kBool));
  }
  AttrMap attrs;
  const OpName op = type == Dtype::kBool ? known->of_truths : known->of_numbers;
  if (!known->truth && type != Dtype::kBool) attrs.Set("T", type);
  ASSIGN_OR_RETURN(Node * n, f->body->Add("y", op.text(), values, std::move(attrs)));
  Endpoint y{n, 0};
  if (casts) {
    ASSIGN_OR_RETURN(y, cast(y, Dtype::kBool, type));
  }
  ArgDef def;
  def.name = "y";
  def.type = type;
  f->signature.outputs.push_back(std::move(def));
  f->results.push_back({y});
  RETURN_IF_ERROR(library.Add(std::move(f)));
  return out;
}

LoweredEndpoints ReduceWindow(Node& n, Lowering& l) {
  std::optional<Dims64> v[3];
  for (int i = 0; i < 3; ++i) {
    v[i] = l.Integers(n.input(2 + i));
    if (!v[i]) return InvalidArgument("its input ", 2 + i, " is no constant");
    if (v[i]->size() != v[0]->size()) {
      return InvalidArgument("its windows have ", v[0]->size(), " dimensions and ", v[i]->size());
    }
  }
  ASSIGN_OR_RETURN(FuncAttr f, Reducer(n.String("reduce_function"), l.type(n.input(0)), l));
  return OneOf(Windows(n.input(0), n.input(1), *v[0], *v[1], *v[2], std::move(f), l));
}

// The stream in order, whatever the shape: that of a vector. Two words of 32 bits make one of 64.
LoweredEndpoints RandomBits(Node& n, Lowering& l) {
  const PartialShape shape = StatedShape({&n, 1});
  if (!shape.fully_known()) return InvalidArgument("its shape is not fixed");
  Dtype type = n.output_types[1];
  const bool is_signed = type == Dtype::kInt32 || type == Dtype::kInt64;
  if (type == Dtype::kInt32) type = Dtype::kUint32;
  if (type == Dtype::kInt64) type = Dtype::kUint64;
  if (type != Dtype::kUint32 && type != Dtype::kUint64) {
    return Unimplemented("it makes ", DtypeName(type));
  }
  const int32_t algorithm = n.String("algorithm") == "THREEFRY" ? 2 : 1;
  AttrMap attrs;
  attrs.Set("dtype", type);
  const Dims64 flat = {shape.ToShape().num_elements()};
  Dims64 dims;
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape[i]);
  const std::array<Endpoint, 3> inputs = {l.Const(Tensor::Scalar(algorithm)), n.input(0),
                                          Longs(flat, l)};
  ASSIGN_OR_RETURN(Node * bits, l.AddNode("XlaRngBitGenerator", inputs, std::move(attrs)));
  ASSIGN_OR_RETURN(Endpoint out, l.Add("Reshape", {{bits, 1}, Longs(dims, l)}));
  if (is_signed) {
    AttrMap to;
    to.Set("type", n.output_types[1]);
    ASSIGN_OR_RETURN(out, l.Add("Bitcast", {out}, std::move(to)));
  }
  return std::vector<Endpoint>{{bits, 0}, out};
}

// An index that names no branch takes the last one, there as here.
LoweredEndpoints Case(Node& n, Lowering& l) {
  const Attr* branches = n.Find("branches");
  if (branches == nullptr) return InvalidArgument("it has no branches");
  std::vector<Endpoint> inputs = InputsOf(n);
  DtypeVector in;
  for (size_t i = 1; i < inputs.size(); ++i) in.push_back(l.type(inputs[i]));
  ASSIGN_OR_RETURN(inputs[0], l.Add("Reshape", {inputs[0], l.Ints({})}));
  AttrMap attrs;
  attrs.Set("Tin", in);
  attrs.Set("Tout", DtypeVector(n.output_types.begin(), n.output_types.end()));
  attrs.Set("branches", *branches);
  ASSIGN_OR_RETURN(Node * made, l.AddNode("Case", inputs, std::move(attrs)));
  std::vector<Endpoint> out;
  for (int i = 0; i < n.num_outputs(); ++i) out.push_back({made, i});
  return out;
}

// Of truths, and of integers bit by bit.
LoweredEndpoints BitsOrTruths(Node& n, Lowering& l) {
  const bool truths = l.type(n.input(0)) == Dtype::kBool, both = n.Is("tfl.stablehlo_and");
  constexpr OpName kOfTruths[] = {"LogicalOr", "LogicalAnd"},
                   kOfBits[] = {"BitwiseOr", "BitwiseAnd"};
  const OpName op = (truths ? kOfTruths : kOfBits)[both ? 1 : 0];
  return OneOf(l.Add(op, InputsOf(n)));
}

// Sums and products of truths are what XLA makes of them.
LoweredEndpoints NumbersOrTruths(Node& n, Lowering& l) {
  if (l.type(n.input(0)) != Dtype::kBool) return SameOp(n, l);
  const bool either = n.Is({"tfl.stablehlo_add", "tfl.stablehlo_maximum"});
  return OneOf(l.Add(either ? OpName("LogicalOr") : OpName("LogicalAnd"), InputsOf(n)));
}

constexpr LowerRow kStablehloLowering[] = {
    {"tfl.dilate", Dilate},
    {"tfl.reduce_window", ReduceWindow},
    {"tfl.stablehlo_add", NumbersOrTruths, "AddV2"},
    {"tfl.stablehlo_and", BitsOrTruths},
    {"tfl.stablehlo_case", Case},
    {"tfl.stablehlo_gather", StablehloGather},
    {"tfl.stablehlo_maximum", NumbersOrTruths, "Maximum"},
    {"tfl.stablehlo_minimum", NumbersOrTruths, "Minimum"},
    {"tfl.stablehlo_multiply", NumbersOrTruths, "Mul"},
    {"tfl.stablehlo_or", BitsOrTruths},
    {"tfl.stablehlo_pad", StablehloPad},
    {"tfl.stablehlo_reduce_window", StablehloReduceWindow},
    {"tfl.stablehlo_rng_bit_generator", RandomBits},
    {"tfl.stablehlo_scatter", StablehloScatter},
};

}  // namespace

std::span<const LowerRow> StablehloLowering() { return kStablehloLowering; }

}  // namespace smelt
