// What a training script says itself: defaults of its options, adapters, few bits.
#include "estimator/command_line/script_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "estimator/command_line/command_line.h"
#include "estimator/readers/merge.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string defaults_of(std::string_view python) {
  std::string text;
  for (const auto& [name, value] : read_script_text_of(python, "x.py").defaults)
    text += name + "=" + (value.is_string() ? value.as_string() : value.shown()) + " ";
  return text;
}

TEST(ScriptTextTest, ReadsArgumentsOfAParser) {
  EXPECT_EQ(
      defaults_of("p.add_argument(\"--train-batch-size\", type=int, default=16, help=\"a, b\")\n"
                  "p.add_argument(\n    '--rank',\n    default=(4),\n)\n"
                  "p.add_argument('--use_ema', action='store_true')\n"
                  "p.add_argument('--mixed_precision', default=None)\n"
                  "p.add_argument('--dtype', default='bf16', choices=['bf16', 'fp16'])\n"),
      "train_batch_size=16 dtype=bf16 ");
}

TEST(ScriptTextTest, ReadsFieldsAndParameters) {
  EXPECT_EQ(defaults_of("class Arguments:\n"
                        "    lora_r: int = field(default=64, metadata={'help': 'x'})\n"
                        "    bits: Optional[int] = field(\n        default=4,\n    )\n"
                        "    bf16: bool = True  # always\n"
                        "    targets: List[str] = None\n"
                        "def train(micro_batch_size: int = 4,\n"
                        "    cutoff_len: int = 256,\n"
                        "    name: str = \"\",\n"
                        "):\n"
                        "    half: int = cutoff_len // 2\n"),
            "lora_r=64 bits=4 bf16=true cutoff_len=256 ");
}

TEST(ScriptTextTest, ReadsListsThatAFactoryMakes) {
  EXPECT_EQ(defaults_of("class Arguments:\n"
                        "    targets: List[str] = field(\n"
                        "        default_factory=lambda: ['q_proj', 'v_proj'], metadata={})\n"
                        "    kwargs: dict = field(default_factory=dict)\n"
                        "p.add_argument('--blocks', default=[1, 2])\n"),
            "blocks=a list of 2 targets=a list of 2 ");
}

TEST(ScriptTextTest, UnfinishedCallsAreNoCrash) {
  for (const char* python : {"add_argument(", "add_argument('--a', default=", "  x: int = field(",
                             "  x: int =", "add_argument('--')", "  : ="})
    EXPECT_EQ(defaults_of(python), "") << python;
}

// A folder with a script; the command is read where it lies.
class ScriptBesideTest : public ::testing::Test {
 protected:
  MergedJob read(const std::string& python, const std::string& command) {
    std::ofstream(folder_.path() / "finetune.py") << python;
    return merge_files(read_script_text(command, (folder_.path() / "x.sh").string(), 0));
  }

  static std::string value(const MergedJob& job, std::string_view key) {
    const Node* found = value_at(job.document, key);
    if (found == nullptr) return "";
    return found->is_string() ? found->as_string() : found->shown();
  }

  static bool is_open(const MergedJob& job) {
    return std::any_of(job.unread.begin(), job.unread.end(),
                       [](const UnreadKey& key) { return !key.concerns.empty(); });
  }

  TemporaryDirectory folder_;
};

constexpr const char* kCommand =
    "python finetune.py --model_name_or_path Qwen/Qwen2.5-7B --max_length 512 "
    "--per_device_train_batch_size 2 --learning_rate 1e-4 --output_dir out";

TEST_F(ScriptBesideTest, DefaultsOfTheScriptAreTaken) {
  const MergedJob job =
      read("class A:\n    gradient_checkpointing: bool = True\n    bf16: bool = True\n", kCommand);
  EXPECT_EQ(value(job, "training.gradient_checkpointing"), "full");
  EXPECT_EQ(value(job, "training.precision"), "amp-bf16");
  EXPECT_THAT(job.assumptions, Contains(HasSubstr("gradient_checkpointing true, bf16 true")));
}

TEST_F(ScriptBesideTest, TheCommandWinsOverTheScript) {
  const MergedJob job = read("class A:\n    per_device_train_batch_size: int = 64\n", kCommand);
  EXPECT_EQ(value(job, "training.batch_size"), "2");
}

TEST_F(ScriptBesideTest, ALoopOfItsOwnHasPyTorchsOptimizer) {
  const auto has_default = [](const MergedJob& job) {
    return !job.files.back().default_optimizer.is_null();
  };
  EXPECT_TRUE(has_default(read("trainer = Trainer(model, args)\n", kCommand)));
  EXPECT_FALSE(has_default(read("optimizer = torch.optim.AdamW(model.parameters())\n", kCommand)));
}

TEST_F(ScriptBesideTest, AdaptersThatTheScriptMakesLeaveTheVerdictOpen) {
  EXPECT_TRUE(is_open(read("model = get_peft_model(model, config)\n", kCommand)));
  EXPECT_FALSE(is_open(read("trainer = Trainer(model)\n", kCommand)));
  // Behind an option of its own that the command leaves off.
  EXPECT_FALSE(
      is_open(read("class A:\n    use_lora: bool = False\nget_peft_model(m, c)\n", kCommand)));
}

TEST_F(ScriptBesideTest, WhatTheScriptDoesItselfLeavesTheVerdictOpen) {
  for (const char* python :
       {"import colossalai\n", "model = FSDP(model)\n", "engine = deepspeed.initialize(m)\n",
        "model.gradient_checkpointing_enable()\n", "with torch.autocast('cuda'):\n",
        "m = load(torch_dtype=torch.bfloat16)\n", "ema = ModelEmaV2(model)\n"})
    EXPECT_TRUE(is_open(read(python, kCommand))) << python;
  EXPECT_TRUE(
      is_open(read("model = fully_shard(model)\n", std::string(kCommand) + " --num_gpus 4")));
  const std::string checkpointed = std::string(kCommand) + " --gradient_checkpointing True";
  EXPECT_FALSE(is_open(read("model.gradient_checkpointing_enable()\n", checkpointed)));
  // Behind a switch of its own that the command leaves off.
  EXPECT_FALSE(
      is_open(read("p.add_argument('--use_ema', action='store_true')\nModelEmaV2(m)\n", kCommand)));
}

TEST_F(ScriptBesideTest, OtherScriptsThanTrlsHaveNoneOfItsDefaults) {
  const std::string command = std::string(kCommand) + " --use_peft";
  const MergedJob other = read("trainer = Trainer(model)\n", command);
  EXPECT_EQ(value(other, "training.gradient_checkpointing"), "");
  EXPECT_TRUE(is_open(other)) << "no rank is said";
  const MergedJob trl = read("from trl import ModelConfig, TrlParser\n", command);
  EXPECT_EQ(value(trl, "training.gradient_checkpointing"), "full");
}

TEST_F(ScriptBesideTest, APythonFileOfSettingsIsReadAndNamed) {
  std::ofstream(folder_.path() / "small.py") << "# small\nbatch_size = 12\nblock_size = 64\n"
                                                "n_layer = 4\nn_head = 4\nn_embd = 128\n";
  const MergedJob job =
      read("import torch\nbatch_size = 64\nexec(open('configurator.py').read())\n",
           "python finetune.py small.py --n_layer=2");
  EXPECT_EQ(value(job, "training.batch_size"), "12");
  EXPECT_EQ(value(job, "training.sequence_length"), "64");
  EXPECT_EQ(value(job, "model.config.n_layer"), "2");
  EXPECT_TRUE(is_open(job));
}

// The ranks of the script decide nothing while its switch of adapters is off.
TEST_F(ScriptBesideTest, ASwitchThatIsOffIsFullTraining) {
  const char* python =
      "class A:\n    use_lora: bool = False\n    lora_r: int = 64\n    lora_alpha: int = 16\n"
      "    lora_target_modules: List[str] = field(default_factory=lambda: ['q_proj', 'o_proj'])\n"
      "get_peft_model(m, c)\n";
  const MergedJob full = read(python, kCommand);
  EXPECT_EQ(value(full, "training.lora.rank"), "");
  EXPECT_FALSE(is_open(full));
  const MergedJob adapters = read(python, std::string(kCommand) + " --use_lora");
  EXPECT_EQ(value(adapters, "training.lora.rank"), "64");
  EXPECT_EQ(value_at(adapters.document, "training.lora.targets")->items().size(), 2U);
  EXPECT_FALSE(is_open(adapters));
}

TEST_F(ScriptBesideTest, FewBitsThatTheScriptLoadsLeaveTheVerdictOpen) {
  EXPECT_TRUE(is_open(read("m = AutoModel.from_pretrained(x, load_in_8bit=True)\n", kCommand)));
  EXPECT_FALSE(
      is_open(read("class A:\n    load_in_8bit: bool = False\n"
                   "m = load(load_in_8bit=True)\n",
                   kCommand)));
}

}  // namespace
}  // namespace memfathom
