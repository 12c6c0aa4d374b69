#include "tests/random_graphs/shrink.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace smelt {
namespace {

class Shrinker {
 public:
  Shrinker(DrawnGraph graph, const std::function<bool(const DrawnGraph&)>& fails)
      : graph_(std::move(graph)), fails_(fails) {}

  DrawnGraph Run() {
    for (bool smaller = true; smaller && tries_ < kMostTries;) {
      smaller = FewerRequests();
      smaller |= FewerFetches();
      smaller |= FewerNodes();
      smaller |= SmallerDims();
      smaller |= PlainerValues();
    }
    return std::move(graph_);
  }

 private:
  static constexpr int kMostTries = 3000;

  bool Try(DrawnGraph candidate) {
    if (++tries_ > kMostTries) return false;
    DrawnGraph pruned = Pruned(candidate);
    if (pruned.fetches.empty() || !fails_(pruned)) return false;
    graph_ = std::move(pruned);
    return true;
  }

  bool FewerRequests() {
    bool any = false;
    for (size_t r = graph_.requests.size(); graph_.requests.size() > 1 && r-- > 0;) {
      DrawnGraph g = graph_;
      g.requests.erase(g.requests.begin() + static_cast<std::ptrdiff_t>(r));
      any |= Try(std::move(g));
    }
    return any;
  }

  bool FewerFetches() {
    bool any = false;
    for (size_t k = graph_.fetches.size(); graph_.fetches.size() > 1 && k-- > 0;) {
      DrawnGraph g = graph_;
      g.fetches.erase(g.fetches.begin() + static_cast<std::ptrdiff_t>(k));
      any |= Try(std::move(g));
      k = std::min(k, graph_.fetches.size());
    }
    return any;
  }

  // A node's result is an argument or a constant instead, or its first input of that type and
  // shape.
  bool FewerNodes() {
    bool any = false;
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      if (i >= graph_.nodes.size()) continue;
      const DrawnNode& n = graph_.nodes[i];
      if (n.inputs.empty() || n.values.empty()) continue;
      any |= Bypass(i) || Given(i, "Placeholder") || Given(i, "Const");
    }
    return any;
  }
  bool Bypass(size_t i) {
    const DrawnNode& n = graph_.nodes[i];
    if (n.values.size() != 1) return false;
    for (const DrawnPort& in : n.inputs) {
      const Tensor& t = graph_.ValueOf(in);
      if (t.dtype() != n.values[0].dtype() || !(t.shape() == n.values[0].shape())) continue;
      DrawnGraph g = graph_;
      const DrawnPort from = {static_cast<int>(i), 0};
      for (DrawnNode& reader : g.nodes) std::ranges::replace(reader.inputs, from, in);
      std::ranges::replace(g.fetches, from, in);
      if (Try(std::move(g))) return true;
    }
    return false;
  }
  bool Given(size_t i, const char* op) {
    if (graph_.requests.size() != 1) return false;
    DrawnGraph g = graph_;
    // Each output becomes a node of its own behind the last: readers of lower numbers move along.
    const DrawnNode old = g.nodes[i];
    const bool fetched = std::ranges::any_of(
        g.fetches, [&](const DrawnPort& p) { return p.node == static_cast<int>(i); });
    if (fetched) return false;
    DrawnGraph out;
    out.library = g.library;
    std::vector<int> now(g.nodes.size());
    std::vector<int> parts(old.values.size());
    DrawnFeeds feeds;
    for (size_t k = 0; k < g.nodes.size(); ++k) {
      if (k != i) {
        now[k] = static_cast<int>(out.nodes.size());
        DrawnNode n = g.nodes[k];
        for (DrawnPort& p : n.inputs) {
          p = p.node == static_cast<int>(i) ? DrawnPort{parts[static_cast<size_t>(p.port)], 0}
                                            : DrawnPort{now[static_cast<size_t>(p.node)], p.port};
        }
        out.nodes.push_back(std::move(n));
        continue;
      }
      for (size_t p = 0; p < old.values.size(); ++p) {
        parts[p] = static_cast<int>(out.nodes.size());
        DrawnNode n;
        n.op = op;
        n.values = {old.values[p]};
        n.stated_shape = old.values[p].shape().ToString();
        if (n.Is("Placeholder")) feeds.emplace_back(parts[p], old.values[p]);
        out.nodes.push_back(std::move(n));
      }
    }
    for (const DrawnPort& p : g.fetches)
      out.fetches.push_back({now[static_cast<size_t>(p.node)], p.port});
    for (const auto& [node, t] : g.requests[0])
      feeds.emplace_back(now[static_cast<size_t>(node)], t);
    std::ranges::sort(feeds, {}, &std::pair<int, Tensor>::first);
    out.requests = {std::move(feeds)};
    return Try(std::move(out));
  }

  // The first elements of a tensor along each dimension of size `from`.
  static Tensor Cut(const Tensor& t, int64_t from, int64_t to) {
    Shape shape = t.shape();
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] == from) shape.Set(i, to);
    }
    Tensor out = *Tensor::Make(t.dtype(), shape);
    const size_t size = DtypeSize(t.dtype());
    for (int64_t k = 0; k < out.num_elements(); ++k) {
      int64_t rest = k, at = 0, step = 1;
      for (int i = shape.rank(); i-- > 0;) {
        at += rest % shape[i] * step;
        rest /= shape[i];
        step *= t.dim(i);
      }
      std::memcpy(static_cast<char*>(out.raw()) + static_cast<size_t>(k) * size,
                  static_cast<const char*>(t.raw()) + static_cast<size_t>(at) * size, size);
    }
    return out;
  }
  // Every dimension of one size becomes smaller, in values and in what states shapes.
  bool SmallerDims() {
    std::vector<int64_t> sizes;
    for (const DrawnNode& n : graph_.nodes) {
      for (const Tensor& t : n.values) {
        for (const int64_t d : t.shape().dims()) {
          if (d > 1 && std::ranges::find(sizes, d) == sizes.end()) sizes.push_back(d);
        }
      }
    }
    bool any = false;
    for (const int64_t from : sizes) {
      for (const int64_t to : {int64_t{1}, int64_t{2}, from / 2, from - 1}) {
        if (to < 1 || to >= from) continue;
        for (const bool integers : {true, false}) {
          if (!TryDims(from, to, integers)) continue;
          any = true;
          break;
        }
      }
    }
    return any;
  }
  bool TryDims(int64_t from, int64_t to, bool integers) {
    DrawnGraph g = graph_;
    const auto change = [&](Tensor& t) {
      const bool stated = t.dtype() == Dtype::kInt32 && t.rank() <= 1;
      if (!stated) {
        t = Cut(t, from, to);
      } else if (integers) {
        Tensor copy = *t.Clone();
        for (int32_t& v : copy.flat<int32_t>()) {
          if (v == from) v = static_cast<int32_t>(to);
        }
        t = copy;
      }
    };
    for (DrawnNode& n : g.nodes) {
      if (!n.inputs.empty()) continue;
      change(n.values[0]);
      if (n.Is("Placeholder")) n.stated_shape = "shape(?)";
    }
    for (DrawnFeeds& feeds : g.requests) {
      for (auto& [node, t] : feeds) change(t);
    }
    if (!Evaluated(&g)) return false;
    return Try(std::move(g));
  }
  // Values of nodes that are not inputs are those of larger dimensions: good enough to print, not
  // to put in place of the nodes.
  static bool Evaluated(DrawnGraph* g) {
    for (DrawnNode& n : g->nodes) {
      if (!n.inputs.empty()) continue;
      if (n.values[0].num_elements() > (1 << 20)) return false;
    }
    return true;
  }

  // Numbers that are easier to read.
  bool PlainerValues() {
    bool any = false;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const DrawnNode& n = graph_.nodes[i];
      if (!n.inputs.empty() || n.values[0].dtype() != Dtype::kFloat) continue;
      if (n.Is("Placeholder") && graph_.requests.size() == 1) {
        // An argument that need be none.
        DrawnGraph g = graph_;
        g.nodes[i].op = "Const";
        std::erase_if(g.requests[0], [&](const auto& f) { return f.first == static_cast<int>(i); });
        const size_t before = graph_.requests[0].size();
        any |= Try(std::move(g)) && graph_.requests[0].size() < before;
      }
    }
    return any;
  }

  DrawnGraph graph_;
  const std::function<bool(const DrawnGraph&)>& fails_;
  int tries_ = 0;
};

}  // namespace

DrawnGraph Shrunk(DrawnGraph graph, const std::function<bool(const DrawnGraph&)>& fails) {
  return Shrinker(std::move(graph), fails).Run();
}

}  // namespace smelt
