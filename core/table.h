// Table: rows rendered as aligned text, markdown or CSV.
#pragma once

#include <cstddef>
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

  // Replaces every title by what `rename` returns for it.
  template <typename Rename>
  void rename_columns(Rename rename) {
    for (Column& column : columns_) column.title = rename(column.title);
  }

  bool empty() const { return rows_.empty(); }

  // Columns are aligned by terminal width (CJK takes two columns). Control characters in cells
  // become spaces, because cells may come from files. Escape sequences are written only if
  // `colour`. A table wider than `columns` is narrowed: cells of words wrap, and where that is not
  // enough the widest columns follow below their row, each with its title. 0: any width.
  std::string text(bool colour, std::size_t columns = 0) const;
  std::string markdown() const;
  std::string csv() const;  // RFC 4180

 private:
  struct Row {
    std::vector<Cell> cells;
    bool rule_before = false;
  };
  struct Layout {
    std::vector<std::size_t> width;
    std::vector<bool> is_below;

    std::size_t total() const;
  };
  std::vector<std::size_t> widths(std::size_t (*width_of)(std::string_view)) const;
  Layout layout(std::size_t columns) const;
  void append_row(std::string& out, const Row& row, const Layout& layout, std::size_t columns,
                  bool colour) const;

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
