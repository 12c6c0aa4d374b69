#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <charconv>
#include <string>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "smelt/kernels/onednn/plan_cache.h"

namespace smelt::onednn {
namespace {

constexpr size_t kWorthDropping = 256 << 10;

std::string ReadMaps() {
  std::string text;
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char chunk[16384];
  for (ssize_t n; (n = read(fd, chunk, sizeof(chunk))) > 0;) text.append(chunk, n);
  close(fd);
  return text;
}

bool ParseHex(absl::string_view text, uint64_t* value) {
  const auto r = std::from_chars(text.data(), text.data() + text.size(), *value, 16);
  return r.ec == std::errc() && r.ptr == text.data() + text.size();
}

// Do the bytes lie in one mapping of a file that nobody here can write? Only then does dropping
// pages lose nothing. Asked of the system each time: what an address means may have changed.
bool IsReadOnlyFileMapping(uint64_t begin, uint64_t end) {
  const std::string maps = ReadMaps();
  for (absl::string_view line : absl::StrSplit(maps, '\n')) {
    // begin-end perms offset device inode path
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (fields.size() < 5) continue;
    const std::pair<absl::string_view, absl::string_view> range = absl::StrSplit(fields[0], '-');
    uint64_t from = 0, to = 0;
    if (!ParseHex(range.first, &from) || !ParseHex(range.second, &to)) continue;
    if (begin < from || begin >= to) continue;
    return end <= to && fields[1].substr(0, 2) == "r-" && fields[4] != "0";
  }
  return false;
}

}  // namespace

void DropResidentPages(const Tensor& t) {
  if (!t.buffer() || !t.buffer()->read_only() || t.bytes() < kWorthDropping) return;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uint64_t>(t.raw());
  const uint64_t first = (begin + page - 1) / page * page;
  const uint64_t last = (begin + t.bytes()) / page * page;
  if (first >= last || !IsReadOnlyFileMapping(first, last)) return;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace smelt::onednn
