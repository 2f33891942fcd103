// utf8: validates UTF-8 and computes a text's width on a terminal.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace memfathom {

// The code point of `text` at `position`, which advances past it; nullopt if the bytes are not
// UTF-8 (overlong forms and surrogates are not). `position` must be below text.size().
std::optional<char32_t> next_code_point(std::string_view text, std::size_t& position);

// The position of the first byte that is not UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text);

// The longest prefix of `text` of at most `bytes` bytes that does not cut a code point.
std::string_view cut_utf8(std::string_view text, std::size_t bytes);

// Columns on a terminal: 2 for CJK and most emoji, 0 for combining marks and controls, 1 otherwise.
// Escape sequences that set colours take none.
std::size_t display_width(std::string_view text);

}  // namespace memfathom
