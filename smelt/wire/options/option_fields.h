// The fields of ConverterOptions by name: what each means, and hints for those that there are not.
// Thread safe.
#ifndef SMELT_WIRE_OPTIONS_OPTION_FIELDS_H_
#define SMELT_WIRE_OPTIONS_OPTION_FIELDS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace smelt {

// A line for each field, in the order of the protos, with its allowed values and its default: of
// all fields for "", else of those of that name (or path, `batch_options.max_batch_size`) and of
// what is in them. NOT_FOUND with the nearest names; INTERNAL where the table of lines and the
// protos differ.
StatusOr<std::string> ExplainOptions(absl::string_view name);

// What a message of protobuf's text parser leaves out: the nearest field, the allowed values.
// Empty when there is nothing to add.
std::string OptionErrorHint(absl::string_view message);

}  // namespace smelt

#endif  // SMELT_WIRE_OPTIONS_OPTION_FIELDS_H_
