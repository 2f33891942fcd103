// ContentHash: BLAKE2b over typed fields; a row's content determines its uid, the same in every
// database.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/bytes.h"
#include "core/environment.h"

namespace memfathom {

// Fields are hashed with their length or width, so that ("ab", "c") and ("a", "bc") differ. The
// hashed bytes are part of the file format: a field added later is hashed only if it is not at its
// default.
class ContentHash {
 public:
  // `kind` separates records with equal fields: "sample", "calibration", ...
  explicit ContentHash(std::string_view kind) { add(kind); }

  ContentHash& add(std::string_view text);
  ContentHash& add(const std::string& text) { return add(std::string_view(text)); }
  ContentHash& add(const char* text) { return add(std::string_view(text)); }
  ContentHash& add(std::int64_t number);
  ContentHash& add(int number) { return add(std::int64_t{number}); }
  ContentHash& add(bool flag) { return add(std::int64_t{flag ? 1 : 0}); }
  ContentHash& add(double number);
  ContentHash& add(Bytes bytes) { return add(bytes.count()); }
  ContentHash& add(const Environment& environment);
  template <typename T>
  ContentHash& add(const std::optional<T>& value) {
    add(value.has_value());
    return value ? add(*value) : *this;
  }

  // 128 bits as 32 hexadecimal digits. Ends the hash.
  std::string uid();

 private:
  static constexpr std::size_t kDigestBytes = 16;

  void append(const void* data, std::size_t size);
  void compress(bool last);

  std::array<std::uint64_t, 8> state_ = initial_state();
  std::array<unsigned char, 128> block_{};
  std::size_t filled_ = 0;  // of the block
  std::uint64_t size_ = 0;  // of all blocks before it

  static std::array<std::uint64_t, 8> initial_state();
};

}  // namespace memfathom
