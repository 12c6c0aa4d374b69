// How fast this machine multiplies and copies.
#ifndef SMELT_CLI_ROOFLINE_H_
#define SMELT_CLI_ROOFLINE_H_

#include "smelt/base/status.h"
#include "smelt/graph/device_properties.h"

namespace smelt {

struct Roofline {
  double gflops = 0;         // of a large product of matrices of floats, 10^9 a second
  double gb_per_second = 0;  // read and written by copies that no cache holds
};
// Takes about a third of a second, on the threads that loops of the caller have.
StatusOr<Roofline> MeasureRoofline();

// The CPU that passes are told of: estimates go by what was measured.
DeviceProperties MeasuredCpu(const Roofline& roofline);

}  // namespace smelt

#endif  // SMELT_CLI_ROOFLINE_H_
