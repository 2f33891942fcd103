// HTML: the frame and the tables of the pages that `report` writes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memfathom {

// & < > " ' as HTML writes them. What a file names may be anything.
std::string html_escaped(std::string_view text);

using HtmlRow = std::vector<std::string>;

// Cells are HTML already; `numbers` are the columns that hold figures.
std::string html_table(const HtmlRow& titles, const std::vector<HtmlRow>& rows,
                       const std::vector<std::size_t>& numbers);

// The same of plain words: every cell is escaped.
std::string html_text_table(const HtmlRow& titles, const std::vector<HtmlRow>& rows,
                            const std::vector<std::size_t>& numbers);

// A whole page that needs nothing but itself: no script, no network. The title is plain words.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace memfathom
