// Readers redirects as Graph's own functions do.
#include "smelt/graph/readers.h"

#include <gtest/gtest.h>

#include <random>

#include "smelt/graph/text.h"

namespace smelt {
namespace {

// One step of a pass: adds a node, removes one without readers, or redirects.
template <typename Redirect>
void Step(Graph& g, Redirect& redirect, std::mt19937& rng) {
  const std::vector<Node*> nodes = g.Nodes();
  const auto any = [&] { return nodes[rng() % nodes.size()]; };
  Node* from = any();
  Node* to = any();
  switch (rng() % 5) {
    case 0: {
      AttrMap attrs;
      attrs.Set("T", Dtype::kFloat);
      auto n = g.Add("n", "AddV2", {{from, 0}, {to, 0}}, std::move(attrs));
      ASSERT_TRUE(n.ok()) << n.status();
      (*n)->control_inputs = {any()};
      break;
    }
    case 1: {
      const Fanout fanout(g);
      if (nodes.size() > 4 && fanout.of(from).empty()) g.Remove(from);
      break;
    }
    case 2: {
      // The value passes through a node of its own from now on.
      AttrMap attrs;
      attrs.Set("T", Dtype::kFloat);
      auto n = g.Add("through", "Identity", {{from, 0}}, std::move(attrs));
      ASSERT_TRUE(n.ok()) << n.status();
      redirect.ReplaceAll({from, 0}, {*n, 0});
      (*n)->inputs[0] = {from, 0};
      break;
    }
    case 3:
      redirect.ReplaceControl(from, rng() % 3 == 0 ? nullptr : to);
      break;
    default:
      redirect.ReplaceAll({from, 0}, {to, 0});
  }
}

TEST(Readers, RedirectLikeTheGraph) {
  constexpr absl::string_view kStart =
      "  a = Placeholder {dtype=float, shape=shape(?)}\n"
      "  b = AddV2(a, a) {T=float}\n"
      "  c = AddV2(a, b, ^b) {T=float}\n"
      "  d = Identity(c, ^a) {T=float}\n";
  for (unsigned seed = 0; seed < 40; ++seed) {
    auto one = ParseGraph(kStart), other = ParseGraph(kStart);
    ASSERT_TRUE(one.ok() && other.ok()) << one.status();
    std::mt19937 rng(seed), same(seed);
    Readers readers(**one);
    for (int i = 0; i < 60; ++i) {
      Step(**one, readers, rng);
      Step(**other, **other, same);
      ASSERT_EQ((*one)->num_nodes(), (*other)->num_nodes());
      const std::vector<Node*> got = (*one)->Nodes(), want = (*other)->Nodes();
      for (size_t k = 0; k < got.size(); ++k) {
        ASSERT_EQ(got[k]->name(), want[k]->name());
        ASSERT_EQ(got[k]->inputs.size(), want[k]->inputs.size());
        for (size_t j = 0; j < got[k]->inputs.size(); ++j) {
          ASSERT_EQ(EndpointName(got[k]->inputs[j]), EndpointName(want[k]->inputs[j]))
              << "seed " << seed << " step " << i << " node " << got[k]->name();
        }
        ASSERT_EQ(got[k]->control_inputs.size(), want[k]->control_inputs.size());
        for (size_t j = 0; j < got[k]->control_inputs.size(); ++j) {
          ASSERT_EQ(got[k]->control_inputs[j]->name(), want[k]->control_inputs[j]->name());
        }
      }
    }
  }
}

}  // namespace
}  // namespace smelt
