// The page without its data, as the build puts it together (embed.py).
#ifndef SMELT_CLI_PAGE_PARTS_H_
#define SMELT_CLI_PAGE_PARTS_H_

#include "absl/strings/string_view.h"

namespace smelt {

extern const absl::string_view kPageBeforeData, kPageAfterData;

}  // namespace smelt

#endif  // SMELT_CLI_PAGE_PARTS_H_
