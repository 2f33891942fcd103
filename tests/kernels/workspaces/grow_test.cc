#include "kernels/workspaces/fit/grow.h"

#include <gtest/gtest.h>

namespace memfathom {
namespace {

TreeTrainingRow row(float batch, std::int64_t bytes) {
  TreeTrainingRow made{};
  made.features[0] = batch;
  made.sizes = {4 << 20, 8 << 20, 1 << 20};
  made.bytes = bytes;
  return made;
}

TEST(GrowTreeTest, LearnsARuleWithOneThresholdExactly) {
  std::vector<TreeTrainingRow> rows;
  for (int i = 0; i < 100; ++i)
    rows.push_back(row(static_cast<float>(i), i < 40 ? 0 : (4 + 8 + 1) << 20));
  const auto& forms = kWorkspaceForms;
  const std::vector<FittedNode> nodes = grow_tree(rows, forms, 8);
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[0].feature, 0);
  EXPECT_FLOAT_EQ(nodes[0].threshold, 39.5F);
  EXPECT_EQ(bytes_of(forms[static_cast<std::size_t>(nodes[1].right)], rows[0].sizes), 0);
  EXPECT_EQ(bytes_of(forms[static_cast<std::size_t>(nodes[2].right)], rows[0].sizes), 13 << 20);
}

TEST(GrowTreeTest, LearnsAConstantAsOneLeaf) {
  std::vector<TreeTrainingRow> rows;
  for (int i = 0; i < 100; ++i) rows.push_back(row(static_cast<float>(i), 4 << 20));
  EXPECT_EQ(grow_tree(rows, kWorkspaceForms, 8).size(), 1U);
}

TEST(GrowTreeTest, LimitsTheNumberOfLeaves) {
  std::vector<TreeTrainingRow> rows;
  for (int i = 0; i < 200; ++i)
    rows.push_back(row(static_cast<float>(i), i / 20 % 2 == 0 ? 0 : 13 << 20));
  EXPECT_EQ(grow_tree(rows, kWorkspaceForms, 4).size(), 7U);
}

}  // namespace
}  // namespace memfathom
