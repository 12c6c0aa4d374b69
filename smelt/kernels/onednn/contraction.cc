#include "smelt/kernels/onednn/contraction.h"

#include <algorithm>
#include <complex>

#include "smelt/base/parallel.h"
#include "smelt/graph/einsum_equation.h"
#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/common/via_float.h"
#include "smelt/kernels/fusible.h"
#include "smelt/kernels/onednn/bound_layer.h"

namespace smelt::onednn {
namespace {

bool EinsumHas(const EinsumLabels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

EinsumLabels Concatenate(std::initializer_list<const EinsumLabels*> parts) {
  EinsumLabels out;
  for (const EinsumLabels* p : parts) out.insert(out.end(), p->begin(), p->end());
  return out;
}

Dims SizesOf(const EinsumShapes& s, const EinsumLabels& labels) {
  Dims dims;
  for (const int l : labels) dims.push_back(s.Size(l));
  return dims;
}

// How far one step along `label` moves in an operand: repeated labels walk the diagonal.
int64_t EinsumStep(const EinsumLabels& labels, const Dims& strides, int label) {
  int64_t step = 0;
  for (size_t i = 0; i < labels.size(); ++i) step += labels[i] == label ? strides[i] : 0;
  return step;
}

// Does the operand lie densely in the order of `labels`?
bool LiesIn(const EinsumShapes& s, const EinsumLabels& own, const Dims& strides,
            const EinsumLabels& order) {
  int64_t expected = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t size = s.Size(order[i]);
    if (size != 1 && EinsumStep(own, strides, order[i]) != expected) return false;
    expected *= size;
  }
  return true;
}

// The operand (a diagonal of it, where labels repeat) as a dense tensor of dimensions `order`.
StatusOr<Tensor> ArrangeOperand(const EinsumShapes& s, const Tensor& t, const EinsumLabels& own,
                                const EinsumLabels& order, Allocator* allocator) {
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(SizesOf(s, order)));
  // With elements, strides are defined; without, any tensor of the shape is right.
  if (t.num_elements() > 0) {
    const Dims strides = Strides(t.shape());
    if (shape.num_elements() == t.num_elements() && LiesIn(s, own, strides, order)) {
      return t.WithShape(shape);
    }
    ASSIGN_OR_RETURN(Tensor out, Tensor::Make(t.dtype(), shape, allocator));
    const Dims out_strides = Strides(shape);
    CopyDims dims;
    for (size_t i = 0; i < order.size(); ++i) {
      dims.push_back(
          {shape[static_cast<int>(i)], out_strides[i], EinsumStep(own, strides, order[i])});
    }
    CopyStrided(t.dtype(), out.raw(), t.raw(), dims);
    return out;
  }
  return Tensor::Zeros(t.dtype(), shape, allocator);
}

template <typename T>
void SumRows(const T* x, int64_t rows, int64_t n, T* y) {
  ParallelFor(rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(n, 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                  T sum = T(0);
                  for (int64_t i = 0; i < n; ++i) sum += x[r * n + i];
                  y[r] = sum;
                }
              });
}

// Sums over the last dimensions: those after the first `kept`.
StatusOr<Tensor> SumLast(const Tensor& t, int kept, Allocator* allocator) {
  if (t.rank() == kept) return t;
  const int64_t rows = t.shape().Product(0, kept);
  const int64_t n = t.shape().Product(kept, t.rank());
  ASSIGN_OR_RETURN(Tensor out,
                   Tensor::Make(t.dtype(), Shape(t.shape().dims().subspan(0, kept)), allocator));
  switch (t.dtype()) {
    case Dtype::kFloat:
      SumRows(t.data<float>(), rows, n, out.data<float>());
      break;
    case Dtype::kDouble:
      SumRows(t.data<double>(), rows, n, out.data<double>());
      break;
    // Integers wrap around: they are added as unsigned.
    case Dtype::kInt32:
      SumRows(static_cast<const uint32_t*>(t.raw()), rows, n, static_cast<uint32_t*>(out.raw()));
      break;
    case Dtype::kInt64:
      SumRows(static_cast<const uint64_t*>(t.raw()), rows, n, static_cast<uint64_t*>(out.raw()));
      break;
    case Dtype::kComplex64:
      SumRows(t.data<std::complex<float>>(), rows, n, out.data<std::complex<float>>());
      break;
    case Dtype::kComplex128:
      SumRows(t.data<std::complex<double>>(), rows, n, out.data<std::complex<double>>());
      break;
    default:
      return Unimplemented("Einsum of ", DtypeName(t.dtype()));
  }
  return out;
}

// Splits an operand's labels, each once, by whether the other operand and the output have them.
struct OperandParts {
  EinsumLabels batch, free, contracted, summed;
};
OperandParts Classify(const EinsumShapes& s, int operand) {
  OperandParts p;
  const EinsumLabels* other = s.inputs.size() == 2 ? &s.inputs[1 - operand] : nullptr;
  const EinsumLabels& own = s.inputs[operand];
  const auto add_once = [](EinsumLabels* to, int label) {
    if (!EinsumHas(*to, label)) to->push_back(label);
  };
  // In the output's order, so that the product is close to it.
  for (const int label : s.output) {
    if (!EinsumHas(own, label)) continue;
    add_once(other != nullptr && EinsumHas(*other, label) ? &p.batch : &p.free, label);
  }
  // In the first operand's order, so that both operands agree.
  for (const int label : s.inputs[0]) {
    if (label == EinsumShapes::kNone || EinsumHas(s.output, label)) continue;
    if (other != nullptr && EinsumHas(s.inputs[1], label)) add_once(&p.contracted, label);
  }
  for (const int label : own) {
    if (label == EinsumShapes::kNone || EinsumHas(s.output, label)) continue;
    if (other == nullptr || !EinsumHas(*other, label)) add_once(&p.summed, label);
  }
  return p;
}

// Is anything summed in one operand alone?
bool SumsAlone(const EinsumShapes& s) {
  return !Classify(s, 0).summed.empty() || !Classify(s, 1).summed.empty();
}

// Puts dimensions `order` into the output's order; labels that repeat there fill a diagonal.
StatusOr<Tensor> ArrangeResult(const EinsumShapes& s, const Tensor& t, const EinsumLabels& order,
                               Allocator* allocator) {
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(SizesOf(s, s.output)));
  if (order == s.output) return t;
  bool repeated = false;
  for (size_t i = 0; i < s.output.size(); ++i) {
    repeated |= std::count(s.output.begin(), s.output.end(), s.output[i]) > 1;
  }
  if (t.num_elements() > 0 && !repeated && LiesIn(s, order, Strides(t.shape()), s.output)) {
    return t.WithShape(shape);
  }
  ASSIGN_OR_RETURN(Tensor out, repeated ? Tensor::Zeros(t.dtype(), shape, allocator)
                                        : Tensor::Make(t.dtype(), shape, allocator));
  if (t.num_elements() == 0) return out;
  const Dims from = Strides(t.shape());
  const Dims to = Strides(shape);
  // Loops in the output's order write consecutively.
  CopyDims dims;
  EinsumLabels done;
  for (const int label : s.output) {
    if (EinsumHas(done, label)) continue;
    done.push_back(label);
    dims.push_back(
        {s.Size(label), EinsumStep(s.output, to, label), EinsumStep(order, from, label)});
  }
  CopyStrided(t.dtype(), out.raw(), t.raw(), dims);
  return out;
}

}  // namespace

StatusOr<Tensor> Contraction::Arranged(const EinsumShapes& s, int operand, const Tensor& t,
                                       const EinsumLabels& order, int kept, bool constant,
                                       Allocator* allocator) {
  const auto make = [&](Allocator* where) -> StatusOr<Tensor> {
    ASSIGN_OR_RETURN(const Tensor dense, ArrangeOperand(s, t, s.inputs[operand], order, where));
    return SumLast(dense, kept, where);
  };
  if (!constant) return make(allocator);
  ASSIGN_OR_RETURN(const auto arranged, arranged_.Get(t, order, true, allocator, make));
  return *arranged;
}

StatusOr<Tensor> Contraction::Product(const EinsumShapes& s, const Tensor* const* in,
                                      const bool* constant, EinsumLabels* order,
                                      Allocator* allocator) {
  OperandParts parts[2] = {Classify(s, 0), Classify(s, 1)};
  // The operand that has the output's last dimension goes second, so that the product more often
  // lies in the output's order.
  int first = 0;
  if (!s.output.empty() && EinsumHas(parts[0].free, s.output.back())) first = 1;
  const int second = 1 - first;
  nn::MatMulProblem p;
  Tensor tensors[2];
  for (const int i : {first, second}) {
    const OperandParts& q = parts[i];
    // Either order of the inner two suits the product; the second operand's natural one has the
    // contracted dimensions first.
    EinsumLabels free_last = Concatenate({&q.batch, &q.contracted, &q.free, &q.summed});
    EinsumLabels free_first = Concatenate({&q.batch, &q.free, &q.contracted, &q.summed});
    bool take_free_last = i == second;
    if (in[i]->num_elements() > 0) {
      const Dims strides = Strides(in[i]->shape());
      const EinsumLabels& other = take_free_last ? free_first : free_last;
      const EinsumLabels& wanted = take_free_last ? free_last : free_first;
      if (!LiesIn(s, s.inputs[i], strides, wanted) && LiesIn(s, s.inputs[i], strides, other)) {
        take_free_last = !take_free_last;
      }
    }
    (i == first ? p.transpose_a : p.transpose_b) = (i == first) == take_free_last;
    const int kept = static_cast<int>(q.batch.size() + q.free.size() + q.contracted.size());
    ASSIGN_OR_RETURN(tensors[i], Arranged(s, i, *in[i], take_free_last ? free_last : free_first,
                                          kept, constant[i], allocator));
  }
  const auto product = [&](const EinsumLabels& labels) -> StatusOr<int64_t> {
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(SizesOf(s, labels)));
    return shape.num_elements();
  };
  ASSIGN_OR_RETURN(p.m, product(parts[first].free));
  ASSIGN_OR_RETURN(p.n, product(parts[second].free));
  ASSIGN_OR_RETURN(p.k, product(parts[first].contracted));
  ASSIGN_OR_RETURN(const int64_t batches, product(parts[first].batch));
  p.batch = p.batch_a = p.batch_b = Dims{batches};
  ASSIGN_OR_RETURN(p.output, Shape::Make(Dims{batches, p.m, p.n}));
  const auto matrix = [&](const Tensor& t, int64_t rows, int64_t columns, bool transposed) {
    return t.WithShape(transposed ? Shape({batches, columns, rows})
                                  : Shape({batches, rows, columns}));
  };
  const Tensor a = matrix(tensors[first], p.m, p.k, p.transpose_a);
  const Tensor b = matrix(tensors[second], p.k, p.n, p.transpose_b);
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(a.dtype(), p.output, allocator));
  if (a.dtype() == Dtype::kFloat || a.dtype() == Dtype::kBfloat16) {
    RETURN_IF_ERROR(product_.Run(p, a, b, constant[second], FusedOps(), {}, &out, allocator));
  } else {
    RETURN_IF_ERROR(nn::MatMulReference(p, a, b, false, false, &out));
  }
  *order = Concatenate({&parts[first].batch, &parts[first].free, &parts[second].free});
  return out.WithShape(Shape(SizesOf(s, *order)));
}

StatusOr<Tensor> Contraction::Run(const EinsumShapes& s, std::span<const Tensor* const> operands,
                                  Allocator* allocator) {
  const Dtype dtype = operands[0]->dtype();
  const bool narrow = dtype == Dtype::kHalf || dtype == Dtype::kBfloat16;
  EinsumLabels order;
  // FloatMatMul takes bfloat16; sums within one operand are made in float.
  if (dtype == Dtype::kBfloat16 && operands.size() == 2 && !SumsAlone(s)) {
    ASSIGN_OR_RETURN(const Tensor product,
                     Product(s, operands.data(), constant_, &order, allocator));
    return ArrangeResult(s, product, order, allocator);
  }
  Tensor wide[2];
  const Tensor* in[2] = {};
  for (size_t i = 0; i < operands.size(); ++i) {
    in[i] = operands[i];
    if (narrow) {
      ASSIGN_OR_RETURN(wide[i], wide_[i].Get(*operands[i], constant_[i], allocator));
      in[i] = &wide[i];
    }
  }
  Tensor result;
  if (operands.size() == 1) {
    const OperandParts parts = Classify(s, 0);
    order = parts.free;
    ASSIGN_OR_RETURN(const Tensor dense,
                     ArrangeOperand(s, *in[0], s.inputs[0],
                                    Concatenate({&parts.free, &parts.summed}), allocator));
    ASSIGN_OR_RETURN(result, SumLast(dense, static_cast<int>(order.size()), allocator));
  } else {
    ASSIGN_OR_RETURN(result, Product(s, in, constant_, &order, allocator));
  }
  ASSIGN_OR_RETURN(result, ArrangeResult(s, result, order, allocator));
  if (!narrow) return result;
  return FromFloat(result, dtype, allocator);
}

StatusOr<std::unique_ptr<BoundKernel>> Contraction::Bind(const EinsumShapes& s,
                                                         const BindContext& context,
                                                         const FusedOps& then) {
  if (s.inputs.size() != 2 || SumsAlone(s)) return nullptr;
  const OperandParts a = Classify(s, 0), b = Classify(s, 1);
  if (Concatenate({&a.batch, &a.free, &b.free}) != s.output) return nullptr;
  nn::MatMulProblem p;
  for (const int i : {0, 1}) {
    const OperandParts& q = i == 0 ? a : b;
    const Shape& shape = context.inputs[static_cast<size_t>(i)].shape;
    if (shape.num_elements() == 0 ||
        EinsumHas(s.inputs[static_cast<size_t>(i)], EinsumShapes::kNone)) {
      return nullptr;
    }
    const Dims strides = Strides(shape);
    const auto lies = [&](const EinsumLabels& order) {
      const Dims sizes = SizesOf(s, order);
      int64_t n = 1;
      for (const int64_t size : sizes) n *= size;
      return n == shape.num_elements() &&
             LiesIn(s, s.inputs[static_cast<size_t>(i)], strides, order);
    };
    const bool free_first = lies(Concatenate({&q.batch, &q.free, &q.contracted}));
    const bool free_last = lies(Concatenate({&q.batch, &q.contracted, &q.free}));
    if (!free_first && !free_last) return nullptr;
    // The natural one where both are.
    (i == 0 ? p.transpose_a : p.transpose_b) = i == 0 ? !free_first : !free_last;
  }
  const auto product = [&](const EinsumLabels& labels) {
    int64_t n = 1;
    for (const int64_t size : SizesOf(s, labels)) n *= size;
    return n;
  };
  p.m = product(a.free);
  p.n = product(b.free);
  p.k = product(a.contracted);
  const int64_t batches = product(a.batch);
  const auto matrices = [&](int64_t rows, int64_t columns, bool transposed) {
    Dims dims = p.batch;
    dims.insert(dims.end(), {transposed ? columns : rows, transposed ? rows : columns});
    return Shape(std::span<const int64_t>(dims));
  };
  if (batches != 1) p.batch = p.batch_a = p.batch_b = Dims{batches};
  p.output = matrices(p.m, p.n, false);
  JoinedSteps steps = JoinSteps(FusedOps(), then, context, p.output);
  steps.inputs[0].shape = matrices(p.m, p.k, p.transpose_a);
  steps.inputs[1].shape = matrices(p.k, p.n, p.transpose_b);
  Tensor weights;
  if (const Tensor* constant = steps.inputs[1].constant) {
    weights = constant->WithShape(steps.inputs[1].shape);
    steps.inputs[1].constant = &weights;
  }
  const BindContext joined{context.node, steps.inputs, context.outputs};
  if (!ArgumentsFit(steps.ops, joined.inputs.subspan(2), p.output, p.output.rank() - 1))
    return nullptr;
  return product_.Bind(p, joined, steps.ops);
}

}  // namespace smelt::onednn
