#include "smelt/runtime/compiled_region.h"

#include "smelt/base/team.h"
#include "smelt/runtime/sequential.h"

namespace smelt {

CompiledRegion::CompiledRegion(std::unique_ptr<Graph> body, std::string function)
    : body_(std::move(body)), function_(std::move(function)) {}

CompiledRegion::~CompiledRegion() = default;

void CompiledRegion::AppendKey(std::span<Tensor* const> args, std::vector<int64_t>* key) {
  key->push_back(Threads());
  for (const Tensor* t : args) {
    key->push_back(t->rank());
    key->insert(key->end(), t->shape().dims().begin(), t->shape().dims().end());
  }
}

const CompiledRegion::Entry* CompiledRegion::Find(std::span<Tensor* const> args) const {
  const int n = num_entries_.load(std::memory_order_acquire);
  for (int i = 0; i < n; ++i) {
    const std::vector<int64_t>& key = entries_[i]->key;
    if (key[0] != Threads()) continue;
    size_t at = 1;
    bool same = true;
    for (const Tensor* t : args) {
      const auto dims = t->shape().dims();
      same = key[at] == static_cast<int64_t>(dims.size()) &&
             std::equal(dims.begin(), dims.end(), key.begin() + static_cast<int64_t>(at) + 1);
      if (!same) break;
      at += 1 + dims.size();
    }
    if (same) return entries_[i].get();
  }
  return nullptr;
}

StatusOr<const CompiledRegion::Entry*> CompiledRegion::Make(std::span<Tensor* const> args) {
  absl::MutexLock lock(&mutex_);
  if (const Entry* made = Find(args)) return made;
  const int n = num_entries_.load(std::memory_order_relaxed);
  if (n == kMaxEntries) return nullptr;
  auto entry = std::make_unique<Entry>();
  AppendKey(args, &entry->key);
  std::vector<Shape> shapes;
  for (const Tensor* t : args) shapes.push_back(t->shape());
  auto program = Program::Compile(*body_, shapes, states_, function_);
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

StatusOr<Executable*> CompiledRegion::Plain() {
  absl::MutexLock lock(&mutex_);
  if (plain_ == nullptr) {
    ASSIGN_OR_RETURN(std::unique_ptr<Graph> copy, body_->Clone());
    ASSIGN_OR_RETURN(plain_, MakeSequential(std::move(copy), function_));
  }
  return plain_.get();
}

Status CompiledRegion::Run(std::span<Tensor* const> args, std::span<Tensor> results, Step& step,
                           StepStats* stats) {
  const Entry* entry = Find(args);
  if (entry == nullptr) {
    ASSIGN_OR_RETURN(entry, Make(args));
  }
  if (entry != nullptr && entry->program != nullptr) {
    return entry->program->Run(args, results, step, stats);
  }
  ASSIGN_OR_RETURN(Executable * plain, Plain());
  std::vector<Tensor> moved, out;
  for (const Tensor* t : args) moved.push_back(*t);
  RETURN_IF_ERROR(plain->Run(std::span<Tensor>(moved), &out, step, stats));
  std::move(out.begin(), out.end(), results.begin());
  return OkStatus();
}

}  // namespace smelt
