// Numbers as bytes, the lowest first: how files and messages hold them.
#ifndef SMELT_BASE_LITTLE_ENDIAN_H_
#define SMELT_BASE_LITTLE_ENDIAN_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

namespace smelt {

static_assert(std::endian::native == std::endian::little);

// T: an integer or floating type. REQUIRES: sizeof(T) bytes at p.
template <typename T>
T LoadLittle(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
template <typename T>
void StoreLittle(T v, void* p) {
  std::memcpy(p, &v, sizeof(v));
}
template <typename T>
void AppendLittle(T v, std::string* out) {
  out->append(reinterpret_cast<const char*>(&v), sizeof(v));
}

// The same with the lowest n bytes of a number. REQUIRES: 0 <= n <= 8.
inline uint64_t LoadLittleBytes(const void* p, size_t n) {
  uint64_t v = 0;
  std::memcpy(&v, p, n);
  return v;
}
inline void AppendLittleBytes(uint64_t v, size_t n, std::string* out) {
  out->append(reinterpret_cast<const char*>(&v), n);
}

}  // namespace smelt

#endif  // SMELT_BASE_LITTLE_ENDIAN_H_
