// Products of small matrices whose entries are vectors over tasks, in tiles that stay in registers.
#pragma once

#include "vectors.hpp"

namespace icl {

// A matrix by its first entry and the distances between rows and between columns, in entries.
template <class Entry>
struct Matrix {
  Entry* first;
  long row, column;
  Entry& operator()(long i, long j) const { return first[i * row + j * column]; }
  Matrix transposed() const { return {first, column, row}; }
  Matrix from_row(long i) const { return {first + i * row, row, column}; }
};

using Vectors = Matrix<vec>;
using Weights = Matrix<const real>;  // the same for all tasks

template <class Entry>
inline Entry& at(const void* first, long bytes) {
  return *reinterpret_cast<Entry*>(const_cast<char*>(static_cast<const char*>(first)) + bytes);
}

// Keeps a value in a register, where compilers would load it again for every use.
inline void hold(vec& value) {
#if defined(__SSE__)
  asm("" : "+x"(value));
#elif defined(__aarch64__)
  asm("" : "+w"(value));
#else
  (void)value;
#endif
}

// c [ROWS, COLUMNS] = a [ROWS, inner] b [inner, COLUMNS], or with `add` c plus that. Distances are in bytes, and the
// sums are written out, so that both stay in registers.
template <int ROWS, int COLUMNS, class Entry>
inline __attribute__((always_inline)) void tile(long inner, Vectors a, Matrix<Entry> b, Vectors c, bool add) {
  const long down = a.row * sizeof(vec), along = a.column * sizeof(vec);
  const long across = b.column * sizeof(Entry), below = b.row * sizeof(Entry);
  const char* left = reinterpret_cast<const char*>(a.first);
  const char* right = reinterpret_cast<const char*>(b.first);
  vec sums[ROWS][COLUMNS];
#pragma GCC unroll 4
  for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < COLUMNS; ++j) sums[i][j] = vec{};
#pragma GCC unroll 2
  for (long k = inner; k > 0; --k) {
    vec lefts[ROWS];
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; ++i) {
      lefts[i] = at<vec>(left, i * down);
      hold(lefts[i]);
    }
#pragma GCC unroll 4
    for (int j = 0; j < COLUMNS; ++j) {
      const auto factor = at<Entry>(right, j * across);
#pragma GCC unroll 4
      for (int i = 0; i < ROWS; ++i) sums[i][j] += lefts[i] * factor;
    }
    left += along;
    right += below;
  }
  if (add) {
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < COLUMNS; ++j) c(i, j) += sums[i][j];
  } else {
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < COLUMNS; ++j) c(i, j) = sums[i][j];
  }
}

// The next tile's side of what is left: never a full tile that leaves one row or column alone.
inline long side(long left, long most) { return left == most + 1 ? most - 1 : left < most ? left : most; }

template <int ROWS, class Entry>
void strip(long inner, long columns, Vectors a, Matrix<Entry> b, Vectors c, bool add) {
  while (columns > 0) {
    const long wide = side(columns, TILE_COLUMNS);
    switch (wide) {
      case 1: tile<ROWS, 1>(inner, a, b, c, add); break;
      case 2: tile<ROWS, 2>(inner, a, b, c, add); break;
      case 3: tile<ROWS, 3>(inner, a, b, c, add); break;
      default: tile<ROWS, 4>(inner, a, b, c, add);
    }
    b.first += wide * b.column;
    c.first += wide * c.column;
    columns -= wide;
  }
}

// c [rows, columns] = a [rows, inner] b [inner, columns], or with `add` c plus that.
template <class Entry>
void product(long rows, long inner, long columns, Vectors a, Matrix<Entry> b, Vectors c, bool add = false) {
  while (rows > 0) {
    const long high = side(rows, TILE_ROWS);
    switch (high) {
      case 1: strip<1>(inner, columns, a, b, c, add); break;
      case 2: strip<2>(inner, columns, a, b, c, add); break;
      case 3: strip<3>(inner, columns, a, b, c, add); break;
      default: strip<4>(inner, columns, a, b, c, add);
    }
    a.first += high * a.row;
    c.first += high * c.row;
    rows -= high;
  }
}

}  // namespace icl
