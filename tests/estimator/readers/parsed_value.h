// What a file of somebody's training set-up says, for tests of its reader.
#pragma once

#include <string>
#include <string_view>

#include "core/document.h"
#include "estimator/job/patch.h"
#include "estimator/readers/parsed_file.h"
#include "tests/support/paths.h"

namespace memfathom {

// A file of tests/data/readers.
inline std::string data(const char* name) { return test_data().string() + "/readers/" + name; }

inline ParsedFile parse_config(const char* yaml, const char* file = "x.yaml") {
  const Node tree = parse_yaml(yaml, file);
  return read_tree(tree, detect_format(tree));
}

// The value that the file gives to a key of the job, a list in words; empty where it gives none.
inline std::string value_in(const ParsedFile& parsed, std::string_view key) {
  const Node tree = patch_tree(parsed.settings);
  const Node* value = value_at(tree, key);
  if (value == nullptr) return "";
  if (!value->is_list()) return value->is_string() ? value->as_string() : value->shown();
  std::string words;
  for (const Node& item : value->items()) words += (words.empty() ? "" : " ") + item.as_string();
  return words;
}

}  // namespace memfathom
