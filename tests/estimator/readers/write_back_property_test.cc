// Over random set-ups in each format: every suggestion, said in the words of the files, read again
// and answered, gives exactly the figure it promised.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "core/yaml_text.h"
#include "estimator/advise/recommend.h"
#include "estimator/job/read_job.h"
#include "estimator/readers/merge.h"
#include "estimator/readers/resolve_auto.h"
#include "estimator/readers/write_back.h"
#include "tests/estimator/advise/estimate_dry.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

std::string model_folder() { return test_data().string() + "/readers/tiny-llama"; }

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : random_(seed) {}
  std::int64_t below(int count) {
    return std::uniform_int_distribution<std::int64_t>(0, count - 1)(random_);
  }
  bool coin() { return below(2) == 0; }
  template <std::size_t N>
  const char* one_of(const char* const (&words)[N]) {
    return words[below(N)];
  }

 private:
  std::mt19937 random_;
};

// A set-up: files, and what would stand on the command line.
struct SetUp {
  std::vector<ParsedFile> files;
  Patch flags;
};

void add_file(const std::string& text, const std::string& name, SetUp& setup) {
  const Node tree = parse_document(text, name);
  read_with_sections(tree, detect_format(tree), setup.files);
}

SetUp set_up(Dice& dice) {
  SetUp setup;
  setup.flags = {{"parallel.num_gpus", Node::integer(1 + dice.below(4))},
                 {"target.memory", Node::string(fmt::format("{}MiB", 1480 + dice.below(500)))}};
  return setup;
}

void add_model(SetUp& setup) {
  for (ParsedFile& parsed : read_path(model_folder() + "/config.json"))
    setup.files.push_back(std::move(parsed));
}

std::string arguments_text(Dice& dice) {
  return fmt::format(
      R"({{"output_dir": "out", "per_device_train_batch_size": {}, "gradient_accumulation_steps": {},
          "{}": {}, "optim": "{}", "gradient_checkpointing": {}, "max_length": {}}})",
      1 + dice.below(24), 1 + dice.below(4), dice.one_of({"bf16", "fp16"}),
      dice.coin() ? "true" : "false", dice.one_of({"adamw_torch", "adamw_torch_fused", "sgd"}),
      dice.below(3) == 0 ? "true" : "false", 64 * (1 + dice.below(8)));
}

SetUp training_arguments(Dice& dice) {
  SetUp setup = set_up(dice);
  add_model(setup);
  add_file(arguments_text(dice), "args.json", setup);
  return setup;
}

SetUp deepspeed(Dice& dice) {
  SetUp setup = set_up(dice);
  add_model(setup);
  if (dice.coin()) add_file(arguments_text(dice), "args.json", setup);
  const bool automatic = setup.files.size() > 1;
  add_file(fmt::format(R"({{"train_micro_batch_size_per_gpu": {}, "gradient_accumulation_steps": {},
                           "bf16": {{"enabled": {}}},
                           "zero_optimization": {{"stage": {}, "reduce_bucket_size": {},
                             "offload_optimizer": {{"device": "{}"}}}}}})",
                       automatic ? "\"auto\"" : fmt::format("{}", 1 + dice.below(24)),
                       automatic ? "\"auto\"" : fmt::format("{}", 1 + dice.below(4)),
                       automatic ? "\"auto\"" : "true", 1 + dice.below(3),
                       dice.coin() ? "\"auto\"" : "200000", dice.one_of({"none", "cpu"})),
           "ds.json", setup);
  if (!automatic) setup.flags.push_back({"training.sequence_length", Node::integer(256)});
  return setup;
}

SetUp accelerate(Dice& dice) {
  SetUp setup = set_up(dice);
  add_model(setup);
  const std::string kind = dice.one_of({"MULTI_GPU", "FSDP", "DEEPSPEED"});
  std::string text = fmt::format(
      "compute_environment: LOCAL_MACHINE\ndistributed_type: {}\nmixed_precision: {}\n"
      "num_processes: {}\ngradient_accumulation_steps: {}\n",
      kind, dice.one_of({"\"no\"", "bf16"}), 1 + dice.below(4), 1 + dice.below(3));
  if (kind == "FSDP") text += "fsdp_config: {fsdp_sharding_strategy: FULL_SHARD}\n";
  if (kind == "DEEPSPEED")
    text += fmt::format("deepspeed_config: {{zero_stage: {}}}\n", 1 + dice.below(3));
  add_file(text, "accelerate.yaml", setup);
  setup.flags = {setup.flags.back(),
                 {"training.sequence_length", Node::integer(64 * (1 + dice.below(8)))},
                 {"training.batch_size", Node::integer(1 + dice.below(24))}};
  return setup;
}

SetUp axolotl(Dice& dice) {
  SetUp setup = set_up(dice);
  std::string text = fmt::format(
      "base_model: {}\nmicro_batch_size: {}\ngradient_accumulation_steps: {}\nsequence_len: {}\n"
      "optimizer: {}\n{}: {}\ngradient_checkpointing: {}\nflash_attention: {}\n",
      model_folder(), 1 + dice.below(24), 1 + dice.below(4), 64 * (1 + dice.below(8)),
      dice.one_of({"adamw_torch", "adamw_bnb_8bit", "adafactor"}),
      dice.one_of({"bf16", "bfloat16", "fp16"}), dice.coin() ? "true" : "false",
      dice.below(3) == 0 ? "true" : "false", dice.coin() ? "true" : "false");
  if (dice.coin())
    text += fmt::format("adapter: {}\nlora_r: {}\nlora_target_linear: {}\n",
                        dice.one_of({"lora", "qlora"}), 1 << (2 + dice.below(4)),
                        dice.coin() ? "true" : "false");
  add_file(text, "axolotl.yaml", setup);
  return setup;
}

SetUp llama_factory(Dice& dice) {
  SetUp setup = set_up(dice);
  std::string text = fmt::format(
      "model_name_or_path: {}\nper_device_train_batch_size: {}\ngradient_accumulation_steps: {}\n"
      "cutoff_len: {}\noptim: {}\n{}: true\ndisable_gradient_checkpointing: {}\n"
      "finetuning_type: {}\n",
      model_folder(), 1 + dice.below(24), 1 + dice.below(4), 64 * (1 + dice.below(8)),
      dice.one_of({"adamw_torch", "adamw_bnb_8bit", "adafactor"}),
      dice.one_of({"bf16", "pure_bf16", "fp16"}), dice.coin() ? "true" : "false",
      dice.one_of({"lora", "full"}));
  if (dice.coin()) text += "lora_target: q_proj,v_proj\n";
  add_file(text, "llama_factory.yaml", setup);
  return setup;
}

SetUp job_yaml(Dice& dice) {
  SetUp setup;
  add_file(fmt::format("model: {{config: {}}}\ntraining: {{batch_size: {}, sequence_length: {}, "
                       "precision: {}}}\nparallel: {{num_gpus: {}}}\ntarget: {{memory: {}MiB}}\n",
                       model_folder(), 1 + dice.below(24), 64 * (1 + dice.below(8)),
                       dice.one_of({"fp32", "bf16", "amp-bf16"}), 1 + dice.below(4),
                       1480 + dice.below(500)),
           "job.yaml", setup);
  return setup;
}

Node document_of(const std::vector<ParsedFile>& files, const Patch& left_over, const Patch& flags) {
  MergedJob job = merge_files(files);
  Node document = patched(std::move(job.document), flags);
  resolve_auto_values(files, document, job);
  return patched(std::move(document), left_over);
}

// As a user would: each file's patch as text, read again, laid over the file, and the file read.
std::vector<ParsedFile> applied(const std::vector<ParsedFile>& files, const WrittenBack& written) {
  std::vector<ParsedFile> parsed_files;
  for (const ParsedFile& file : files) {
    if (!file.section.empty()) continue;
    Node content = file.content;
    for (const ChangedFile& changed : written.files) {
      if (changed.file != file.file) continue;
      const bool json = file.file.ends_with(".json");
      const std::string text = json ? to_indented_json(changed.patch) : to_yaml(changed.patch);
      content =
          patched(std::move(content),
                  patch_of(parse_document(text, "patch" + std::string(json ? ".json" : ".yaml"))));
    }
    if (file.format == FileFormat::kModelConfig) {
      parsed_files.push_back(file);
    } else {
      read_with_sections(content, file.format, parsed_files);
    }
  }
  return parsed_files;
}

struct Counts {
  int checked = 0, whole = 0;  // suggestions; those that the files alone can say
};

Counts check(SetUp (*make)(Dice&), std::uint32_t seed) {
  Dice dice(seed);
  Counts counts;
  for (int i = 0; i < 12; ++i) {
    const SetUp setup = make(dice);
    const Node document = document_of(setup.files, {}, setup.flags);
    SCOPED_TRACE(to_yaml(document));
    const Recommendation recommendation = recommend(document, estimate_dry, {});
    const auto expect = [&](const Node& patch, Bytes peak) {
      const WrittenBack written = write_back(setup.files, patch_of(patch));
      SCOPED_TRACE(to_yaml(patch));
      const Node again = document_of(applied(setup.files, written), written.left_over, setup.flags);
      EXPECT_EQ(estimate_dry(read_job(again)).totals.device_peak, peak) << to_yaml(again);
      ++counts.checked;
      counts.whole += written.left_over.empty() ? 1 : 0;
    };
    for (const Suggestion& suggestion : recommendation.suggestions) {
      EXPECT_EQ(recommendation.base.totals.device_peak - suggestion.saves, suggestion.device_peak);
      expect(suggestion.patch, suggestion.device_peak);
    }
    for (const Configuration& configuration : recommendation.configurations)
      expect(configuration.patch, configuration.device_peak);
  }
  return counts;
}

TEST(WriteBackPropertyTest, TrainingArgumentsGiveExactlyTheFigure) {
  const Counts counts = check(training_arguments, 1);
  EXPECT_GT(counts.checked, 60);
  EXPECT_GT(counts.whole * 3, counts.checked);
}

TEST(WriteBackPropertyTest, DeepSpeedGivesExactlyTheFigure) {
  const Counts counts = check(deepspeed, 2);
  EXPECT_GT(counts.checked, 40);
  EXPECT_GT(counts.whole * 4, counts.checked);
}

TEST(WriteBackPropertyTest, AccelerateGivesExactlyTheFigure) {
  const Counts counts = check(accelerate, 3);
  EXPECT_GT(counts.checked, 40);
  EXPECT_GT(counts.whole * 10, counts.checked);
}

TEST(WriteBackPropertyTest, AxolotlGivesExactlyTheFigure) {
  const Counts counts = check(axolotl, 4);
  EXPECT_GT(counts.checked, 60);
  EXPECT_GT(counts.whole * 2, counts.checked);
}

TEST(WriteBackPropertyTest, LlamaFactoryGivesExactlyTheFigure) {
  const Counts counts = check(llama_factory, 6);
  EXPECT_GT(counts.checked, 60);
  EXPECT_GT(counts.whole * 3, counts.checked);
}

TEST(WriteBackPropertyTest, AJobFileSaysEverything) {
  const Counts counts = check(job_yaml, 5);
  EXPECT_GT(counts.checked, 60);
  EXPECT_EQ(counts.whole, counts.checked);
}

}  // namespace
}  // namespace memfathom
