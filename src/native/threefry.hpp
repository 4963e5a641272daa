// Random 32-bit words and uniform numbers, those of src/prng.py to the bit: Threefry-2x32 with 20 rounds.
#pragma once

#include <cstdint>
#include <cstring>

namespace icl {

struct Key {
  std::uint32_t first, second;
};

inline std::uint32_t turned(std::uint32_t word, int by) { return (word << by) | (word >> (32 - by)); }

// The words of the block (0, low).
inline void encrypt(Key key, std::uint32_t low, std::uint32_t& a, std::uint32_t& b) {
  constexpr int TURNS[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const std::uint32_t schedule[3] = {key.first, key.second, key.first ^ key.second ^ 0x1BD11BDAu};
  a = schedule[0];
  b = low + schedule[1];
#pragma GCC unroll 5
  for (unsigned four = 0; four < 5; ++four) {
#pragma GCC unroll 4
    for (int round = 0; round < 4; ++round) {
      a += b;
      b = turned(b, TURNS[four % 2][round]) ^ a;
    }
    a += schedule[(four + 1) % 3];
    b += schedule[(four + 2) % 3] + four + 1;
  }
}

struct Word {
  using Made = std::uint32_t;
  static Made of(std::uint32_t word) { return word; }
};

struct Unit {  // a number in [0, 1) of the upper 23 bits, as jax.random.uniform makes it
  using Made = float;
  static Made of(std::uint32_t word) {
    const std::uint32_t bits = (word >> 9) | 0x3F800000u;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value - 1.0f;
  }
};

// `size` numbers are the first words of all (size + 1) / 2 blocks, then the second ones. Makes those of the blocks
// begin..end-1.
template <class What>
void fill(Key key, std::uint64_t size, std::uint64_t begin, std::uint64_t end, typename What::Made* made) {
  const std::uint64_t blocks = (size + 1) / 2, whole = end < size - blocks ? end : size - blocks;
  typename What::Made* second = made + blocks;
  for (std::uint64_t number = begin; number < whole; ++number) {
    std::uint32_t a, b;
    encrypt(key, std::uint32_t(number), a, b);
    made[number] = What::of(a);
    second[number] = What::of(b);
  }
  for (std::uint64_t number = whole > begin ? whole : begin; number < end; ++number) {  // the last, of an odd size
    std::uint32_t a, b;
    encrypt(key, std::uint32_t(number), a, b);
    made[number] = What::of(a);
  }
}

}  // namespace icl
