#include "tests/support/oracle_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <unordered_map>

#include "kernels/memory/trace/trace.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

struct Deviation {
  double share = 0;
  std::string what;
};

class OracleComparison {
 public:
  explicit OracleComparison(const OracleRow& row) : row_(row) {}

  // `tolerance` is a share of the expected value; 4 KiB are always allowed, as by the oracle's own
  // check.
  void compare(const char* key, std::int64_t actual, double tolerance) {
    const Node* expected = row_.expected.find(key);
    if (expected == nullptr) return;
    const std::int64_t wanted = expected->as_int();
    const double share =
        wanted == 0 ? 0 : static_cast<double>(actual - wanted) / static_cast<double>(wanted);
    if (std::abs(share) > std::abs(worst.share))
      worst = {share, fmt::format("{}: {} is {} instead of {}", row_.id, key, actual, wanted)};
    if (std::abs(actual - wanted) <= 4096 && tolerance > 0) return;
    EXPECT_LE(std::abs(share), tolerance)
        << row_.id << ": " << key << " is " << actual << " instead of " << wanted;
  }

  Deviation worst;

 private:
  const OracleRow& row_;
};

Deviation compare_row(const OracleRow& row, const NetworkMaker& make) {
  const OracleResult result = run_oracle_row(row, make);
  OracleComparison comparison(row);
  comparison.compare("parameter_count", result.parameter_count, 0);
  comparison.compare("parameters", result.parameters, 0);
  comparison.compare("buffers", result.buffers, 0);
  comparison.compare("kv_cache", result.kv_cache, 0);
  comparison.compare("optimizer_state", result.optimizer_state, 0);
  if (result.peak_step > 0) comparison.compare("gradients", result.gradients, 0);
  comparison.compare("peak_forward", result.peak_forward, 0.01);
  comparison.compare("peak_backward", result.peak_backward, 0.01);
  if (result.peak_step > 0) comparison.compare("peak_step", result.peak_step, 0.01);
  comparison.compare("peak_prefill", result.peak_prefill, 0.01);
  return comparison.worst;
}

// One allocation and what was freed right after it.
struct Step {
  std::int64_t bytes = 0;
  std::set<std::int64_t> freed;  // by the number of their allocation
  std::string phase;             // of the recording

  bool operator==(const Step& other) const { return bytes == other.bytes && freed == other.freed; }
};

// Events as steps. The first `skipped` allocations (parameters, buffers, batch) have no number;
// empty storages have no step.
std::vector<Step> steps_of(const std::vector<TraceEvent>& events, std::size_t skipped) {
  std::vector<Step> steps;
  std::unordered_map<std::int64_t, std::int64_t> numbers;
  std::size_t allocations = 0;
  for (const TraceEvent& event : events) {
    if (event.op == TraceOp::kPhase) continue;
    if (event.op == TraceOp::kAlloc) {
      if (event.bytes.count() == 0 || allocations++ < skipped) continue;
      numbers[event.id] = static_cast<std::int64_t>(steps.size());
      steps.push_back({event.bytes.count(), {}, event.phase});
    } else if (const auto found = numbers.find(event.id); found != numbers.end()) {
      steps.back().freed.insert(found->second);
    }
  }
  return steps;
}

struct RecordedTrace {
  std::string case_id;
  std::vector<TraceEvent> events;
  std::size_t initial = 0;  // allocations before the first forward pass
};

RecordedTrace read_recorded(const std::string& name) {
  RecordedTrace recorded;
  std::ifstream file(shared_data().string() + "/oracle/traces/" + name + ".jsonl.gz",
                     std::ios::binary);
  TraceReader reader(file, name);
  recorded.case_id = parse_json(reader.header(), name).at("case").as_string();
  TraceEvent event;
  while (reader.next(event)) {
    if (event.op == TraceOp::kAlloc && event.phase == "init" && event.bytes.count() > 0)
      ++recorded.initial;
    recorded.events.push_back(event);
  }
  return recorded;
}

std::string shown(const std::vector<Step>& steps, std::size_t at) {
  std::string text;
  for (std::size_t i = at < 6 ? 0 : at - 6; i < std::min(at + 6, steps.size()); ++i) {
    text += fmt::format("{} {}: {} frees", i == at ? ">" : " ", i, steps[i].bytes);
    for (const std::int64_t freed : steps[i].freed) text += fmt::format(" {}", freed);
    text += "\n";
  }
  return text;
}

// An optimizer goes from parameter to parameter: where they were made in another order, so are its
// lists. A list: sizes that are allocated one after another, and the sizes that are freed then.
struct SizeList {
  std::multiset<std::int64_t> allocated, freed;
  bool operator==(const SizeList&) const = default;
};

// What is freed from `ended` on belongs to the end of the program.
std::vector<SizeList> lists_of(const std::vector<Step>& steps, std::size_t begin, std::size_t end,
                               std::size_t ended) {
  std::vector<SizeList> lists(1);
  for (std::size_t i = begin; i < std::min(end, steps.size()); ++i) {
    lists.back().allocated.insert(steps[i].bytes);
    if (i >= ended) continue;
    for (const std::int64_t number : steps[i].freed)
      lists.back().freed.insert(steps[static_cast<std::size_t>(number)].bytes);
    if (!steps[i].freed.empty()) lists.emplace_back();
  }
  return lists;
}

// One past the last step of the optimizer that begins at `begin`; `begin` when none does.
std::size_t end_of_optimizer(const std::vector<Step>& recorded, std::size_t begin) {
  std::size_t end = begin;
  while (end < recorded.size() && recorded[end].phase == "step") ++end;
  return end;
}

}  // namespace

void expect_rows_agree(const std::vector<OracleRow>& rows, const NetworkMaker& make) {
  std::multimap<double, std::string> deviations;
  for (const OracleRow& row : rows) {
    SCOPED_TRACE(row.id);
    const Deviation worst = compare_row(row, make);
    if (worst.share != 0) deviations.emplace(-std::abs(worst.share), worst.what);
  }
  fmt::print("{} of {} rows exact; the worst:\n", rows.size() - deviations.size(), rows.size());
  int shown = 0;
  for (const auto& [share, what] : deviations) {
    if (++shown > 12) break;
    fmt::print("{:9.5f} %  {}\n", -100 * share, what);
  }
}

void expect_trace_agrees(const std::string& name, const std::vector<OracleRow>& rows,
                         const NetworkMaker& make, ParameterOrder order) {
  const RecordedTrace recorded = read_recorded(name);
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const OracleRow& r) { return r.id == recorded.case_id; });
  ASSERT_NE(row, rows.end()) << recorded.case_id;
  const OracleResult result = run_oracle_row(*row, make, true);
  const std::vector<Step> expected = steps_of(recorded.events, recorded.initial);
  std::vector<Step> actual = steps_of(result.events, recorded.initial);
  for (std::size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    // What comes after the last step of the recording belongs to the end of the program.
    if (i + 1 == expected.size()) break;
    if (order == ParameterOrder::kOther) {
      const std::size_t end = end_of_optimizer(expected, i);
      if (end > i) {
        const std::size_t ended = expected.size() - 1;
        ASSERT_TRUE(lists_of(expected, i, end, ended) == lists_of(actual, i, end, ended))
            << "step " << i;
        i = end - 1;
        continue;
      }
    }
    ASSERT_TRUE(expected[i] == actual[i]) << "recorded:\n"
                                          << shown(expected, i) << "ours:\n"
                                          << shown(actual, i);
  }
  EXPECT_EQ(expected.size(), actual.size());
}

}  // namespace memfathom
