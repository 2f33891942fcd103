// The JSON of an estimate (docs/contract.md §4), and of a job that could not be answered.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "estimator/answer/estimate.h"

namespace memfathom {

nlohmann::ordered_json estimate_json(const Estimate& estimate);
// [{"file", "key", "concerns"}]
nlohmann::ordered_json unread_json(const std::vector<UnreadKey>& keys);
nlohmann::ordered_json suggestions_json(const std::vector<Suggestion>& suggestions);

// Indents of to_text(): one line, or two blanks a level.
inline constexpr int kOneLine = -1;
inline constexpr int kIndented = 2;
// The text of a result; bytes that are no UTF-8 are replaced.
std::string to_text(const nlohmann::ordered_json& json, int indent);

// {"schema": "memfathom.error/1", ...} on one line.
std::string error_json_line(const std::string& id, const std::string& sentence, ErrorKind kind);

}  // namespace memfathom
