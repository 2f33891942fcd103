// HarmlessGroup: keys that do not change the memory, and why.
#pragma once

#include <span>
#include <string_view>

namespace memfathom {

// Patterns are separated by spaces. `*` stands for a text without a word that is telling of memory
// (unread_keys.cc), or in front of a word for any; `**` for any text; `@` for the sections that
// scripts put their keys under. One that names a section covers what is in it, except the keys that
// are telling of memory; `section.**` covers those as well.
struct HarmlessGroup {
  std::string_view reason;
  std::string_view patterns;
};

// The flags of training programs (harmless_flags.cc), beside those of the Trainer.
std::span<const HarmlessGroup> harmless_flag_groups();

}  // namespace memfathom
