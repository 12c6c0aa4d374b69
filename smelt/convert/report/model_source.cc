// Which model a report is about.
#include <algorithm>

#include "smelt/convert/report/report_data.h"
#include "smelt/io/fs.h"
#include "smelt/io/sha256.h"

namespace smelt {

StatusOr<ReportModel> DescribeModel(const std::string& path, const ModelFolder& folder,
                                    const MetaGraph& meta) {
  ReportModel model;
  model.path = path;
  model.version = folder.version();
  model.tags = meta.tags;
  model.tensorflow_version = meta.tensorflow_version;
  std::vector<std::string> names = {"saved_model.pb", "saved_model.pbtxt"};
  if (IsDir(JoinPath(folder.dir(), "variables"))) {
    ASSIGN_OR_RETURN(const std::vector<std::string> inside,
                     ListDir(JoinPath(folder.dir(), "variables")));
    for (const std::string& name : inside) names.push_back(JoinPath("variables", name));
  }
  std::string sums;
  for (const std::string& name : names) {
    const std::string file = JoinPath(folder.dir(), name);
    if (!Exists(file) || IsDir(file)) continue;
    ASSIGN_OR_RETURN(const std::string sum, Sha256OfFile(file));
    model.files.push_back({name, sum});
    absl::StrAppend(&sums, sum, "  ", name, "\n");
  }
  model.sha256 = Sha256(sums);
  return model;
}

}  // namespace smelt
