#include <array>

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

// Made when the first node asks: rows of an op as a chain through one table, for there are
// thousands of rows and a process that answers once reads few of them.
class KernelIndex {
 public:
  using Rows = absl::InlinedVector<const Kernel*, 8>;

  KernelIndex() {
    size_t rows = 0;
    for (const auto& family : AllKernelFamilies()) rows += family.size();
    rows_.reserve(rows);
    for (const auto& family : AllKernelFamilies()) {
      for (const Kernel& k : family) Add(k, chains_[static_cast<size_t>(k.op.number())]);
    }
  }

  void AddOther(absl::string_view op, std::span<const Kernel> rows) {
    absl::MutexLock lock(&mutex_);
    for (const Kernel& k : rows) Add(k, others_[op]);
  }

  // Of its first version, then its own.
  Rows RowsOf(OpName op, absl::string_view text) {
    Rows rows;
    absl::MutexLock lock(&mutex_);
    if (op.unknown()) {
      const auto it = others_.find(text);
      if (it != others_.end()) Append(it->second, &rows);
      return rows;
    }
    const OpName first = FirstVersion(op);
    Append(chains_[static_cast<size_t>(first.number())], &rows);
    if (first != op) Append(chains_[static_cast<size_t>(op.number())], &rows);
    return rows;
  }

 private:
  static constexpr int kNone = -1;
  struct Chain {
    int first = kNone, last = kNone;
  };
  struct Row {
    const Kernel* kernel;
    int next;  // of the same op
  };

  void Add(const Kernel& k, Chain& chain) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto row = static_cast<int>(rows_.size());
    rows_.push_back({&k, kNone});
    (chain.last == kNone ? chain.first : rows_[static_cast<size_t>(chain.last)].next) = row;
    chain.last = row;
  }

  void Append(const Chain& chain, Rows* rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (int i = chain.first; i != kNone; i = rows_[static_cast<size_t>(i)].next) {
      rows->push_back(rows_[static_cast<size_t>(i)].kernel);
    }
  }

  absl::Mutex mutex_;
  std::vector<Row> rows_ ABSL_GUARDED_BY(mutex_);
  std::array<Chain, kNumOps> chains_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<absl::string_view, Chain> others_ ABSL_GUARDED_BY(mutex_);
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
  const KernelIndex::Rows rows = Index().RowsOf(OpName::Of(op), op);
  return {rows.begin(), rows.end()};
}

void AddKernels(absl::string_view op, std::span<const Kernel> rows) { Index().AddOther(op, rows); }

StatusOr<const Kernel*> FindKernel(const Node& node) {
  if (node.def() == nullptr) {
    return NotFound("Op type not registered '", node.op(), "' in binary running on this machine. ",
                    "Make sure the Op and Kernel are registered in the binary running in this ",
                    "process. (node '", node.name(), "')");
  }
  const KernelIndex::Rows rows = Index().RowsOf(node.op_name(), node.op());
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
