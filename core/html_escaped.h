// html_escaped: text as HTML, because file names may contain anything.
#pragma once

#include <string>
#include <string_view>

namespace memfathom {

// Escapes & < > " '.
std::string html_escaped(std::string_view text);

}  // namespace memfathom
