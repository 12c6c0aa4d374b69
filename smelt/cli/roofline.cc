#include "smelt/cli/roofline.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "absl/time/clock.h"
#include "smelt/base/team.h"
#include "smelt/graph/graph.h"
#include "smelt/kernels/resource_manager.h"
#include "smelt/kernels/run_op.h"

namespace smelt {
namespace {

constexpr int64_t kMatrix = 768;
constexpr size_t kCopiedBytes = size_t{64} << 20;
const absl::Duration kLongEnough = absl::Milliseconds(120);

// The best of as many runs as fit into the time, after one that does not count: others use the
// machine too.
template <typename F>
StatusOr<double> BestSeconds(F run) {
  RETURN_IF_ERROR(run());
  double best = INFINITY;
  const absl::Time end = absl::Now() + kLongEnough;
  do {
    const absl::Time start = absl::Now();
    RETURN_IF_ERROR(run());
    best = std::min(best, absl::ToDoubleSeconds(absl::Now() - start));
  } while (absl::Now() < end);
  return std::max(best, 1e-9);
}

StatusOr<double> MeasureProducts() {
  Graph graph(std::make_shared<FunctionLibrary>());
  ASSIGN_OR_RETURN(Tensor ones, Tensor::Make(Dtype::kFloat, Shape{kMatrix, kMatrix}));
  std::ranges::fill(ones.flat<float>(), 1.0f);
  Node* input = graph.AddConst("x", ones);
  AttrMap attrs;
  attrs.Set("T", Dtype::kFloat);
  const Endpoint both[] = {{input, 0}, {input, 0}};
  ASSIGN_OR_RETURN(const Node* product, graph.Add("y", "MatMul", both, std::move(attrs)));
  ResourceManager none, none_of_step;
  Cancellation never;
  Step step;
  step.resources = &none;
  step.step_resources = &none_of_step;
  step.cancellation = &never;
  ASSIGN_OR_RETURN(const double seconds, BestSeconds([&] {
                     return RunOp(*product, {ones, ones}, step).status();
                   }));
  return 2e-9 * static_cast<double>(kMatrix * kMatrix * kMatrix) / seconds;
}

StatusOr<double> MeasureCopies() {
  // Written before it counts, so that the pages are there.
  std::vector<char> from(kCopiedBytes, 1), to(kCopiedBytes, 2);
  ASSIGN_OR_RETURN(const double seconds, BestSeconds([&] {
                     RunTeam(Threads(), [&] {
                       const size_t parts = static_cast<size_t>(TeamSize());
                       const size_t part = kCopiedBytes / parts;
                       const size_t begin = part * static_cast<size_t>(TeamIndex());
                       std::memcpy(to.data() + begin, from.data() + begin, part);
                     });
                     return OkStatus();
                   }));
  return 2e-9 * static_cast<double>(kCopiedBytes) / seconds;
}

}  // namespace

StatusOr<Roofline> MeasureRoofline() {
  Roofline roofline;
  ASSIGN_OR_RETURN(roofline.gflops, MeasureProducts());
  ASSIGN_OR_RETURN(roofline.gb_per_second, MeasureCopies());
  return roofline;
}

DeviceProperties MeasuredCpu(const Roofline& roofline) {
  DeviceProperties cpu;
  cpu.name = "/job:localhost/replica:0/task:0/device:CPU:0";
  cpu.type = "CPU";
  // Estimates multiply both: an operation a core and clock.
  cpu.num_cores = Threads();
  const double megahertz = roofline.gflops * 1e3 / static_cast<double>(cpu.num_cores);
  cpu.frequency = std::max<int64_t>(1, std::llround(megahertz));
  cpu.bandwidth = std::max<int64_t>(1, std::llround(roofline.gb_per_second * 1e6));
  cpu.memory_size = int64_t{sysconf(_SC_PHYS_PAGES)} * int64_t{sysconf(_SC_PAGESIZE)};
  return cpu;
}

}  // namespace smelt
