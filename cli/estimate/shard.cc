#include "cli/estimate/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <vector>

#include "core/error.h"
#include "core/parse_number.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMaxShards = 1'000'000;
constexpr std::int64_t kChunk = std::int64_t{1} << 20;

}  // namespace

Shard parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto index = parse_number<std::int64_t>(std::string_view(text).substr(0, slash));
  const auto count = slash == std::string::npos
                         ? std::nullopt
                         : parse_number<std::int64_t>(std::string_view(text).substr(slash + 1));
  if (!index || !count || *count < 1 || *count > kMaxShards || *index < 0 || *index >= *count) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--shard is \"{}\"; write 0/16 to 15/16 for sixteen parts", text));
  }
  return {*index, *count};
}

ShardRange begin_shard(std::istream& input, const std::string& name, const Shard& shard) {
  input.seekg(0, std::ios::end);
  const std::int64_t size = input.tellg();
  if (!input || size < 0)
    throw Error(ErrorKind::kInput, fmt::format("{} has no size; --shard needs a file", name));
  // Of 128 bits: a file of a terabyte in a million parts.
  const auto boundary = [&](std::int64_t part) {
    return static_cast<std::int64_t>(static_cast<__int128>(size) * part / shard.count);
  };
  const std::int64_t begin = boundary(shard.index);
  const std::int64_t end = boundary(shard.index + 1);
  ShardRange range;
  input.seekg(0);
  std::int64_t at = 0;
  std::int64_t line_begin = 0;  // of the first line that begins at `begin` or later
  std::vector<char> chunk(static_cast<std::size_t>(kChunk));
  while (line_begin < begin && at < size) {
    input.read(chunk.data(), kChunk);
    const std::int64_t got = input.gcount();
    if (got <= 0) break;
    for (std::int64_t i = 0; i < got && line_begin < begin; ++i) {
      if (chunk[static_cast<std::size_t>(i)] != '\n') continue;
      line_begin = at + i + 1;
      ++range.lines_before;
    }
    at += got;
  }
  if (line_begin < begin) line_begin = size;
  input.clear();
  input.seekg(line_begin);
  range.bytes = std::max<std::int64_t>(0, end - line_begin);
  return range;
}

}  // namespace memfathom
