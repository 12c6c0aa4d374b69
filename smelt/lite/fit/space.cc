// Blocks of space that become batches, and back: kernels take a batch, one dimension of space or
// two, and the rest.
#include <algorithm>

#include "smelt/lite/fit/fit.h"
#include "smelt/lite/fit/sizes.h"
#include "smelt/lite/rows/rows.h"

namespace smelt {
namespace {

// Blocks of space between dimensions of a tensor.
struct SpaceStep {
  int first, count;              // the dimensions of space
  Endpoint block, pads;          // as the operator takes them
  std::vector<int64_t> sizes;    // of blocks; none: not known
  std::vector<int64_t> borders;  // pads, or crops
};

// The sizes of the result of one operator, which has the sizes of `e`'s runs where it keeps them.
void AfterStep(const Node& n, const SpaceStep& step, bool before, Endpoint made, LiteSizes* sizes) {
  const auto measured = [&](int axis) { return LiteSize{1, {{made, axis}}}; };
  int64_t blocks = 1;
  for (const int64_t b : step.sizes) blocks *= b;
  LiteSize& batch = (*sizes)[0];
  const bool known = !step.sizes.empty();
  const bool to_batch = n.Is("tfl.space_to_batch_nd");
  if (known && batch.is_known()) {
    batch.known = to_batch ? batch.known * blocks : batch.known / blocks;
  } else {
    batch = measured(0);
  }
  for (int i = 0; i < step.count; ++i) {
    LiteSize& size = (*sizes)[static_cast<size_t>(step.first + i)];
    const auto k = static_cast<size_t>(i);
    if (!known || step.borders.empty() || !size.is_known()) {
      size = measured(i + (before ? 2 : 1));
      continue;
    }
    const int64_t borders = step.borders[2 * k] + step.borders[2 * k + 1];
    size.known =
        to_batch ? (size.known + borders) / step.sizes[k] : size.known * step.sizes[k] - borders;
  }
}

LiteEndpoints FitSpace(Node& n, Legalizer& l) {
  const int rank = l.rank(n.input(0));
  const auto blocks = l.Integers(n.input(1)), borders = l.Integers(n.input(2));
  const PartialShape of_blocks = l.shape(n.input(1));
  if (rank < 2 || of_blocks.rank() != 1 || of_blocks[0] < 1) return std::vector<Endpoint>();
  const int count = static_cast<int>(of_blocks[0]);
  if ((rank == 3 && count == 1) || (rank == 4 && count == 2)) return std::vector<Endpoint>();
  std::vector<SpaceStep> steps;
  if (count <= 2) {
    steps.push_back({1, count, n.input(1), n.input(2), blocks.value_or(std::vector<int64_t>()),
                     borders.value_or(std::vector<int64_t>())});
  } else if (!blocks || !borders) {
    return Unimplemented("its operator takes two dimensions of space, and its ", count,
                         " blocks are no constants");
  } else {
    // Of the last dimension the blocks come last: the first two together are the outermost.
    for (int d = count; d >= 2; --d) {
      const int first = d == 2 ? 0 : d - 1, of = d == 2 ? 2 : 1;
      SpaceStep step = {first + 1, of, {}, {}, {}, {}};
      for (int i = first; i < first + of; ++i) {
        const auto k = static_cast<size_t>(i);
        step.sizes.push_back((*blocks)[k]);
        step.borders.push_back((*borders)[2 * k]);
        step.borders.push_back((*borders)[2 * k + 1]);
      }
      steps.push_back(step);
    }
    if (n.Is("tfl.batch_to_space_nd")) std::ranges::reverse(steps);
  }
  Endpoint e = n.input(0);
  LiteSizes sizes = SizesOf(e, l);
  for (SpaceStep& step : steps) {
    // What is before them in space stays as it is.
    const bool before = step.first > 1;
    DimRuns runs = {{0, 1}};
    if (before) runs.push_back({1, step.first - 1});
    for (int i = 0; i < step.count; ++i) runs.push_back({step.first + i, 1});
    const int rest = step.first + step.count;
    runs.push_back({rest, rank - rest});
    ASSIGN_OR_RETURN(e, WithSizes(e, MergedSizes(sizes, runs), l));
    if (step.block.node == nullptr) {
      std::vector<int64_t> block = step.sizes, around = step.borders;
      if (before) {
        block.insert(block.begin(), 1);
        around.insert(around.begin(), 2, 0);
      }
      step.block = l.Ints(block);
      step.pads = l.IntPairs(around);
    }
    LiteSizes known = sizes;
    AfterStep(n, step, before, Endpoint(), &known);
    ASSIGN_OR_RETURN(e, l.Add(n.op_name(), {e, step.block, step.pads}, {},
                              {l.type(e), ShapeOfSizes(MergedSizes(known, runs))}));
    AfterStep(n, step, before, e, &sizes);
  }
  return One(WithSizes(e, sizes, l));
}

constexpr FitRow kSpaceFit[] = {
    {{"tfl.space_to_batch_nd", "tfl.batch_to_space_nd"}, FitSpace},
};

}  // namespace

std::span<const FitRow> SpaceFit() { return kSpaceFit; }

}  // namespace smelt
