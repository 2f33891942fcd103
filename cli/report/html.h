// HTML: page frame and tables for `report`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memfathom {

using HtmlRow = std::vector<std::string>;

// Cells are HTML; `numbers` are the numeric columns.
std::string html_table(const HtmlRow& titles, const std::vector<HtmlRow>& rows,
                       const std::vector<std::size_t>& numbers);

// The same for plain text: every cell is escaped.
std::string html_text_table(const HtmlRow& titles, const std::vector<HtmlRow>& rows,
                            const std::vector<std::size_t>& numbers);

// What is wider than the screen scrolls by itself; the page does not.
std::string html_scrolled(std::string_view wide);

// A self-contained page: no scripts, no network. The title is plain text.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace memfathom
