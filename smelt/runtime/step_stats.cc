#include "smelt/runtime/step_stats.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace smelt {
namespace {

void AppendJsonString(std::string* out, absl::string_view s) {
  out->push_back('"');
  for (char c : s) {
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(out, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

}  // namespace

std::string StepStats::ChromeTrace() const {
  const std::vector<Event> events = this->events();
  int64_t origin = events.empty() ? 0 : events[0].start_ns;
  for (const Event& e : events) origin = std::min(origin, e.start_ns);
  std::string out = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& e = events[i];
    absl::StrAppend(&out, "{\"ph\": \"X\", \"pid\": 1, \"tid\": ", e.thread, ", \"name\": ");
    AppendJsonString(&out, e.op);
    absl::StrAppendFormat(&out, ", \"ts\": %.3f, \"dur\": %.3f, \"args\": {\"name\": ",
                          static_cast<double>(e.start_ns - origin) / 1e3,
                          static_cast<double>(e.end_ns - e.start_ns) / 1e3);
    AppendJsonString(&out, e.node);
    absl::StrAppend(&out, ", \"kernel\": ");
    AppendJsonString(&out, e.kernel);
    absl::StrAppend(&out, ", \"output_bytes\": ", e.output_bytes, "}}",
                    i + 1 < events.size() ? ",\n" : "\n");
  }
  return out + "]}\n";
}

}  // namespace smelt
