#include "db/content_hash.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace memfathom {
namespace {

// RFC 7693: the initial vector, and the order in which each round uses the words of a block.
constexpr std::array<std::uint64_t, 8> kVector{
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
constexpr std::uint8_t kOrder[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                         {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                         {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                         {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                         {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                         {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                         {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                         {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                         {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                         {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

// Forced inline: the compiler's default is a call that passes every word through memory.
[[gnu::always_inline]] inline void mix(std::uint64_t& a, std::uint64_t& b, std::uint64_t& c,
                                       std::uint64_t& d, std::uint64_t x, std::uint64_t y) {
  a += b + x;
  d = std::rotr(d ^ a, 32);
  c += d;
  b = std::rotr(b ^ c, 24);
  a += b + y;
  d = std::rotr(d ^ a, 16);
  c += d;
  b = std::rotr(b ^ c, 63);
}

using Words = std::array<std::uint64_t, 16>;

// The round is a template parameter so that the word indices are constants: three times as fast as
// a loop.
template <std::size_t Round>
void mix_round(Words& v, const Words& m) {
  constexpr const std::uint8_t* order = kOrder[Round % 10];
  mix(v[0], v[4], v[8], v[12], m[order[0]], m[order[1]]);
  mix(v[1], v[5], v[9], v[13], m[order[2]], m[order[3]]);
  mix(v[2], v[6], v[10], v[14], m[order[4]], m[order[5]]);
  mix(v[3], v[7], v[11], v[15], m[order[6]], m[order[7]]);
  mix(v[0], v[5], v[10], v[15], m[order[8]], m[order[9]]);
  mix(v[1], v[6], v[11], v[12], m[order[10]], m[order[11]]);
  mix(v[2], v[7], v[8], v[13], m[order[12]], m[order[13]]);
  mix(v[3], v[4], v[9], v[14], m[order[14]], m[order[15]]);
}

template <std::size_t... Rounds>
void mix_rounds(Words& v, const Words& m, std::index_sequence<Rounds...>) {
  (mix_round<Rounds>(v, m), ...);
}

static_assert(std::endian::native == std::endian::little,
              "words are read and written as they lie in memory");

}  // namespace

std::array<std::uint64_t, 8> ContentHash::initial_state() {
  std::array<std::uint64_t, 8> state = kVector;
  state[0] ^= 0x01010000 ^ kDigestBytes;  // no key, sequential
  return state;
}

ContentHash& ContentHash::add(std::string_view text) {
  add(static_cast<std::int64_t>(text.size()));
  append(text.data(), text.size());
  return *this;
}

ContentHash& ContentHash::add(std::int64_t number) {
  append(&number, sizeof number);
  return *this;
}

ContentHash& ContentHash::add(double number) {
  append(&number, sizeof number);
  return *this;
}

ContentHash& ContentHash::add(const Environment& e) {
  add(e.gpu)
      .add(e.architecture)
      .add(e.memory_total)
      .add(e.ecc)
      .add(e.mig)
      .add(e.driver)
      .add(e.cuda);
  add(e.cublas).add(e.cudnn).add(e.cufft).add(e.framework).add(e.framework_version).add(e.os);
  // Rows from before it was recorded keep their id.
  return e.module_loading.empty() ? *this : add("module_loading").add(e.module_loading);
}

void ContentHash::append(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  while (size > 0) {
    if (filled_ == block_.size())
      compress(/*last=*/false);  // a full block is kept, because it may be the last
    const std::size_t taken = std::min(size, block_.size() - filled_);
    std::memcpy(block_.data() + filled_, bytes, taken);
    filled_ += taken;
    bytes += taken;
    size -= taken;
  }
}

void ContentHash::compress(bool last) {
  size_ += filled_;
  filled_ = 0;
  Words m;
  std::memcpy(m.data(), block_.data(), block_.size());
  Words v;
  std::copy(state_.begin(), state_.end(), v.begin());
  std::copy(kVector.begin(), kVector.end(), v.begin() + 8);
  v[12] ^= size_;
  if (last) v[14] = ~v[14];
  mix_rounds(v, m, std::make_index_sequence<12>{});
  for (std::size_t i = 0; i < state_.size(); ++i) state_[i] ^= v[i] ^ v[i + 8];
}

std::string ContentHash::uid() {
  std::fill(block_.begin() + static_cast<std::ptrdiff_t>(filled_), block_.end(),
            static_cast<unsigned char>(0));
  compress(/*last=*/true);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * kDigestBytes);
  for (std::size_t i = 0; i < kDigestBytes; ++i) {
    const std::uint64_t byte = state_[i / 8] >> (8 * (i % 8)) & 0xff;
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace memfathom
