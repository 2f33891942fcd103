// printable: text from outside, made safe to show on a terminal.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <streambuf>
#include <string>
#include <string_view>

namespace memfathom {

// Replaces what changes the terminal or the order of the text by a visible \u001b: control
// characters except tab and newline (C0, DEL, C1), marks of direction, line separators, and bytes
// that are not UTF-8 (\ufffd). In JSON the replacement is the same character. With `colours`, the
// sequences that styled() (core/table.h) writes pass.
std::string printable(std::string_view text, bool colours = false);

// A stream buffer that passes lines on to another one, printable and wrapped to `columns` (0: as
// they are).
class PrintableBuffer final : public std::streambuf {
 public:
  PrintableBuffer(std::ostream& output, bool colours, std::size_t columns = 0)
      : output_(output), colours_(colours), columns_(columns) {}
  ~PrintableBuffer() override;
  PrintableBuffer(const PrintableBuffer&) = delete;
  PrintableBuffer& operator=(const PrintableBuffer&) = delete;

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

 private:
  void pass_on(std::size_t bytes);

  std::ostream& output_;
  bool colours_;
  std::size_t columns_;
  std::string pending_;  // the beginning of a line
};

}  // namespace memfathom
