// The end of a stage of a residual network, and the windows of one pixel that leave out pixels of
// it where the next stage begins.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/random_graphs/drawer.h"

namespace smelt {
namespace {

// In the pool of values only now and then: others that read it need all pixels.
bool IsShown(Drawer& d) { return d.OneIn(12); }

std::optional<DrawnPort> DrawWindow(Drawer& d, DrawnPort x, int64_t rows, int64_t columns,
                                    std::span<const int64_t> strides, bool shown) {
  const Dtype t = d.TypeOf(x);
  const int64_t filter[] = {rows, columns, d.ShapeOf(x)[3], d.Of<int64_t>({1, 3, 8, 16, 17})};
  if (filter[2] == 0 || d.IsHuge(x)) return std::nullopt;
  const int64_t dilation = rows > 1 && d.OneIn(4) ? 2 : 1;
  const std::string padding = rows > 1 && d.OneIn(4) ? "EXPLICIT" : d.Word({"SAME", "VALID"});
  std::string attrs = absl::StrCat("T=", Drawer::Name(t), ", strides=list(1, ", strides[0], ", ",
                                   strides[1], ", 1), dilations=list(1, ", dilation, ", ", dilation,
                                   ", 1), padding=\"", padding, "\", data_format=\"NHWC\"");
  if (padding == "EXPLICIT") {
    absl::StrAppend(&attrs, ", explicit_paddings=list(0, 0, ", d.Between(0, 2), ", ",
                    d.Between(0, 2), ", ", d.Between(0, 2), ", ", d.Between(0, 2), ", 0, 0)");
  }
  return d.Add("Conv2D", {x, d.Constant(d.At(d.Fresh(t, filter, true)))}, attrs, true, shown);
}

// A bias, a factor, a sum with an image or with a window of one, an activation.
std::optional<DrawnPort> DrawStep(Drawer& d, DrawnPort x) {
  const Dtype type = d.TypeOf(x);
  const std::string t = absl::StrCat("T=", Drawer::Name(type));
  const int64_t depth[] = {d.ShapeOf(x)[3]}, plain[] = {1, 1};
  switch (d.Below(6)) {
    case 0:
      return d.Add("BiasAdd", {x, d.Fresh(type, depth)}, t + ", data_format=\"NHWC\"", true,
                   IsShown(d));
    case 1:
      return d.Add("Mul", {d.Fresh(type, depth), x}, t, true, IsShown(d));
    case 2:
      return d.Add("AddV2", {x, d.Like(type, d.ShapeOf(x).dims())}, t, true, IsShown(d));
    case 3:
      return d.Add(d.Word({"AddV2", "Sub", "Maximum"}), {d.Partner(x), x}, t, true, IsShown(d));
    case 4:
      return DrawWindow(d, x, 1, 1, plain, IsShown(d));
    default:
      return d.Add(d.Word({"Relu", "Relu6", "Sigmoid", "Tanh", "Identity"}), {x}, t, true,
                   IsShown(d));
  }
}

void DrawStageEnd(Drawer& d) {
  auto x = d.Pick([](const Tensor& t) {
    return Drawer::IsFloating(t.dtype()) && t.dtype() != Dtype::kHalf && t.rank() == 4;
  });
  const int64_t plain[] = {1, 1};
  if (x) x = DrawWindow(d, *x, d.Between(1, 3), d.Between(1, 3), plain, IsShown(d));
  for (size_t steps = d.Below(6); x && steps > 0; --steps) x = DrawStep(d, *x);
  if (!x || d.ShapeOf(*x).rank() != 4) return;
  std::vector<int64_t> strides = {d.Between(1, 3), d.Between(1, 3)};
  for (size_t n = 1 + d.Below(2); n > 0; --n) {
    if (d.OneIn(10)) strides[d.Below(2)] = d.Between(1, 3);
    DrawWindow(d, *x, 1, 1, strides, true);
  }
}

constexpr Production kStageRows[] = {{3, DrawStageEnd}};

}  // namespace

std::span<const Production> StageProductions() { return kStageRows; }

}  // namespace smelt
