// Why the compiler did not do more. Collected where somebody asks (`smelt show --program`): steps
// of compile/ take a pointer, and compose no text where it is nullptr.
#ifndef SMELT_COMPILE_REASONS_H_
#define SMELT_COMPILE_REASONS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "smelt/graph/graph.h"

namespace smelt {

// Not thread safe.
struct Reasons {
  std::vector<std::string> of_program;
  // In the order of the decisions. Nodes are of the body that is compiled, and outlive this.
  std::vector<std::pair<const Node*, std::string>> of_nodes;
};

// A line about a node; nothing where nobody asks.
template <typename... Parts>
void NoteReason(Reasons* reasons, const Node& node, const Parts&... parts) {
  if (reasons != nullptr) reasons->of_nodes.emplace_back(&node, absl::StrCat(parts...));
}
// A line about the whole program.
template <typename... Parts>
void NoteReason(Reasons* reasons, const Parts&... parts) {
  if (reasons != nullptr) reasons->of_program.push_back(absl::StrCat(parts...));
}

}  // namespace smelt

#endif  // SMELT_COMPILE_REASONS_H_
