#include "core/table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "core/error.h"
#include "core/printable.h"
#include "core/utf8.h"

namespace memfathom {
namespace {

constexpr std::string_view kGap = "  ";

const char* code_of(Style style) {
  switch (style) {
    case Style::kPlain: return "";
    case Style::kBold: return "1";
    case Style::kDim: return "2";
    case Style::kGood: return "32";
    case Style::kWarning: return "33";
    case Style::kBad: return "31";
  }
  return "";
}

std::string without_controls(std::string_view text) {
  std::string clean = printable(text);
  std::replace_if(
      clean.begin(), clean.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return clean;
}

std::string markdown_cell(std::string_view text) {
  std::string escaped;
  for (const char c : without_controls(text)) {
    // A cell is text: no column, no link or image, no code and no HTML.
    if (std::string_view("|\\[]`<").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// "-12.5", "+3 %" or "-1.20 GiB": a sign, digits and a unit.
bool is_quantity(std::string_view text) {
  text.remove_prefix(1);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  if (digits == 0) return text.empty();  // a lone sign
  text.remove_prefix(digits);
  if (text.starts_with(' ')) text.remove_prefix(1);
  return text == "%" || std::all_of(text.begin(), text.end(),
                                    [](unsigned char c) { return std::isalpha(c) != 0; });
}

// A spreadsheet would run it when it opens the file.
bool is_formula(std::string_view text) {
  if (text.empty()) return false;
  const char first = text.front();
  if (first == '+' || first == '-') return !is_quantity(text);
  return first == '=' || first == '@' || first == '\t' || first == '\r';
}

std::string csv_cell(std::string_view text) {
  const bool formula = is_formula(text);
  if (!formula && text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = formula ? "\"'" : "\"";  // an apostrophe makes a cell text
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string padded(std::string_view text, std::size_t width, Align align, Style style,
                   bool colour) {
  const std::string clean = without_controls(text);
  const std::string space(width - std::min(width, display_width(clean)), ' ');
  const std::string shown = styled(clean, style, colour);
  return align == Align::kRight ? space + shown : shown + space;
}

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line;
  out += '\n';
}

}  // namespace

void Table::add_row(std::vector<Cell> cells) {
  if (cells.size() != columns_.size()) {
    throw Error(ErrorKind::kInternal,
                fmt::format("a row of {} cells was added to a table of {} columns", cells.size(),
                            columns_.size()));
  }
  rows_.push_back({std::move(cells), rule_pending_});
  rule_pending_ = false;
}

void Table::add_rule() { rule_pending_ = true; }

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = display_width(columns_[i].title);
    for (const Row& row : rows_)
      width = std::max(width, display_width(without_controls(row.cells[i].text)));
    result.push_back(width);
  }
  return result;
}

std::string Table::text(bool colour) const {
  const std::vector<std::size_t> width = widths();
  std::size_t total = 0;
  for (const std::size_t w : width) total += w + kGap.size();
  const std::string rule(total - std::min(total, kGap.size()), '-');

  std::string out;
  std::string line;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) line += kGap;
    line += padded(columns_[i].title, width[i], columns_[i].align, Style::kBold, colour);
  }
  append_line(out, line);
  append_line(out, rule);
  for (const Row& row : rows_) {
    if (row.rule_before) append_line(out, rule);
    line.clear();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line += kGap;
      line += padded(row.cells[i].text, width[i], columns_[i].align, row.cells[i].style, colour);
    }
    append_line(out, line);
  }
  return out;
}

std::string Table::markdown() const {
  std::string out = "|";
  for (const Column& column : columns_) out += fmt::format(" {} |", markdown_cell(column.title));
  out += "\n|";
  for (const Column& column : columns_) out += column.align == Align::kRight ? "---:|" : "---|";
  out += '\n';
  for (const Row& row : rows_) {
    out += '|';
    for (const Cell& cell : row.cells) out += fmt::format(" {} |", markdown_cell(cell.text));
    out += '\n';
  }
  return out;
}

std::string Table::csv() const {
  std::string out;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    out += (i > 0 ? "," : "") + csv_cell(columns_[i].title);
  out += "\r\n";
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      out += (i > 0 ? "," : "") + csv_cell(row.cells[i].text);
    out += "\r\n";
  }
  return out;
}

std::string styled(std::string_view text, Style style, bool colour) {
  if (!colour || style == Style::kPlain || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code_of(style), text);
}

bool wants_colour(int file_descriptor) {
  const char* const no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* const term = std::getenv("TERM");
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  return isatty(file_descriptor) == 1;
}

}  // namespace memfathom
