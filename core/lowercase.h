// lowercase: names and words of files, which are compared whatever case they are written in.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace memfathom {

// Of ASCII letters; other bytes stay.
inline std::string lowercase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace memfathom
