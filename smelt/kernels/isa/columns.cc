#include "smelt/kernels/isa/columns.h"

#include "smelt/kernels/isa/fill_for_isa.h"

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
    FillForIsa(t, isa_sse2::FillColumns, isa_avx2::FillColumns, isa_avx512::FillColumns);
    return t;
  }();
  return table;
}

}  // namespace smelt
