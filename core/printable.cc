#include "core/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <ostream>

#include "core/utf8.h"
#include "core/wrap.h"

namespace memfathom {
namespace {

bool is_hidden(char32_t c) {
  return (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7F && c < 0xA0) || c == 0x061C ||
         c == 0x200E || c == 0x200F ||                                    // marks
         (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) ||  // embeddings
         c == 0x2028 || c == 0x2029;                                      // separators
}

// The length of a sequence of styled() at the beginning of `text`, or 0.
std::size_t colour_length(std::string_view text) {
  constexpr std::array<std::string_view, 6> kOurs{"\x1b[0m",  "\x1b[1m",  "\x1b[2m",
                                                  "\x1b[31m", "\x1b[32m", "\x1b[33m"};
  for (const std::string_view sequence : kOurs) {
    if (text.starts_with(sequence)) return sequence.size();
  }
  return 0;
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 0x20 && c < 0x7F) || c == '\n' || c == '\t'; });
}

}  // namespace

std::string printable(std::string_view text, bool colours) {
  if (is_plain(text)) return std::string(text);
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const std::size_t colour = colours ? colour_length(text.substr(at)) : 0;
    const bool ends_line = text.substr(at).starts_with("\r\n");  // of CSV
    if (colour > 0 || ends_line) {
      at += colour > 0 ? colour : 2;
      shown += text.substr(start, at - start);
      continue;
    }
    const std::optional<char32_t> c = next_code_point(text, at);
    if (!c) {
      at = std::max(at, start + 1);
      shown += "\\ufffd";
    } else if (is_hidden(*c)) {
      shown += fmt::format("\\u{:04x}", static_cast<unsigned>(*c));
    } else {
      shown += text.substr(start, at - start);
    }
  }
  return shown;
}

PrintableBuffer::~PrintableBuffer() { pass_on(pending_.size()); }

void PrintableBuffer::pass_on(std::size_t bytes) {
  output_ << wrapped(printable(std::string_view(pending_).substr(0, bytes), colours_), columns_);
  pending_.erase(0, bytes);
}

PrintableBuffer::int_type PrintableBuffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return xsputn(&one, 1) == 1 ? c : traits_type::eof();
}

std::streamsize PrintableBuffer::xsputn(const char* text, std::streamsize count) {
  const std::string_view added(text, static_cast<std::size_t>(count));
  const std::size_t newline = added.rfind('\n');
  const std::size_t before = pending_.size();
  pending_ += added;
  if (newline != std::string_view::npos) pass_on(before + newline + 1);
  return output_ ? count : 0;
}

int PrintableBuffer::sync() {
  pass_on(pending_.size());
  output_.flush();
  return output_ ? 0 : -1;
}

}  // namespace memfathom
