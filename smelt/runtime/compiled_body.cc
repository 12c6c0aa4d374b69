#include "smelt/runtime/compiled_body.h"

#include "smelt/base/team.h"
#include "smelt/runtime/sequential.h"

namespace smelt {

CompiledBody::CompiledBody(const Node& node, std::unique_ptr<Graph> graph, std::string function,
                           PartsWanted parts)
    : node_(node), graph_(std::move(graph)), function_(std::move(function)), parts_(parts) {}

CompiledBody::~CompiledBody() = default;

const CompiledBody::Entry* CompiledBody::Find(std::span<const Shape* const> shapes) const {
  const int n = num_entries_.load(std::memory_order_acquire);
  for (int i = 0; i < n; ++i) {
    const std::vector<int64_t>& key = entries_[i]->key;
    if (key[0] != Threads()) continue;
    size_t at = 1;
    bool same = true;
    for (const Shape* shape : shapes) {
      const auto dims = shape->dims();
      same = key[at] == static_cast<int64_t>(dims.size()) &&
             std::equal(dims.begin(), dims.end(), key.begin() + static_cast<int64_t>(at) + 1);
      if (!same) break;
      at += 1 + dims.size();
    }
    if (same) return entries_[i].get();
  }
  return nullptr;
}

StatusOr<const CompiledBody::Entry*> CompiledBody::Make(std::span<const Shape* const> shapes) {
  absl::MutexLock lock(&mutex_);
  if (const Entry* made = Find(shapes)) return made;
  const int n = num_entries_.load(std::memory_order_relaxed);
  if (n == kMaxEntries) return nullptr;
  auto entry = std::make_unique<Entry>();
  entry->key.push_back(Threads());
  std::vector<Shape> args;
  for (const Shape* shape : shapes) {
    entry->key.push_back(shape->rank());
    entry->key.insert(entry->key.end(), shape->dims().begin(), shape->dims().end());
    args.push_back(*shape);
  }
  auto program = PartedProgram::Compile(*graph_, args, states_, function_, parts_);
  if (program.ok()) {
    entry->program = *std::move(program);
  } else {
    // Whatever is wrong, the nodes say it as they run.
    entry->why = std::string(program.status().message());
  }
  entries_[n] = std::move(entry);
  num_entries_.store(n + 1, std::memory_order_release);
  return entries_[n].get();
}

StatusOr<const PartedProgram*> CompiledBody::ProgramFor(std::span<const Shape* const> shapes) {
  const Entry* entry = Find(shapes);
  if (entry == nullptr) {
    ASSIGN_OR_RETURN(entry, Make(shapes));
  }
  return entry == nullptr ? nullptr : entry->program.get();
}

// Of the decisions that were made for the entry: they are made once more.
Reasons CompiledBody::ReasonsOf(const Entry& entry) {
  std::vector<Shape> args;
  for (size_t at = 1; at < entry.key.size();) {
    const auto rank = static_cast<size_t>(entry.key[at]);
    args.emplace_back(std::span(entry.key).subspan(at + 1, rank));
    at += 1 + rank;
  }
  Reasons reasons;
  const ScopedThreads team(static_cast<int>(entry.key[0]));
  absl::MutexLock lock(&mutex_);
  const auto again = PartedProgram::Compile(*graph_, args, states_, function_, parts_, &reasons);
  if (!again.ok()) reasons.of_program.emplace_back(again.status().message());
  return reasons;
}

void CompiledBody::Visit(ProgramVisitor visit) const {
  const int n = num_entries_.load(std::memory_order_acquire);
  for (int i = 0; i < n; ++i) {
    if (entries_[i]->program == nullptr) continue;
    visit(
        {function_, node_, *graph_, static_cast<int>(entries_[i]->key[0]), *entries_[i]->program});
  }
}

std::string CompiledBody::Text(bool reasons) {
  std::string text;
  const int n = num_entries_.load(std::memory_order_acquire);
  for (int i = 0; i < n; ++i) {
    const Entry& entry = *entries_[i];
    absl::StrAppend(&text, "for ", entry.key[0], entry.key[0] == 1 ? " thread" : " threads", ",");
    for (size_t at = 1; at < entry.key.size();) {
      const auto rank = static_cast<size_t>(entry.key[at]);
      absl::StrAppend(&text, " ", Shape(std::span(entry.key).subspan(at + 1, rank)).ToString());
      at += 1 + rank;
    }
    if (entry.program == nullptr) {
      absl::StrAppend(&text, ": node by node, as ", entry.why, "\n");
      continue;
    }
    const auto parts_of = [](const PartedProgram::Stage& stage) {
      return stage.part > 0 ? absl::StrCat("in parts of ", stage.part, " rows")
                            : "all rows at once";
    };
    const auto stages = entry.program->stages();
    const bool many = stages.size() > 1;
    absl::StrAppend(&text,
                    many                 ? absl::StrCat(", in ", stages.size(), " stages")
                    : stages[0].part > 0 ? absl::StrCat(", ", parts_of(stages[0]))
                                         : "",
                    ":\n");
    const Reasons why = reasons ? ReasonsOf(entry) : Reasons();
    for (const std::string& line : why.of_program) absl::StrAppend(&text, "  ", line, "\n");
    for (const PartedProgram::Stage& stage : stages) {
      if (many) {
        absl::StrAppend(&text, &stage == stages.data() ? "first, " : "then, ", parts_of(stage),
                        ":\n");
      }
      text += PlanText(stage.program->plan(), &why);
    }
  }
  return text;
}

StatusOr<Executable*> CompiledBody::Plain() {
  absl::MutexLock lock(&mutex_);
  if (plain_ == nullptr) {
    ASSIGN_OR_RETURN(std::unique_ptr<Graph> copy, graph_->Clone());
    ASSIGN_OR_RETURN(plain_, MakeSequential(std::move(copy), function_));
  }
  return plain_.get();
}

}  // namespace smelt
