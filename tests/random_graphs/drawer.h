// Draws random graphs. Every node is run as it is added, so that productions may be bold: what does
// not fit is left out again, or now and then kept as the graph's one error.
#ifndef SMELT_TESTS_RANDOM_GRAPHS_DRAWER_H_
#define SMELT_TESTS_RANDOM_GRAPHS_DRAWER_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/random_graphs/drawn_graph.h"

namespace smelt {

struct DrawOptions {
  // Activations behind products that programs know to treat NaN otherwise than the executor does:
  // no NaN flows into a product that Relu or Relu6 follow.
  bool no_nan_before_relu = true;
};

class Drawer {
 public:
  Drawer(uint64_t seed, DrawOptions options) : random_(seed), options_(options) {}

  DrawnGraph Draw();

  // For productions.
  size_t Below(size_t n) { return n < 2 ? 0 : static_cast<size_t>(random_() % n); }
  bool OneIn(size_t n) { return Below(n) == n - 1; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<size_t>(high - low + 1)));
  }
  template <typename T>
  T Of(std::initializer_list<T> choices) {
    return choices.begin()[Below(choices.size())];
  }
  const char* Word(std::initializer_list<const char*> choices) { return Of(choices); }

  const Tensor& At(DrawnPort p) const { return graph_.ValueOf(p); }
  const Shape& ShapeOf(DrawnPort p) const { return At(p).shape(); }
  Dtype TypeOf(DrawnPort p) const { return At(p).dtype(); }
  static std::string Name(Dtype t) { return std::string(DtypeName(t)); }

  // A value that there is, recent ones more often.
  template <typename Fits>
  std::optional<DrawnPort> Pick(Fits fits) {
    std::vector<DrawnPort> all;
    for (const DrawnPort& p : pool_) {
      if (fits(At(p))) all.push_back(p);
    }
    if (all.empty()) return std::nullopt;
    if (all.size() > 4 && !OneIn(3)) return all[all.size() - 1 - Below(4)];
    return all[Below(all.size())];
  }
  std::optional<DrawnPort> PickFloating(int least_rank = 0, int most_rank = 9) {
    return Pick([&](const Tensor& t) {
      return IsFloating(t.dtype()) && t.rank() >= least_rank && t.rank() <= most_rank;
    });
  }
  static bool IsFloating(Dtype t) {
    return t == Dtype::kFloat || t == Dtype::kDouble || t == Dtype::kHalf || t == Dtype::kBfloat16;
  }
  static bool IsInteger(Dtype t) { return t == Dtype::kInt32 || t == Dtype::kInt64; }

  // A new constant or argument. `tame`: no special values.
  DrawnPort Fresh(Dtype t, std::span<const int64_t> dims, bool tame = false);
  DrawnPort Argument(Tensor x);
  DrawnPort Constant(Tensor t);
  // Small integers, such as axes: nearly always a constant.
  DrawnPort Ints(std::span<const int64_t> values, Dtype t = Dtype::kInt32);
  DrawnPort Int(int64_t value, Dtype t = Dtype::kInt32);
  // One that `x` may be added to: of its shape, a row, a column, a number, or of more dimensions.
  DrawnPort Partner(DrawnPort x);
  // One that is there or a new one of this type and shape.
  DrawnPort Like(Dtype t, std::span<const int64_t> dims);

  // Adds the node. nullopt: it does not run, and the graph is without it, or ends with it.
  std::optional<DrawnPort> Add(const std::string& op, std::vector<DrawnPort> inputs,
                               const std::string& attrs, bool rounds = false, bool in_pool = true);
  // Its next output.
  DrawnPort Next(DrawnPort p, int by = 1) const { return {p.node, p.port + by}; }
  void AddToPool(DrawnPort p) { pool_.push_back(p); }
  std::string AddFunction(const std::string& text) {
    graph_.library += text;
    return text;
  }
  int FreshNumber() { return numbers_++; }
  // Is it made of what programs may round otherwise?
  bool IsRounded(DrawnPort p) const { return rounded_[static_cast<size_t>(p.node)]; }
  // Sums of it may overflow, depending on their order.
  bool IsHuge(DrawnPort p) const;
  bool HasNan(DrawnPort p) const;
  const DrawOptions& options() const { return options_; }
  int64_t batch() const { return batch_; }
  bool failed() const { return failed_; }
  // A size for a new dimension.
  int64_t Size();

 private:
  Tensor Draw(Dtype t, const Shape& shape, bool tame);
  void Begin();
  void End();
  int AddNode(DrawnNode node);

  std::mt19937_64 random_;
  const DrawOptions options_;
  DrawnGraph graph_;
  std::vector<DrawnPort> pool_;
  std::vector<bool> rounded_;  // by node
  int64_t batch_ = 1;
  bool specials_ = false;  // NaN, infinities and so on may be drawn
  bool large_ = false;     // enough work for threads to take rows
  bool failed_ = false;
  bool ended_ = false;  // no more nodes
  int numbers_ = 0;
};

// What may be drawn, by family.
struct Production {
  int weight;
  void (*draw)(Drawer&);
};
std::span<const Production> ElementwiseProductions();
std::span<const Production> MovementProductions();
std::span<const Production> ProductProductions();
std::span<const Production> LayerProductions();
std::span<const Production> StageProductions();
std::span<const Production> LoopProductions();
std::span<const Production> ViewProductions();

// A chain of sums and activations, as layers have behind a product. Returns its end.
DrawnPort DrawTail(Drawer& d, DrawnPort x);
// Layers of so many rows that a thread may take some of them, with what keeps rows apart, or not.
void DrawManyRows(Drawer& d);
// An activation, as an op or spelled in several.
DrawnPort DrawActivation(Drawer& d, DrawnPort x);

}  // namespace smelt

#endif  // SMELT_TESTS_RANDOM_GRAPHS_DRAWER_H_
