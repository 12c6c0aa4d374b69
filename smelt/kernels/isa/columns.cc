#include "smelt/kernels/isa/columns.h"

namespace smelt {

namespace isa_sse2 {
void FillColumns(ColumnLoops& t);
}
namespace isa_avx2 {
void FillColumns(ColumnLoops& t);
}
namespace isa_avx512 {
void FillColumns(ColumnLoops& t);
}

const ColumnLoops& IsaColumns() {
  static const ColumnLoops table = [] {
    ColumnLoops t = {};
    switch (Isa().level) {
      case IsaLevel::kBaseline:
        isa_sse2::FillColumns(t);
        break;
      case IsaLevel::kAvx2:
        isa_avx2::FillColumns(t);
        break;
      case IsaLevel::kAvx512:
        isa_avx512::FillColumns(t);
        break;
    }
    return t;
  }();
  return table;
}

}  // namespace smelt
