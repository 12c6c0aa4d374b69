#include "smelt/lite/input_shapes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace smelt {

StatusOr<PartialShape> InputPinner::Pin(const std::string& key, const std::string& tensor,
                                        const PartialShape& stated) {
  PartialShape shape = stated;
  const std::string node(absl::StripSuffix(tensor, ":0"));
  for (const std::string& name : {key, tensor, node, absl::StrCat(node, ":0")}) {
    const auto it = wanted_.by_name.find(name);
    if (it == wanted_.by_name.end()) continue;
    used_.insert(it->first);
    auto merged = PartialShape::Merge(shape, it->second);
    if (!merged.ok()) {
      return InvalidArgument("input '", key, "' has the shape ", stated.ToString(), ", which ",
                             it->second.ToString(), " contradicts");
    }
    shape = *merged;
    break;
  }
  if (wanted_.batch >= 0 && shape.rank() > 0 && shape[0] < 0) {
    std::vector<int64_t> sizes;
    for (int i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
    sizes[0] = wanted_.batch;
    batch_used_ = true;
    return PartialShape::Of(sizes);
  }
  return shape;
}

Status InputPinner::CheckAllUsed() const {
  for (const auto& [name, shape] : wanted_.by_name) {
    if (used_.contains(name)) continue;
    return InvalidArgument("no exported signature has the input '", name,
                           "', for which there is a shape");
  }
  if (wanted_.batch >= 0 && !batch_used_) {
    return InvalidArgument("no input has a free first size, for which there is a batch");
  }
  return OkStatus();
}

}  // namespace smelt
