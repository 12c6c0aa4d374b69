#include <algorithm>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "smelt/graph/op_facts.h"
#include "smelt/kernels/all.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

// Made when the first node asks: one table, and rows of an op as a chain through another, for there
// are thousands of rows and a process that answers once reads few of them.
class KernelIndex {
 public:
  using Rows = absl::InlinedVector<const Kernel*, 8>;

  KernelIndex() {
    size_t rows = 0;
    for (const auto& family : AllKernelFamilies()) rows += family.size();
    by_op_.reserve(rows);
    rows_.reserve(rows);
    for (const auto& family : AllKernelFamilies()) Add(family);
  }

  void Add(std::span<const Kernel> family) {
    absl::MutexLock lock(&mutex_);
    for (const Kernel& k : family) {
      const auto row = static_cast<int>(rows_.size());
      rows_.push_back({&k, kNone});
      const auto [it, first] = by_op_.try_emplace(k.op, Chain{row, row});
      if (first) continue;
      rows_[static_cast<size_t>(it->second.last)].next = row;
      it->second.last = row;
    }
  }

  // Of its first version, then its own.
  Rows RowsOf(absl::string_view op) {
    absl::MutexLock lock(&mutex_);
    Rows rows;
    const absl::string_view first = FirstVersion(op);
    Append(first, &rows);
    if (first != op) Append(op, &rows);
    return rows;
  }

 private:
  static constexpr int kNone = -1;
  struct Chain {
    int first, last;
  };
  struct Row {
    const Kernel* kernel;
    int next;  // of the same op
  };

  void Append(absl::string_view op, Rows* rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto it = by_op_.find(op);
    if (it == by_op_.end()) return;
    for (int i = it->second.first; i != kNone; i = rows_[static_cast<size_t>(i)].next) {
      rows->push_back(rows_[static_cast<size_t>(i)].kernel);
    }
  }

  absl::Mutex mutex_;
  absl::flat_hash_map<absl::string_view, Chain> by_op_ ABSL_GUARDED_BY(mutex_);
  std::vector<Row> rows_ ABSL_GUARDED_BY(mutex_);
};

KernelIndex& Index() {
  static auto* index = new KernelIndex;
  return *index;
}

std::string WhyNot(const Kernel& k, const Node& node) {
  if (!k.type_attr.empty()) {
    const Dtype t = node.Type(k.type_attr);
    if (!Has(k.types, t)) {
      return absl::StrCat("does not take ", k.type_attr, "=", DtypeName(t));
    }
  }
  return k.decline ? k.decline(node) : std::string();
}

}  // namespace

std::vector<const Kernel*> KernelsOf(absl::string_view op) {
  const KernelIndex::Rows rows = Index().RowsOf(op);
  return {rows.begin(), rows.end()};
}

void AddKernels(std::span<const Kernel> rows) { Index().Add(rows); }

StatusOr<const Kernel*> FindKernel(const Node& node) {
  if (node.def() == nullptr) {
    return NotFound("Op type not registered '", node.op(), "' in binary running on this machine. ",
                    "Make sure the Op and Kernel are registered in the binary running in this ",
                    "process. (node '", node.name(), "')");
  }
  const KernelIndex::Rows rows = Index().RowsOf(node.op());
  std::vector<std::string> reasons;
  for (const Kernel* k : rows) {
    std::string why = WhyNot(*k, node);
    if (why.empty()) return k;
    reasons.push_back(absl::StrCat(k->name, " ", why));
  }
  return NotFound("No OpKernel was registered to support Op '", node.op(), "' used by node '",
                  node.name(), "'. Registered devices: [CPU], Registered kernels: ",
                  reasons.empty() ? "<no registered kernels>" : absl::StrJoin(reasons, "; "));
}

}  // namespace smelt
