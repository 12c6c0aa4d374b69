#include "smelt/model/variables_ahead.h"

#include "smelt/base/team.h"
#include "smelt/base/thread.h"
#include "smelt/model/model_folder.h"
#include "smelt/wire/bundle/shared_bundle.h"

namespace smelt {

VariablesAhead::VariablesAhead(const std::string& dir, const SessionOptions& options,
                               int64_t soon) {
  const bool alone = options.threads == 1 || NumCores() == 1;
  if (dir.empty() || (alone && soon > 0)) return;
  auto reader =
      OpenSharedBundle(dir + "/variables/variables", options.files.With(FoldersOfModel(dir)));
  if (!reader.ok()) return;
  reader_ = *std::move(reader);
  reader_->LeavePages(soon);
  if (soon == 0) reader_->SpareMemory();
  if (alone) return;
  auto thread = StartThread<std::jthread>(
      [this](const std::stop_token& stop) { reader_->VerifyAhead(stop); });
  if (thread.ok()) thread_ = *std::move(thread);
}

VariablesAhead::~VariablesAhead() {
  thread_ = {};
  if (reader_ != nullptr) reader_->DropUnread();
}

}  // namespace smelt
