// What the optimizer is given: a graph, and what others do with it.
#ifndef SMELT_OPTIMIZE_GRAPH_ITEM_H_
#define SMELT_OPTIMIZE_GRAPH_ITEM_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/wire/graph_def/graph_versions.h"

namespace smelt {

// As TensorFlow's GrapplerItem. Tensors are "node:port", "node" or "^node", ops "node".
struct GraphItem {
  std::string id;
  std::unique_ptr<Graph> graph;
  GraphVersions versions;
  std::vector<std::string> feeds, fetches;
  // keep_ops: among them what collections name, such as queue runners' ops.
  std::vector<std::string> init_ops, keep_ops;
  std::string save_op, restore_op, save_restore_loc_tensor;
  // false: nodes with state, and those that pull from data sets, stay.
  bool allow_pruning_stateful_and_dataset_ops = true;
  // false: functions are left as they are.
  bool optimize_function_library = true;
  // Functions that are called from outside of the graph, besides those that it calls. Their bodies
  // change, their names and signatures do not.
  std::vector<std::string> kept_functions;
  // By function: nodes of its body that are asked for by name from outside.
  std::map<std::string, std::vector<std::string>> kept_in_functions;

  // Names of all nodes that must stay, without repetition.
  std::vector<std::string> NodesToPreserve() const;
  // Marks them as roots, and the feeds as fed (passes.h). INVALID_ARGUMENT names a fetch or a feed
  // that the graph does not have; what else is not there is left out, as TensorFlow does.
  Status Mark();
};

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_GRAPH_ITEM_H_
