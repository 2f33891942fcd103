// EmbeddedFile: a text file inside the binary (cmake/embed.cmake puts it there).
#pragma once

#include <string_view>

namespace memfathom {

struct EmbeddedFile {
  std::string_view name;  // without its folder
  std::string_view text;
};

}  // namespace memfathom
