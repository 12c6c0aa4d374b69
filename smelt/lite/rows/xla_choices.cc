// XLA's ops that choose by a function that the model has: JAX's argmax and its sorts.
#include <array>
#include <limits>

#include "smelt/lite/common/xla_function.h"
#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

// Of two values with their places: that which is greater (sign 1) or less (-1), else the first?
bool IsBest(const FunctionLibrary& library, const FuncAttr* f, int sign) {
  for (const float a : {0.f, 1.f}) {
    for (const float b : {0.f, 1.f}) {
      const Tensor arguments[] = {Tensor::Scalar(a), Tensor::Scalar<int32_t>(5), Tensor::Scalar(b),
                                  Tensor::Scalar<int32_t>(7)};
      const auto answers = AnswersOf(library, f, arguments);
      if (!answers || answers->size() != 2 || (*answers)[0].dtype() != Dtype::kFloat ||
          (*answers)[1].dtype() != Dtype::kInt32 || (*answers)[0].num_elements() != 1 ||
          (*answers)[1].num_elements() != 1) {
        return false;
      }
      const bool second = static_cast<float>(sign) * b > static_cast<float>(sign) * a;
      if (*(*answers)[0].data<float>() != (second ? b : a)) return false;
      if (*(*answers)[1].data<int32_t>() != (second ? 7 : 5)) return false;
    }
  }
  return true;
}

// Does the value, of that shape, hold each element's place along the axis, which has a known size?
bool HoldsPlaces(Endpoint e, int axis, const PartialShape& shape, const Legalizer& l) {
  if (e.node->Is("tfl.broadcast_to")) e = e.node->input(0);
  const auto value = l.Constant(e);
  if (!value || value->rank() > shape.rank()) return false;
  // Its last dimensions are those of the shape, or one that all have.
  const int before = shape.rank() - value->rank();
  if (axis < before || value->dim(axis - before) != shape[axis]) return false;
  int64_t behind = 1;
  for (int i = axis - before + 1; i < value->rank(); ++i) behind *= value->dim(i);
  for (int64_t i = 0; i < value->num_elements(); ++i) {
    if (IndexAt(*value, i) != i / behind % shape[axis]) return false;
  }
  return true;
}

// The greatest, or least, of a dimension and where it is, as JAX spells argmax. Which of several
// NaN comes first no operator knows.
LiteEndpoints BestPlace(Node& n, Legalizer& l) {
  const auto axes = n.Get<std::vector<int64_t>>("dimensions_to_reduce", {});
  if (n.num_inputs() != 4 || axes.size() != 1 || n.output_types[1] != Dtype::kInt32) {
    return Unimplemented("it is not of values and their places in one dimension");
  }
  if (n.output_types[0] != Dtype::kFloat) return Unimplemented("its operator takes float alone");
  const auto& library = *l.graph().library();
  const bool most = IsBest(library, n.Func("reducer"), 1);
  if (!most && !IsBest(library, n.Func("reducer"), -1)) {
    return Unimplemented("its function does not choose the greatest or the least");
  }
  const PartialShape shape = l.shape(n.input(0));
  const auto axis = static_cast<int>(axes[0]);
  if (!shape.known_rank() || axis < 0 || axis >= shape.rank() || shape[axis] < 0 ||
      !HoldsPlaces(n.input(1), axis, shape, l)) {
    return Unimplemented("what it chooses with is not known to be the places");
  }
  const auto first = l.Constant(n.input(2)), place = l.Constant(n.input(3));
  const auto worst =
      most ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  if (!first || !place || first->num_elements() != 1 || place->num_elements() != 1 ||
      *first->data<float>() != worst || IndexAt(*place, 0) != 0) {
    return Unimplemented("it begins with something else than nothing");
  }
  OperatorChain c(l);
  const LiteOutput values = {Dtype::kFloat, l.shape({&n, 0})};
  std::vector<Endpoint> out;
  const Endpoint best =
      c.Make(most ? OpName("tfl.arg_max") : OpName("tfl.arg_min"), {n.input(0), l.Int(axis)},
             Options({{"output_type", Dtype::kInt32}}), {Dtype::kInt32, l.shape({&n, 1})});
  out.push_back(n.NumUses(0) == 0
                    ? best
                    : c.Make(most ? OpName("tfl.reduce_max") : OpName("tfl.reduce_min"),
                             {n.input(0), l.Ints(std::vector<int64_t>{axis})},
                             Options({{"keep_dims", false}}), values));
  out.push_back(best);
  return c.Done(std::move(out));
}

// One and another pair of values for each operand behind the first.
StatusOr<std::array<std::vector<Tensor>, 2>> OtherValues(std::span<const Dtype> types) {
  std::array<std::vector<Tensor>, 2> all;
  for (const Dtype type : types.subspan(1)) {
    for (const int first : {0, 1}) {
      for (const int value : {first, 1 - first}) {
        ASSIGN_OR_RETURN(Tensor scalar, FilledTensor(type, Shape(), value));
        all[static_cast<size_t>(first)].push_back(std::move(scalar));
      }
    }
  }
  return all;
}

// Is a true answer of the comparator, to any other values of the operands behind the first, that
// its first argument is less (sign 1) or greater (-1) than the second?
template <typename T>
bool ComparesAs(const FunctionLibrary& library, const FuncAttr* f, std::span<const Dtype> types,
                int sign, std::span<const T> samples) {
  const auto others = OtherValues(types);
  if (!others.ok()) return false;
  for (const T a : samples) {
    for (const T b : samples) {
      for (const std::vector<Tensor>& other : *others) {
        std::vector<Tensor> arguments = {Tensor::Scalar(a), Tensor::Scalar(b)};
        arguments.insert(arguments.end(), other.begin(), other.end());
        const auto answers = AnswersOf(library, f, arguments);
        if (!answers || answers->size() != 1 || (*answers)[0].dtype() != Dtype::kBool ||
            (*answers)[0].num_elements() != 1) {
          return false;
        }
        if (*(*answers)[0].data<bool>() != (sign > 0 ? a < b : a > b)) return false;
      }
    }
  }
  return true;
}

// Whether the node sorts its first operand upwards (1), downwards (-1) or by something else (0).
int SortsBy(const Node& n, const FunctionLibrary& library) {
  const FuncAttr* f = n.Func("comparator");
  constexpr float kFloats[] = {-std::numeric_limits<float>::infinity(), -3, -0.5f, 0, 1e-3f, 2,
                               std::numeric_limits<float>::infinity()};
  constexpr int32_t kInts[] = {std::numeric_limits<int32_t>::min(), -3, 0, 1, 2,
                               std::numeric_limits<int32_t>::max()};
  for (const int sign : {1, -1}) {
    if (n.output_types[0] == Dtype::kFloat
            ? ComparesAs<float>(library, f, n.output_types, sign, kFloats)
            : ComparesAs<int32_t>(library, f, n.output_types, sign, kInts)) {
      return sign;
    }
  }
  return 0;
}

// The greatest of all there are, in order, equal ones as they come, as sorts that keep their order
// want it. Where NaN goes no operator knows.
LiteEndpoints Sort(Node& n, Legalizer& l) {
  const auto axes = l.Integers(n.input(n.num_inputs() - 1));
  const PartialShape shape = l.shape(n.input(0));
  if (!axes || axes->size() != 1 || (*axes)[0] < 0 || !shape.known_rank() ||
      (*axes)[0] >= shape.rank() || shape[static_cast<int>((*axes)[0])] < 0) {
    return Unimplemented("how many elements it sorts is not known");
  }
  if (n.output_types[0] != Dtype::kFloat && n.output_types[0] != Dtype::kInt32) {
    return Unimplemented("it sorts by another type than float and int32");
  }
  const int sign = SortsBy(n, *l.graph().library());
  if (sign == 0) return Unimplemented("its comparator is none of less and greater");
  const auto axis = static_cast<int>((*axes)[0]);
  const int64_t size = shape[axis];
  std::vector<int64_t> order(static_cast<size_t>(shape.rank()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::swap(order[static_cast<size_t>(axis)], order.back());  // its own inverse
  const bool turns = axis + 1 != shape.rank();
  OperatorChain c(l);
  const auto turned = [&](Endpoint e) { return turns ? c.Transpose(e, order) : e; };
  // -1 - x, unlike -x, is of all int32.
  const bool floats = n.output_types[0] == Dtype::kFloat;
  const auto opposite = [&](Endpoint e) {
    return sign < 0 ? e : floats ? c.Op("tfl.neg", {e}) : c.Sub(-1, e);
  };
  const Endpoint keys = opposite(turned(n.input(0)));
  RETURN_IF_ERROR(c.Done(keys).status());
  const PartialShape sorted = c.shape(keys);
  const std::vector<Endpoint> top =
      c.MakeMany("tfl.topk_v2", {keys, l.Int(size)}, {},
                 {{n.output_types[0], sorted}, {Dtype::kInt32, sorted}});
  std::vector<Endpoint> out;
  for (int i = 0; i < n.num_outputs(); ++i) {
    if (i == 0) {
      out.push_back(turned(opposite(top[0])));
    } else if (n.output_types[i] == Dtype::kInt32 && HoldsPlaces(n.input(i), axis, shape, l)) {
      out.push_back(turned(top[1]));
    } else {
      const auto batch = static_cast<int64_t>(shape.rank()) - 1;
      out.push_back(turned(c.Make("tfl.gather", {turned(n.input(i)), top[1]},
                                  Options({{"axis", batch}, {"batch_dims", batch}}),
                                  {n.output_types[i], sorted})));
    }
  }
  return c.Done(std::move(out));
}

constexpr ExportRow kXlaChoiceRows[] = {
    {"XlaVariadicReduceV2", BestPlace},
    {"XlaVariadicSort", Sort},
};

}  // namespace

std::span<const ExportRow> XlaChoiceExport() { return kXlaChoiceRows; }

}  // namespace smelt
