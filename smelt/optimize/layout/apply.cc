#include "smelt/optimize/layout/apply.h"

#include "smelt/optimize/host_memory.h"

namespace smelt::layout {
namespace {

constexpr absl::string_view kSuffix = "-LayoutOptimizer";

constexpr OpSet kEnters = {"Enter", "RefEnter"};
constexpr OpSet kExits = {"Exit", "RefExit"};

// Which nodes stand in frames of loops: what they read must come from there as well.
class Frames {
 public:
  static StatusOr<Frames> Of(const Graph& graph) {
    Frames frames;
    const bool any =
        std::ranges::any_of(graph.Nodes(), [](const Node* n) { return n->Is(kEnters); });
    if (!any) return frames;
    frames.depth_.resize(static_cast<size_t>(graph.max_id()), 0);
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
    for (const Node* n : order) {
      int depth = 0;
      const auto see = [&](const Node& before) {
        const int left = before.Is(kExits) ? 1 : 0;
        depth = std::max(depth, frames.depth_[static_cast<size_t>(before.id())] - left);
      };
      for (const Endpoint& e : n->inputs()) see(*e.node);
      for (const Node* c : n->control_inputs()) see(*c);
      frames.depth_[static_cast<size_t>(n->id())] = depth + (n->Is(kEnters) ? 1 : 0);
    }
    return frames;
  }

  // An Enter is in the frame that it enters, an Exit in the one that it leaves.
  bool Has(const Node& n) const {
    return !depth_.empty() && depth_[static_cast<size_t>(n.id())] > 0;
  }

 private:
  std::vector<int> depth_;  // by id; empty: there are no frames
};

class Applier {
 public:
  Applier(const Conversion& conversion, const LayoutPlan& plan, const Frames& frames, Rewriter& r)
      : conversion_(conversion), plan_(plan), frames_(frames), r_(r) {}

  Status Run() {
    const std::vector<const NodePlan*> changes = plan_.Changes();
    // Names count readers: all edges are looked at before the first one changes.
    for (const NodePlan* change : changes) ListResults(*change);
    for (const NodePlan* change : changes) {
      for (int i = 0; i < change->node->num_inputs(); ++i) {
        if (change->inputs[static_cast<size_t>(i)] != Form::kSame) ListInput(*change, i);
      }
    }
    for (const NodePlan* change : changes) {
      if (change->vector_input >= 0) RETURN_IF_ERROR(SpreadVector(*change));
      if (change->sensitive)
        ChangeFormat(*change->node, *change->row, conversion_, *change->formats);
      if (change->row->change != nullptr) change->row->change(*change->node, *change->formats);
      r_.context().Fired(change->row->name, *change->node);
    }
    for (const Edge& edge : edges_) RETURN_IF_ERROR(Put(edge));
    return OkStatus();
  }

 private:
  // What is to be put before input `input` of `reader`.
  struct Edge {
    Node* reader;
    int input;
    const Formats* formats;
    Form form;
    bool to_dst;     // else back to the source format
    int count = -1;  // of the readers before it, where it turns back
  };

  // An input that changes with what it reads needs nothing in between.
  bool Meet(const NodePlan* from, int port, const NodePlan* to, int input) const {
    return from != nullptr && to != nullptr && from->formats == to->formats &&
           from->outputs[static_cast<size_t>(port)] == to->inputs[static_cast<size_t>(input)];
  }

  static std::string Name(const Edge& edge, absl::string_view what) {
    const Formats& f = *edge.formats;
    const absl::string_view from = edge.to_dst ? f.src : f.dst, to = edge.to_dst ? f.dst : f.src;
    if (edge.to_dst) {
      return absl::StrCat(edge.reader->name(), "-", edge.input, "-", what, from, "To", to, kSuffix);
    }
    const Endpoint e = edge.reader->input(edge.input);
    return absl::StrCat(e.node->name(), "-", e.port, "-", edge.count, "-", what, from, "To", to,
                        kSuffix);
  }

  static absl::string_view OpOf(Form form) {
    switch (form) {
      case Form::kTensor:
        return "Transpose";
      case Form::kVector:
        return "DataFormatVecPermute";
      default:
        return "DataFormatDimMap";
    }
  }

  void ListInput(const NodePlan& plan, int input) {
    const Endpoint e = plan.node->input(input);
    if (Meet(plan_.Of(*e.node), e.port, &plan, input)) return;
    edges_.push_back(
        {plan.node, input, plan.formats, plan.inputs[static_cast<size_t>(input)], true});
  }

  // In the order of the readers' names; of one that changed before, the name of what it reads
  // through.
  void ListResults(const NodePlan& plan) {
    struct Reader {
      std::string name;
      int input;
      Use use;
    };
    std::vector<std::vector<Reader>> readers(plan.outputs.size());
    for (const Use& use : plan.node->uses()) {
      if (use.is_control()) continue;
      const auto port = static_cast<size_t>(use.port());
      if (plan.outputs[port] == Form::kSame) continue;
      const NodePlan* to = plan_.Of(*use.node);
      const Form form = to == nullptr ? Form::kSame : to->inputs[static_cast<size_t>(use.input)];
      if (form != Form::kSame && plan_.IsBefore(*use.node, *plan.node)) {
        const Edge through{use.node, use.input, to->formats, form, true};
        readers[port].push_back({Name(through, OpOf(form)), 0, use});
      } else {
        readers[port].push_back({use.node->name(), use.input, use});
      }
    }
    for (size_t port = 0; port < readers.size(); ++port) {
      std::ranges::sort(readers[port], [](const Reader& a, const Reader& b) {
        return std::tie(a.name, a.input) < std::tie(b.name, b.input);
      });
      for (size_t i = 0; i < readers[port].size(); ++i) {
        const Use& use = readers[port][i].use;
        if (Meet(&plan, static_cast<int>(port), plan_.Of(*use.node), use.input)) continue;
        edges_.push_back(
            {use.node, use.input, plan.formats, plan.outputs[port], false, static_cast<int>(i)});
      }
    }
  }

  Status Put(const Edge& edge) {
    const Endpoint e = edge.reader->input(edge.input);
    // Where the node changes that is added for runs the new one.
    const Node& like = edge.to_dst ? *edge.reader : *e.node;
    const std::string name = Name(edge, OpOf(edge.form));
    AttrMap attrs;
    // What it turns from the source may be an op's that nobody knows: its reader knows the type.
    attrs.Set("T", edge.to_dst ? edge.reader->input_types[static_cast<size_t>(edge.input)]
                               : e.node->output_types[static_cast<size_t>(e.port)]);
    std::vector<Endpoint> inputs = {e};
    if (edge.form == Form::kTensor) {
      attrs.Set("Tperm", Dtype::kInt32);
      const auto& permutation = edge.to_dst ? edge.formats->to_dst : edge.formats->to_src;
      Node* perm = r_.AddConst(Name(edge, "PermConst"), Tensor::Vector<int32_t>(permutation), like);
      if (frames_.Has(like)) r_.graph().AddControlInput(perm, e.node);
      inputs.push_back({perm, 0});
    } else {
      const Formats& f = *edge.formats;
      attrs.Set("src_format", edge.to_dst ? f.src : f.dst);
      attrs.Set("dst_format", edge.to_dst ? f.dst : f.src);
      if (IsInHostMemory(e)) attrs.Set("_kernel", "host");
    }
    ASSIGN_OR_RETURN(Node * added, r_.Add(name, OpOf(edge.form), inputs, std::move(attrs), like));
    r_.graph().SetInput(edge.reader, edge.input, {added, 0});
    return OkStatus();
  }

  // A vector is read along the last dimension of the source format, wherever that is afterwards.
  Status SpreadVector(const NodePlan& plan) {
    Node* n = plan.node;
    const Endpoint e = n->input(plan.vector_input);
    const Formats& f = *plan.formats;
    std::vector<int32_t> sizes(f.src.size(), 1);
    const int64_t size = r_.shape(e)[0];
    const bool known = size >= 0 && size <= std::numeric_limits<int32_t>::max();
    sizes[static_cast<size_t>(f.to_src.back())] = known ? static_cast<int32_t>(size) : -1;
    const std::string base = absl::StrCat(n->name(), "-", plan.vector_input, "-Reshape");
    Node* shape =
        r_.AddConst(absl::StrCat(base, "Const", kSuffix), Tensor::Vector<int32_t>(sizes), *n);
    if (frames_.Has(*n)) r_.graph().AddControlInput(shape, e.node);
    AttrMap attrs;
    attrs.Set("T", n->input_types[static_cast<size_t>(plan.vector_input)]);
    attrs.Set("Tshape", Dtype::kInt32);
    ASSIGN_OR_RETURN(Node * reshaped, r_.Add(absl::StrCat(base, f.src, "To", f.dst, kSuffix),
                                             "Reshape", {e, {shape, 0}}, std::move(attrs), *n));
    r_.graph().SetInput(n, plan.vector_input, {reshaped, 0});
    return OkStatus();
  }

  const Conversion& conversion_;
  const LayoutPlan& plan_;
  const Frames& frames_;
  Rewriter& r_;
  std::vector<Edge> edges_;
};

}  // namespace

Status ApplyPlan(const Conversion& conversion, const LayoutPlan& plan, Rewriter& r) {
  ASSIGN_OR_RETURN(const Frames frames, Frames::Of(r.graph()));
  return Applier(conversion, plan, frames, r).Run();
}

}  // namespace smelt::layout
