#include "core/name_lookup.h"

#include <fmt/format.h>

#include "core/error.h"

namespace memfathom {
namespace {

bool is_beginning_of_id(std::string_view word) {
  return word.size() >= 4 && word.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<std::size_t> find_exact(std::span<const NamedEntry> all, std::string_view word) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].id != word && all[i].name != word) continue;
    if (!found || all[i].usable || !all[*found].usable) found = i;
  }
  return found;
}

}  // namespace

std::optional<std::size_t> find_by_name_or_id(std::span<const NamedEntry> all,
                                              std::string_view word, std::string_view things) {
  std::optional<std::size_t> found = find_exact(all, word);
  if (found || !is_beginning_of_id(word)) return found;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].id.starts_with(word)) continue;
    if (found && all[*found].id != all[i].id) {
      throw Error(ErrorKind::kInput,
                  fmt::format("several {} have an id that begins with {}, among them {} and {}; "
                              "give more digits",
                              things, word, all[*found].id, all[i].id));
    }
    found = i;
  }
  return found;
}

}  // namespace memfathom
