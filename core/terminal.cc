#include "core/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace memfathom {
namespace {

constexpr std::size_t kDefaultColumns = 80;
constexpr std::size_t kMinColumns = 20;  // below it a table is a column of words

std::size_t columns_of_environment() {
  const char* const value = std::getenv("COLUMNS");
  if (value == nullptr) return 0;
  const std::string_view text(value);
  std::size_t columns = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
  return error == std::errc() && end == text.data() + text.size() ? columns : 0;
}

}  // namespace

std::size_t terminal_columns(int file_descriptor) {
  if (isatty(file_descriptor) != 1) return 0;
  if (const std::size_t columns = columns_of_environment(); columns >= kMinColumns) return columns;
  winsize size{};
  const bool known = ioctl(file_descriptor, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col >= kMinColumns ? size.ws_col : kDefaultColumns;
}

}  // namespace memfathom
