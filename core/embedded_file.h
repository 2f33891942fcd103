// EmbeddedFile: a text file embedded in the binary by cmake/embed.cmake.
#pragma once

#include <string_view>

namespace memfathom {

struct EmbeddedFile {
  std::string_view name;  // without its directory
  std::string_view text;
};

}  // namespace memfathom
