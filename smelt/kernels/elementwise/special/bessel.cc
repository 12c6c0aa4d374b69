// Bessel functions of orders 0 and 1: Eigen's, as TensorFlow's are.
#include "smelt/kernels/elementwise/special/packets.inc"

namespace smelt {
namespace {

#define SMELT_BESSEL(Name, function)               \
  struct Name {                                    \
    template <typename X>                          \
    static auto Of(const Eigen::ArrayBase<X>& x) { \
      return Eigen::function(x);                   \
    }                                              \
  };
SMELT_BESSEL(BesselI0, bessel_i0)
SMELT_BESSEL(BesselI0e, bessel_i0e)
SMELT_BESSEL(BesselI1, bessel_i1)
SMELT_BESSEL(BesselI1e, bessel_i1e)
SMELT_BESSEL(BesselJ0, bessel_j0)
SMELT_BESSEL(BesselJ1, bessel_j1)
SMELT_BESSEL(BesselK0, bessel_k0)
SMELT_BESSEL(BesselK0e, bessel_k0e)
SMELT_BESSEL(BesselK1, bessel_k1)
SMELT_BESSEL(BesselK1e, bessel_k1e)
SMELT_BESSEL(BesselY0, bessel_y0)
SMELT_BESSEL(BesselY1, bessel_y1)
#undef SMELT_BESSEL

constexpr PacketOp kBesselOps[] = {
    PacketRows<BesselI0>("BesselI0"), PacketRows<BesselI0e>("BesselI0e"),
    PacketRows<BesselI1>("BesselI1"), PacketRows<BesselI1e>("BesselI1e"),
    PacketRows<BesselJ0>("BesselJ0"), PacketRows<BesselJ1>("BesselJ1"),
    PacketRows<BesselK0>("BesselK0"), PacketRows<BesselK0e>("BesselK0e"),
    PacketRows<BesselK1>("BesselK1"), PacketRows<BesselK1e>("BesselK1e"),
    PacketRows<BesselY0>("BesselY0"), PacketRows<BesselY1>("BesselY1"),
};

StatusOr<std::unique_ptr<KernelState>> PrepareBessel(const Node& node) {
  return PreparePackets(node, kBesselOps);
}

constexpr DtypeSet kBesselTypes = kFloatTypes | Types(Dtype::kHalf);

#define SMELT_BESSEL_ROW(Op) \
  { Op, "T", kBesselTypes, "special:bessel", RunUnary, PrepareBessel }
constexpr Kernel kBesselTable[] = {
    SMELT_BESSEL_ROW("BesselI0"),  SMELT_BESSEL_ROW("BesselI0e"), SMELT_BESSEL_ROW("BesselI1"),
    SMELT_BESSEL_ROW("BesselI1e"), SMELT_BESSEL_ROW("BesselJ0"),  SMELT_BESSEL_ROW("BesselJ1"),
    SMELT_BESSEL_ROW("BesselK0"),  SMELT_BESSEL_ROW("BesselK0e"), SMELT_BESSEL_ROW("BesselK1"),
    SMELT_BESSEL_ROW("BesselK1e"), SMELT_BESSEL_ROW("BesselY0"),  SMELT_BESSEL_ROW("BesselY1"),
};
#undef SMELT_BESSEL_ROW

}  // namespace

extern constinit const std::span<const Kernel> kBesselKernels = kBesselTable;

}  // namespace smelt
