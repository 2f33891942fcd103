#include "estimator/advise/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "estimator/job/read_job.h"

namespace memfathom {
namespace {

using ::testing::ElementsAre;

Job job() {
  return read_job(parse_yaml("model: {preset: gpt2}\ntarget: {memory: 8GiB}", "job.yaml"));
}

TEST(GridTest, HasEveryCombinationAndTheLastDimensionVariesFastest) {
  const Grid grid = make_grid({"baseline,checkpointing", "batch=4,2"}, job());
  EXPECT_THAT(grid.columns, ElementsAre("strategy", "batch"));
  ASSERT_EQ(grid.rows.size(), 4U);
  EXPECT_THAT(grid.rows[1].names, ElementsAre("baseline", "2"));
  EXPECT_THAT(grid.rows[2].names, ElementsAre("checkpointing", "4"));
  EXPECT_TRUE(patch_tree(grid.rows[2].patch)
                  .same_value(parse_yaml("training: {gradient_checkpointing: full, batch_size: 4}",
                                         "x.yaml")));
}

TEST(GridTest, WithoutDimensionsThereIsOneRowThatChangesNothing) {
  const Grid grid = make_grid({}, job());
  ASSERT_EQ(grid.rows.size(), 1U);
  EXPECT_TRUE(grid.rows.front().patch.empty());
}

TEST(GridTest, AnotherGpuOverridesTheJobsMemory) {
  const Node document = parse_yaml("target: {memory: 8GiB, used_by_others: 1GiB}", "job.yaml");
  const Node changed = patched(document, make_grid({"gpu=rtx-4090"}, job()).rows.front().patch);
  EXPECT_TRUE(changed.same_value(parse_yaml("target: {gpu: rtx-4090}", "x.yaml")));
}

TEST(GridTest, NamesThatMeanNothingAndTablesWithoutEndAreRefused) {
  EXPECT_THROW(make_grid({"batch="}, job()), Error);
  EXPECT_THROW(make_grid({"baseline,chekpointing"}, job()), Error);
  std::string many = "batch=1";
  for (int i = 2; i <= 101; ++i) many += "," + std::to_string(i);
  EXPECT_THROW(make_grid({many, many}, job()), Error);
}

}  // namespace
}  // namespace memfathom
