#include "smelt/kernels/step_stats.h"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "smelt/io/json_writer.h"

namespace smelt {

void StepStats::Add(const Node& node, absl::string_view kernel, int64_t start_ns,
                    int64_t output_bytes, const void* what) {
  const int64_t end_ns = absl::GetCurrentTimeNanos();
  const uint64_t thread = std::hash<std::thread::id>{}(std::this_thread::get_id()) & 0xffff;
  absl::MutexLock lock(&mutex_);
  events_.push_back({node.name(), std::string(node.op()), kernel, start_ns, end_ns, thread,
                     output_bytes, what != nullptr ? what : &node});
}

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
