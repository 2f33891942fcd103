// read_line: lines of files from outside, bounded in length.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>

namespace memfathom {

// Reads the next line without its newline; false at the end. Keeps the first `max_bytes` + 1 bytes
// of a longer line, which callers refuse for its length. Throws Error(kInput) naming `name` if the
// input cannot be read, e.g. a folder or a closed descriptor, or if a line does not end, as in
// /dev/zero.
bool read_line(std::istream& input, const std::string& name, std::size_t max_bytes,
               std::string& line);

}  // namespace memfathom
