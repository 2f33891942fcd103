// The pages of docs/ that are inside the binary, so that help and manual cannot drift apart.
#pragma once

#include <span>

#include "core/embedded_file.h"

namespace memfathom {

std::span<const EmbeddedFile> command_pages();  // docs/commands

}  // namespace memfathom
