#include "estimator/run/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

struct Watched {
  DryRun run;
  Timeline timeline;
};

Watched watched(const std::string& training) {
  Watched result;
  DryRunOptions options;
  options.timeline = &result.timeline;
  const std::string text = R"({"model": )" + small_llama() + R"(, "training": )" + training + "}";
  result.run = run_dry(read_job(parse_json(text, "job.json")), options);
  return result;
}

constexpr const char* kTraining =
    R"({"batch_size": 2, "sequence_length": 64, "precision": "bf16"})";

TEST(TimelineTest, ReachesThePeakOfEveryPhaseThatItShows) {
  const Watched seen = watched(kTraining);
  for (std::size_t i = 0; i < seen.timeline.phases.size(); ++i) {
    std::int64_t highest = 0;
    for (const TimelinePoint& point : seen.timeline.points) {
      if (point.phase == i) highest = std::max(highest, point.allocated);
    }
    EXPECT_EQ(seen.timeline.phases[i].name, seen.run.phases[i].name);
    EXPECT_EQ(highest, seen.run.phases[i].allocated_peak) << seen.run.phases[i].name;
  }
}

TEST(TimelineTest, EndsWithTheSecondIteration) {
  const Watched seen = watched(kTraining);
  EXPECT_EQ(seen.timeline.phases.back().iteration, 2);
  EXPECT_EQ(seen.timeline.phases.back().name, "step");
}

TEST(TimelineTest, ComponentsOfAPointAddUpAndLieBelowWhatIsReserved) {
  const Watched seen = watched(kTraining);
  for (const TimelinePoint& point : seen.timeline.points) {
    EXPECT_EQ(std::accumulate(point.live.begin(), point.live.end(), std::int64_t{0}),
              point.allocated);
    EXPECT_LE(point.allocated, point.reserved);
  }
}

TEST(TimelineTest, WatchingChangesNothing) {
  const DryRun alone =
      run_job(R"({"model": )" + small_llama() + R"(, "training": )" + kTraining + "}");
  const DryRun run = watched(kTraining).run;
  EXPECT_EQ(run.allocated_peak, alone.allocated_peak);
  EXPECT_EQ(run.reserved_peak, alone.reserved_peak);
}

TEST(TimelineTest, ALongRunIsThinnedWithoutLosingItsPeak) {
  const Watched seen = watched(
      R"({"mode": "generate", "batch_size": 1, "sequence_length": 8, "new_tokens": 300, "precision": "bf16"})");
  EXPECT_LT(seen.timeline.points.size(), 1200U);
  std::int64_t highest = 0;
  for (const TimelinePoint& point : seen.timeline.points)
    highest = std::max(highest, point.allocated);
  EXPECT_EQ(Bytes{highest}, std::max(seen.run.allocated_peak, seen.run.first_allocated_peak));
}

}  // namespace
}  // namespace memfathom
