// Lookup: which of several things with a name and an id a word stands for, by one rule for all of
// them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace memfathom {

struct NamedEntry {
  std::string id;
  std::string name;
  bool usable = true;
};

// The position in `all` (oldest first) of what has exactly this id or name: the newest usable one,
// else the newest. Else of the one whose id begins with the word (four hexadecimal digits or more).
// Throws Error(kInput) where several ids begin so; `things` names them there ("calibrations").
std::optional<std::size_t> find_by_name_or_id(std::span<const NamedEntry> all,
                                              std::string_view word, std::string_view things);

}  // namespace memfathom
