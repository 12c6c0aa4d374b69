// Shapes of summaries, which are scalars, and of the ops on functions and locks of one process.
#include <array>

#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

constexpr std::array kSummaryRows = {
    ShapeRule{"ScalarSummary", ScalarShapes}, ShapeRule{"HistogramSummary", ScalarShapes},
    ShapeRule{"TensorSummary", ScalarShapes}, ShapeRule{"TensorSummaryV2", ScalarShapes},
    ShapeRule{"MergeSummary", ScalarShapes},  ShapeRule{"AudioSummary", ScalarShapes},
    ShapeRule{"SummaryWriter", ScalarShapes}, ShapeRule{"MutexV2", ScalarShapes},
    ShapeRule{"MutexLock", ScalarShapes},     ShapeRule{"For", NoShapes},
    ShapeRule{"RemoteCall", NoShapes},        ShapeRule{"MapDefun", NoShapes},
    ShapeRule{"FakeParam", ShapeFromAttr},    ShapeRule{"ImageSummary", ScalarShapes},
    ShapeRule{"Fact", ScalarShapes},          ShapeRule{"Copy", SameShape},
    ShapeRule{"CopyHost", SameShape},
};

}  // namespace

extern const std::span<const ShapeRule> kSummaryShapes;
constinit const std::span<const ShapeRule> kSummaryShapes = kSummaryRows;

}  // namespace smelt
