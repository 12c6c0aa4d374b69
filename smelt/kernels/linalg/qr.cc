// QR by Householder reflections.
#include <Eigen/QR>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/linalg/batch.h"
#include "smelt/kernels/linalg/dense.inc"

namespace smelt {
namespace {

// q is m x k, r is k x n.
template <typename T>
void FactorQr(const T* in, T* q, T* r, int64_t m, int64_t n, int64_t k) {
  if (m == 0 || n == 0) {
    DenseOut<T>(q, m, k).setIdentity();
    return;
  }
  const Eigen::HouseholderQR<DenseMatrix<T>> qr(DenseIn<T>(in, m, n));
  DenseOut<T>(q, m, k) = qr.householderQ() * DenseMatrix<T>::Identity(m, k);
  DenseOut<T> upper(r, k, n);
  upper = qr.matrixQR().topRows(k).template triangularView<Eigen::Upper>();
}

StatusOr<std::unique_ptr<KernelState>> PrepareQr(const Node& node) {
  return ReadIntAttrs(node, {"full_matrices"});
}

Status RunQr(OpContext& ctx) {
  ASSIGN_OR_RETURN(MatrixBatch batch, MatrixBatch::Of(ctx, 1));
  const auto [m, n] = batch.input_size(0);
  const bool full = ctx.state<IntAttrs>()[0] != 0;
  const int64_t k = full ? m : std::min(m, n);
  RETURN_IF_ERROR(batch.Allocate(0, {m, k}));
  RETURN_IF_ERROR(batch.Allocate(1, {k, n}));
  const double cost = 2 * CubicCost(std::max(m, n));
  const int64_t rows = m, cols = n;
  return batch.VisitWide([&]<typename T>() {
    return batch.ForEach(cost, [&](int64_t b) {
      FactorQr(batch.in<T>(0, b), batch.out<T>(0, b), batch.out<T>(1, b), rows, cols, k);
      return OkStatus();
    });
  });
}

constexpr Kernel kQrTable[] = {
    {"Qr", "T", kMatrixTypes | Types(Dtype::kHalf), "linalg:qr", RunQr, PrepareQr},
};

}  // namespace

extern constinit const std::span<const Kernel> kQrKernels = kQrTable;

}  // namespace smelt
