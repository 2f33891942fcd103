// Every row of the oracle as a job: read, built, run dry, compared with what PyTorch allocated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/job/read_job.h"
#include "estimator/run/dry_run.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

std::vector<Node> rows_of(const std::string& file) {
  const std::string path = shared_data().string() + "/oracle/jobs/" + file;
  std::ifstream input(path);
  std::vector<Node> rows;
  std::string line;
  for (int number = 1; std::getline(input, line); ++number) {
    rows.push_back(parse_json(line, path, number));
  }
  return rows;
}

DryRun run_row(const Node& row) {
  DryRunOptions options;
  options.policy = FrameworkPolicy::for_stack("2.15", 80);
  return run_dry(read_job(row.at("job")), options);
}

// The highest allocated bytes of a phase of the second iteration.
std::int64_t phase_peak(const DryRun& run, const std::string& phase) {
  std::int64_t peak = 0;
  for (const PhaseRecord& record : run.phases) {
    if (record.iteration == 2 && record.name == phase) peak = std::max(peak, record.allocated_peak);
  }
  return peak;
}

void expect_near(std::int64_t got, std::int64_t wanted, double tolerance, const std::string& what) {
  EXPECT_LE(std::abs(static_cast<double>(got - wanted)), tolerance * static_cast<double>(wanted))
      << what << ": " << got << " instead of " << wanted;
}

void compare(const Node& row, double tolerance) {
  const std::string& id = row.at("id").as_string();
  const DryRun run = run_row(row);
  const Node& expected = row.at("expected");
  expect_near(run.allocated_peak.count(), row.at("measured").at("bytes").as_int(), tolerance, id);
  for (const std::string phase : {"forward", "backward", "step"}) {
    const Node* peak = expected.find("peak_" + phase);
    if (peak != nullptr && !peak->is_null()) {
      expect_near(phase_peak(run, phase), peak->as_int(), tolerance,
                  std::string(id).append(" ").append(phase));
    }
  }
  if (const Node* count = expected.find("parameter_count")) {
    EXPECT_EQ(run.parameter_count, count->as_int()) << id;
  }
}

TEST(JobOracleTest, EveryLayerAllocatesWhatPyTorchAllocates) {
  const std::vector<Node> rows = rows_of("layers.jsonl");
  ASSERT_EQ(rows.size(), 146U);
  for (const Node& row : rows) compare(row, 0.005);
}

TEST(JobOracleTest, EveryModelAllocatesWhatPyTorchAllocates) {
  const std::vector<Node> rows = rows_of("models.jsonl");
  ASSERT_EQ(rows.size(), 168U);
  for (const Node& row : rows) compare(row, 0.01);
}

TEST(JobOracleTest, ComponentsOfThePeakAddUpToIt) {
  for (const Node& row : rows_of("layers.jsonl")) {
    const DryRun run = run_row(row);
    std::int64_t sum = 0;
    for (const ComponentBytes& module : run.at_peak) {
      for (const std::int64_t bytes : module) {
        EXPECT_GE(bytes, 0) << row.at("id").as_string();
        sum += bytes;
      }
    }
    EXPECT_EQ(sum, run.allocated_peak.count()) << row.at("id").as_string();
  }
}

}  // namespace
}  // namespace memfathom
