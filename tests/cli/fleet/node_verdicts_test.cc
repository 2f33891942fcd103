#include "cli/fleet/node_verdicts.h"

#include <gtest/gtest.h>

namespace memfathom {
namespace {

using namespace literals;

BenchFile bench_of(Bytes context, const std::string& driver = "550", int repetitions = 3) {
  BenchFile file;
  file.environment.gpu = "virtual:a100";
  file.environment.architecture = "virtual";
  file.environment.memory_total = 24_GiB;
  file.environment.driver = driver;
  file.repetitions = repetitions;
  for (int i = 0; i < repetitions; ++i) {
    BenchRow row;
    row.name = "startup/context";
    row.repetition = i;
    row.counters["device_peak_bytes"] = context;
    row.counters["context_bytes"] = context;
    file.rows.push_back(row);
  }
  return file;
}

BenchedNode node(const std::string& name, BenchFile file, const std::string& type = "a100") {
  return {name, type, std::move(file), ""};
}

const std::map<std::string, BenchFile>& good() {
  static const std::map<std::string, BenchFile> baselines{{"a100", bench_of(300_MiB)}};
  return baselines;
}

TEST(NodeVerdictsTest, ANodeThatDiffersFromItsSiblingsIsAHardwareSuspect) {
  const std::vector<JudgedNode> judged = judge_nodes(
      {node("n1", bench_of(300_MiB)), node("n2", bench_of(700_MiB)), node("n3", bench_of(300_MiB))},
      good(), {});
  EXPECT_EQ(judged[0].verdict, NodeVerdict::kSame);
  EXPECT_EQ(judged[1].verdict, NodeVerdict::kSuspect);
  EXPECT_EQ(judged[1].siblings, 2);
  EXPECT_NE(judged[1].moved.find("700"), std::string::npos) << judged[1].moved;
  EXPECT_EQ(judged[1].blamed, "");
  EXPECT_EQ(judged[2].verdict, NodeVerdict::kSame);
}

TEST(NodeVerdictsTest, ATypeThatMovedWithADriverBlamesTheDriver) {
  const std::vector<JudgedNode> judged = judge_nodes(
      {node("n1", bench_of(700_MiB, "570")), node("n2", bench_of(700_MiB, "570"))}, good(), {});
  for (const JudgedNode& one : judged) {
    EXPECT_EQ(one.verdict, NodeVerdict::kVersion);
    EXPECT_NE(one.blamed.find("570"), std::string::npos) << one.blamed;
  }
}

TEST(NodeVerdictsTest, ATypeThatMovedWithoutAVersionIsSaidSo) {
  const std::vector<JudgedNode> judged =
      judge_nodes({node("n1", bench_of(700_MiB)), node("n2", bench_of(700_MiB))}, good(), {});
  EXPECT_EQ(judged[0].verdict, NodeVerdict::kMoved);
  EXPECT_EQ(judged[0].blamed, "");
}

TEST(NodeVerdictsTest, AnUpgradedNodeIsNotComparedWithNodesOfTheOldDriver) {
  const std::vector<JudgedNode> judged = judge_nodes(
      {node("n1", bench_of(300_MiB)), node("n2", bench_of(700_MiB, "570"))}, good(), {});
  EXPECT_EQ(judged[1].verdict, NodeVerdict::kVersion);
  EXPECT_EQ(judged[1].siblings, 0);
}

TEST(NodeVerdictsTest, WithoutBaselineAndSiblingsNothingIsDecided) {
  const std::vector<JudgedNode> judged =
      judge_nodes({node("n1", bench_of(300_MiB), "h100")}, {}, {});
  EXPECT_EQ(judged[0].verdict, NodeVerdict::kUndecided);
}

TEST(NodeVerdictsTest, AnotherGpuThanTheBaselinesIsNamed) {
  BenchFile other = bench_of(300_MiB);
  other.environment.memory_total = 80_GiB;
  const std::vector<JudgedNode> judged = judge_nodes({node("n1", other)}, good(), {});
  EXPECT_EQ(judged[0].verdict, NodeVerdict::kOtherGpu);
}

TEST(NodeVerdictsTest, ANodeWithoutAFileIsNotMeasured) {
  const std::vector<JudgedNode> judged =
      judge_nodes({{"n1", "a100", std::nullopt, "down*: PSU"}}, good(), {});
  EXPECT_EQ(judged[0].verdict, NodeVerdict::kNotMeasured);
  EXPECT_EQ(judged[0].moved, "down*: PSU");
}

TEST(NodeVerdictsTest, APoolHasTheRowsOfAtMostSixteenFiles) {
  const BenchFile file = bench_of(300_MiB);
  const std::vector<const BenchFile*> many(100, &file);
  const BenchFile pool = pooled(many);
  EXPECT_EQ(pool.rows.size(), 16U * 3U);
  EXPECT_EQ(pool.repetitions, 48);
  EXPECT_EQ(pool.rows.back().repetition, 47);
}

}  // namespace
}  // namespace memfathom
