// Table: rows rendered as aligned text, markdown or CSV.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace memfathom {

enum class Align { kLeft, kRight };
enum class Style { kPlain, kBold, kDim, kGood, kWarning, kBad };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

struct Cell {
  std::string text;
  Style style = Style::kPlain;

  Cell() = default;
  Cell(std::string content) : text(std::move(content)) {}  // NOLINT: a cell is mostly its text
  Cell(std::string_view content) : text(content) {}        // NOLINT
  Cell(const char* content) : text(content) {}             // NOLINT
  Cell(std::string content, Style look) : text(std::move(content)), style(look) {}
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Throws Error(kInternal) unless there are as many cells as columns.
  void add_row(std::vector<Cell> cells);
  // A line across the table before the next row, e.g. above a total (text only).
  void add_rule();

  bool empty() const { return rows_.empty(); }

  // Columns are aligned by terminal width (CJK takes two columns). Control characters in cells
  // become spaces, because cells may come from files. Escape sequences are written only if
  // `colour`.
  std::string text(bool colour) const;
  std::string markdown() const;
  std::string csv() const;  // RFC 4180

 private:
  struct Row {
    std::vector<Cell> cells;
    bool rule_before = false;
  };
  std::vector<std::size_t> widths() const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
  bool rule_pending_ = false;
};

// `text` in the colours of `style`, or unchanged if not `colour`.
std::string styled(std::string_view text, Style style, bool colour);

// Whether to write colours to a file descriptor: a terminal that is not "dumb", and NO_COLOR unset
// or empty.
bool wants_colour(int file_descriptor);

}  // namespace memfathom
