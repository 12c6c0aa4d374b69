// Who uses a node is known at any time, whatever was done to the edges.
#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "smelt/graph/graph.h"

namespace smelt {
namespace {

using Edge = std::tuple<int, int, int, int>;  // from, port, to, input; control: port and input -1

std::vector<Edge> EdgesByInputs(const Graph& g) {
  std::vector<Edge> edges;
  for (const Node* n : g.Nodes()) {
    for (int i = 0; i < n->num_inputs(); ++i) {
      edges.emplace_back(n->input(i).node->id(), n->input(i).port, n->id(), i);
    }
    for (const Node* c : n->control_inputs()) edges.emplace_back(c->id(), -1, n->id(), -1);
  }
  std::ranges::sort(edges);
  return edges;
}

std::vector<Edge> EdgesByUses(const Graph& g) {
  std::vector<Edge> edges;
  for (const Node* n : g.Nodes()) {
    for (const Use& u : n->uses()) {
      edges.emplace_back(n->id(), u.port(), u.node->id(), u.is_control() ? -1 : u.input);
    }
  }
  std::ranges::sort(edges);
  return edges;
}

class Edges : public ::testing::Test {
 protected:
  Node* Add(std::vector<Endpoint> inputs) {
    Node* n = *g_.AddNode(g_.FreeName("n"), "IdentityN");
    n->SetOutputTypes({Dtype::kFloat, Dtype::kFloat});
    g_.SetInputs(n, std::move(inputs));
    return n;
  }
  Graph g_{std::make_shared<FunctionLibrary>()};
};

TEST_F(Edges, UsesAreTheInputsReadBackwards) {
  std::mt19937 rng(1);
  for (int i = 0; i < 30; ++i) Add({});
  const auto any = [&] {
    const std::vector<Node*> nodes = g_.Nodes();
    return nodes[rng() % nodes.size()];
  };
  const auto any_output = [&] { return Endpoint{any(), static_cast<int>(rng() % 2)}; };
  for (int turn = 0; turn < 20000; ++turn) {
    Node* n = any();
    switch (rng() % 10) {
      case 0:
        g_.SetInputs(n, {any_output(), any_output()});
        break;
      case 1:
        if (n->num_inputs() < 6) g_.AddInput(n, any_output());
        break;
      case 2:
        if (n->num_inputs() > 0) g_.SetInput(n, static_cast<int>(rng()) % 1, any_output());
        break;
      case 3:
      case 4:
        if (Node* from = any(); from != n) g_.AddControlInput(n, from);
        break;
      case 5:
        g_.RemoveControlInput(n, any());
        break;
      case 6:
        g_.ReplaceAllUses(any_output(), any_output());
        break;
      case 7:
        g_.ReplaceControlUses(n, rng() % 3 == 0 ? nullptr : any());
        break;
      case 8: {
        Node* from = any();
        std::vector<Node*> waits = {from, any(), from};
        std::erase(waits, n);
        g_.SetControlInputs(n, waits);
        break;
      }
      default:
        if (n->uses().empty()) {
          g_.Remove(n);
          Add({any_output()});
        }
    }
    ASSERT_EQ(EdgesByInputs(g_), EdgesByUses(g_)) << "turn " << turn;
    for (const Node* m : g_.Nodes()) {
      std::vector<Node*> waits = m->control_inputs();
      std::ranges::sort(waits);
      ASSERT_EQ(std::ranges::adjacent_find(waits), waits.end()) << "waits twice, turn " << turn;
    }
  }
}

TEST_F(Edges, PruneAndGroupsLeaveNoUsesBehind) {
  Node* kept = Add({});
  Node* a = Add({{kept, 0}});
  Node* b = Add({{a, 1}, {kept, 1}});
  g_.SetInputs(a, {{b, 0}});  // a cycle of two
  g_.AddControlInput(b, kept);
  Node* root = Add({{kept, 0}});
  Node* const cycle[] = {a, b};
  g_.Remove(cycle);
  ASSERT_EQ(kept->uses().size(), 1u);
  EXPECT_EQ(kept->uses()[0].node, root);
  Add({{kept, 1}});
  g_.Prune({root});
  EXPECT_EQ(kept->uses().size(), 1u);
  EXPECT_EQ(g_.num_nodes(), 2);
}

TEST_F(Edges, ShortListsOfControlInputsKeepTheirOrder) {
  std::vector<Node*> from;
  for (int i = 0; i < 5; ++i) from.push_back(Add({}));
  Node* n = Add({});
  g_.SetControlInputs(n, from);
  Node* other = Add({});
  g_.ReplaceControlUses(from[1], other);
  g_.RemoveControlInput(n, from[3]);
  g_.ReplaceControlUses(from[0], nullptr);
  EXPECT_EQ(n->control_inputs(), (std::vector<Node*>{other, from[2], from[4]}));
  g_.ReplaceControlUses(other, n);  // nobody waits for itself
  EXPECT_EQ(n->control_inputs(), (std::vector<Node*>{from[2], from[4]}));
}

TEST_F(Edges, LongListsOfControlInputsLoseAnyOfThem) {
  std::vector<Node*> from;
  for (int i = 0; i < 1000; ++i) from.push_back(Add({}));
  Node* n = Add({});
  g_.SetControlInputs(n, from);
  for (int i = 0; i < 1000; i += 2) g_.RemoveControlInput(n, from[static_cast<size_t>(i)]);
  EXPECT_EQ(n->control_inputs().size(), 500u);
  EXPECT_EQ(EdgesByInputs(g_), EdgesByUses(g_));
}

TEST_F(Edges, ReplaceAllUsesLooksAtOneOutput) {
  Node* from = Add({});
  Node* to = Add({});
  Node* reader = Add({{from, 0}, {from, 1}, {from, 0}});
  g_.AddControlInput(reader, from);
  EXPECT_EQ(from->NumUses(0), 2);
  g_.ReplaceAllUses({from, 0}, {to, 1});
  EXPECT_EQ(reader->inputs(), (Node::Inputs{{to, 1}, {from, 1}, {to, 1}}));
  EXPECT_EQ(from->uses().size(), 2u);
  g_.ReplaceAllUses({from, 1}, {from, 0});  // another output of the same node
  EXPECT_EQ(reader->input(1), (Endpoint{from, 0}));
}

TEST_F(Edges, WhatGoesOnTheWayDoesNotCome) {
  std::vector<Node*> nodes;
  for (int i = 0; i < 6; ++i) nodes.push_back(Add({}));
  std::vector<int> came;
  for (Node* n : g_.Nodes()) {
    came.push_back(n->id());
    if (n == nodes[1]) {
      const std::vector<Node*> gone = {nodes[1], nodes[2], nodes[5]};
      g_.Remove(gone);
      for (int i = 0; i < 100; ++i) Add({});
    }
  }
  EXPECT_EQ(came, (std::vector<int>{0, 1, 3, 4}));
  g_.Remove(nodes[0]);
  const std::vector<Node*> left = g_.Nodes();
  EXPECT_EQ(left.size(), 102u);
  EXPECT_EQ(left.front(), nodes[3]);
}

}  // namespace
}  // namespace smelt
