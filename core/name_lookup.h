// name_lookup: resolves a name, an id or an id prefix to one record.
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

// The index in `all` (oldest first) of the record with exactly this id or name: the newest usable
// one, else the newest. Otherwise the one whose id starts with `word` (at least four hexadecimal
// digits). Throws Error(kInput) if several ids match; `things` names the records there
// ("calibrations").
std::optional<std::size_t> find_by_name_or_id(std::span<const NamedEntry> all,
                                              std::string_view word, std::string_view things);

}  // namespace memfathom
