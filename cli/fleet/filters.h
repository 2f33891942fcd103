// filter_files: the Lua plugins of `fleet install-filter`, embedded at build time.
#pragma once

#include <span>

#include "core/embedded_file.h"

namespace memfathom {

std::span<const EmbeddedFile> filter_files();

}  // namespace memfathom
