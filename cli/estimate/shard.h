// Shard: one of several parts of a file of lines, so that many processes share it.
//
// The parts are ranges of bytes; a line belongs to the part in which it begins. So the answers of
// all parts, one after the other, are those of the whole file.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace memfathom {

struct Shard {
  std::int64_t index = 0;
  std::int64_t count = 1;
};

// "3/16": the fourth of sixteen parts. Throws Error(kUsage).
Shard parse_shard(const std::string& text);

// Where reading goes on, and how many bytes of lines belong to the part.
struct ShardRange {
  int lines_before = 0;
  std::int64_t bytes = 0;
};
// Moves `input`, a file, to the first line of the part. Throws Error(kInput) naming `name` if it
// has no size, as a pipe.
ShardRange begin_shard(std::istream& input, const std::string& name, const Shard& shard);

}  // namespace memfathom
