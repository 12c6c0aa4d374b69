// Datasets that choose, repeat, join and count the elements of others.
#include <algorithm>
#include <set>
#include <utility>

#include "smelt/kernels/dataset/dataset.h"

namespace smelt {
namespace {

// What only tunes a pipeline: the same elements.
Status RunPassDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  return SetDataset(ctx, {&input, 1}, input->cardinality, input->make);
}

Status RunPrefetchDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const int64_t size, CountInput(ctx, 1, "buffer_size"));
  if (size < -1) {
    return InvalidArgument("buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning");
  }
  return RunPassDataset(ctx);
}

Status RunMaxParallelismDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const int64_t n, CountInput(ctx, 1, "max_intra_op_parallelism"));
  if (n < 0) return InvalidArgument("`max_intra_op_parallelism` must be >= 0");
  return RunPassDataset(ctx);
}

Status RunPrivateThreadPoolDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const int64_t n, CountInput(ctx, 1, "num_threads"));
  if (n < 0) return InvalidArgument("`num_threads` must be >= 0");
  return RunPassDataset(ctx);
}

// Datasets need no wrapping to pass through functions here.
Status RunWrapDataset(OpContext& ctx) {
  RETURN_IF_ERROR(DatasetInput(ctx, 0).status());
  ctx.set_output(0, ctx.TakeInput(0));
  return OkStatus();
}

Status RunTakeDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const int64_t count, CountInput(ctx, 1, "count"));
  int64_t n = input->cardinality;
  if (count >= 0 && n != kUnknownCount) n = n == kInfinite ? count : std::min(n, count);
  if (count == 0) n = 0;
  return SetDataset(ctx, {&input, 1}, n, [input, count](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    if (count < 0) return in;
    return [in = std::move(in), left = count](Step& step) mutable -> NextElement {
      if (left == 0) return EndOfElements();
      --left;
      ASSIGN_OR_RETURN(auto element, Pull(in, step));
      if (!element) left = 0;
      return element;
    };
  });
}

Status RunSkipDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const int64_t count, CountInput(ctx, 1, "count"));
  int64_t n = input->cardinality;
  if (count < 0) {
    n = 0;
  } else if (n >= 0) {
    n = std::max<int64_t>(n - count, 0);
  }
  return SetDataset(ctx, {&input, 1}, n, [input, count](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    return [in = std::move(in), left = count](Step& step) mutable -> NextElement {
      if (left < 0) return EndOfElements();
      for (; left > 0; --left) {
        ASSIGN_OR_RETURN(const auto skipped, Pull(in, step));
        if (!skipped) {
          left = -1;
          return EndOfElements();
        }
      }
      return Pull(in, step);
    };
  });
}

Status RunRepeatDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const int64_t count, CountInput(ctx, 1, "count"));
  int64_t n = input->cardinality;
  if (count == 0 || n == 0) {
    n = 0;
  } else if (count < 0) {
    n = kInfinite;
  } else if (n >= 0 && __builtin_mul_overflow(n, count, &n)) {
    n = kUnknownCount;
  }
  return SetDataset(ctx, {&input, 1}, n, [input, count](Step&) -> StatusOr<ElementIterator> {
    return [input, count, round = int64_t{0}, in = ElementIterator(),
            some = false](Step& step) mutable -> NextElement {
      while (count < 0 || round < count) {
        if (!in) {
          ASSIGN_OR_RETURN(in, input->make(step));
          some = false;
        }
        ASSIGN_OR_RETURN(auto element, Pull(in, step));
        if (element) {
          some = true;
          return element;
        }
        in = nullptr;
        ++round;
        // Nothing, for ever, is nothing.
        if (count < 0 && !some) return EndOfElements();
      }
      return EndOfElements();
    };
  });
}

Status RunShardDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const int64_t shards, CountInput(ctx, 1, "num_shards"));
  ASSIGN_OR_RETURN(const int64_t index, CountInput(ctx, 2, "index"));
  if (shards <= 0) {
    return InvalidArgument(
        "Number of shards must be greater than zero (currently num_shards = ", shards, ").");
  }
  if (index < 0 || index >= shards) {
    return InvalidArgument("Index must be between 0 and ", shards - 1,
                           " (currently index = ", index, ").");
  }
  const bool need = ctx.node().Bool("require_non_empty");
  int64_t n = input->cardinality;
  if (n >= 0) n = n / shards + (index < n % shards ? 1 : 0);
  return SetDataset(ctx, {&input, 1}, n, [=](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    return [=, in = std::move(in), at = int64_t{0}](Step& step) mutable -> NextElement {
      std::optional<Element> mine;
      while (true) {
        ASSIGN_OR_RETURN(auto element, Pull(in, step));
        if (!element) break;
        const int64_t place = at++;
        if (place % shards == index) mine = std::move(element);
        // The first round is read to its end, to see whether every shard gets something.
        if (mine && (!need || at >= shards)) return mine;
      }
      if (mine && at < shards) {
        return InvalidArgument("Could not apply FILE based sharding: the dataset only has ",
                               index + 1, " file(s), which is not enough for the required ", shards,
                               " shards/workers.");
      }
      return mine;
    };
  });
}

Status RunZipDataset(OpContext& ctx) {
  std::vector<DatasetRef> inputs;
  int64_t n = kInfinite;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    ASSIGN_OR_RETURN(inputs.emplace_back(), DatasetInput(ctx, i));
    const int64_t of = inputs.back()->cardinality;
    if (of == kInfinite || n == kUnknownCount) continue;
    n = of == kUnknownCount ? of : (n == kInfinite ? of : std::min(n, of));
  }
  return SetDataset(ctx, inputs, n, [inputs](Step& s) -> StatusOr<ElementIterator> {
    std::vector<ElementIterator> iterators;
    for (const DatasetRef& input : inputs) {
      ASSIGN_OR_RETURN(iterators.emplace_back(), input->make(s));
    }
    return [its = std::move(iterators), ended = false](Step& step) mutable -> NextElement {
      if (ended) return EndOfElements();
      Element all;
      for (ElementIterator& it : its) {
        ASSIGN_OR_RETURN(auto element, Pull(it, step));
        if (!element) {
          ended = true;
          return EndOfElements();
        }
        std::move(element->begin(), element->end(), std::back_inserter(all));
      }
      return std::optional<Element>(std::move(all));
    };
  });
}

Status RunConcatenateDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef a, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(DatasetRef b, DatasetInput(ctx, 1));
  if (a->types != b->types) {
    return InvalidArgument("input dataset and dataset to concatenate have different output_types");
  }
  int64_t n = kUnknownCount;
  if (a->cardinality == kInfinite || b->cardinality == kInfinite) {
    n = kInfinite;
  } else if (a->cardinality >= 0 && b->cardinality >= 0) {
    if (__builtin_add_overflow(a->cardinality, b->cardinality, &n)) n = kUnknownCount;
  }
  const DatasetRef inputs[] = {a, b};
  return SetDataset(ctx, inputs, n, [a, b](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, a->make(s));
    return [b, in = std::move(in), second = false](Step& step) mutable -> NextElement {
      ASSIGN_OR_RETURN(auto element, Pull(in, step));
      if (element || second) return element;
      second = true;
      ASSIGN_OR_RETURN(in, b->make(step));
      return Pull(in, step);
    };
  });
}

// The first of equal elements.
template <typename T>
StatusOr<ElementIterator> UniqueIterator(const DatasetRef& input, Step& s) {
  ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
  return [in = std::move(in), seen = std::set<T>()](Step& step) mutable -> NextElement {
    while (true) {
      ASSIGN_OR_RETURN(auto element, Pull(in, step));
      if (!element) return element;
      if (element->empty()) return InvalidArgument("an element has no components");
      const Tensor& t = element->front();
      if (t.dtype() != kDtypeOf<T> || t.num_elements() != 1) {
        return InvalidArgument("UniqueDataset only supports elements with a single scalar");
      }
      if (seen.insert(t.scalar<T>()).second) return element;
    }
  };
}

Status RunUniqueDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  if (input->types.size() != 1) {
    return InvalidArgument("UniqueDataset only supports inputs with a single component.");
  }
  const Dtype dtype = input->types[0];
  if (dtype != Dtype::kInt32 && dtype != Dtype::kInt64 && dtype != Dtype::kString) {
    return InvalidArgument("UniqueDataset only supports inputs with a single `tf.int32`, ",
                           "`tf.int64`, or `tf.string` component.");
  }
  return SetDataset(ctx, {&input, 1}, kUnknownCount, [input, dtype](Step& s) {
    if (dtype == Dtype::kInt32) return UniqueIterator<int32_t>(input, s);
    if (dtype == Dtype::kInt64) return UniqueIterator<int64_t>(input, s);
    return UniqueIterator<std::string>(input, s);
  });
}

// A selector says from which input the next element comes.
Status RunDirectedInterleaveDataset(OpContext& ctx) {
  std::vector<DatasetRef> inputs;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    ASSIGN_OR_RETURN(inputs.emplace_back(), DatasetInput(ctx, i));
  }
  if (inputs[0]->types != std::vector<Dtype>{Dtype::kInt64}) {
    return InvalidArgument("The selector dataset must give scalars of type int64");
  }
  for (size_t i = 2; i < inputs.size(); ++i) {
    if (inputs[i]->types != inputs[1]->types) {
      return InvalidArgument("inputs must have the same output_types");
    }
  }
  const bool stop = ctx.node().Bool("stop_on_empty_dataset");
  int64_t n = kUnknownCount;
  if (std::ranges::any_of(inputs, [](const auto& d) { return d->cardinality == 0; }) && stop) n = 0;
  return SetDataset(ctx, inputs, n, [inputs, stop](Step& s) -> StatusOr<ElementIterator> {
    std::vector<ElementIterator> iterators;
    for (const DatasetRef& input : inputs) {
      ASSIGN_OR_RETURN(iterators.emplace_back(), input->make(s));
    }
    return [its = std::move(iterators), left = inputs.size() - 1, stop,
            ended = false](Step& step) mutable -> NextElement {
      while (!ended && left > 0) {
        ASSIGN_OR_RETURN(const auto choice, Pull(its[0], step));
        if (!choice) break;
        if (choice->empty()) return InvalidArgument("an element has no components");
        const Tensor& t = choice->front();
        if (t.dtype() != Dtype::kInt64 || t.num_elements() != 1) {
          return InvalidArgument("The selector dataset must give scalars of type int64");
        }
        const int64_t selected = t.scalar<int64_t>();
        if (selected < 0 || selected >= static_cast<int64_t>(its.size()) - 1) {
          return InvalidArgument("Selector index out of range: ", selected, " >= ", its.size() - 1);
        }
        ElementIterator& it = its[static_cast<size_t>(selected) + 1];
        if (!it) continue;
        ASSIGN_OR_RETURN(auto element, Pull(it, step));
        if (element) return element;
        if (stop) break;
        it = nullptr;
        --left;
      }
      ended = true;
      return EndOfElements();
    };
  });
}

Status RunIgnoreErrorsDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  const int64_t n = input->cardinality == kInfinite ? kInfinite : kUnknownCount;
  return SetDataset(ctx, {&input, 1}, n, [input](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    return [in = std::move(in)](Step& step) mutable -> NextElement {
      while (true) {
        if (step.cancellation != nullptr) RETURN_IF_ERROR(step.cancellation->Check());
        auto element = in(step);
        if (element.ok()) return element;
      }
    };
  });
}

Status RunAssertCardinalityDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const int64_t wanted, CountInput(ctx, 1, "cardinality"));
  auto elements = [](int64_t n) {
    if (n == kInfinite) return std::string("an infinite number of elements");
    return absl::StrCat(n, n == 1 ? " element" : " elements");
  };
  return SetDataset(ctx, {&input, 1}, wanted, [=](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    return [=, in = std::move(in), count = int64_t{0}](Step& step) mutable -> NextElement {
      ASSIGN_OR_RETURN(auto element, Pull(in, step));
      if (element) ++count;
      if (!element && count != wanted && wanted != kUnknownCount) {
        return FailedPrecondition("Input dataset was expected to contain ", elements(wanted),
                                  " but contained only ", elements(count), ".");
      }
      if (element && wanted >= 0 && count > wanted) {
        return FailedPrecondition("Input dataset was expected to contain ", elements(wanted),
                                  " but contained at least ", elements(count), ".");
      }
      return element;
    };
  });
}

Status RunDatasetCardinality(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  ctx.set_output(0, Tensor::Scalar(input->cardinality));
  return OkStatus();
}

constexpr Kernel kDatasetTransformTable[] = {
    {"PrefetchDataset", "", kAnyType, "dataset:pass", RunPrefetchDataset},
    {"OptionsDataset", "", kAnyType, "dataset:pass", RunPassDataset},
    {"ModelDataset", "", kAnyType, "dataset:pass", RunPassDataset},
    {"OptimizeDataset", "", kAnyType, "dataset:pass", RunPassDataset},
    {"OptimizeDatasetV2", "", kAnyType, "dataset:pass", RunPassDataset},
    {"FinalizeDataset", "", kAnyType, "dataset:pass", RunPassDataset},
    {"RewriteDataset", "", kAnyType, "dataset:pass", RunPassDataset},
    {"NonSerializableDataset", "", kAnyType, "dataset:pass", RunPassDataset},
    {"ExperimentalNonSerializableDataset", "", kAnyType, "dataset:pass", RunPassDataset},
    {"MaxIntraOpParallelismDataset", "", kAnyType, "dataset:pass", RunMaxParallelismDataset},
    {"ExperimentalMaxIntraOpParallelismDataset", "", kAnyType, "dataset:pass",
     RunMaxParallelismDataset},
    {"PrivateThreadPoolDataset", "", kAnyType, "dataset:pass", RunPrivateThreadPoolDataset},
    {"ExperimentalPrivateThreadPoolDataset", "", kAnyType, "dataset:pass",
     RunPrivateThreadPoolDataset},
    {"WrapDatasetVariant", "", kAnyType, "dataset:wrap", RunWrapDataset},
    {"UnwrapDatasetVariant", "", kAnyType, "dataset:wrap", RunWrapDataset},
    {"TakeDataset", "", kAnyType, "dataset:take", RunTakeDataset},
    {"SkipDataset", "", kAnyType, "dataset:skip", RunSkipDataset},
    {"RepeatDataset", "", kAnyType, "dataset:repeat", RunRepeatDataset},
    {"ShardDataset", "", kAnyType, "dataset:shard", RunShardDataset},
    {"ZipDataset", "", kAnyType, "dataset:zip", RunZipDataset},
    {"ConcatenateDataset", "", kAnyType, "dataset:concatenate", RunConcatenateDataset},
    {"UniqueDataset", "", kAnyType, "dataset:unique", RunUniqueDataset},
    {"ExperimentalUniqueDataset", "", kAnyType, "dataset:unique", RunUniqueDataset},
    {"DirectedInterleaveDataset", "", kAnyType, "dataset:directed_interleave",
     RunDirectedInterleaveDataset},
    {"ExperimentalDirectedInterleaveDataset", "", kAnyType, "dataset:directed_interleave",
     RunDirectedInterleaveDataset},
    {"IgnoreErrorsDataset", "", kAnyType, "dataset:ignore_errors", RunIgnoreErrorsDataset},
    {"ExperimentalIgnoreErrorsDataset", "", kAnyType, "dataset:ignore_errors",
     RunIgnoreErrorsDataset},
    {"AssertCardinalityDataset", "", kAnyType, "dataset:assert_cardinality",
     RunAssertCardinalityDataset},
    {"DatasetCardinality", "", kAnyType, "dataset:cardinality", RunDatasetCardinality},
    {"ExperimentalDatasetCardinality", "", kAnyType, "dataset:cardinality", RunDatasetCardinality},
};

}  // namespace

extern constinit const std::span<const Kernel> kDatasetTransformKernels = kDatasetTransformTable;

}  // namespace smelt
