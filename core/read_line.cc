#include "core/read_line.h"

#include <fmt/format.h>

#include <istream>
#include <streambuf>

#include "core/error.h"

namespace memfathom {

namespace {

// A line that is too long is its own error and the next one is read, but /dev/zero has no next one.
constexpr std::size_t kMostSkipped = std::size_t{256} << 20;

}  // namespace

bool read_line(std::istream& input, const std::string& name, std::size_t max_bytes,
               std::string& line) {
  line.clear();
  std::streambuf& buffer = *input.rdbuf();
  bool any = false;
  std::size_t skipped = 0;
  try {
    for (int c = buffer.sbumpc(); c != std::char_traits<char>::eof(); c = buffer.sbumpc()) {
      any = true;
      if (c == '\n') return true;
      if (line.size() <= max_bytes) {
        line.push_back(static_cast<char>(c));
      } else if (++skipped > kMostSkipped) {
        throw Error(ErrorKind::kInput,
                    fmt::format("{}: a line has no end after {} MiB; it must be a file of lines",
                                name, (line.size() + skipped) >> 20));
      }
    }
  } catch (const std::ios_base::failure& failure) {  // libstdc++ throws what read() reports
    throw Error(ErrorKind::kInput,
                fmt::format("{}: cannot be read ({}); it must be a file of lines", name,
                            failure.code().message()));
  }
  return any;
}

}  // namespace memfathom
