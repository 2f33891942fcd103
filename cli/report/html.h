// HTML: page frame, sections and tables for `report`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memfathom {

using HtmlRow = std::vector<std::string>;

// Cells are HTML; `numbers` are the numeric columns. On a narrow screen each row of a table with
// many columns is a card of its own.
std::string html_table(const HtmlRow& titles, const std::vector<HtmlRow>& rows,
                       const std::vector<std::size_t>& numbers);

// The same for plain text: every cell is escaped.
std::string html_text_table(const HtmlRow& titles, const std::vector<HtmlRow>& rows,
                            const std::vector<std::size_t>& numbers);

// A titled part of the page.
std::string html_section(std::string_view title, std::string_view content);

// A part that opens at a click.
std::string html_details(std::string_view summary, std::string_view content);

// The page's first part. `kind`: fits, tight, does_not_fit, undecided, unknown; `figure` and
// `beside`, which may be empty, stand out; all are plain text but `sentences`.
struct HtmlVerdict {
  std::string_view kind;
  std::string words;
  std::string figure;
  std::string beside;
  std::string sentences;
};
std::string html_verdict(const HtmlVerdict& verdict);

// The same chart for wide and for narrow screens; a browser shows one.
std::string html_chart(std::string_view wide, std::string_view narrow);

// A self-contained page: no scripts, no network. The title is plain text.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace memfathom
