#include "cli/fleet/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace memfathom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(GresTest, ReadsTypesAndCountsInEveryFormThatSlurmWrites) {
  EXPECT_THAT(gpus_in_gres("gpu:a100:4"), ElementsAre(GresGpus{"a100", 4}));
  EXPECT_THAT(gpus_in_gres("gpu:a100:4(S:0,2-3),gpu:h100:2"),
              ElementsAre(GresGpus{"a100", 4}, GresGpus{"h100", 2}));
  EXPECT_THAT(gpus_in_gres("gres:gpu:rtx_4090:1"), ElementsAre(GresGpus{"rtx_4090", 1}));
  EXPECT_THAT(gpus_in_gres("gres/gpu:h100=8"), ElementsAre(GresGpus{"h100", 8}));
  EXPECT_THAT(gpus_in_gres("gpu:2"), ElementsAre(GresGpus{"", 2}));
  EXPECT_THAT(gpus_in_gres("gpu"), ElementsAre(GresGpus{"", 1}));
  EXPECT_THAT(gpus_in_gres("gpu:t4"), ElementsAre(GresGpus{"t4", 1}));
}

TEST(GresTest, LeavesOutWhatIsNoGpu) {
  EXPECT_THAT(gpus_in_gres("(null)"), IsEmpty());
  EXPECT_THAT(gpus_in_gres(""), IsEmpty());
  EXPECT_THAT(gpus_in_gres("mps:200,shard:a100:4"), IsEmpty());
  EXPECT_THAT(gpus_in_gres("gpu:a b:1"), IsEmpty());
  EXPECT_THAT(gpus_in_gres("gpu:a100:-1"), IsEmpty());
  EXPECT_THAT(gpus_in_gres("gpu:a100:1:2:3"), IsEmpty());
  EXPECT_THAT(gpus_in_gres("gpu:a100:0"), IsEmpty());
}

TEST(SinfoTest, ANodeOfTwoPartitionsIsListedOnce) {
  const std::vector<SlurmNode> nodes =
      nodes_in("n1|idle|gpu:a100:4|none\nn1|idle|gpu:a100:4|none\nn2|down*|gpu:h100:1|PSU | fan\n");
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_TRUE(nodes[0].is_healthy());
  EXPECT_EQ(nodes[0].reason, "");
  EXPECT_FALSE(nodes[1].is_healthy());
  EXPECT_EQ(nodes[1].reason, "PSU | fan");
}

TEST(SinfoTest, NodesThatAcceptJobsAreHealthy) {
  for (const char* state : {"idle", "mixed", "allocated", "idle~", "idle$", "completing", "maint"})
    EXPECT_TRUE((SlurmNode{"n", state, "", {}}).is_healthy()) << state;
  for (const char* state : {"down", "down*", "idle*", "drained", "draining", "fail", "unknown", ""})
    EXPECT_FALSE((SlurmNode{"n", state, "", {}}).is_healthy()) << state;
}

TEST(SinfoTest, RefusesALineThatIsNoNode) {
  EXPECT_THROW(nodes_in("sinfo: error\n"), Error);
  EXPECT_THROW(nodes_in("../x|idle|gpu:1|none\n"), Error);
}

TEST(SlurmWordTest, OptionsAndPathsAreNoNames) {
  EXPECT_TRUE(is_slurm_word("gpu-long,debug"));
  for (const char* word : {"", "-p", "--wrap=x", "..", "a b", "a;b", "a$b", "a/b", "a\nb"})
    EXPECT_FALSE(is_slurm_word(word)) << word;
  EXPECT_FALSE(is_slurm_word(std::string(256, 'a')));
}

}  // namespace
}  // namespace memfathom
