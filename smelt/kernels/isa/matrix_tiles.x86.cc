#include "smelt/kernels/isa/matrix_tiles.h"

#include <immintrin.h>

#include <algorithm>

#include "smelt/base/processor.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/isa/tile_division.x86.h"

#define SMELT_MATRIX                                                            \
  __attribute__((                                                               \
      target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-int8," \
             "amx-bf16")))
#define SMELT_MATRIX_INLINE SMELT_MATRIX __attribute__((always_inline)) inline

namespace smelt {
namespace {

constexpr int64_t kSide = kMatrixSide;
constexpr int64_t kLine = 64;

SMELT_MATRIX void Begin(int64_t used) {
  if (used == kMatrixStepBytes) {
    _tile_loadconfig(&kMatrixDivision);
    return;
  }
  TileDivision division = kMatrixDivision;
  division.bytes[4] = division.bytes[5] = static_cast<uint16_t>(used);
  division.rows[6] = division.rows[7] = static_cast<uint8_t>(used / 4);
  asm volatile("" : : "r"(&division) : "memory");
  _tile_loadconfig(&division);
}
SMELT_MATRIX void End() { _tile_release(); }

// The compiler knows nothing of what the registers read and write.
SMELT_MATRIX_INLINE void Fence() { asm volatile("" : : : "memory"); }

enum class Numbers : uint8_t { kSigned, kUnsigned, kBfloat16 };

// The names of registers are texts.
#define SMELT_DOT(sum, x, w)                        \
  do {                                              \
    if constexpr (N == Numbers::kSigned) {          \
      _tile_dpbssd(sum, x, w);                      \
    } else if constexpr (N == Numbers::kUnsigned) { \
      _tile_dpbusd(sum, x, w);                      \
    } else {                                        \
      _tile_dpbf16ps(sum, x, w);                    \
    }                                               \
  } while (false)

SMELT_MATRIX_INLINE __mmask32 MaskOf(int64_t columns) {
  return static_cast<__mmask32>(0xffffffffu >> (kMatrixColumns - columns));
}

enum class Added : uint8_t { kNothing, kAddend, kZero };

// What becomes of a pair of rows of int32 sums.
template <Added kAdded>
class FinishInt8 {
 public:
  using Sum = int32_t;
  SMELT_MATRIX_INLINE explicit FinishInt8(const Int8MatrixRun& run)
      : y_(static_cast<int8_t*>(run.y)),
        addend_(run.addend),
        scales_(run.scales),
        offset_(_mm512_set1_ps(run.offset)),
        addend_scale_(_mm512_set1_ps(run.addend_scale)),
        zero_(_mm512_set1_epi16(run.zero)),
        low_(_mm512_set1_epi8(run.low)),
        high_(_mm512_set1_epi8(run.high)),
        flip_(_mm512_set1_epi8(static_cast<char>(run.flip))),
        addend_flip_(_mm256_set1_epi8(static_cast<char>(run.addend_flip))) {}

  // Columns from `column` on, of which so many are written.
  SMELT_MATRIX_INLINE void Begin(int64_t column, int64_t count) {
    column_ = column;
    mask_ = MaskOf(count);
    scale0_ = _mm512_loadu_ps(scales_ + column);
    scale1_ = _mm512_loadu_ps(scales_ + column + kSide);
  }
  SMELT_MATRIX_INLINE void Pair(const Sum* sums, int64_t place0, int64_t place1) const {
    const __m512i row0 = Words(sums, place0), row1 = Words(sums + kMatrixColumns, place1);
    // Lanes hold 4 numbers of each half of both rows.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i bytes = _mm512_permutexvar_epi32(order, _mm512_packs_epi16(row0, row1));
    bytes = _mm512_min_epi8(_mm512_max_epi8(bytes, low_), high_);
    bytes = _mm512_xor_si512(bytes, flip_);
    Store(place0, _mm512_castsi512_si256(bytes));
    Store(place1, _mm512_extracti64x4_epi64(bytes, 1));
  }

 private:
  SMELT_MATRIX_INLINE __m512i Words(const Sum* sums, int64_t place) const {
    __m512 v0 = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sums)), scale0_, offset_);
    __m512 v1 =
        _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sums + kSide)), scale1_, offset_);
    if constexpr (kAdded == Added::kAddend) {
      if (place >= 0) {
        const __m256i x = _mm256_xor_si256(
            _mm256_maskz_loadu_epi8(mask_, addend_ + place + column_), addend_flip_);
        const __m128i x0 = _mm256_castsi256_si128(x), x1 = _mm256_extracti128_si256(x, 1);
        v0 = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(x0)), addend_scale_, v0);
        v1 = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(x1)), addend_scale_, v1);
      }
    }
    const __m512i words = _mm512_packs_epi32(_mm512_cvtps_epi32(v0), _mm512_cvtps_epi32(v1));
    return kAdded == Added::kZero ? _mm512_adds_epi16(words, zero_) : words;
  }
  SMELT_MATRIX_INLINE void Store(int64_t place, __m256i bytes) const {
    if (place < 0) return;
    if (mask_ == 0xffffffffu) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(y_ + place + column_), bytes);
    } else {
      _mm256_mask_storeu_epi8(y_ + place + column_, mask_, bytes);
    }
  }

  int8_t* const y_;
  const int8_t* const addend_;
  const float* const scales_;
  int64_t column_ = 0;
  __mmask32 mask_ = 0;
  __m512 scale0_, scale1_;
  const __m512 offset_, addend_scale_;
  const __m512i zero_, low_, high_, flip_;
  const __m256i addend_flip_;
};

// What becomes of a pair of rows of float sums.
template <bool kAdds>
class FinishBfloat16 {
 public:
  using Sum = float;
  SMELT_MATRIX_INLINE explicit FinishBfloat16(const Bfloat16MatrixRun& run)
      : y_(static_cast<uint16_t*>(run.y)),
        addend_(run.addend),
        low_(_mm512_set1_ps(run.low)),
        high_(_mm512_set1_ps(run.high)) {}

  // As FinishInt8's.
  SMELT_MATRIX_INLINE void Begin(int64_t column, int64_t count) {
    column_ = column;
    mask_ = MaskOf(count);
  }
  SMELT_MATRIX_INLINE void Pair(const Sum* sums, int64_t place0, int64_t place1) const {
    Row(sums, place0);
    Row(sums + kMatrixColumns, place1);
  }

 private:
  static SMELT_MATRIX_INLINE __m512 Widened(__m256i x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
  }
  SMELT_MATRIX_INLINE void Row(const Sum* sums, int64_t place) const {
    if (place < 0) return;
    __m512 v0 = _mm512_load_ps(sums), v1 = _mm512_load_ps(sums + kSide);
    if constexpr (kAdds) {
      const __m512i x = _mm512_maskz_loadu_epi16(mask_, addend_ + place + column_);
      v0 = _mm512_add_ps(v0, Widened(_mm512_castsi512_si256(x)));
      v1 = _mm512_add_ps(v1, Widened(_mm512_extracti64x4_epi64(x, 1)));
    }
    // Of a number and NaN the second is taken.
    v0 = _mm512_min_ps(high_, _mm512_max_ps(low_, v0));
    v1 = _mm512_min_ps(high_, _mm512_max_ps(low_, v1));
    const __m512i both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(v1, v0));
    if (mask_ == 0xffffffffu) {
      _mm512_storeu_si512(y_ + place + column_, both);
    } else {
      _mm512_mask_storeu_epi16(y_ + place + column_, mask_, both);
    }
  }

  uint16_t* const y_;
  const uint16_t* const addend_;
  int64_t column_ = 0;
  __mmask32 mask_ = 0;
  const __m512 low_, high_;
};

// Rows of sums that are finished some at a time, between what multiplies the next ones: both have
// registers and ports of their own.
template <typename Finish>
class Finishing {
 public:
  using Sum = typename Finish::Sum;
  template <typename Run>
  SMELT_MATRIX_INLINE explicit Finishing(const Run& run) : finish_(run) {}

  // Of columns from `column` on, in so many turns.
  SMELT_MATRIX_INLINE void Begin(const Sum* sums, const int64_t* places, int64_t rows,
                                 int64_t column, int64_t columns, int64_t turns) {
    finish_.Begin(column, columns);
    sums_ = sums;
    places_ = places;
    left_ = rows;
    of_turn_ = (rows / 2 + turns - 1) / turns;
  }
  SMELT_MATRIX_INLINE void Turn() {
    for (int64_t i = 0; i < of_turn_ && left_ > 1; ++i) Pair();
  }
  SMELT_MATRIX_INLINE void End() {
    while (left_ > 1) Pair();
    if (left_ == 1) finish_.Pair(sums_, places_[0], -1);
    left_ = 0;
  }

 private:
  SMELT_MATRIX_INLINE void Pair() {
    finish_.Pair(sums_, places_[0], places_[1]);
    sums_ += 2 * kMatrixColumns;
    places_ += 2;
    left_ -= 2;
  }

  Finish finish_;
  const Sum* sums_ = nullptr;
  const int64_t* places_ = nullptr;
  int64_t left_ = 0, of_turn_ = 0;
};

// Asks for the weights of the second step behind those at `w`: a register's lines come too fast for
// what processors foresee.
SMELT_MATRIX_INLINE void FetchWeights(const char* w) {
  constexpr int64_t kStepsAhead = 2;
#pragma GCC unroll 16
  for (int64_t at = 0; at < kMatrixStepWeights; at += kLine) {
    _mm_prefetch(w + kStepsAhead * kMatrixStepWeights + at, _MM_HINT_T0);
  }
}

// Asks the core's cache for what comes next, some lines a step.
class Fetching {
 public:
  SMELT_MATRIX_INLINE Fetching(const MatrixRun& run, int64_t steps)
      : at_(static_cast<const char*>(run.ahead)),
        end_(at_ + run.ahead_bytes),
        of_step_(steps == 0 ? 0 : (run.ahead_bytes / kLine + steps - 1) / steps * kLine) {}

  SMELT_MATRIX_INLINE void Step() {
    const char* const to = std::min(at_ + of_step_, end_);
    for (; at_ < to; at_ += kLine) _mm_prefetch(at_, _MM_HINT_T1);
  }

 private:
  const char* at_;
  const char* const end_;
  const int64_t of_step_;
};

// Products of a block of rows, whose sums begin and end in the registers 0 to 3.
template <Numbers N, typename Run>
class Multiplying {
 public:
  // fetches: no block of rows before this one has read the weights.
  SMELT_MATRIX_INLINE Multiplying(const Run& run, int64_t row, bool fetches)
      : run_(run),
        fetches_(fetches),
        x_(static_cast<const char*>(run.x) + row * run.x_step),
        tile_(kSide * run.x_step) {}

  // 32 rows, or 16 where not `two`, times 32 columns, or 16 where not `wide`; other.Turn() goes in
  // between, three times a step.
  template <typename Sum, typename Other>
  SMELT_MATRIX_INLINE void Square(const char* w, const char* second, const Sum* start, bool two,
                                  bool wide, Other& other, Fetching& ahead) const {
    Fence();
    _tile_loadd(0, start, 0);
    _tile_loadd(1, start + kSide, 0);
    _tile_loadd(2, start, 0);
    _tile_loadd(3, start + kSide, 0);
    for (int64_t s = 0; s < run_.num_segments; ++s) {
      const int64_t end = run_.segments[s] + run_.steps * kMatrixStepBytes;
      for (int64_t at = run_.segments[s]; at < end; at += kMatrixStepBytes) {
        _tile_loadd(6, w, kLine);
        _tile_loadd(4, x_ + at, run_.x_step);
        SMELT_DOT(0, 4, 6);
        if (fetches_) FetchWeights(w);
        other.Turn();
        if (wide) {
          _tile_loadd(7, second, kLine);
          if (fetches_) FetchWeights(second);
          SMELT_DOT(1, 4, 7);
        }
        other.Turn();
        if (two) {
          _tile_loadd(5, x_ + tile_ + at, run_.x_step);
          SMELT_DOT(2, 5, 6);
          if (wide) SMELT_DOT(3, 5, 7);
        }
        ahead.Step();
        other.Turn();
        w += kMatrixStepWeights;
        second += kMatrixStepWeights;
      }
    }
    Fence();
  }
  // 64 rows, or 48, times 16 columns, so that weights are read once.
  template <typename Sum, typename Other>
  SMELT_MATRIX_INLINE void Tall(const char* w, const Sum* start, bool four, Other& other,
                                Fetching& ahead) const {
    Fence();
    _tile_loadd(0, start, 0);
    _tile_loadd(1, start, 0);
    _tile_loadd(2, start, 0);
    _tile_loadd(3, start, 0);
    for (int64_t s = 0; s < run_.num_segments; ++s) {
      const int64_t end = run_.segments[s] + run_.steps * kMatrixStepBytes;
      for (int64_t at = run_.segments[s]; at < end; at += kMatrixStepBytes) {
        const char* x = x_ + at;
        _tile_loadd(6, w, kLine);
        _tile_loadd(4, x, run_.x_step);
        SMELT_DOT(0, 4, 6);
        if (fetches_) FetchWeights(w);
        other.Turn();
        _tile_loadd(5, x + tile_, run_.x_step);
        SMELT_DOT(1, 5, 6);
        other.Turn();
        _tile_loadd(4, x + 2 * tile_, run_.x_step);
        SMELT_DOT(2, 4, 6);
        if (four) {
          _tile_loadd(5, x + 3 * tile_, run_.x_step);
          SMELT_DOT(3, 5, 6);
        }
        ahead.Step();
        other.Turn();
        w += kMatrixStepWeights;
      }
    }
    Fence();
  }

 private:
  const Run& run_;
  const bool fetches_;
  const char* const x_;
  const int64_t tile_;  // bytes of as many rows as a register has
};

// Two blocks of sums: while one is multiplied, the other is finished.
template <Numbers N, typename Finish, typename Run>
SMELT_MATRIX void RunPanels(const Run& run) {
  using Sum = typename Finish::Sum;
  constexpr int64_t kRow = kMatrixColumns * sizeof(Sum), kTile = kSide * kMatrixColumns;
  alignas(kLine) Sum sums[2][kMatrixRows][kMatrixColumns];
  Finishing<Finish> other(run);
  const int64_t steps = run.num_segments * run.steps, panel = steps * kMatrixStepWeights;
  const bool tall = run.rows > 2 * kSide && run.rows <= kMatrixRows;
  const int64_t rows = tall ? kMatrixRows : 2 * kSide;
  const int64_t turns = (tall ? 6 : 3) * steps + 4;
  const int64_t blocks = (run.rows + rows - 1) / rows;
  Fetching ahead(run, blocks * ((run.columns + kSide - 1) / (tall ? kSide : 2 * kSide)) * steps);
  int block = 0;
  for (int64_t row = 0; row < run.rows; row += rows) {
    const int64_t left = run.rows - row;
    // The last ones again with some before them, rather than what lies behind them.
    const int64_t again = run.rows > kMatrixRows ? std::max<int64_t>(rows - left, 0) : 0;
    const Multiplying<N, Run> products(run, row - again, row == 0);
    const char* w = static_cast<const char*>(run.weights);
    for (int64_t column = 0; column < run.columns; column += kMatrixColumns, block ^= 1) {
      const bool wide = run.columns - column > kSide;
      const Sum* start = run.start + column;
      Sum* const to = sums[block][0];
      if (tall) {
        const bool four = left > 3 * kSide;
        for (int64_t half = 0; half < (wide ? kMatrixColumns : kSide); half += kSide) {
          products.Tall(w + half / kSide * panel, start + half, four, other, ahead);
          _tile_stored(0, to + half, kRow);
          _tile_stored(1, to + kTile + half, kRow);
          other.Turn();
          _tile_stored(2, to + 2 * kTile + half, kRow);
          if (four) _tile_stored(3, to + 3 * kTile + half, kRow);
          other.Turn();
        }
      } else {
        const bool two = left + again > kSide;
        products.Square(w, w + panel, start, two, wide, other, ahead);
        _tile_stored(0, to, kRow);
        other.Turn();
        if (wide) _tile_stored(1, to + kSide, kRow);
        other.Turn();
        if (two) _tile_stored(2, to + kTile, kRow);
        other.Turn();
        if (two && wide) _tile_stored(3, to + kTile + kSide, kRow);
      }
      other.End();
      Fence();
      other.Begin(to + again * kMatrixColumns, run.places + row, std::min(rows, left), column,
                  std::min(kMatrixColumns, run.columns - column), turns);
      w += 2 * panel;
    }
  }
  other.End();
}

template <Numbers N>
SMELT_MATRIX void RunInt8Of(const Int8MatrixRun& run) {
  run.addend != nullptr ? RunPanels<N, FinishInt8<Added::kAddend>>(run)
  : run.zero != 0       ? RunPanels<N, FinishInt8<Added::kZero>>(run)
                        : RunPanels<N, FinishInt8<Added::kNothing>>(run);
}
SMELT_MATRIX void RunInt8(const Int8MatrixRun& run) {
  run.x_unsigned ? RunInt8Of<Numbers::kUnsigned>(run) : RunInt8Of<Numbers::kSigned>(run);
}
SMELT_MATRIX void RunBfloat16(const Bfloat16MatrixRun& run) {
  run.addend != nullptr ? RunPanels<Numbers::kBfloat16, FinishBfloat16<true>>(run)
                        : RunPanels<Numbers::kBfloat16, FinishBfloat16<false>>(run);
}

SMELT_MATRIX_INLINE __mmask64 FirstBytes(int64_t n) {
  return n >= kLine ? ~__mmask64{0} : (__mmask64{1} << n) - 1;
}

// Of lines of less than 64 bytes where kShort.
template <bool kShort>
SMELT_MATRIX void CopyLines(const WindowLines& c) {
  const auto* from = static_cast<const char*>(c.from);
  auto* to = static_cast<char*>(c.to);
  const __mmask64 rest = FirstBytes(c.bytes % kLine);
  for (int64_t w = 0; w < c.windows; ++w, from += c.from_window, to += c.to_window) {
    const char* line = from;
    char* at = to;
    for (int64_t l = 0; l < c.lines; ++l, line += c.from_line, at += c.bytes) {
      int64_t i = 0;
      for (; !kShort && i + kLine <= c.bytes; i += kLine) {
        _mm512_storeu_si512(at + i, _mm512_loadu_si512(line + i));
      }
      _mm512_mask_storeu_epi8(at + i, rest, _mm512_maskz_loadu_epi8(rest, line + i));
    }
    for (int64_t i = 0; i < c.zeros; i += kLine) {
      _mm512_mask_storeu_epi8(at + i, FirstBytes(c.zeros - i), _mm512_setzero_si512());
    }
  }
}
SMELT_MATRIX void CopyWindows(const WindowLines& c) {
  c.bytes < kLine ? CopyLines<true>(c) : CopyLines<false>(c);
}

}  // namespace

const MatrixTiles& IsaMatrixTiles() {
  static const MatrixTiles tiles = [] {
    MatrixTiles t;
    if (Isa().level != IsaLevel::kAvx512) return t;
    t.begin = Begin;
    t.end = End;
    t.copy_windows = CopyWindows;
    if (CpuHas(CpuFeature::kTilesOfBytes)) t.run_int8 = RunInt8;
    if (CpuHas(CpuFeature::kTilesOfBfloat16) && CpuHas(CpuFeature::kDotBfloat16)) {
      t.run_bfloat16 = RunBfloat16;
    }
    return t;
  }();
  return tiles;
}

}  // namespace smelt
