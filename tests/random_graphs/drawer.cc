#include "tests/random_graphs/drawer.h"

#include <cmath>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "smelt/graph/text.h"
#include "smelt/runtime/session.h"

namespace smelt {
namespace {

constexpr int64_t kMostElements = 1 << 14, kMostOfLarge = 1 << 19;

// Runs the node on its inputs' values as a session does that neither optimizes nor compiles.
StatusOr<std::vector<Tensor>> RunDrawn(const DrawnGraph& graph, const DrawnNode& node) {
  std::string text = graph.library;
  std::vector<std::pair<std::string, Tensor>> feeds;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor& t = graph.ValueOf(node.inputs[i]);
    absl::StrAppend(&text, "i", i, " = Placeholder {dtype=", DtypeName(t.dtype()),
                    ", shape=shape(?)}\n");
    feeds.emplace_back(absl::StrCat("i", i), t);
  }
  absl::StrAppend(&text, "node = ", node.op);
  for (size_t i = 0; i < node.inputs.size(); ++i) absl::StrAppend(&text, i ? ", i" : "(i", i);
  absl::StrAppend(&text, node.inputs.empty() ? "" : ")", " {", node.attrs, "}\n");
  ASSIGN_OR_RETURN(auto parsed, ParseGraph(text));
  std::vector<std::string> fetches;
  for (int p = 0; p < parsed->Find("node")->num_outputs(); ++p) {
    fetches.push_back(absl::StrCat("node:", p));
  }
  Session session(std::shared_ptr<const Graph>(std::move(parsed)),
                  {.threads = 1, .optimize = false, .compile = false});
  return session.Run(feeds, fetches, {});
}

// Is the result another one altogether where an operand is a little larger?
bool Jumps(absl::string_view op, absl::string_view attrs) {
  static const absl::flat_hash_set<absl::string_view> kJumps = {
      "Floor",        "Ceil",     "Round",
      "Rint",         "Sign",     "FloorDiv",
      "FloorMod",     "Mod",      "TopKV2",
      "ArgMax",       "ArgMin",   "Where",
      "Lgamma",       "Tan",      "Equal",
      "NotEqual",     "DivNoNan", "Xdivy",
      "Reciprocal",   "Inv",      "FakeQuantWithMinMaxArgs",
      "Less",         "Greater",  "LessEqual",
      "GreaterEqual", "MulNoNan", "Xlogy"};
  const bool narrow = absl::StrContains(attrs, "bfloat16") || absl::StrContains(attrs, "half");
  if (narrow && (op == "RealDiv" || op == "Div" || op == "Rsqrt" || op == "Log")) return true;
  if (op != "Cast") return kJumps.contains(op);
  return absl::StrContains(attrs, "DstT=int") || absl::StrContains(attrs, "DstT=bool");
}

bool MayBecomeRelu(absl::string_view op) {
  return op == "Relu" || op == "Relu6" || op == "Maximum" || op == "Minimum" || op == "ClipByValue";
}

template <typename T>
bool AnyOf(const Tensor& t, bool (*is)(double)) {
  for (const T& v : t.flat<T>()) {
    if (is(static_cast<double>(static_cast<float>(v)))) return true;
  }
  return false;
}
bool AnyElement(const Tensor& t, bool (*is)(double)) {
  switch (t.dtype()) {
    case Dtype::kFloat:
      return AnyOf<float>(t, is);
    case Dtype::kDouble:
      return AnyOf<double>(t, is);
    case Dtype::kHalf:
      return AnyOf<Half>(t, is);
    case Dtype::kBfloat16:
      return AnyOf<Bfloat16>(t, is);
    default:
      return false;
  }
}

}  // namespace

int64_t Drawer::Size() {
  if (OneIn(60)) return 0;
  if (large_ && OneIn(3)) return Of<int64_t>({16, 17, 24, 32, 33, 48, 64});
  return Of<int64_t>({1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 16, 17, 19, 24, 33});
}

bool Drawer::IsHuge(DrawnPort p) const {
  return AnyElement(At(p), [](double v) { return std::isfinite(v) && std::abs(v) > 1e4; });
}
bool Drawer::HasNan(DrawnPort p) const {
  return AnyElement(At(p), [](double v) { return !std::isfinite(v); });
}

Tensor Drawer::Draw(Dtype t, const Shape& shape, bool tame) {
  Tensor x = *Tensor::Zeros(t, shape);
  const auto n = static_cast<size_t>(x.num_elements());
  const bool special = specials_ && !tame && OneIn(4);
  const bool exact = OneIn(2);  // products of such numbers have no rounding
  const auto number = [&]() -> double {
    if (special && OneIn(6)) {
      constexpr double kInf = std::numeric_limits<double>::infinity();
      const double v = Of<double>(
          {std::nan(""), kInf, -kInf, -0.0, 0.0, 1e-40, -1e-42, 3e38, -1e20, 1e-30, 65504});
      // Sums of later requests are not looked at when they are drawn.
      return ended_ && std::isfinite(v) && std::abs(v) > 1 ? 0.0 : v;
    }
    const double small = static_cast<double>(Between(-12, 12)) / 4;
    return exact ? small : small + static_cast<double>(Between(-1000, 1000)) / 4096 / 3;
  };
  const auto whole = [&]() -> int64_t {
    if (special && OneIn(8)) {
      return t == Dtype::kInt32 ? Of<int64_t>({INT32_MAX, INT32_MIN, 0, -1, 46341})
                                : Of<int64_t>({INT64_MAX, INT64_MIN, 0, -1, int64_t{1} << 40});
    }
    return Between(-9, 9);
  };
  for (size_t i = 0; i < n; ++i) {
    switch (t) {
      case Dtype::kFloat:
        x.data<float>()[i] = static_cast<float>(number());
        break;
      case Dtype::kDouble:
        x.data<double>()[i] = number();
        break;
      case Dtype::kHalf:
        x.data<Half>()[i] = Half(static_cast<float>(number()));
        break;
      case Dtype::kBfloat16:
        x.data<Bfloat16>()[i] = Bfloat16(static_cast<float>(number()));
        break;
      case Dtype::kInt32:
        x.data<int32_t>()[i] = static_cast<int32_t>(whole());
        break;
      case Dtype::kInt64:
        x.data<int64_t>()[i] = whole();
        break;
      default:
        x.data<bool>()[i] = OneIn(2);
    }
  }
  return x;
}

int Drawer::AddNode(DrawnNode node) {
  bool rounded = node.rounds;
  for (const DrawnPort& p : node.inputs) rounded = rounded || IsRounded(p);
  rounded_.push_back(rounded);
  graph_.nodes.push_back(std::move(node));
  return static_cast<int>(graph_.nodes.size()) - 1;
}

DrawnPort Drawer::Constant(Tensor t) {
  DrawnNode node;
  node.op = "Const";
  node.values = {std::move(t)};
  return {AddNode(std::move(node)), 0};
}

DrawnPort Drawer::Ints(std::span<const int64_t> values, Dtype t) {
  Tensor x = *Tensor::Make(t, Shape({static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) {
    if (t == Dtype::kInt32) {
      x.data<int32_t>()[i] = static_cast<int32_t>(values[i]);
    } else {
      x.data<int64_t>()[i] = values[i];
    }
  }
  const DrawnPort p = Constant(std::move(x));
  if (!OneIn(25)) return p;
  // Known to the request alone.
  DrawnNode& node = graph_.nodes[static_cast<size_t>(p.node)];
  node.op = "Placeholder";
  node.stated_shape = absl::StrCat("[", values.size(), "]");
  return p;
}
DrawnPort Drawer::Int(int64_t value, Dtype t) {
  Tensor x = t == Dtype::kInt32 ? Tensor::Scalar<int32_t>(static_cast<int32_t>(value))
                                : Tensor::Scalar<int64_t>(value);
  return Constant(std::move(x));
}

DrawnPort Drawer::Fresh(Dtype t, std::span<const int64_t> dims, bool tame) {
  Tensor x = Draw(t, Shape(dims), tame);
  return OneIn(2) ? Constant(std::move(x)) : Argument(std::move(x));
}

DrawnPort Drawer::Argument(Tensor x) {
  const auto dims = x.shape().dims();
  DrawnNode node;
  node.op = "Placeholder";
  node.batched = !dims.empty() && dims[0] == batch_ && !OneIn(4);
  node.stated_shape = "[";
  const bool unknown = OneIn(6);
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool open = (i == 0 && node.batched) || unknown;
    absl::StrAppend(&node.stated_shape, i ? "," : "", open ? "?" : absl::StrCat(dims[i]));
  }
  node.stated_shape += "]";
  if (OneIn(12)) node.stated_shape = "shape(?)";
  node.values = {std::move(x)};
  return {AddNode(std::move(node)), 0};
}

DrawnPort Drawer::Like(Dtype t, std::span<const int64_t> dims) {
  if (!OneIn(3)) {
    const auto p = Pick([&](const Tensor& x) {
      return x.dtype() == t && std::ranges::equal(x.shape().dims(), dims);
    });
    if (p) return *p;
  }
  return Fresh(t, dims);
}

DrawnPort Drawer::Partner(DrawnPort x) {
  const Dtype t = TypeOf(x);
  if (OneIn(3)) {
    const auto p = Pick([&](const Tensor& y) {
      if (y.dtype() != t) return false;
      const Shape &a = y.shape(), &b = ShapeOf(x);
      int64_t elements = 1;
      for (int i = 1; i <= std::max(a.rank(), b.rank()); ++i) {
        const int64_t m = i <= a.rank() ? a.back(i) : 1, n = i <= b.rank() ? b.back(i) : 1;
        if (m != n && m != 1 && n != 1) return false;
        elements *= std::max(m, n);
      }
      return elements <= kMostElements;
    });
    if (p) return *p;
  }
  Dims dims(ShapeOf(x).dims().begin(), ShapeOf(x).dims().end());
  switch (Below(7)) {
    case 0:
      dims.clear();
      break;
    case 1:  // a row
      if (!dims.empty()) dims.erase(dims.begin(), dims.end() - 1);
      break;
    case 2:  // a column
      if (!dims.empty()) dims.back() = 1;
      break;
    case 3:  // any
      for (int64_t& d : dims) {
        if (OneIn(2)) d = 1;
      }
      while (!dims.empty() && OneIn(3)) dims.erase(dims.begin());
      break;
    case 4:  // larger
      for (int64_t& d : dims) {
        if (d == 1 && OneIn(2)) d = Size();
      }
      if (dims.size() < 5 && OneIn(2)) dims.insert(dims.begin(), Of<int64_t>({1, 2, 3}));
      break;
    default:
      break;
  }
  return Fresh(t, dims);
}

std::optional<DrawnPort> Drawer::Add(const std::string& op, std::vector<DrawnPort> inputs,
                                     const std::string& attrs, bool rounds, bool in_pool) {
  if (failed_) return std::nullopt;
  DrawnNode node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attrs = attrs;
  node.rounds = rounds;
  bool of_rounded = false;
  for (const DrawnPort& p : node.inputs) {
    if (rounds && IsHuge(p)) return std::nullopt;
    of_rounded = of_rounded || IsRounded(p);
  }
  if (of_rounded && Jumps(op, attrs)) return std::nullopt;
  const bool is_relu = MayBecomeRelu(op) || absl::StrContains(attrs, "alpha=0.0f");
  if (of_rounded && options_.no_nan_before_relu && is_relu) {
    for (const DrawnPort& p : node.inputs) {
      if (HasNan(p)) return std::nullopt;
    }
  }
  auto values = RunDrawn(graph_, node);
  if (!values.ok()) {
    // Attributes that do not parse or verify are no graph.
    if (absl::IsInternal(values.status()) || !OneIn(150)) return std::nullopt;
    failed_ = true;
    const int at = AddNode(std::move(node));
    graph_.fetches.push_back({at, 0});
    return std::nullopt;
  }
  for (const Tensor& t : *values) {
    if (t.num_elements() > (large_ ? kMostOfLarge : kMostElements) || t.rank() > 6) {
      return std::nullopt;
    }
  }
  node.values = *std::move(values);
  const auto outputs = static_cast<int>(node.values.size());
  const int at = AddNode(std::move(node));
  for (int p = 0; in_pool && p < outputs; ++p) pool_.push_back({at, p});
  return DrawnPort{at, 0};
}

void Drawer::Begin() {
  batch_ = Of<int64_t>({1, 2, 2, 3, 4, 5, 8});
  specials_ = OneIn(3);
  large_ = OneIn(25);
  const size_t inputs = 1 + Below(3);
  for (size_t i = 0; i < inputs; ++i) {
    const Dtype t = OneIn(3) ? Of({Dtype::kDouble, Dtype::kHalf, Dtype::kBfloat16, Dtype::kInt32,
                                   Dtype::kInt64, Dtype::kBool})
                             : Dtype::kFloat;
    Dims dims;
    const size_t rank = Of<size_t>({0, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5});
    for (size_t d = 0; d < rank; ++d) dims.push_back(d == 0 ? batch_ : Size());
    if (rank >= 4) {
      for (size_t d = 1; d + 1 < rank; ++d)
        dims[d] = std::min<int64_t>(dims[d], large_ ? 24 : rank == 4 ? 9 : 5);
    }
    const DrawnPort p = Fresh(t, dims);
    if (At(p).num_elements() <= (large_ ? kMostOfLarge : kMostElements)) pool_.push_back(p);
  }
}

// Most ends are results; so is now and then what others read too.
void Drawer::End() {
  ended_ = true;
  std::vector<bool> read(graph_.nodes.size(), false);
  for (const DrawnNode& n : graph_.nodes) {
    for (const DrawnPort& p : n.inputs) read[static_cast<size_t>(p.node)] = true;
  }
  for (const DrawnPort& p : pool_) {
    const bool input = graph_.nodes[static_cast<size_t>(p.node)].inputs.empty();
    if (input ? OneIn(12) : read[static_cast<size_t>(p.node)] ? OneIn(10) : !OneIn(5)) {
      graph_.fetches.push_back(p);
    }
  }
  if (graph_.fetches.empty() && !pool_.empty()) graph_.fetches.push_back(pool_.back());
  const size_t turns = OneIn(4) ? 2 + Below(3) : 1;
  for (size_t r = 0; r < turns; ++r) {
    const int64_t batch = r == 0 ? batch_ : r == 3 ? batch_ : Of<int64_t>({0, 1, 2, 3, 6, 7});
    DrawnFeeds feeds;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const DrawnNode& n = graph_.nodes[i];
      if (!n.Is("Placeholder")) continue;
      Tensor t = n.values[0];
      if (r > 0 && (n.batched || OneIn(3)) && !IsInteger(t.dtype())) {
        Shape shape = t.shape();
        if (n.batched) shape.Set(0, batch);
        t = Draw(t.dtype(), shape, false);
      }
      feeds.emplace_back(static_cast<int>(i), std::move(t));
    }
    graph_.requests.push_back(std::move(feeds));
  }
}

DrawnGraph Drawer::Draw() {
  Begin();
  // A graph has favorites, so that what belongs together meets.
  struct Choice {
    int until;
    void (*draw)(Drawer&);
  };
  std::vector<Choice> choices;
  int all = 0;
  for (const auto rows :
       {ElementwiseProductions(), MovementProductions(), ProductProductions(), LayerProductions(),
        StageProductions(), LoopProductions(), ViewProductions()}) {
    const int factor = Of<int>({0, 1, 1, 2, 6});
    for (const Production& row : rows) {
      if (row.weight * factor == 0) continue;
      all += row.weight * factor;
      choices.push_back({all, row.draw});
    }
  }
  size_t count = 1 + Below(OneIn(3) ? 24 : 10);
  if (OneIn(25)) {
    // Rows are taken apart where all of the graph takes them.
    pool_.clear();
    DrawManyRows(*this);
    count = OneIn(2) ? 0 : Below(4);
  }
  for (size_t i = 0; i < count && all > 0 && !failed_ && !pool_.empty(); ++i) {
    const auto at = static_cast<int>(Below(static_cast<size_t>(all)));
    for (const Choice& c : choices) {
      if (at >= c.until) continue;
      c.draw(*this);
      break;
    }
  }
  End();
  DrawnGraph drawn = Pruned(graph_);
  drawn.nan_after_relu = options_.no_nan_before_relu;
  return drawn;
}

}  // namespace smelt
