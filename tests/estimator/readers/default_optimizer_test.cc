// Default optimizer: what the Trainer and axolotl take where no file names one.
#include "estimator/readers/default_optimizer.h"

#include <gtest/gtest.h>

#include "tests/estimator/readers/parsed_value.h"

namespace memfathom {
namespace {

// The optimizer, or its implementation, that is assumed for a job of these files; "" if none is.
std::string assumed(const char* yaml, const char* job = "{}") {
  Node document = parse_yaml(job, "job", 0);
  std::vector<std::string> assumptions;
  assume_optimizer({parse_config(yaml)}, document, assumptions);
  if (assumptions.empty()) return "";
  const Node& optimizer = *value_at(document, "training.optimizer");
  return (optimizer.is_map() ? optimizer.at("implementation") : optimizer).as_string();
}

TEST(DefaultOptimizerTest, TheTrainersDependsOnItsReleases) {
  EXPECT_EQ(assumed("{output_dir: x, per_device_train_batch_size: 2}"), "trainer");
  EXPECT_EQ(assumed("{model_name_or_path: x/y-8b, stage: sft, finetuning_type: full}"), "trainer");
}

TEST(DefaultOptimizerTest, AxolotlsIsFused) {
  EXPECT_EQ(assumed("{base_model: x/y-8b, micro_batch_size: 1}"), "adamw-fused");
}

TEST(DefaultOptimizerTest, LitgptPretrainsWithTheFusedForm) {
  const std::string train =
      "train: {micro_batch_size: 1, global_batch_size: 8, max_seq_length: 64}";
  const ParsedFile pretraining =
      parse_config(("{model_name: pythia-160m, optimizer: AdamW, " + train + "}").c_str());
  EXPECT_EQ(value_in(pretraining, "training.optimizer"), "adamw-fused");
  EXPECT_EQ(assumed(("{model_name: pythia-160m, " + train + "}").c_str()), "adamw-fused");
  EXPECT_EQ(assumed(("{checkpoint_dir: checkpoints/x/pythia-160m, " + train + "}").c_str()), "");
}

TEST(DefaultOptimizerTest, NothingIsAssumedWhereOneIsNamedOrNothingTrains) {
  EXPECT_EQ(assumed("{output_dir: x}", "{training: {optimizer: sgd}}"), "");
  EXPECT_EQ(assumed("{output_dir: x}", "{training: {mode: generate}}"), "");
}

TEST(DefaultOptimizerTest, OtherToolsLeavePyTorchsOwn) {
  EXPECT_EQ(assumed("{train_micro_batch_size_per_gpu: 1, zero_optimization: {stage: 2}}"), "");
}

}  // namespace
}  // namespace memfathom
