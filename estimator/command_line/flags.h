// Flags: a program's arguments as a document: --a-b 1 --c.d x y --e key=value.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/command_line/shell.h"

namespace memfathom {

// A flag whose value the script does not set: "$BATCH".
struct UnresolvedFlag {
  std::string key;
  std::string value;
};

struct Flags {
  // Keys without dashes in front and with _ for -, nested at their dots. A flag without a value is
  // true, one with several has a list; --no_x is x: false. Later flags replace earlier ones.
  Node tree;
  std::vector<std::string> positionals;
  std::vector<UnresolvedFlag> unresolved;
  std::vector<std::string> unreadable;  // flags that no document can hold
};

// `file` and `line` are where the values are from.
Flags read_flags(std::span<const ShellWord> words, const std::string& file);

// One value: a number, a boolean, a JSON or YAML list or map, or a text. Null for None and null.
Node value_of_word(const std::string& text, const std::string& file);

}  // namespace memfathom
