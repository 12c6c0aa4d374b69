// Shapes of datasets and iterators, which are scalars, and of the elements that nodes state.
#include <algorithm>
#include <array>

#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

Status StatedShapes(ShapeContext& ctx) {
  const auto shapes = ctx.node().Get<std::vector<PartialShape>>("output_shapes", {});
  const auto n = std::min(shapes.size(), static_cast<size_t>(ctx.node().num_outputs()));
  for (size_t i = 0; i < n; ++i) ctx.set_output(static_cast<int>(i), shapes[i]);
  return OkStatus();
}

constexpr std::array kDatasetRows = {
    ShapeRule{"Iterator", ScalarShapes},
    ShapeRule{"OneShotIterator", ScalarShapes},
    ShapeRule{"AnonymousIterator", ScalarShapes},
    ShapeRule{"IteratorGetNext", StatedShapes},
    ShapeRule{"IteratorGetNextSync", StatedShapes},
    ShapeRule{"IteratorGetNextAsOptional", ScalarShapes},
    ShapeRule{"IteratorToStringHandle", ScalarShapes},
    ShapeRule{"IteratorFromStringHandle", ScalarShapes},
    ShapeRule{"DatasetToSingleElement", StatedShapes},
    ShapeRule{"ReduceDataset", StatedShapes},
    ShapeRule{"TensorDataset", ScalarShapes},
    ShapeRule{"TensorSliceDataset", ScalarShapes},
    ShapeRule{"SparseTensorSliceDataset", ScalarShapes},
    ShapeRule{"RangeDataset", ScalarShapes},
    ShapeRule{"TextLineDataset", ScalarShapes},
    ShapeRule{"TFRecordDataset", ScalarShapes},
    ShapeRule{"FixedLengthRecordDataset", ScalarShapes},
    ShapeRule{"GeneratorDataset", ScalarShapes},
    ShapeRule{"PrefetchDataset", ScalarShapes},
    ShapeRule{"OptionsDataset", ScalarShapes},
    ShapeRule{"ModelDataset", ScalarShapes},
    ShapeRule{"OptimizeDataset", ScalarShapes},
    ShapeRule{"FinalizeDataset", ScalarShapes},
    ShapeRule{"RewriteDataset", ScalarShapes},
    ShapeRule{"NonSerializableDataset", ScalarShapes},
    ShapeRule{"MaxIntraOpParallelismDataset", ScalarShapes},
    ShapeRule{"PrivateThreadPoolDataset", ScalarShapes},
    ShapeRule{"WrapDatasetVariant", ScalarShapes},
    ShapeRule{"UnwrapDatasetVariant", ScalarShapes},
    ShapeRule{"TakeDataset", ScalarShapes},
    ShapeRule{"SkipDataset", ScalarShapes},
    ShapeRule{"RepeatDataset", ScalarShapes},
    ShapeRule{"ShardDataset", ScalarShapes},
    ShapeRule{"ZipDataset", ScalarShapes},
    ShapeRule{"ConcatenateDataset", ScalarShapes},
    ShapeRule{"UniqueDataset", ScalarShapes},
    ShapeRule{"DirectedInterleaveDataset", ScalarShapes},
    ShapeRule{"IgnoreErrorsDataset", ScalarShapes},
    ShapeRule{"AssertCardinalityDataset", ScalarShapes},
    ShapeRule{"DatasetCardinality", ScalarShapes},
    ShapeRule{"MapDataset", ScalarShapes},
    ShapeRule{"ParallelMapDataset", ScalarShapes},
    ShapeRule{"FilterDataset", ScalarShapes},
    ShapeRule{"TakeWhileDataset", ScalarShapes},
    ShapeRule{"ScanDataset", ScalarShapes},
    ShapeRule{"FlatMapDataset", ScalarShapes},
    ShapeRule{"InterleaveDataset", ScalarShapes},
    ShapeRule{"ParallelInterleaveDatasetV2", ScalarShapes},
    ShapeRule{"BatchDataset", ScalarShapes},
    ShapeRule{"ParallelBatchDataset", ScalarShapes},
    ShapeRule{"MapAndBatchDataset", ScalarShapes},
    ShapeRule{"PaddedBatchDataset", ScalarShapes},
    ShapeRule{"UnbatchDataset", ScalarShapes},
    ShapeRule{"RebatchDatasetV2", ScalarShapes},
    ShapeRule{"ShuffleDataset", ScalarShapes},
    ShapeRule{"ShuffleAndRepeatDataset", ScalarShapes},
    ShapeRule{"AnonymousSeedGenerator", ScalarShapes},
    ShapeRule{"DummySeedGenerator", ScalarShapes},
    ShapeRule{"CacheDataset", ScalarShapes},
    ShapeRule{"AnonymousMemoryCache", ScalarShapes},
    ShapeRule{"DummyMemoryCache", ScalarShapes},
    ShapeRule{"ParseExampleDataset", ScalarShapes},
    ShapeRule{"WindowDataset", ScalarShapes},
    ShapeRule{"RandomDataset", ScalarShapes},
    ShapeRule{"SamplingDataset", ScalarShapes},
    ShapeRule{"SlidingWindowDataset", ScalarShapes},
    ShapeRule{"LatencyStatsDataset", ScalarShapes},
    ShapeRule{"BytesProducedStatsDataset", ScalarShapes},
    ShapeRule{"GroupByReducerDataset", ScalarShapes},
    ShapeRule{"GroupByWindowDataset", ScalarShapes},
};

}  // namespace

extern const std::span<const ShapeRule> kDatasetShapes;
constinit const std::span<const ShapeRule> kDatasetShapes = kDatasetRows;

}  // namespace smelt
