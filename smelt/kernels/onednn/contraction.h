// Sums of products over labeled dimensions: each operand is brought to [batch, free, contracted]
// (which is often how it lies already), the two are multiplied as matrices, and the product is
// brought to the order of the output.
#ifndef SMELT_KERNELS_ONEDNN_CONTRACTION_H_
#define SMELT_KERNELS_ONEDNN_CONTRACTION_H_

#include "smelt/graph/einsum_equation.h"
#include "smelt/kernels/onednn/float_matmul.h"

namespace smelt::onednn {

// One per node. Thread safe.
class Contraction {
 public:
  // Which operands hold the same values whenever they are the same buffer. Call it before the first
  // Run.
  void SetConstant(bool first, bool second) {
    constant_[0] = first;
    constant_[1] = second;
  }
  // One or two operands of one number type, 16-bit floats through float. UNIMPLEMENTED
  // for types that have no sums of products.
  StatusOr<Tensor> Run(const EinsumShapes& s, std::span<const Tensor* const> operands,
                       Allocator* allocator);
  // The same for runs on these shapes, and `then` done to the result (fusible.h). nullptr where an
  // operand or the product has to be brought to another order.
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const EinsumShapes& s, const BindContext& context,
                                              const FusedOps& then);

 private:
  // The operand in `order`, summed over the dimensions after the first `kept`.
  StatusOr<Tensor> Arranged(const EinsumShapes& s, int operand, const Tensor& t,
                            const EinsumLabels& order, int kept, bool constant,
                            Allocator* allocator);
  // The product of two operands, and the order of its labels.
  StatusOr<Tensor> Product(const EinsumShapes& s, const Tensor* const* in, const bool* constant,
                           EinsumLabels* order, Allocator* allocator);

  bool constant_[2] = {false, false};
  FloatCopies wide_[2];
  FloatMatMul product_;

  // Constant operands as Arranged makes them.
  ConstantForms<EinsumLabels> arranged_;
};

}  // namespace smelt::onednn

#endif  // SMELT_KERNELS_ONEDNN_CONTRACTION_H_
