#include "cli/text/history_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/printable.h"

namespace memfathom {
namespace {

constexpr std::size_t kMaxLines = 5;

// "aten.addmm (train.py:17), forward of iteration 1", as far as the history says.
std::string place_of(const HistoryAllocation& allocation) {
  const Trace::Label& label = allocation.label;
  std::string text;
  const auto add = [&](const std::string& part, const char* format) {
    if (!part.empty()) text += fmt::format(fmt::runtime(format), printable(part));
  };
  add(label.name, "{}");
  if (text.empty()) add(label.module, "{}");
  if (text.empty()) add(label.tag, "{}");
  if (text.empty()) text = "an unnamed operation";
  add(label.line, " ({})");
  if (!allocation.phase.empty()) {
    text += fmt::format(", {}", printable(allocation.phase));
    if (allocation.iteration > 0) text += fmt::format(" of iteration {}", allocation.iteration);
  }
  return text;
}

std::string sentence_of(const HistoryDifference& difference) {
  const HistoryAllocation& recorded = difference.recorded;
  const HistoryAllocation& replayed = difference.replayed;
  switch (difference.kind) {
    case HistoryDifferenceKind::kOnlyRecorded:
      return fmt::format("recorded allocation {}: {} by {}; the replay does not have it",
                         recorded.number, to_string(recorded.bytes), place_of(recorded));
    case HistoryDifferenceKind::kOnlyReplayed:
      return fmt::format("replayed allocation {}: {} by {}; the recording does not have it{}",
                         replayed.number, to_string(replayed.bytes), place_of(replayed),
                         recorded.number == 0
                             ? std::string()
                             : fmt::format(" (next there: {})", place_of(recorded)));
    case HistoryDifferenceKind::kSize:
      return fmt::format("recorded allocation {}: {} by {}; the replay allocates {} there, by {}",
                         recorded.number, to_string(recorded.bytes), place_of(recorded),
                         to_string(replayed.bytes), place_of(replayed));
    case HistoryDifferenceKind::kFreedSooner:
    case HistoryDifferenceKind::kFreedLater: break;
  }
  return fmt::format("recorded allocation {}: {} by {} is freed {} than in the replay ({})",
                     recorded.number, to_string(recorded.bytes), place_of(recorded),
                     difference.kind == HistoryDifferenceKind::kFreedSooner ? "sooner" : "later",
                     place_of(replayed));
}

nlohmann::ordered_json json_of(const HistoryAllocation& allocation) {
  if (allocation.number == 0) return nullptr;
  return {{"number", allocation.number},        {"bytes", allocation.bytes.count()},
          {"operation", allocation.label.name}, {"module", allocation.label.module},
          {"component", allocation.label.tag},  {"line", allocation.label.line},
          {"phase", allocation.phase},          {"iteration", allocation.iteration}};
}

}  // namespace

std::string history_text(const HistoryComparison& comparison) {
  std::string text =
      fmt::format("{} allocations recorded, {} replayed: {} equal in size and lifetime{}\n",
                  comparison.recorded, comparison.replayed, comparison.equal,
                  comparison.gave_up ? "; from the last difference on they were not compared" : "");
  for (std::size_t i = 0; i < comparison.differences.size() && i < kMaxLines; ++i) {
    text += fmt::format("{}{}\n", i == 0 ? "first difference: " : "- ",
                        sentence_of(comparison.differences[i]));
  }
  if (comparison.differences.size() > kMaxLines)
    text += fmt::format("{} more\n", comparison.differences.size() - kMaxLines);
  return text;
}

nlohmann::ordered_json history_json(const HistoryComparison& comparison) {
  nlohmann::ordered_json differences = nlohmann::ordered_json::array();
  for (const HistoryDifference& difference : comparison.differences) {
    differences.push_back({{"kind", enum_name(difference.kind)},
                           {"recorded", json_of(difference.recorded)},
                           {"replayed", json_of(difference.replayed)}});
  }
  return {{"recorded_allocations", comparison.recorded},
          {"replayed_allocations", comparison.replayed},
          {"equal_allocations", comparison.equal},
          {"complete", !comparison.gave_up},
          {"differences", std::move(differences)}};
}

}  // namespace memfathom
