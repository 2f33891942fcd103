#include "core/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace memfathom {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// Zero-width code points: combining marks, zero-width characters, variation selectors, skin tones.
constexpr std::array<Range, 24> kZeroWidth{
    {{0x0000, 0x001F}, {0x007F, 0x009F}, {0x00AD, 0x00AD},   {0x0300, 0x036F},  {0x0483, 0x0489},
     {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F},   {0x06D6, 0x06DC},  {0x093A, 0x093A},
     {0x093C, 0x093C}, {0x0941, 0x0948}, {0x0E31, 0x0E31},   {0x0E34, 0x0E3A},  {0x0E47, 0x0E4E},
     {0x1160, 0x11FF}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},   {0x200B, 0x200F},  {0x20D0, 0x20FF},
     {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0x1F3FB, 0x1F3FF}, {0xE0100, 0xE01EF}}};

// East Asian wide and fullwidth blocks, and the emoji blocks that terminals draw two columns wide.
constexpr std::array<Range, 25> kWide{
    {{0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},   {0x2614, 0x2615},
     {0x26A1, 0x26A1},   {0x2705, 0x2705},   {0x274C, 0x274C},   {0x2757, 0x2757},
     {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},
     {0xA000, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
     {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F004, 0x1F004},
     {0x1F18E, 0x1F19A}, {0x1F200, 0x1F320}, {0x1F32D, 0x1F64F}, {0x1F680, 0x1FAFF},
     {0x20000, 0x3FFFD}}};

template <std::size_t N>
bool contains(const std::array<Range, N>& ranges, char32_t code) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), code,
                       [](char32_t c, const Range& range) { return c < range.first; });
  return after != ranges.begin() && code <= std::prev(after)->last;
}

// The end of the escape sequence "ESC [ ... letter" that starts at `position`, or `position`
// itself.
std::size_t skip_escape(std::string_view text, std::size_t position) {
  if (text.substr(position, 2) != "\x1b[") return position;
  std::size_t end = position + 2;
  while (end < text.size() && (text[end] == ';' || (text[end] >= '0' && text[end] <= '9'))) ++end;
  return end < text.size() ? end + 1 : end;
}

}  // namespace

std::optional<char32_t> next_code_point(std::string_view text, std::size_t& position) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(position++);
  if (lead < 0x80) return lead;
  const int extra = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  if (lead < 0xC2 || lead > 0xF4) return std::nullopt;
  char32_t code = lead & (0x3F >> extra);
  for (int i = 0; i < extra; ++i) {
    if (position >= text.size() || (byte(position) & 0xC0) != 0x80) return std::nullopt;
    code = (code << 6) | (byte(position++) & 0x3F);
  }
  constexpr std::array<char32_t, 4> kMinCodePoints{0, 0x80, 0x800, 0x10000};
  if (code < kMinCodePoints[static_cast<std::size_t>(extra)] || code > 0x10FFFF)
    return std::nullopt;
  if (code >= 0xD800 && code <= 0xDFFF) return std::nullopt;
  return code;
}

std::size_t find_invalid_utf8(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    const std::size_t start = position;
    if (!next_code_point(text, position)) return start;
  }
  return std::string_view::npos;
}

std::string_view cut_utf8(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<std::uint8_t>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  std::size_t position = 0;
  while (position < text.size()) {
    if (const std::size_t end = skip_escape(text, position); end != position) {
      position = end;
      continue;
    }
    const std::optional<char32_t> code = next_code_point(text, position);
    if (!code) {
      width += 1;  // terminals draw a replacement character
    } else if (!contains(kZeroWidth, *code)) {
      width += contains(kWide, *code) ? 2 : 1;
    }
  }
  return width;
}

}  // namespace memfathom
