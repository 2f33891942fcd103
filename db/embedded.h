// The text files of db/ that are inside the binary (cmake/embed.cmake writes the definitions).
#pragma once

#include <span>
#include <string_view>

namespace memfathom {

struct EmbeddedFile {
  std::string_view name;  // without its folder
  std::string_view text;
};

std::span<const EmbeddedFile> migration_files();  // db/migrations, in order
std::span<const EmbeddedFile> published_files();  // db/published

}  // namespace memfathom
