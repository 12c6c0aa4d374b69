#include "smelt/wire/proto/saved_model.pb.h"
#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {

std::vector<AssetFile> AssetsOf(const MetaGraph& meta) {
  if (!meta.assets.empty()) return meta.assets;
  std::vector<AssetFile> assets;
  auto it = meta.collections.find("saved_model_assets");
  if (it == meta.collections.end()) return assets;
  tensorflow::CollectionDef collection;
  if (!collection.ParseFromString(it->second.extra)) return assets;
  for (const auto& any : collection.any_list().value()) {
    tensorflow::AssetFileDef asset;
    if (any.UnpackTo(&asset)) {
      assets.push_back({asset.tensor_info().name(), asset.filename(), ""});
    }
  }
  return assets;
}

}  // namespace smelt
