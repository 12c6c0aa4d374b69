#include "smelt/convert/quantize/observe.h"

#include <mutex>

#include "absl/synchronization/mutex.h"
#include "smelt/convert/quantize/node_maker.h"
#include "smelt/kernels/kernel.h"

namespace smelt::quantize {
namespace {

constexpr char kObserveOp[] = "_SmeltObserve";
constexpr char kContainer[] = "localhost";

// The session's resource that takes values from observer nodes to the callback of the running Run.
class Listener final : public Resource {
 public:
  static constexpr absl::string_view kKind = "observer";
  absl::string_view kind() const override { return kKind; }

  void Listen(const std::function<void(int, const Tensor&)>* on_value) {
    absl::MutexLock lock(&mutex_);
    on_value_ = on_value;
  }
  void Tell(int id, const Tensor& value) {
    absl::MutexLock lock(&mutex_);
    if (on_value_ != nullptr) (*on_value_)(id, value);
  }

 private:
  absl::Mutex mutex_;
  const std::function<void(int, const Tensor&)>* on_value_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

StatusOr<std::shared_ptr<Listener>> ListenerOf(ResourceManager& resources) {
  ASSIGN_OR_RETURN(auto r, resources.FindOrCreate(kContainer, Listener::kKind, "listener",
                                                  []() -> StatusOr<std::shared_ptr<Resource>> {
                                                    return std::make_shared<Listener>();
                                                  }));
  return std::static_pointer_cast<Listener>(r);
}

Status RunObserve(OpContext& ctx) {
  ASSIGN_OR_RETURN(const auto listener, ListenerOf(*ctx.step().resources));
  listener->Tell(static_cast<int>(ctx.node().Int("id")), ctx.input(0));
  ctx.set_output(0, ctx.TakeInput(0));
  return OkStatus();
}

constexpr Kernel kObserveTable[] = {
    {{}, "", kAnyType, "convert:observe", RunObserve},
};

OpDef ObserveDef() {
  OpDef def;
  def.name = kObserveOp;
  ArgDef x;
  x.name = "x";
  x.type = Dtype::kFloat;
  def.inputs.push_back(x);
  x.name = "y";
  def.outputs.push_back(x);
  AttrDef id;
  id.name = "id";
  id.type = "int";
  def.attrs.push_back(id);
  def.stateful = true;
  return def;
}

// Puts the observer on the tensor: whoever reads it reads what passed the observer.
// `sizes`: the graphs' max_id before any observer, whose own reads do not count.
Status Observe(MetaGraph& meta, const ObservedTensor& t,
               const absl::flat_hash_map<const Graph*, int>& sizes) {
  Function* f = t.key.first == "-" ? nullptr : meta.graph->library()->Find(t.key.first);
  if (t.key.first != "-" && f == nullptr) return NotFound("no function '", t.key.first, "'");
  Graph& g = f ? *f->body : *meta.graph;
  auto e = g.FindEndpoint(t.key.second);
  if (!e.ok()) return Prefix(e.status(), absl::StrCat("In function '", t.key.first, "': "));
  Endpoint value = *e;
  NodeMaker make(g, absl::StrCat(e->node->name(), "/observe"));
  if (t.int8) value = Dequantize(make, value, t.scale);
  const Endpoint seen = make.Op("value", kObserveOp, {value}, {{"id", t.id}});
  RETURN_IF_ERROR(make.status());
  if (t.int8) {
    // The readers want int8: they wait for the observer instead of reading it.
    for (const Use& use : e->node->OrderedUses()) {
      if (use.is_control() || use.node->id() >= sizes.at(&g)) continue;
      if (use.node->attrs().Find(kLayerAttr) != nullptr) g.AddControlInput(use.node, seen.node);
    }
    return OkStatus();
  }
  g.ReplaceOtherUses(*e, seen);
  if (f == nullptr) return OkStatus();
  for (auto& result : f->results) {
    for (Endpoint& r : result) {
      if (r == *e) r = seen;
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<ObservedModel>> ObservedModel::Load(
    MetaGraph meta, const std::string& dir, const FileSystem& files,
    const std::vector<ObservedTensor>& tensors) {
  static std::once_flag once;
  std::call_once(once, [] { AddKernels(kObserveOp, kObserveTable); });
  meta.graph->library()->AddOp(ObserveDef());
  absl::flat_hash_map<const Graph*, int> sizes = {{meta.graph.get(), meta.graph->max_id()}};
  for (const Function* f : meta.graph->library()->Functions()) {
    if (f->body != nullptr) sizes[f->body.get()] = f->body->max_id();
  }
  for (const ObservedTensor& t : tensors) RETURN_IF_ERROR(Observe(meta, t, sizes));
  auto out = std::make_unique<ObservedModel>();
  ASSIGN_OR_RETURN(out->model_, LoadedModel::Load(std::move(meta), dir, {.files = files}));
  return out;
}

StatusOr<NamedTensors> ObservedModel::Run(
    const std::string& signature, const NamedTensors& inputs,
    const std::function<void(int id, const Tensor& value)>& on_value) {
  ASSIGN_OR_RETURN(const auto listener, ListenerOf(model_->session().resources()));
  listener->Listen(&on_value);
  auto outputs = model_->RunSignature(signature, inputs);
  listener->Listen(nullptr);
  return outputs;
}

}  // namespace smelt::quantize
