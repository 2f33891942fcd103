// unread_keys: accounts for every key of a foreign file: read, harmless for memory, or unread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/key_recorder.h"
#include "estimator/job/unread_key.h"
#include "estimator/readers/parsed_file.h"

namespace memfathom {

// Why a key of this format does not matter here ("logging", "scheduling", ...); nullopt if it is
// not on the format's list. `path` is dotted and starts at the format's root.
std::optional<std::string_view> harmless_reason(FileFormat format, std::string_view path);

// The patterns of that list, with their reasons (harmless_group.h).
std::vector<std::pair<std::string, std::string_view>> harmless_patterns(FileFormat format);

// What a key may change, by its name or by its value: "model", "sizes", "batch", "precision",
// "optimizer", "adapters", "sharding", "checkpointing", "attention" or "memory". Empty: nothing.
std::string_view concern_of(std::string_view key, const Node& value);

// Adds the keys of `parsed.content` that `recorder` did not see and that are not harmless to
// `parsed.unread`.
void collect_unread_keys(const KeyRecorder& recorder, ParsedFile& parsed);

// One sentence per file: "axolotl.yml: these keys were not read: a, b.c; they may change the
// memory".
std::vector<std::string> unread_sentences(const std::vector<UnreadKey>& keys);

// "a, b.c (did you mean b.d?)"
std::string names_of(const std::vector<UnreadKey>& keys);

}  // namespace memfathom
