// EditDistance: Levenshtein distances of sequences that lie in the last dimension of two sparse
// tensors.
#include <algorithm>
#include <limits>
#include <numeric>

#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/sparse/sparse_tensor.h"

namespace smelt {
namespace {

StatusOr<std::unique_ptr<KernelState>> PrepareEditDistance(const Node& node) {
  return ReadIntAttrs(node, {"normalize"});
}

template <typename T>
bool SameValue(const T& a, const T& b) {
  if constexpr (kIsHalf<T>) {
    return static_cast<float>(a) == static_cast<float>(b);
  } else {
    return a == b;
  }
}

template <typename T>
int64_t Levenshtein(std::span<const T> a, std::span<const T> b) {
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = std::exchange(row[0], static_cast<int64_t>(i) + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t replaced = diagonal + (SameValue(a[i], b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

Status CheckSequences(OpContext& ctx) {
  constexpr absl::string_view kNames[] = {"hypothesis", "truth"};
  const auto text = [&](int i) { return ctx.input(i).shape().ToString(); };
  for (int k = 0; k < 2; ++k) {
    if (ctx.input(3 * k).rank() == 2) continue;
    return InvalidArgument(kNames[k], "_indices should be a matrix, but got shape: ", text(3 * k));
  }
  for (int k = 0; k < 2; ++k) {
    if (ctx.input(3 * k + 1).rank() == 1) continue;
    return InvalidArgument(kNames[k],
                           "_values should be a vector, but got shape: ", text(3 * k + 1));
  }
  for (int k = 0; k < 2; ++k) {
    if (ctx.input(3 * k + 2).rank() == 1) continue;
    return InvalidArgument(kNames[k],
                           "_shape should be a vector, but got shape: ", text(3 * k + 2));
  }
  for (int k = 0; k < 2; ++k) {
    if (ctx.input(3 * k + 1).dim(0) == ctx.input(3 * k).dim(0)) continue;
    return InvalidArgument("Expected ", kNames[k], "_values.NumElements == #rows(", kNames[k],
                           "_indices), their shapes are: ", text(3 * k + 1), " and ", text(3 * k));
  }
  for (int k = 0; k < 2; ++k) {
    if (ctx.input(3 * k + 2).dim(0) == ctx.input(3 * k).dim(1)) continue;
    return InvalidArgument("Expected ", kNames[k], "_shape.NumElements == #cols(", kNames[k],
                           "_indices), their shapes are: ", text(3 * k + 2), " and ", text(3 * k));
  }
  if (ctx.input(5).dim(0) < 2) {
    return InvalidArgument("Input SparseTensors must have rank at least 2, but truth_shape rank ",
                           "is: ", ctx.input(5).dim(0));
  }
  if (ctx.input(5).dim(0) != ctx.input(2).dim(0)) {
    return InvalidArgument("Expected truth and hypothesis to have matching ranks, but their ",
                           "shapes are: ", text(5), " and ", text(2));
  }
  return OkStatus();
}

// Walks both tensors' sequences in the order in which they come, as TensorFlow does.
template <typename T>
Status WriteDistances(OpContext& ctx, Tensor* out) {
  const bool normalize = ctx.state<IntAttrs>()[0] != 0;
  const auto rank = static_cast<int>(ctx.input(0).dim(1));
  const auto row = [&](int input, int64_t i) {
    return ctx.input(input).data<int64_t>() + i * rank;
  };
  // The end of the sequence that begins at `begin`.
  const auto end_of = [&](int input, int64_t begin) {
    int64_t end = begin;
    while (end < ctx.input(input).dim(0) &&
           CompareIndices(row(input, begin), row(input, end), rank - 1) == 0) {
      ++end;
    }
    return end;
  };
  const auto values = [&](int input, int64_t begin, int64_t end) {
    return std::span<const T>(static_cast<const T*>(ctx.input(input).raw()) + begin,
                              static_cast<size_t>(end - begin));
  };
  const int64_t nh = ctx.input(0).dim(0), nt = ctx.input(3).dim(0);
  for (int64_t h = 0, t = 0; h < nh || t < nt;) {
    const int order = h == nh ? 1 : t == nt ? -1 : CompareIndices(row(0, h), row(3, t), rank - 1);
    const int64_t h_end = order <= 0 ? end_of(0, h) : h, t_end = order >= 0 ? end_of(3, t) : t;
    float distance = 0;
    if (order == 0) {
      distance = static_cast<float>(Levenshtein(values(4, t, t_end), values(1, h, h_end)));
      if (normalize) distance /= static_cast<float>(t_end - t);
    } else if (order < 0) {
      distance = normalize ? std::numeric_limits<float>::infinity() : static_cast<float>(h_end - h);
    } else {
      distance = normalize ? 1.0f : static_cast<float>(t_end - t);
    }
    const int64_t* group = order <= 0 ? row(0, h) : row(3, t);
    int64_t at = 0;
    for (int d = 0; d + 1 < rank; ++d) {
      at = AddValues(MultiplyValues(at, out->dim(d)), group[d]);
    }
    if (at < 0 || at >= out->num_elements()) {
      return Internal("Got an inner product ", at, " which would require writing to outside of ",
                      "the buffer for the output tensor (max elements ", out->num_elements(), ")");
    }
    out->data<float>()[at] = distance;
    h = h_end;
    t = t_end;
  }
  return OkStatus();
}

Status RunEditDistance(OpContext& ctx) {
  RETURN_IF_ERROR(CheckSequences(ctx));
  const Dims h = IntsOf(ctx.input(2)), t = IntsOf(ctx.input(5));
  RETURN_IF_ERROR(CheckedShape(h).status());
  RETURN_IF_ERROR(CheckedShape(t).status());
  Dims sizes;
  for (size_t d = 0; d + 1 < h.size(); ++d) sizes.push_back(std::max(h[d], t[d]));
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(sizes));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  std::fill_n(out->data<float>(), shape.num_elements(), 0.0f);
  const Dtype dtype = ctx.input(1).dtype();
  if (dtype == Dtype::kString) return WriteDistances<std::string>(ctx, out);
  if (dtype == Dtype::kBool) return WriteDistances<bool>(ctx, out);
  Status status = OkStatus();
  VisitNumber(dtype, [&]<typename T>() { status = WriteDistances<T>(ctx, out); });
  return status;
}

constexpr DtypeSet kEditDistanceTypes = kNumberTypes | Types(Dtype::kBool, Dtype::kString);

constexpr Kernel kEditDistanceTable[] = {
    {"EditDistance", "T", kEditDistanceTypes, "sparse:edit_distance", RunEditDistance,
     PrepareEditDistance},
};

}  // namespace

extern constinit const std::span<const Kernel> kEditDistanceKernels = kEditDistanceTable;

}  // namespace smelt
