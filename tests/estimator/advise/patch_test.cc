#include "estimator/job/patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/yaml_text.h"
#include "estimator/advise/changes.h"
#include "estimator/job/read_job.h"

namespace memfathom {
namespace {

using ::testing::HasSubstr;

TEST(PatchTest, ATreeAndItsChangesAreTheSameThing) {
  const Node tree = parse_yaml(
      "training: {batch_size: 3, lora: {rank: 8}, targets: [a, b]}\nparallel: {zero_stage: 2}",
      "p.yaml");
  EXPECT_TRUE(patch_tree(patch_of(tree)).same_value(tree));
  EXPECT_EQ(patch_of(tree).size(), 4U);
}

TEST(PatchTest, AWayThroughAListIsKeptAsOneKey) {
  const Node document =
      parse_yaml("model: {modules: [{name: a, train: full}, {name: b, train: full}]}", "job.yaml");
  const Node tree = patch_tree({{"model.modules[1].train", Node::string("frozen")}});
  const Node changed = patched(document, patch_of(parse_yaml(to_yaml(tree), "patch.yaml")));
  EXPECT_EQ(changed.at("model").at("modules").items()[1].at("train").as_string(), "frozen");
  EXPECT_EQ(changed.at("model").at("modules").items()[0].at("train").as_string(), "full");
}

TEST(YamlTextTest, WhatIsWrittenIsReadBackAsTheSameValue) {
  const Node tree = parse_json(
      R"({"a": "yes", "b": "1.5", "c": [1, 2.0, null, "x: y"], "d": {"e": true, "f": {}}, "g": [{"h": 1}, [2, 3]],
                                   "key: odd": "line\nfeed", "i": "", "k": -1e300, "l": "expandable_segments:True", "m": [], "n": "é"})",
      "x.json");
  const std::string yaml = to_yaml(tree);
  EXPECT_TRUE(parse_yaml(yaml, "y.yaml").same_value(tree)) << yaml;
  EXPECT_TRUE(parse_json(to_indented_json(tree), "z.json").same_value(tree));
}

TEST(StrategyTest, NamesKeysAndSumsOfThemBecomePatches) {
  const Job job = read_job(parse_yaml("model: {preset: gpt2}", "job.yaml"));
  const Node tree =
      patch_tree(strategy_patch("zero2+checkpointing+batch=4+training.attention=flash", job));
  EXPECT_TRUE(
      tree.same_value(parse_yaml("parallel: {zero_stage: 2}\ntraining: {gradient_checkpointing: "
                                 "full, batch_size: 4, attention: flash}",
                                 "x.yaml")));
  EXPECT_TRUE(strategy_patch("baseline", job).empty());
}

TEST(StrategyTest, AnUnknownNameIsRefusedWithTheNearest) {
  const Job job = read_job(parse_yaml("model: {preset: gpt2}", "job.yaml"));
  try {
    strategy_patch("checkpionting", job);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("checkpointing"));
  }
}

TEST(StrategyTest, EveryNamedStrategyIsAJobThatCanBeRead) {
  const Node document = parse_yaml("model: {preset: gpt2}\nparallel: {num_gpus: 2}", "job.yaml");
  for (const std::string_view name : strategy_names())
    EXPECT_NO_THROW(read_job(patched(document, strategy_patch(name, read_job(document))))) << name;
}

}  // namespace
}  // namespace memfathom
