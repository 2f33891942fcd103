// The docs/ pages embedded in the binary, so that help and manual cannot differ.
#pragma once

#include <span>

#include "core/embedded_file.h"

namespace memfathom {

std::span<const EmbeddedFile> command_pages();  // docs/commands

}  // namespace memfathom
