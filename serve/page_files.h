// page_files: the page of web/page and the description of the interface, embedded at build time.
#pragma once

#include <span>

#include "core/embedded_file.h"

namespace memfathom {

std::span<const EmbeddedFile> page_files();

}  // namespace memfathom
