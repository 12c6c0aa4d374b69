#include "smelt/kernels/step_stats.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "smelt/io/json_writer.h"

namespace smelt {

std::string StepStats::ChromeTrace() const {
  const std::vector<Event> events = this->events();
  int64_t origin = events.empty() ? 0 : events[0].start_ns;
  for (const Event& e : events) origin = std::min(origin, e.start_ns);
  const auto microseconds = [](int64_t ns) { return static_cast<double>(ns) / 1e3; };
  JsonLineWriter w;
  w.Object([&] {
    w.Field("displayTimeUnit", "ns");
    w.Objects("traceEvents", events, [&](const Event& e) {
      w.Field("ph", "X");
      w.Field("pid", 1);
      w.Field("tid", e.thread);
      w.Field("name", e.op);
      w.RealField("ts", microseconds(e.start_ns - origin));
      w.RealField("dur", microseconds(e.end_ns - e.start_ns));
      w.Object("args", [&] {
        w.Field("name", e.node);
        w.Field("kernel", e.kernel);
        w.Field("output_bytes", e.output_bytes);
      });
    });
  });
  return absl::StrCat(w.text(), "\n");
}

}  // namespace smelt
