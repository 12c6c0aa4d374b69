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

namespace {

std::vector<int64_t> KeyOf(std::span<const Shape* const> shapes) {
  std::vector<int64_t> key = {Threads()};
  for (const Shape* shape : shapes) {
    key.push_back(shape->rank());
    key.insert(key.end(), shape->dims().begin(), shape->dims().end());
  }
  return key;
}

std::vector<Shape> ShapesOf(const std::vector<int64_t>& key) {
  std::vector<Shape> shapes;
  for (size_t at = 1; at < key.size();) {
    const auto rank = static_cast<size_t>(key[at]);
    shapes.emplace_back(std::span(key).subspan(at + 1, rank));
    at += 1 + rank;
  }
  return shapes;
}

int64_t BytesOf(const PartedProgram& program) {
  int64_t bytes = 0;
  for (const PartedProgram::Stage& stage : program.stages()) {
    bytes += stage.program->plan().arena_bytes;
    if (stage.tail != nullptr) bytes += stage.tail->plan().arena_bytes;
  }
  return bytes;
}

}  // namespace

std::unique_ptr<CompiledBody::Entry> CompiledBody::Compile(std::vector<int64_t> key) {
  auto entry = std::make_unique<Entry>();
  entry->key = std::move(key);
  auto program = PartedProgram::Compile(*graph_, ShapesOf(entry->key), states_, function_, parts_);
  if (program.ok()) {
    entry->program = *std::move(program);
  } else {
    // Whatever is wrong, the nodes say it as they run.
    entry->why = std::string(program.status().message());
  }
  return entry;
}

StatusOr<const CompiledBody::Entry*> CompiledBody::Make(std::span<const Shape* const> shapes) {
  absl::MutexLock lock(&mutex_);
  if (const Entry* made = Find(shapes)) return made;
  const int n = num_entries_.load(std::memory_order_relaxed);
  if (n == kMaxEntries) return nullptr;
  entries_[n] = Compile(KeyOf(shapes));
  num_entries_.store(n + 1, std::memory_order_release);
  return entries_[n].get();
}

CompiledBody::Found CompiledBody::MakeRecent(std::span<const Shape* const> shapes) {
  std::vector<int64_t> key = KeyOf(shapes);
  std::shared_ptr<const Entry> entry = recent_.Find(key);
  if (entry == nullptr && recent_.IsWorthIt(key)) {
    absl::MutexLock lock(&mutex_);
    entry = recent_.Find(key);  // that another thread made meanwhile
    if (entry == nullptr) {
      entry = Compile(std::move(key));
      recent_.Keep(entry->key, entry, entry->program == nullptr ? 0 : BytesOf(*entry->program));
    }
  }
  if (entry == nullptr) return Found();
  const PartedProgram* program = entry->program.get();
  return Found{program, std::move(entry)};
}

StatusOr<CompiledBody::Found> CompiledBody::ProgramFor(std::span<const Shape* const> shapes) {
  const Entry* entry = Find(shapes);
  if (entry == nullptr && num_entries_.load(std::memory_order_acquire) < kMaxEntries) {
    ASSIGN_OR_RETURN(entry, Make(shapes));
  }
  if (entry == nullptr) return MakeRecent(shapes);
  return Found{entry->program.get(), nullptr};
}

// Of the decisions that were made for the entry: they are made once more.
Reasons CompiledBody::ReasonsOf(const Entry& entry) {
  Reasons reasons;
  const ScopedThreads team(static_cast<int>(entry.key[0]));
  absl::MutexLock lock(&mutex_);
  const auto again =
      PartedProgram::Compile(*graph_, ShapesOf(entry.key), states_, function_, parts_, &reasons);
  if (!again.ok()) reasons.of_program.emplace_back(again.status().message());
  return reasons;
}

CompiledBody::Entries CompiledBody::All() const {
  Entries all = {{}, recent_.All()};
  const int n = num_entries_.load(std::memory_order_acquire);
  for (int i = 0; i < n; ++i) all.first.push_back(entries_[i].get());
  for (const auto& entry : all.second) all.first.push_back(entry.get());
  return all;
}

void CompiledBody::Visit(ProgramVisitor visit) const {
  const Entries all = All();
  for (const Entry* entry : all.first) {
    if (entry->program == nullptr) continue;
    visit({function_, node_, *graph_, static_cast<int>(entry->key[0]), *entry->program});
  }
}

std::string CompiledBody::Text(bool reasons) {
  std::string text;
  const Entries all = All();
  for (const Entry* entry : all.first) text += TextOf(*entry, reasons);
  return text;
}

std::string CompiledBody::TextOf(const Entry& entry, bool reasons) {
  std::string text =
      absl::StrCat("for ", entry.key[0], entry.key[0] == 1 ? " thread," : " threads,");
  for (const Shape& shape : ShapesOf(entry.key)) absl::StrAppend(&text, " ", shape.ToString());
  if (entry.program == nullptr) {
    return absl::StrCat(text, ": node by node, as ", entry.why, "\n");
  }
  const auto parts_of = [](const PartedProgram::Stage& stage) {
    return stage.part > 0 ? absl::StrCat("in parts of ", stage.part, " rows") : "all rows at once";
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
