// Shapes of what queues, staging areas and barriers answer. What they hold is not followed.
#include <array>

#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

constexpr std::array kQueueRows = {
    ShapeRule{"FIFOQueueV2", ScalarShapes},
    ShapeRule{"PaddingFIFOQueueV2", ScalarShapes},
    ShapeRule{"RandomShuffleQueueV2", ScalarShapes},
    ShapeRule{"PriorityQueueV2", ScalarShapes},
    ShapeRule{"QueueDequeue", NoShapes},
    ShapeRule{"QueueDequeueV2", NoShapes},
    ShapeRule{"QueueDequeueMany", NoShapes},
    ShapeRule{"QueueDequeueManyV2", NoShapes},
    ShapeRule{"QueueDequeueUpTo", NoShapes},
    ShapeRule{"QueueDequeueUpToV2", NoShapes},
    ShapeRule{"QueueIsClosed", ScalarShapes},
    ShapeRule{"QueueIsClosedV2", ScalarShapes},
    ShapeRule{"QueueSize", ScalarShapes},
    ShapeRule{"QueueSizeV2", ScalarShapes},
    ShapeRule{"StageSize", ScalarShapes},
    ShapeRule{"MapSize", ScalarShapes},
    ShapeRule{"MapIncompleteSize", ScalarShapes},
    ShapeRule{"OrderedMapSize", ScalarShapes},
    ShapeRule{"OrderedMapIncompleteSize", ScalarShapes},
    ShapeRule{"BarrierReadySize", ScalarShapes},
    ShapeRule{"BarrierIncompleteSize", ScalarShapes},
};

}  // namespace

extern const std::span<const ShapeRule> kQueueShapes;
constinit const std::span<const ShapeRule> kQueueShapes = kQueueRows;

}  // namespace smelt
