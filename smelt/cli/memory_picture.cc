#include "smelt/cli/memory_picture.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "smelt/cli/svg.h"
#include "smelt/compile/plan.h"

namespace smelt {
namespace {

constexpr double kPictureWidth = 1000, kPictureHeight = 320, kMargin = 30;

std::string OnePlan(const smelt::Plan& plan, const std::string& title, double top) {
  const std::vector<Lifetime> lives = Lifetimes(plan);
  const double step = kPictureWidth / static_cast<double>(plan.actions.size());
  const double unit = kPictureHeight / static_cast<double>(plan.scratch_offset);
  std::string svg;
  absl::StrAppendFormat(&svg, "<text x=\"%g\" y=\"%g\">%s</text>\n", kMargin, top + 18,
                        SvgText(title));
  const double base = top + kMargin + kPictureHeight;
  absl::StrAppendFormat(
      &svg, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"none\" stroke=\"#999\"/>\n",
      kMargin, top + kMargin, kPictureWidth, kPictureHeight);
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const PlanValue& value = plan.values[v];
    if (value.offset < 0 || value.same_as >= 0) continue;
    const double height = static_cast<double>(value.bytes()) * unit;
    const double x = kMargin + lives[v].first * step;
    const double width = (lives[v].last - lives[v].first + 1) * step;
    absl::StrAppendFormat(
        &svg,
        "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"hsl(%d,60%%,70%%)\" "
        "stroke=\"#333\" stroke-width=\"0.5\"><title>%s</title></rect>\n",
        x, base - static_cast<double>(value.offset) * unit - height, width, height,
        static_cast<int>(v * 47 % 360),
        SvgText(absl::StrFormat("%s %s%s, %d bytes at %d, actions %d to %d", EndpointName(value.of),
                                DtypeName(value.dtype), value.shape.ToString(), value.bytes(),
                                value.offset, lives[v].first, lives[v].last)));
  }
  return svg;
}

}  // namespace

std::string MemorySvg(Session& session) {
  std::string plans;
  double top = 0;
  session.VisitPrograms([&](const VisitedProgram& p) {
    const auto stages = p.program.stages();
    for (size_t i = 0; i < stages.size(); ++i) {
      const smelt::Plan& plan = stages[i].program->plan();
      if (plan.scratch_offset == 0) continue;
      std::string title =
          absl::StrFormat("%s%s: %d actions, arena %d bytes, at least %d", p.node.name(),
                          p.function.empty() ? "" : " of " + p.function, plan.actions.size(),
                          plan.scratch_offset, LeastArena(plan));
      if (stages.size() > 1) absl::StrAppend(&title, ", stage ", i + 1, " of ", stages.size());
      if (stages[i].part > 0) absl::StrAppend(&title, ", ", stages[i].part, " rows at a time");
      plans += OnePlan(plan, title, top);
      top += kPictureHeight + 2 * kMargin;
    }
  });
  if (plans.empty()) {
    plans = "<text x=\"30\" y=\"18\">No program has an arena.</text>\n";
    top = kMargin;
  }
  return SvgDocument(kPictureWidth + 2 * kMargin, top, plans);
}

}  // namespace smelt
