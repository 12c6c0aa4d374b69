#include <array>

#include "smelt/lite/fit/fit.h"

namespace smelt {

std::span<const std::span<const FitRow>> AllFitRows() {
  static const std::array families = {BroadcastFit(), PartFit(), OrderFit(), SpaceFit()};
  return families;
}

}  // namespace smelt
