// Variables that every served reader rounds to bfloat16 are stored so: half the memory and half the
// checkpoint. Readers that only the object graph holds read bfloat16 and cast back.
#include <algorithm>

#include "smelt/convert/bfloat16/bfloat16.h"
#include "smelt/graph/constant.h"
#include "smelt/kernels/common/via_float.h"

namespace smelt {
namespace {

StatusOr<Tensor> Rounded(const Tensor& t) {
  if (t.dtype() != Dtype::kFloat) {
    return DataLoss("a checkpoint entry is ", DtypeName(t.dtype()), ", its variable float");
  }
  return FromFloat(t, Dtype::kBfloat16, HeapAllocator());
}

// Another MetaGraph of the model, which is not converted but reads the same checkpoint.
class OtherMetaGraph {
 public:
  static StatusOr<OtherMetaGraph> Of(MetaGraph& meta, const std::string& dir,
                                     const FileSystem& files) {
    OtherMetaGraph out;
    ASSIGN_OR_RETURN(out.variables_, ModelVariables::Trace(meta, dir, files));
    for (const auto& v : out.variables_->all()) {
      if (!v->key.empty()) out.by_key_[v->key] = v.get();
    }
    for (const Node* n : meta.graph->Nodes()) {
      if (!n->Is("RestoreV2")) continue;
      const std::optional<Tensor> names = ConstantTensor(*n->inputs()[1].node);
      if (!names || names->dtype() != Dtype::kString) continue;
      out.restored_.insert(names->flat<std::string>().begin(), names->flat<std::string>().end());
    }
    return out;
  }

  // Why the entry cannot change its type, or empty.
  std::string WhyNot(const std::string& key) const {
    auto it = by_key_.find(key);
    if (it == by_key_.end()) {
      return restored_.contains(key) ? "another MetaGraph restores it to a reference" : "";
    }
    const ModelVariable& v = *it->second;
    if (v.dtype != Dtype::kFloat) return "of another type in another MetaGraph";
    if (!v.WhyFixed().empty()) return "changed in another MetaGraph";
    for (const auto* uses : {&v.reads, &v.lookups}) {
      for (const HandleUse& use : *uses) {
        if (variables_->Of(use.node->inputs()[0]).size() != 1) {
          return "read where another variable may stand, in another MetaGraph";
        }
      }
    }
    return "";
  }

  Status Store(const std::string& key) {
    auto it = by_key_.find(key);
    if (it == by_key_.end()) return OkStatus();
    ModelVariable& v = *it->second;
    RETURN_IF_ERROR(variables_->SetStored(v, Dtype::kBfloat16, Rounded, Rounded));
    absl::flat_hash_set<const Node*> done;
    for (const auto* uses : {&v.reads, &v.lookups}) {
      for (const HandleUse& use : *uses) {
        if (!done.insert(use.node).second) continue;
        RETURN_IF_ERROR(variables_->CastBack(use, Dtype::kBfloat16));
      }
    }
    return OkStatus();
  }

  Status Finish() { return variables_->UpdateObjectGraph(); }

 private:
  OtherMetaGraph() = default;

  std::unique_ptr<ModelVariables> variables_;
  std::map<std::string, ModelVariable*> by_key_;
  absl::flat_hash_set<std::string> restored_;
};

class VariableStorer {
 public:
  VariableStorer(Conversion& c, ModelVariables& variables, const std::vector<FloatGraph*>& graphs,
                 const absl::flat_hash_set<std::string>& served)
      : c_(c), variables_(variables), served_(served) {
    for (FloatGraph* g : graphs) graphs_[g->function] = g;
    for (const Node* n : ServedNodes(*c.meta)) served_nodes_.insert(n);
  }

  Status Run() {
    for (MetaGraph& meta : c_.model.meta_graphs) {
      if (&meta == c_.meta) continue;
      ASSIGN_OR_RETURN(OtherMetaGraph other, OtherMetaGraph::Of(meta, c_.model.dir, c_.files));
      others_.push_back(std::move(other));
    }
    for (const auto& v : variables_.all()) {
      if (v->dtype != Dtype::kFloat) continue;
      candidates_.push_back(v.get());
      if (!v->key.empty()) by_key_[v->key].push_back(v.get());
    }
    for (ModelVariable* v : candidates_) {
      std::string why = WhyNot(*v);
      if (why.empty()) {
        good_.insert(v);
      } else {
        why_not_[v] = std::move(why);
      }
    }
    TellApart();
    for (const auto& [key, all] : by_key_) {
      // At least one reader must want bfloat16.
      if (!std::ranges::all_of(all, [&](auto* v) { return good_.contains(v); }) ||
          !std::ranges::any_of(all, [&](auto* v) { return profits_.contains(v); })) {
        continue;
      }
      RETURN_IF_ERROR(Store(key, all));
    }
    for (const ModelVariable* v : candidates_) {
      auto it = why_not_.find(v);
      if (it == why_not_.end() || !profits_.contains(v)) continue;
      c_.records.precision.push_back(
          {"", v->key.empty() ? v->name : v->key, kVariableOp, false, it->second});
    }
    for (OtherMetaGraph& other : others_) RETURN_IF_ERROR(other.Finish());
    return OkStatus();
  }

 private:
  std::string WhyNot(const ModelVariable& v) {
    std::string why;
    const auto no = [&](std::string text) {
      if (why.empty()) why = std::move(text);
    };
    for (const auto* uses : {&v.reads, &v.lookups}) {
      for (const HandleUse& use : *uses) {
        if (!Served(use)) continue;
        auto g = graphs_.find(use.function);
        if (g == graphs_.end()) {
          no(absl::StrCat("read on the host by '", use.node->name(), "'"));
        } else if (const Wanted wanted = WantedOf(*g->second, *use.node); wanted.as_float) {
          no(absl::StrCat("read as float32 by '", use.node->name(), "'"));
        } else if (wanted.as_bf16) {
          profits_.insert(&v);
        }
      }
    }
    if (std::string text = v.WhyFixed(); !text.empty()) no(std::move(text));
    for (const ModelVariable* slot : v.slots) {
      for (const auto* uses : {&slot->reads, &slot->lookups}) {
        for (const HandleUse& use : *uses) {
          if (Served(use)) no(absl::StrCat("its optimizer's '", slot->name, "' is served"));
        }
      }
    }
    for (const OtherMetaGraph& other : others_) {
      if (std::string text = other.WhyNot(v.key); !text.empty()) no(std::move(text));
    }
    return why;
  }

  bool Served(const HandleUse& use) const {
    if (use.function == nullptr) return served_nodes_.contains(use.node);
    return served_.contains(use.function->name());
  }

  // Which types the readers of a value want. Neither: nobody reads it.
  struct Wanted {
    bool as_float = false, as_bf16 = false;
  };

  Wanted WantedOf(const FloatGraph& g, const Node& read) {
    Wanted out;
    if (!read.Is("ReadVariableOp")) {
      const int u = g.Out({const_cast<Node*>(&read), 0});
      (u >= 0 && g.units[u].bf16 ? out.as_bf16 : out.as_float) = true;
      return out;
    }
    for (const Use& use : read.uses()) {
      if (use.is_control()) continue;
      (g.WantsBf16(use.node, use.input) ? out.as_bf16 : out.as_float) = true;
    }
    if (g.function != nullptr) {
      for (const Endpoint& e : g.function->FlatResults()) {
        if (e.node == &read) out.as_float = true;
      }
    }
    return out;
  }

  // Takes variables out of good_ until those that one read may mean, and those of one checkpoint
  // entry, are all in it or all out: either has one type.
  void TellApart() {
    for (bool changed = true; changed;) {
      changed = false;
      const auto drop = [&](ModelVariable* v, const char* why) {
        if (good_.erase(v) == 0) return;
        why_not_[v] = why;
        changed = true;
      };
      for (ModelVariable* v : candidates_) {
        if (!good_.contains(v)) continue;
        for (const auto* uses : {&v->reads, &v->lookups}) {
          for (const HandleUse& use : *uses) {
            for (ModelVariable* other : variables_.Of(use.node->inputs()[0])) {
              if (!good_.contains(other)) drop(v, "read where another variable may stand");
            }
          }
        }
      }
      for (const auto& [key, all] : by_key_) {
        if (std::ranges::all_of(all, [&](auto* v) { return good_.contains(v); })) continue;
        for (ModelVariable* v : all) drop(v, "shares its checkpoint entry");
      }
    }
  }

  Status Store(const std::string& key, const std::vector<ModelVariable*>& all) {
    for (ModelVariable* v : all) {
      RETURN_IF_ERROR(variables_.SetStored(*v, Dtype::kBfloat16, Rounded, Rounded));
      for (const auto* uses : {&v->reads, &v->lookups}) {
        for (const HandleUse& use : *uses) RETURN_IF_ERROR(Read(use));
      }
    }
    for (OtherMetaGraph& other : others_) RETURN_IF_ERROR(other.Store(key));
    int64_t elements = all[0]->shape.known_rank() ? 1 : 0;
    if (elements > 0) {
      for (int64_t d : all[0]->shape.dims()) elements *= std::max<int64_t>(d, 0);
    }
    c_.records.variables.push_back(
        {key, Dtype::kFloat, Dtype::kBfloat16, 4 * elements, 2 * elements});
    return OkStatus();
  }

  Status Read(const HandleUse& use) {
    if (!done_.insert(use.node).second) return OkStatus();
    auto g = graphs_.find(use.function);
    if (g == graphs_.end()) return variables_.CastBack(use, Dtype::kBfloat16);
    Graph& graph = use.function != nullptr ? *use.function->body : *c_.meta->graph;
    use.node->AttrsToChange().Set("dtype", Dtype::kBfloat16);
    RETURN_IF_ERROR(graph.ResolveTypes(use.node));
    g->second->stored.insert(use.node);
    return OkStatus();
  }

  Conversion& c_;
  ModelVariables& variables_;
  const absl::flat_hash_set<std::string>& served_;
  absl::flat_hash_map<const Function*, FloatGraph*> graphs_;
  absl::flat_hash_set<const Node*> served_nodes_, done_;
  std::vector<ModelVariable*> candidates_;
  std::map<std::string, std::vector<ModelVariable*>> by_key_;
  absl::flat_hash_set<const ModelVariable*> good_, profits_;
  absl::flat_hash_map<const ModelVariable*, std::string> why_not_;
  std::vector<OtherMetaGraph> others_;
};

}  // namespace

Status StoreBf16Variables(Conversion& c, const std::vector<FloatGraph*>& graphs,
                          const absl::flat_hash_set<std::string>& served) {
  ASSIGN_OR_RETURN(ModelVariables * variables, c.Variables());
  return VariableStorer(c, *variables, graphs, served).Run();
}

}  // namespace smelt
