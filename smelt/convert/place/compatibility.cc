// What a TPU cannot compile, found here instead of at the first request: ops without a compilation
// kernel, types that it does not hold, sizes that depend on values. With soft placement allowed,
// ops and types are only noted: they run on the host, from within the body.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "smelt/analysis/incompatible.h"
#include "smelt/convert/place/origin.h"
#include "smelt/convert/stages.h"
#include "smelt/wire/graph_def/debug_info.h"

namespace smelt {
namespace {

constexpr size_t kMaxListed = 20;

class CompatibilityReport {
 public:
  CompatibilityReport(Conversion& c, const DebugInfo& debug) : c_(c), debug_(debug) {}

  void Look(const TpuPlacement& p) {
    const Function& body = *c_.library().Find(p.body);
    for (const ArgDef& a : body.signature.inputs) LookAtTransfer(p, "argument", a);
    for (const ArgDef& r : body.signature.outputs) LookAtTransfer(p, "result", r);
    for (const Incompatible& i : FindIncompatible(*body.body, [](const Node*) { return true; })) {
      Add(p, i);
    }
  }

  Status Result() const {
    if (lines_.empty()) return OkStatus();
    std::string text = lines_[0];
    if (lines_.size() > 1) {
      text = absl::StrCat(lines_.size(), " things that a TPU cannot run:");
      for (size_t i = 0; i < lines_.size() && i < kMaxListed; ++i) {
        absl::StrAppend(&text, "\n  ", lines_[i]);
      }
      if (lines_.size() > kMaxListed) {
        absl::StrAppend(&text, "\n  ... and ", lines_.size() - kMaxListed, " more");
      }
    }
    absl::StrAppend(&text, "\n--auto_place finds the part that a TPU can run");
    if (soft_would_do_)
      absl::StrAppend(&text, "; --allow_soft_placement runs these ops on the CPU");
    return InvalidArgument(text);
  }

 private:
  void LookAtTransfer(const TpuPlacement& p, absl::string_view what, const ArgDef& a) {
    if (a.type != Dtype::kString && a.type != Dtype::kComplex128) return;
    Say({p.function, p.function, a.name}, "", "", true,
        absl::StrCat(what, " '", a.name, "' of function '", p.function, "' is a ",
                     DtypeName(a.type), ", which a TPU does not hold"));
  }

  void Add(const TpuPlacement& p, const Incompatible& i) {
    // Branches and loop bodies are copies whose names the user does not know: the path through the
    // original functions is shown.
    Origin o = OriginOf(c_.library(), *c_.library().Find(p.function), i.at->name());
    std::string line = i.text;
    std::string source = debug_.Line(o.node, o.function);
    if (!i.function.empty()) {
      const std::string original = OriginalName(p, i.function);
      const Function* f = c_.library().Find(original);
      if (f != nullptr) {
        const Origin inner = OriginOf(c_.library(), *f, i.node->name());
        absl::StrAppend(&o.path, " > ", inner.path);
        o.node = inner.node;
        o.function = inner.function;
        source = debug_.Line(o.node, o.function);
      }
    }
    if (source.empty()) source = debug_.Line(*i.node, o.function);
    absl::StrAppend(&line, " (node '", o.node, "' in function '", o.path, "'",
                    source.empty() ? "" : ", ", source, ")");
    if (i.kind == Incompatible::Kind::kDynamic) {
      c_.records.AddNote("compatibility", line, o.function, o.node);
      return;
    }
    Say(o, std::string(i.node->op()), source, i.soft(), line);
  }

  // Soft findings are notes where soft placement is allowed.
  void Say(const Origin& o, const std::string& op, const std::string& source, bool soft,
           const std::string& line) {
    if (!soft || !c_.settings.allow_soft_placement) {
      soft_would_do_ = lines_.empty() ? soft : soft_would_do_ && soft;
      lines_.push_back(line);
      return;
    }
    if (!op.empty()) c_.records.host_ops.push_back({o.function, o.node, op, source, line});
    c_.records.AddNote("compatibility", absl::StrCat("runs on the CPU: ", line), o.function,
                       o.node);
  }

  // Callees of a body are copies named ORIGINAL_on_tpu or ORIGINAL_on_tpu_N.
  std::string OriginalName(const TpuPlacement& p, const std::string& name) const {
    const size_t end = name.rfind("_on_tpu");
    return end == std::string::npos ? name : name.substr(0, end);
  }

  Conversion& c_;
  const DebugInfo& debug_;
  std::vector<std::string> lines_;
  bool soft_would_do_ = false;
};

}  // namespace

Status CheckCompatibility(Conversion& c) {
  ASSIGN_OR_RETURN(const DebugInfo debug, DebugInfo::Read(c.model.dir));
  CompatibilityReport report(c, debug);
  for (const TpuPlacement& p : c.placements) {
    if (!p.existing) report.Look(p);
  }
  return report.Result();
}

}  // namespace smelt
