// Images made larger by repeating their pixels, which is resize_nearest_neighbor: however the
// repetition is spelled.
#include <algorithm>
#include <bit>

#include "smelt/lite/fuse/fusion.h"

namespace smelt {
namespace {

// The kernel multiplies an index by 1 / factor in float: exact for powers of two.
bool IsExactFactor(int64_t factor) {
  return factor >= 1 && factor <= 1 << 16 && std::has_single_bit(static_cast<uint64_t>(factor));
}

bool IsImage(Endpoint x) {
  const PartialShape s = Fuser::shape(x);
  return Fuser::type(x) == Dtype::kFloat && s.rank() == 4 && s[1] > 0 && s[2] > 0 && s[3] > 0;
}

StatusOr<bool> ReplaceByResize(Node& n, Endpoint image, int64_t height, int64_t width, Fuser& f) {
  ASSIGN_OR_RETURN(const Endpoint by,
                   f.Add("tfl.resize_nearest_neighbor",
                         {image, IntsConst(std::vector<int64_t>{height, width}, n, f)}, {}, n));
  f.Replace(&n, by);
  return true;
}

// What is repeated, and how often each dimension of it is: of tile, broadcast_to, and pack and
// concatenation of one tensor.
struct Repeated {
  Endpoint x;
  std::vector<int64_t> times;  // by dimension of the result
  int added = -1;              // a dimension that x has not: pack
};

std::optional<Repeated> RepeatedBy(const Node& n) {
  const PartialShape to = Fuser::shape({const_cast<Node*>(&n), 0});
  if (n.num_inputs() == 0 || !to.known_rank()) return std::nullopt;
  Repeated r;
  r.x = n.input(0);
  const PartialShape x = Fuser::shape(r.x);
  r.times.assign(static_cast<size_t>(to.rank()), 1);
  if (n.Is("tfl.tile")) {
    const auto times = IntsOf(n.input(1));
    if (!times || static_cast<int>(times->size()) != to.rank()) return std::nullopt;
    r.times = *times;
    return r;
  }
  if (n.Is("tfl.broadcast_to")) {
    if (x.rank() != to.rank()) return std::nullopt;
    for (int i = 0; i < to.rank(); ++i) {
      if (x[i] == to[i]) continue;
      if (x[i] != 1 || to[i] < 1) return std::nullopt;
      r.times[static_cast<size_t>(i)] = to[i];
    }
    return r;
  }
  if (!n.Is({"tfl.pack", "tfl.concatenation"})) return std::nullopt;
  if (HasActivation(n)) return std::nullopt;
  for (const Endpoint& e : n.inputs()) {
    if (!(e == r.x)) return std::nullopt;
  }
  const int64_t axis = n.Int("axis") < 0 ? n.Int("axis") + to.rank() : n.Int("axis");
  if (axis < 0 || axis >= to.rank()) return std::nullopt;
  r.times[static_cast<size_t>(axis)] = n.num_inputs();
  if (n.Is("tfl.pack")) r.added = static_cast<int>(axis);
  return r;
}

// Are `sizes`, each repeated so often, those of the image with dimensions of one in between, which
// repeat the pixels before them? From dimension `at` of the image on, and size `next`.
bool RepeatsPixels(const PartialShape& image, const PartialShape& result,
                   const std::vector<int64_t>& sizes, const std::vector<int64_t>& times, int at,
                   size_t next) {
  if (at == 4) return next == sizes.size();
  if (next == sizes.size() || sizes[next] != image[at]) return false;
  int64_t factor = times[next];
  for (size_t behind = next + 1;; ++behind) {
    const bool as_wanted =
        image[at] < 0 ? factor == 1 && result[at] < 0 : result[at] == image[at] * factor;
    if (as_wanted && RepeatsPixels(image, result, sizes, times, at + 1, behind)) return true;
    if (behind == sizes.size() || sizes[behind] != 1 || times[behind] > 1 << 16) return false;
    factor *= times[behind];
    if (factor > 1 << 16) return false;
  }
}

// reshape(tile(reshape(x))) and the like.
StatusOr<bool> FuseUpscaling(Node& n, Fuser& f) {
  const Endpoint e = n.input(0);
  const auto repeated = RepeatedBy(*e.node);
  const PartialShape result = Fuser::shape({&n, 0});
  if (!repeated || result.rank() != 4) return false;
  // The dimensions of what is repeated, with that which pack adds.
  const PartialShape x = Fuser::shape(repeated->x);
  if (!x.known_rank()) return false;
  std::vector<int64_t> before, sizes, times;
  for (int i = 0; i < x.rank(); ++i) before.push_back(x[i]);
  if (repeated->added >= 0) before.insert(before.begin() + repeated->added, 1);
  if (before.size() != repeated->times.size()) return false;
  for (size_t i = 0; i < before.size(); ++i) {
    // All of a dimension again is a dimension of one in front of it that repeats.
    if (before[i] != 1 && repeated->times[i] != 1) {
      sizes.push_back(1);
      times.push_back(repeated->times[i]);
    }
    sizes.push_back(before[i]);
    times.push_back(before[i] == 1 ? repeated->times[i] : 1);
  }
  if (sizes.size() <= 4 || sizes.size() > 8) return false;
  Endpoint image = repeated->x;
  if (image.node->Is({"tfl.reshape", "tfl.expand_dims"}) && !IsImage(image)) {
    image = image.node->input(0);
  }
  if (!IsImage(image)) return false;
  const PartialShape from = Fuser::shape(image);
  if (!RepeatsPixels(from, result, sizes, times, 0, 0)) return false;
  const bool free = from[0] < 0;
  if ((!free && from[0] != result[0]) || from[3] != result[3]) return false;
  if (from[1] == result[1] && from[2] == result[2]) return false;
  if (!IsExactFactor(result[1] / from[1]) || !IsExactFactor(result[2] / from[2])) {
    return f.Declined(n, "the kernel rounds where the factor is no power of two");
  }
  if (!Fuser::ReadOnce(e)) return f.Declined(n, "others read what it follows");
  return ReplaceByResize(n, image, result[1], result[2], f);
}

// gather(x, [0, 0, 1, 1, 2, 2]) of rows or columns of an image.
StatusOr<bool> FuseGatherIntoUpscaling(Node& n, Fuser& f) {
  const Endpoint x = n.input(0);
  const auto indices = IntsOf(n.input(1));
  if (!indices || !IsImage(x) || Fuser::shape(n.input(1)).rank() != 1) return false;
  if (n.Int("batch_dims") != 0) return false;
  const PartialShape from = Fuser::shape(x);
  const int64_t axis = n.Int("axis") < 0 ? n.Int("axis") + 4 : n.Int("axis");
  if (axis != 1 && axis != 2) return false;
  const int64_t size = from[static_cast<int>(axis)], many = static_cast<int64_t>(indices->size());
  if (many <= size || many % size != 0) return false;
  const int64_t times = many / size;
  for (int64_t i = 0; i < many; ++i) {
    if ((*indices)[static_cast<size_t>(i)] != i / times) return false;
  }
  if (!IsExactFactor(times)) {
    return f.Declined(n, "the kernel rounds where the factor is no power of two");
  }
  return ReplaceByResize(n, x, axis == 1 ? many : from[1], axis == 2 ? many : from[2], f);
}

// How often gather_nd gives each index of the first dimension, in their order; 0: it does not.
int64_t TimesOfFirst(const Node& n) {
  if (!n.Is("tfl.gather_nd")) return 0;
  const PartialShape x = Fuser::shape(n.input(0)), at = Fuser::shape(n.input(1));
  const auto indices = IntsOf(n.input(1));
  if (!indices || at.rank() != 2 || at[1] != 1 || x.rank() != 4 || x[0] <= 0) return 0;
  const auto many = static_cast<int64_t>(indices->size());
  if (many == 0 || many % x[0] != 0) return 0;
  for (int64_t i = 0; i < many; ++i) {
    if ((*indices)[static_cast<size_t>(i)] != i / (many / x[0])) return 0;
  }
  return many / x[0];
}

// The order of a transpose of four dimensions.
std::optional<std::vector<int64_t>> OrderOfFour(const Node& n) {
  auto order = n.Is("tfl.transpose") ? IntsOf(n.input(1)) : std::nullopt;
  if (!order || order->size() != 4) return std::nullopt;
  std::vector<int64_t> sorted = *order;
  std::ranges::sort(sorted);
  return sorted == std::vector<int64_t>{0, 1, 2, 3} ? order : std::nullopt;
}

// Rows and columns that come first in turn, each repeated by gather_nd.
StatusOr<bool> FuseTransposedUpscaling(Node& n, Fuser& f) {
  const auto outer = OrderOfFour(n);
  const Node& second = *n.input(0).node;
  const int64_t second_times = outer ? TimesOfFirst(second) : 0;
  const auto inner = second_times > 0 ? OrderOfFour(*second.input(0).node) : std::nullopt;
  if (!inner) return false;
  const Node& first = *second.input(0).node->input(0).node;
  const int64_t first_times = TimesOfFirst(first);
  if (first_times == 0) return false;
  int64_t times[4] = {1, 1, 1, 1};
  std::vector<int64_t> order;
  for (size_t i = 0; i < 4; ++i) {
    const auto at = static_cast<size_t>((*outer)[i]);
    order.push_back((*inner)[at]);
    if (at == 0) times[i] *= second_times;
    if ((*inner)[at] == 0) times[i] *= first_times;
  }
  if (times[0] != 1 || times[3] != 1)
    return f.Declined(n, "other dimensions than rows and columns repeat");
  if (!IsExactFactor(times[1]) || !IsExactFactor(times[2])) {
    return f.Declined(n, "the kernel rounds where the factor is no power of two");
  }
  if (!Fuser::ReadOnce(n.input(0)) || !Fuser::ReadOnce(second.input(0)) ||
      !Fuser::ReadOnce(second.input(0).node->input(0))) {
    return f.Declined(n, "others read what it follows");
  }
  const Endpoint x = first.input(0);
  const PartialShape from = Fuser::shape(x), to = Fuser::shape({&n, 0});
  std::vector<int64_t> dims;
  for (const int64_t o : order) dims.push_back(from[static_cast<int>(o)]);
  const bool known =
      Fuser::type(x) == Dtype::kFloat && to.rank() == 4 && dims[1] > 0 && dims[2] > 0;
  if (!known || to[1] != dims[1] * times[1] || to[2] != dims[2] * times[2]) return false;
  ASSIGN_OR_RETURN(const Endpoint image,
                   f.AddShaped("tfl.transpose", {x, IntsConst(order, n, f)}, {}, Fuser::type(x),
                               PartialShape::Of(dims), n));
  return ReplaceByResize(n, image, to[1], to[2], f);
}

// Rows first and columns then: at once. Each factor is a whole one that is exact.
StatusOr<bool> FuseUpscalings(Node& n, Fuser& f) {
  const Endpoint e = n.input(0);
  const auto plain = [](const Node& r) {
    return r.Is("tfl.resize_nearest_neighbor") && !r.Bool("align_corners") &&
           !r.Bool("half_pixel_centers");
  };
  if (!plain(n) || !plain(*e.node) || !IsImage(e.node->input(0))) return false;
  const PartialShape x = Fuser::shape(e.node->input(0)), y = Fuser::shape(e);
  const PartialShape z = Fuser::shape({&n, 0});
  for (const int d : {1, 2}) {
    if (y[d] <= 0 || z[d] <= 0 || y[d] % x[d] != 0 || z[d] % y[d] != 0 ||
        !IsExactFactor(y[d] / x[d]) || !IsExactFactor(z[d] / y[d]) || !IsExactFactor(z[d] / x[d])) {
      return f.Declined(n, "the kernel rounds where the factor is no power of two");
    }
  }
  if (!Fuser::ReadOnce(e)) return f.Declined(n, "others read what it follows");
  return ReplaceByResize(n, e.node->input(0), z[1], z[2], f);
}

constexpr Fusion kUpscalingFusions[] = {
    {"FuseUpscaling",
     {"tfl.reshape"},
     FuseUpscaling,
     "reshape(tile(reshape(x))) of each pixel -> resize_nearest_neighbor(x); of pack, "
     "concatenation and broadcast_to, too"},
    {"FuseGatherIntoUpscaling",
     {"tfl.gather"},
     FuseGatherIntoUpscaling,
     "gather(x, [0, 0, 1, 1...]) -> resize_nearest_neighbor(x)"},
    {"FuseTransposedUpscaling",
     {"tfl.transpose"},
     FuseTransposedUpscaling,
     "transpose(gather_nd(transpose(gather_nd(x)))) of rows and columns -> "
     "resize_nearest_neighbor(transpose(x))"},
    {"FuseUpscalings",
     {"tfl.resize_nearest_neighbor"},
     FuseUpscalings,
     "resize_nearest_neighbor(resize_nearest_neighbor(x)), both larger -> one"},
};

}  // namespace

std::span<const Fusion> UpscalingFusions() { return kUpscalingFusions; }

}  // namespace smelt
