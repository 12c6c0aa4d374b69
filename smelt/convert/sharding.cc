// XLA sharding: a replica of each TPU function is spread over several cores. The options become
// attributes of TPUReplicateMetadata, by which the runtime and the compiler's partitioner go.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "smelt/analysis/split_rows.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/convert/stages.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/wire/xla/topology.h"

namespace smelt {

Status CheckSharding(const XlaShardingOption& o) {
  if (o.num_cores_per_replica <= 0) {
    return InvalidArgument("num_cores_per_replica must be positive; was ", o.num_cores_per_replica);
  }
  if (o.topology.empty()) {
    if (o.num_cores_per_replica > 1) {
      return InvalidArgument(
          "topology is required when num_cores_per_replica is more than 1 (it is ",
          o.num_cores_per_replica, "): it says which of the chips' cores belong together");
    }
    if (!o.device_assignment.empty()) {
      return InvalidArgument("device_assignment is given without a topology");
    }
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const TpuTopology topology, ParseTopology(o.topology));
  if (topology.num_tasks > 1) {
    return InvalidArgument(
        "TPUPartitionedCallOp is only supported in single-host setup, however "
        "num_task is: ",
        topology.num_tasks);
  }
  const auto devices = static_cast<int>(topology.devices.size());
  if (o.num_cores_per_replica > devices) {
    return InvalidArgument("num_cores_per_replica: ", o.num_cores_per_replica,
                           " is larger than the number of devices of the topology: ", devices);
  }
  if (devices % o.num_cores_per_replica != 0) {
    return InvalidArgument("the topology's ", devices,
                           " devices cannot be divided into replicas of ", o.num_cores_per_replica,
                           " cores");
  }
  if (o.device_assignment.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const auto assigned,
                   MeshDevices(topology.mesh_shape, o.device_assignment, "device_assignment"));
  if (static_cast<int>(assigned.size()) != o.num_cores_per_replica) {
    return InvalidArgument("device_assignment names ", assigned.size(),
                           " devices for num_cores_per_replica ", o.num_cores_per_replica);
  }
  for (const auto& device : assigned) {
    if (std::ranges::find(topology.devices, device) == topology.devices.end()) {
      return InvalidArgument("device_assignment: device [", absl::StrJoin(device, ","),
                             "] is not among the topology's device_coordinates");
    }
  }
  return OkStatus();
}

namespace {

// Notes what each placement's cores are expected to divide: a request's rows, or each op.
void NoteSplits(Conversion& c) {
  const int cores = c.options.xla_sharding_options->num_cores_per_replica;
  const ModelShapes shapes = InferModelShapes(*c.meta->graph, XlaShapeRules());
  const ShapeTable none;
  for (const TpuPlacement& p : c.placements) {
    const Function& body = *c.library().Find(p.body);
    auto it = shapes.functions.find(p.body);
    const RowSplit split = ExpectRowSplit(body, it != shapes.functions.end() ? it->second : none);
    c.records.AddNote(
        "sharding",
        split.possible()
            ? absl::StrCat(p.label, ": the rows of a request are split over ", cores, " cores")
            : absl::StrCat(
                  p.label, ": each op of a request is split over ", cores,
                  " cores by itself, unless shapes show at run time that the rows can be: ",
                  split.why_not));
  }
}

}  // namespace

Status ShardOverCores(Conversion& c) {
  const XlaShardingOption& o = *c.options.xla_sharding_options;
  if (c.placements.empty()) {
    return InvalidArgument("xla_sharding_options are given, but the model has no TPU functions");
  }
  for (const TpuPlacement& p : c.placements) {
    for (Node* n : c.library().Find(p.body)->body->Nodes()) {
      if (!n->Is("TPUReplicateMetadata")) continue;
      n->AttrsToChange().Set("num_cores_per_replica", o.num_cores_per_replica);
      if (!o.topology.empty()) n->AttrsToChange().Set("topology", o.topology);
      if (!o.device_assignment.empty()) {
        n->AttrsToChange().Set(
            "device_assignment",
            std::vector<int64_t>(o.device_assignment.begin(), o.device_assignment.end()));
      }
      if (o.num_cores_per_replica > 1)
        n->AttrsToChange().Set("use_spmd_for_xla_partitioning", true);
    }
  }
  if (o.num_cores_per_replica > 1) NoteSplits(c);
  if (o.device_assignment.empty()) return OkStatus();
  // The runtime takes assigned devices from core 0 alone.
  for (const TpuPlacement& p : c.placements) {
    Graph& stub = *c.library().Find(p.function)->body;
    for (Node* n : stub.Nodes()) {
      if (!n->Is("TPUPartitionedCall")) continue;
      stub.SetInput(n, n->num_inputs() - 1, {stub.AddConst("core", Tensor::Scalar<int32_t>(0)), 0});
    }
    for (Node* n : stub.Nodes()) {
      if (n->Is("TPUOrdinalSelector") && n->uses().empty()) stub.Remove(n);
    }
  }
  return OkStatus();
}

}  // namespace smelt
