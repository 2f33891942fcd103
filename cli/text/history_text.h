// history_text: how a recorded history differs from a job's replay, in sentences and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kernels/memory/trace/compare_histories.h"

namespace memfathom {

// A line with the counts and one for each of the first differences.
std::string history_text(const HistoryComparison& comparison);
// The object `replay` of memfathom.explain/1 and `history` of memfathom.profile/1.
nlohmann::ordered_json history_json(const HistoryComparison& comparison);

}  // namespace memfathom
