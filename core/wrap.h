// wrap: text cut into lines between its words, by their width on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace memfathom {

// `text` in lines of at most `columns`; a longer word has a line of its own. Chinese and Japanese
// are cut between characters, but not before a closing or after an opening punctuation mark.
std::vector<std::string> wrapped_lines(std::string_view text, std::size_t columns);

// The width of the longest piece that wrapped_lines does not cut.
std::size_t unbroken_width(std::string_view text);

// Every line of `text` wrapped with a hanging indent of two. Lines indented by four or more are
// settings to copy or lines of a table and stay as they are. `columns` 0: unchanged.
std::string wrapped(std::string_view text, std::size_t columns);

}  // namespace memfathom
