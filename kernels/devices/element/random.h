// Random: a counter-based generator (Philox 4x32, ten rounds): the draw of an element depends on
// seed, offset and position only, so every device draws the same mask in any order.
#pragma once

#include <stdint.h>

#include "kernels/devices/element/hd.h"

namespace memfathom::element {

struct Draw {
  uint32_t word[4];
};

MEMFATHOM_HD inline Draw philox(uint64_t seed, uint64_t offset, uint64_t counter) {
  constexpr uint64_t kFirstFactor = 0xD2511F53u;
  constexpr uint64_t kSecondFactor = 0xCD9E8D57u;
  uint32_t c0 = uint32_t(counter), c1 = uint32_t(counter >> 32);
  uint32_t c2 = uint32_t(offset), c3 = uint32_t(offset >> 32);
  uint32_t key0 = uint32_t(seed), key1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = kFirstFactor * c0;
    const uint64_t second = kSecondFactor * c2;
    c0 = uint32_t(second >> 32) ^ c1 ^ key0;
    c1 = uint32_t(second);
    c2 = uint32_t(first >> 32) ^ c3 ^ key1;
    c3 = uint32_t(first);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// [0, 1) in steps of 2^-24, exact in fp32.
MEMFATHOM_HD inline float uniform_of_word(uint32_t word) {
  return float(word >> 8) * 5.9604644775390625e-8f;
}

MEMFATHOM_HD inline float uniform(uint64_t seed, uint64_t offset, uint64_t position) {
  // By comparisons: an array that is indexed would lie in a GPU's local memory.
  const Draw draw = philox(seed, offset, position >> 2);
  const uint32_t low = (position & 1) != 0 ? draw.word[1] : draw.word[0];
  const uint32_t high = (position & 1) != 0 ? draw.word[3] : draw.word[2];
  return uniform_of_word((position & 2) != 0 ? high : low);
}

// Whether dropout with probability p keeps the element at this position.
MEMFATHOM_HD inline bool dropout_keeps(uint64_t seed, uint64_t offset, uint64_t position,
                                       double p) {
  return double(uniform(seed, offset, position)) >= p;
}

}  // namespace memfathom::element
