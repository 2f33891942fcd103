// A job is resolved once: its files are read with it, and never by a run.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "estimator/advise/recommend.h"
#include "estimator/job/patch.h"
#include "estimator/job/read_job.h"
#include "estimator/run/dry_run.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

class CountedFiles final : public ModelFiles {
 public:
  Node config(const fs::path& path) const override { return ++opened_, ModelFiles::config(path); }
  std::vector<StoredTensor> stored_tensors(const fs::path& folder) const override {
    return ++opened_, ModelFiles::stored_tensors(folder);
  }
  Trace trace(const fs::path& path, const TraceSizes& sizes) const override {
    return ++opened_, ModelFiles::trace(path, sizes);
  }

  int opened() const { return opened_; }

 private:
  mutable int opened_ = 0;
};

constexpr const char* kLlama =
    R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "vocab_size": 1000})";

std::string safetensors(const std::string& header) {
  std::string prefix;
  for (std::size_t i = 0; i < 8; ++i)
    prefix.push_back(static_cast<char>(header.size() >> (8 * i) & 0xff));
  return prefix + header;
}

class ResolvedJobTest : public testing::Test {
 protected:
  void write(const char* name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  Node document(const std::string& model) const {
    return parse_yaml("model: " + model + "\ntraining: {batch_size: 2, sequence_length: 32}",
                      path("job.yaml"));
  }
  // Runs it twice after everything that it was read from is gone.
  void expect_runs_without_files(const Job& job) const {
    fs::remove_all(folder_.path());
    const DryRun first = run_dry(job, {});
    const DryRun second = run_dry(job, {});
    EXPECT_GT(first.allocated_peak.count(), 0);
    EXPECT_EQ(first.allocated_peak, second.allocated_peak);
    EXPECT_EQ(first.reserved_peak, second.reserved_peak);
  }

  TemporaryDirectory folder_;
  CountedFiles files_;
};

TEST_F(ResolvedJobTest, RunsOpenNoConfiguration) {
  write("config.json", kLlama);
  const Job job = read_job(document("{config: .}"), files_);
  EXPECT_EQ(files_.opened(), 1);
  expect_runs_without_files(job);
}

TEST_F(ResolvedJobTest, RunsOfOnePartOfTheModelOpenNoConfiguration) {
  write("config.json", kLlama);
  Node split = document("{config: config.json}");
  split.assign("parallel.tensor", Node::integer(2));
  split.assign("parallel.num_gpus", Node::integer(2));
  expect_runs_without_files(read_job(split, files_));
}

TEST_F(ResolvedJobTest, RunsOpenNoWeightsOfAnUnknownFamily) {
  write("config.json", R"({"model_type": "unheard-of", "hidden_size": 64})");
  write("model.safetensors",
        safetensors(
            R"({"embed.weight": {"dtype": "BF16", "shape": [1000, 64], "data_offsets": [0, 0]},
                        "layers.0.up.weight": {"dtype": "BF16", "shape": [64, 64], "data_offsets": [0, 0]}})"));
  const Job job = read_job(document("{config: config.json}"), files_);
  EXPECT_EQ(files_.opened(), 2);  // the configuration, and the header of the weights
  expect_runs_without_files(job);
}

TEST_F(ResolvedJobTest, WeightsOfAKnownFamilyAreNotOpened) {
  write("config.json", kLlama);
  write("model.safetensors", "damaged");
  EXPECT_NO_THROW(read_job(document("{config: config.json}"), files_));
  EXPECT_EQ(files_.opened(), 1);
}

TEST_F(ResolvedJobTest, RunsOpenNoTrace) {
  write("step.jsonl", R"({"schema":"memfathom.trace/1","device":"cuda"}
{"op":"phase","name":"forward","iteration":2}
{"op":"alloc","id":1,"bytes":1048576}
{"op":"free","id":1}
)");
  const Job job = read_job(parse_yaml("model: {trace: step.jsonl}", path("job.yaml")), files_);
  EXPECT_EQ(files_.opened(), 1);
  expect_runs_without_files(job);
}

TEST_F(ResolvedJobTest, ModulesAreResolvedWithTheJob) {
  write("config.json", kLlama);
  const Job job = read_job(
      document("{modules: [{model: {config: .}, train: frozen, no_grad: true}, {name: student, "
               "model: {config: config.json}}]}"),
      files_);
  ASSERT_NE(job.model.modules(), nullptr);
  const std::vector<ModuleSpec>& modules = job.model.modules()->modules;
  ASSERT_EQ(modules.size(), 2u);
  EXPECT_EQ(modules[0].name, "module 1");
  EXPECT_TRUE(modules[0].no_grad);
  EXPECT_EQ(modules[0].train->subset, TrainableSubset::kFrozen);
  EXPECT_EQ(modules[1].name, "student");
  EXPECT_FALSE(modules[1].train);
  EXPECT_EQ(files_.opened(), 2);
  expect_runs_without_files(job);
}

TEST_F(ResolvedJobTest, VariantsShareTheModel) {
  write("config.json", kLlama);
  const Node original = document("{config: config.json}");
  const Job job = read_job(original, files_);
  const Patch patch{{"training.batch_size", Node::integer(8)},
                    {"parallel.num_gpus", Node::integer(2)},
                    {"target.gpu", Node::string("rtx-4090")}};
  const Job variant = read_variant(patched(original, patch), job, files_);
  EXPECT_EQ(variant.training.batch_size, 8);
  EXPECT_TRUE(variant.model.shares_data_with(job.model));
  EXPECT_EQ(files_.opened(), 1);
}

TEST_F(ResolvedJobTest, AVariantWithAnotherModelIsResolvedAnew) {
  write("config.json", kLlama);
  const Node original = document("{config: config.json}");
  const Job job = read_job(original, files_);
  const Patch patch{{"model.train", Node::string("frozen")}};
  const Job variant = read_variant(patched(original, patch), job, files_);
  EXPECT_FALSE(variant.model.shares_data_with(job.model));
  EXPECT_EQ(variant.model.train()->subset, TrainableSubset::kFrozen);
  EXPECT_EQ(files_.opened(), 2);
}

TEST_F(ResolvedJobTest, TheSamePathInAnotherFileIsAnotherModel) {
  write("config.json", kLlama);
  const Node original = document("{config: config.json}");
  const Job job = read_job(original, files_);
  TemporaryDirectory elsewhere;
  std::ofstream(elsewhere / "config.json") << kLlama;
  const Node patch = parse_yaml("model: {config: config.json}", (elsewhere / "p.yaml").string());
  const Job variant = read_variant(patched(original, patch_of(patch)), job, files_);
  EXPECT_FALSE(variant.model.shares_data_with(job.model));
  EXPECT_EQ(variant.model.config()->config.file(), (elsewhere / "config.json").string());
}

TEST_F(ResolvedJobTest, CandidatesOfASearchShareTheModel) {
  write("config.json", kLlama);
  Node original = document("{config: config.json}");
  original.assign("target.memory", Node::string("1GiB"));
  const Job job = read_job(original, files_);
  fs::remove_all(folder_.path());
  std::atomic<int> candidates = 0;
  const auto answer = [&](const Job& candidate, std::optional<Bytes>) {
    ++candidates;
    EXPECT_TRUE(candidate.model.shares_data_with(job.model));
    EstimateContext context;
    context.capacity = Bytes{std::int64_t{1} << 30};
    return make_estimate(candidate, run_dry(candidate, {}), context);
  };
  recommend(original, answer, {}, job);
  EXPECT_GT(candidates, 10);
}

}  // namespace
}  // namespace memfathom
