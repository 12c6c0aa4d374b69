// RewriterConfig, as users write it in protobuf text format, in smelt's own types.
#ifndef SMELT_WIRE_OPTIONS_REWRITER_OPTIONS_H_
#define SMELT_WIRE_OPTIONS_REWRITER_OPTIONS_H_

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"
#include "smelt/graph/rewriter_config.h"

namespace smelt {

// Text of a RewriterConfig, or of a ConfigProto, whose graph_options.rewrite_options it is.
// INVALID_ARGUMENT with line and column for what does not parse; the nearest field or the allowed
// values are named. Thread safe.
StatusOr<RewriterConfig> ParseRewriterConfig(absl::string_view text);
// A serialized ConfigProto, as a session is given. INVALID_ARGUMENT when it does not parse.
StatusOr<RewriterConfig> RewriterConfigOfSession(absl::string_view config_proto);

}  // namespace smelt

#endif  // SMELT_WIRE_OPTIONS_REWRITER_OPTIONS_H_
