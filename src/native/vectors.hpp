// Vectors of LANES numbers, one for each task of a block, and what is done to them.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__SSE__)
#include <immintrin.h>
#endif

namespace icl {

#ifdef ICL_DOUBLE  // for tests against finite differences
using real = double;
using whole = std::int64_t;
#else
using real = float;
using whole = std::int32_t;
#endif

#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64, TILE_ROWS = 4, TILE_COLUMNS = 4;  // 32 registers
#elif defined(__AVX__)
constexpr int VECTOR_BYTES = 32, TILE_ROWS = 3, TILE_COLUMNS = 4;  // 16 registers
#elif defined(__aarch64__)
constexpr int VECTOR_BYTES = 16, TILE_ROWS = 4, TILE_COLUMNS = 4;  // 32 registers
#else
constexpr int VECTOR_BYTES = 16, TILE_ROWS = 3, TILE_COLUMNS = 3;
#endif

constexpr int LANES = VECTOR_BYTES / sizeof(real);
typedef real vec __attribute__((vector_size(VECTOR_BYTES)));
typedef whole wholes __attribute__((vector_size(VECTOR_BYTES)));

typedef real loose_vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));

inline vec loaded(const real* from) { return *reinterpret_cast<const loose_vec*>(from); }
inline vec splat(real value) { return vec{} + value; }

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define ICL_SHUFFLES
#endif
#endif

#ifdef ICL_SHUFFLES
// a and b with the entries exchanged that lie HALF apart: entry j of a that has bit HALF, and j - HALF of b.
template <int HALF, int... J>
inline void exchange(vec& a, vec& b, std::integer_sequence<int, J...>) {
  const vec first = __builtin_shufflevector(a, b, (J & HALF ? LANES + J - HALF : J)...);
  b = __builtin_shufflevector(a, b, (J & HALF ? LANES + J : J + HALF)...);
  a = first;
}

template <int HALF>
inline void transpose_from(vec* square) {
  if constexpr (HALF < LANES) {
#pragma GCC unroll 16
    for (int i = 0; i < LANES; ++i)
      if (!(i & HALF)) exchange<HALF>(square[i], square[i + HALF], std::make_integer_sequence<int, LANES>());
    transpose_from<2 * HALF>(square);
  }
}
#endif

// LANES rows of LANES numbers, turned into columns.
inline void transpose(vec* square) {
#ifdef ICL_SHUFFLES
  transpose_from<1>(square);
#else
  for (int i = 0; i < LANES; ++i)
    for (int j = 0; j < i; ++j) {
      const real kept = square[i][j];
      square[i][j] = square[j][i];
      square[j][i] = kept;
    }
#endif
}

// A clip as XLA's: nan stays nan.
inline vec clipped(vec value, real bound) {
  const vec high = splat(bound), low = splat(-bound);
  value = value > high ? high : value;
  return value < low ? low : value;
}

// The gradient behind a clip, by the clipped value: 0 where it stands at the bound.
inline vec through_clip(vec gradient, vec value, real bound) {
  const vec none = {};
  gradient = value >= splat(bound) ? none : gradient;
  return value <= splat(-bound) ? none : gradient;
}

inline vec larger(vec a, vec b) { return (a > b) | (a != a) ? a : b; }  // nan stays, as in XLA's maximum

// e^x of x <= 0 or nan, within 2 units in the last place; 0 below the smallest normal number.
inline vec exponential(vec x) {
#ifdef ICL_DOUBLE
  vec result;
  for (int lane = 0; lane < LANES; ++lane) result[lane] = std::exp(x[lane]);
  return result;
#else
  const vec lowest = splat(-87.3365f);
  const vec held = x >= lowest ? x : lowest;             // nan is put back below
  const vec shifter = splat(12582912.0f);                // 1.5 * 2^23: adding it rounds to a whole number
  const vec rounded = (held * 1.44269504f + shifter) - shifter;
  const vec rest = (held - rounded * 0.693359375f) - rounded * -2.12194440e-4f;
  vec sum = splat(1.9875691500e-4f);
  sum = sum * rest + 1.3981999507e-3f;
  sum = sum * rest + 8.3334519073e-3f;
  sum = sum * rest + 4.1665795894e-2f;
  sum = sum * rest + 1.6666665459e-1f;
  sum = sum * rest + 5.0000001201e-1f;
  sum = sum * (rest * rest) + rest + 1.0f;
  const wholes power = (__builtin_convertvector(rounded, wholes) + 127) << 23;
  vec scale;
  std::memcpy(&scale, &power, sizeof scale);
  vec result = sum * scale;
  result = x < lowest ? vec{} : result;
  return x != x ? x : result;
#endif
}

// The sum over lanes, in one order.
inline real total(vec values) {
  real parts[LANES];
  std::memcpy(parts, &values, sizeof parts);
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) parts[lane] += parts[lane + half];
  return parts[0];
}

// Numbers below the smallest normal one are 0, as in XLA's programs, for as long as this lives.
class NoDenormals {
 public:
#if defined(__SSE__)
  NoDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
  ~NoDenormals() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#elif defined(__aarch64__)
  NoDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" ::"r"(before_ | (1ull << 24)));
  }
  ~NoDenormals() { asm volatile("msr fpcr, %0" ::"r"(before_)); }

 private:
  std::uint64_t before_;
#else
  NoDenormals() {}
#endif
};

}  // namespace icl
