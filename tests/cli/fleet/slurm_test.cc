#include "cli/fleet/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/fleet/node_array.h"
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

TEST(MaxArraySizeTest, IsReadFromTheConfiguration) {
  EXPECT_EQ(max_array_size_in(
                "Configuration data as of 2026\nMaxArraySize            = 4\nMaxDBDMsgs = 1\n"),
            4U);
  EXPECT_EQ(max_array_size_in(""), 1001U);
  EXPECT_EQ(max_array_size_in("MaxArraySize = (null)\n"), 1001U);
  EXPECT_EQ(max_array_size_in("MaxArraySize = 0\n"), 1U);
}

TEST(ArrayNodesTest, ANodeCountsOnceForEachTypeOfItsGpus) {
  const SlurmNode mixed{"n1", "idle", "", {{"a100", 2}, {"h100", 1}, {"a100", 2}}};
  const std::vector<ArrayNode> parts = array_nodes_of(mixed);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].label(), "n1@a100");
  EXPECT_EQ(parts[1].label(), "n1@h100");
  const std::vector<ArrayNode> plain = array_nodes_of({"n2", "idle", "", {{"", 4}}});
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_EQ(plain[0].label(), "n2");
  EXPECT_EQ(plain[0].type, "gpu");
  EXPECT_TRUE(healthy_array_nodes({{"n3", "down*", "", {{"a100", 1}}}}).empty());
}

}  // namespace
}  // namespace memfathom
