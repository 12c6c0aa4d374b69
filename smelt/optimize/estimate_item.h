// What a graph takes, as its item is asked for: for reports of what the optimizer did.
#ifndef SMELT_OPTIMIZE_ESTIMATE_ITEM_H_
#define SMELT_OPTIMIZE_ESTIMATE_ITEM_H_

#include "smelt/analysis/estimate/graph_estimate.h"
#include "smelt/optimize/graph_item.h"

namespace smelt {

inline GraphEstimate EstimateItem(const GraphItem& item,
                                  std::span<const DeviceProperties> devices) {
  return EstimateGraph(*item.graph, item.feeds, item.fetches, devices);
}

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_ESTIMATE_ITEM_H_
