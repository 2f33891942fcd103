// embedded: the text files of db/ embedded in the binary (cmake/embed.cmake writes the
// definitions).
#pragma once

#include <span>

#include "core/embedded_file.h"

namespace memfathom {

std::span<const EmbeddedFile> migration_files();  // db/migrations, in order
std::span<const EmbeddedFile> published_files();  // db/published

}  // namespace memfathom
