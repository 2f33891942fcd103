// Every key of a foreign file is read, known to be harmless, or named.
#include "estimator/readers/unread_keys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"
#include "estimator/readers/merge.h"
#include "estimator/session/job_input.h"
#include "tests/estimator/readers/format_samples.h"
#include "tests/estimator/readers/parsed_value.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

using Sample = FormatSample;

ParsedFile parse(const Sample& sample, const std::string& more) {
  std::string yaml = sample.yaml;
  if (!more.empty()) yaml.insert(1, more + ", ");
  return read_tree(parse_yaml(yaml, "x.yaml"), sample.format);
}

std::string names(const ParsedFile& parsed) { return names_of(parsed.unread); }

class EveryFormat : public testing::TestWithParam<Sample> {};

TEST_P(EveryFormat, AnOrdinaryFileHasNoUnreadKey) {
  EXPECT_EQ(detect_format(parse_yaml(GetParam().yaml, "x.yaml")), GetParam().format);
  EXPECT_EQ(names(parse(GetParam(), "")), "");
}

TEST_P(EveryFormat, AnUnknownKeyIsNamedWithWhatItConcerns) {
  const ParsedFile parsed = parse(GetParam(),
                                  "wobble: 3, hidden_wobble_size: 512, wobble_type: bfloat16, "
                                  "section: {inner: {num_heads: 8}}");
  ASSERT_EQ(parsed.unread.size(), 4u) << names(parsed);
  EXPECT_EQ(parsed.unread[0].key, "wobble");
  EXPECT_EQ(parsed.unread[0].concerns, "");
  EXPECT_EQ(parsed.unread[1].concerns, "model");
  EXPECT_EQ(parsed.unread[2].concerns, "precision") << "by its value";
  EXPECT_EQ(parsed.unread[3].key, "section.inner.num_heads");
  EXPECT_EQ(parsed.unread[3].concerns, "model");
}

TEST_P(EveryFormat, ANearMissIsNamedWithTheKnownKey) {
  const FormatSample& sample = GetParam();
  Node tree = parse_yaml(sample.yaml, "x.yaml");
  // Without the right key, which would have been read.
  const std::string right = sample.nearest;
  if (const std::size_t dot = right.rfind('.'); dot == std::string::npos) {
    tree.erase(right);
  } else {
    Node section = *value_at(tree, right.substr(0, dot));
    section.erase(right.substr(dot + 1));
    tree.assign(right.substr(0, dot), std::move(section));
  }
  tree.assign(sample.typo, Node::integer(8));
  const ParsedFile parsed = read_tree(tree, sample.format);
  const auto key = std::find_if(parsed.unread.begin(), parsed.unread.end(),
                                [&](const UnreadKey& found) { return found.key == sample.typo; });
  ASSERT_NE(key, parsed.unread.end()) << names(parsed);
  EXPECT_EQ(key->nearest, sample.nearest);
  EXPECT_NE(key->concerns, "");
}

// Each key of the file, with a letter more: it is named, or was harmless before.
TEST_P(EveryFormat, EveryKeyThatIsReadIsNamedWhereItIsMisspelled) {
  const Node tree = parse_yaml(GetParam().yaml, "x.yaml");
  for (const Node& entry : tree.entries()) {
    if (entry.is_null() || entry.key() == "peft_type" || entry.key() == "r") continue;
    if (entry.is_list() && entry.items().empty()) continue;
    Node changed = tree;
    changed.erase(entry.key());
    const std::string typo = "zz" + std::string(entry.key());
    changed.set(typo, entry);
    const ParsedFile parsed = read_tree(changed, GetParam().format);
    const bool is_named =
        names(parsed).find(typo) != std::string::npos || harmless_reason(GetParam().format, typo);
    EXPECT_TRUE(is_named) << typo;
  }
}

INSTANTIATE_TEST_SUITE_P(Readers, EveryFormat, testing::ValuesIn(kFormatSamples),
                         [](const testing::TestParamInfo<Sample>& sample) {
                           std::string name = sample.param.name;
                           std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

TEST(UnreadKeysTest, SettingsThatAreOffConcernNothing) {
  EXPECT_EQ(concern_of("hidden_size", Node::integer(8)), "model");
  EXPECT_EQ(concern_of("load_in_2bit", Node::boolean(false)), "");
  EXPECT_EQ(concern_of("load_in_2bit", Node::boolean(true)), "precision");
  EXPECT_EQ(concern_of("plugin", Node::string("hybrid_parallel")), "sharding");
  EXPECT_EQ(concern_of("distplan", Node::string("CAI_Gemini")), "sharding");
  EXPECT_EQ(concern_of("plan", Node::string("low_level_zero")), "sharding");
  EXPECT_EQ(concern_of("colour", Node::string("data/lora/x")), "") << "a path";
  EXPECT_EQ(concern_of("colour", Node::string("zero-shot")), "");
  EXPECT_EQ(concern_of("colour", Node::string("zero shot in parallel")), "") << "a sentence";
  EXPECT_EQ(concern_of("arbitrary", Node::integer(8)), "");
  EXPECT_EQ(concern_of("style", Node::string("torch.bfloat16")), "precision");
  EXPECT_EQ(concern_of("style", Node::string("paged_adamw_8bit")), "optimizer");
}

TEST(UnreadKeysTest, EachFileHasASentence) {
  const std::vector<UnreadKey> keys{{"a.yml", "wobble", "", ""},
                                    {"b.yml", "colour", "", ""},
                                    {"a.yml", "hiden_dim", "model", "hidden_dim"}};
  EXPECT_THAT(unread_sentences(keys),
              testing::ElementsAre("a.yml: these keys were not read: hiden_dim (did you mean "
                                   "hidden_dim?), wobble; they may affect memory",
                                   "b.yml: these keys were not read: colour; none of their names "
                                   "suggests a setting that affects memory"));
}

TEST(UnreadKeysTest, ASectionThatIsNotModelledIsNamedAsAWhole) {
  const ParsedFile parsed = parse_config(
      "{distributed_type: MULTI_GPU, fp8_config: {backend: TE, amax_history_len: 16}, "
      "num_processes: 2}");
  EXPECT_EQ(names(parsed), "fp8_config");
  EXPECT_EQ(parsed.unread.front().concerns, "precision");
  EXPECT_THAT(parsed.not_modelled, Contains(HasSubstr("fp8_config")));
}

TEST(UnreadKeysTest, KeysOfASectionAreNamedByTheirPathInTheFile) {
  std::vector<ParsedFile> files;
  read_with_sections(
      parse_yaml("{output_dir: x, deepspeed: {zero_optimization: {stage: 2, stages: 3}}}",
                 "x.yaml"),
      FileFormat::kTrainingArguments, files);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(names(files[0]), "");
  EXPECT_EQ(names(files[1]), "deepspeed.zero_optimization.stages");
}

TEST(UnreadKeysTest, EveryKeyOfAConfigIsReadHarmlessOrNamed) {
  const TemporaryDirectory directory;
  const auto unread_of = [&](const char* heads) {
    const std::filesystem::path file = directory / "config.json";
    std::ofstream(file) << fmt::format(
        R"({{"model_type": "llama", "hidden_size": 64, "intermediate_size": 160,
            "num_hidden_layers": 2, "num_attention_heads": 4, "{}": 2, "vocab_size": 100,
            "transformers_version": "4.40.0", "bos_token_id": 1, "hidden_act": "silu",
            "wobble": 3, "num_wobble_heads": 8, "use_wobble_heads": true}})",
        heads);
    return read_path(file.string()).front();
  };
  const ParsedFile right = unread_of("num_key_value_heads");
  EXPECT_EQ(names(right), "wobble, num_wobble_heads, use_wobble_heads");
  ASSERT_EQ(right.unread.size(), 3u);
  EXPECT_EQ(right.unread[0].concerns, "");
  EXPECT_EQ(right.unread[1].concerns, "model");
  EXPECT_EQ(right.unread[2].concerns, "") << "a flag is no size";
  EXPECT_EQ(names(unread_of("num_key_value_head")),
            "num_key_value_head (did you mean num_key_value_heads?), wobble, num_wobble_heads, "
            "use_wobble_heads");
  // Its folder, and a job that only names the folder, say the same.
  EXPECT_EQ(names(read_path(directory.path().string()).front()).substr(0, 18),
            "num_key_value_head");
  const JobInput by_name = complete_job(
      parse_yaml(fmt::format("{{model: {{config: {}}}, training: {{sequence_length: 8}}}}",
                             directory.path().string()),
                 "job.yaml"));
  EXPECT_EQ(by_name.files.unread.size(), 4u);
}

ParsedFile config_with(const std::string& entries) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory / "config.json";
  std::ofstream(file) << R"({"model_type": "bert", "hidden_size": 64, "intermediate_size": 160,
      "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
      "max_position_embeddings": 64, "type_vocab_size": 2, )" +
                             entries + "}";
  return read_path(file.string()).front();
}

TEST(UnreadKeysTest, AFlagOfAConfigThatIsOffIsHarmlessAndNamedWhereItChangesTheModel) {
  EXPECT_EQ(names(config_with(R"("add_cross_attention": false, "output_attentions": false,
                                 "gradient_checkpointing": false, "pruned_heads": {},
                                 "position_embedding_type": "absolute",
                                 "_attn_implementation": "sdpa")")),
            "");
  for (const char* set : {R"("add_cross_attention": true)", R"("output_attentions": true)",
                          R"("gradient_checkpointing": true)", R"("_attn_implementation": "eager")",
                          R"("attn_implementation": "eager")", R"("output_hidden_states": true)",
                          R"("output_router_logits": true)", R"("use_weighted_layer_sum": true)"}) {
    const ParsedFile parsed = config_with(set);
    ASSERT_EQ(parsed.unread.size(), 1u) << set;
    EXPECT_NE(parsed.unread[0].concerns, "") << set;
  }
  EXPECT_EQ(config_with(R"("position_embedding_type": "relative_key")").unread.size(), 1u);
  EXPECT_EQ(config_with(R"("pruned_heads": {"0": [1, 2]})").unread.size(), 1u);
}

TEST(UnreadKeysTest, ASizeUnderItsSecondNameIsInDoubtOnlyWhereItDiffers) {
  EXPECT_EQ(names(config_with(R"("n_layer": 2, "n_head": 4)")), "");
  EXPECT_EQ(names(config_with(R"("n_layer": 3)")).substr(0, 7), "n_layer");
}

JobInput input_of(const char* yaml) {
  const Node tree = parse_yaml(yaml, "x.yaml");
  JobInput input;
  input.files = merge_files({read_tree(tree, detect_format(tree))});
  input.document = input.files.document;
  complete(input);
  return input;
}

TEST(UnreadKeysTest, AKeyThatMayChangeTheMemoryLeavesTheVerdictUndecided) {
  const auto verdict_with = [](const char* yaml) {
    Estimate estimate;
    estimate.verdict.status = VerdictStatus::kFits;
    estimate.verdict.probability_fits = 0.99;
    input_of(yaml).annotate(estimate);
    return estimate;
  };
  const Estimate undecided = verdict_with(
      "{base_model: gpt2, micro_batch_size: 1, sequence_len: 64, some_quantization: int3}");
  EXPECT_EQ(undecided.verdict.status, VerdictStatus::kUndecided);
  EXPECT_FALSE(undecided.verdict.probability_fits.has_value());
  EXPECT_THAT(undecided.warnings, Contains(HasSubstr("some_quantization")));
  ASSERT_EQ(undecided.unread.size(), 1u);
  const Estimate decided =
      verdict_with("{base_model: gpt2, micro_batch_size: 1, sequence_len: 64, colour: blue}");
  EXPECT_EQ(decided.verdict.status, VerdictStatus::kFits);
  EXPECT_THAT(decided.warnings, Contains(HasSubstr("colour")));
}

TEST(UnreadKeysTest, AJobWithoutFilesHasNone) {
  const JobInput input = complete_job(
      parse_yaml("{model: {preset: gpt2}, training: {sequence_length: 8}}", "job.yaml"));
  EXPECT_TRUE(input.files.unread.empty());
}

TEST(UnreadKeysTest, AdaptersOfEmbeddingsAreNamed) {
  const JobInput input = complete_job(parse_yaml(
      "{model: {preset: gpt2}, training: {sequence_length: 8, lora: {rank: 8, targets: [c_attn, "
      "transformer.wte]}}}",
      "job.yaml"));
  ASSERT_EQ(input.files.unread.size(), 1U);
  EXPECT_EQ(input.files.unread.front().key, "training.lora.targets: transformer.wte");
  EXPECT_TRUE(input.is_open());
}

TEST(UnreadKeysTest, AdaptersOfExpertsAreNamed) {
  const auto is_open = [](const std::string& rest) {
    return complete_job(parse_yaml("{model: {preset: mixtral-8x7b}, training: {sequence_length: 8, "
                                   "lora: {rank: 8, targets: " +
                                       rest,
                                   "job.yaml"))
        .is_open();
  };
  EXPECT_TRUE(is_open("[all-linear]}}}"));
  EXPECT_TRUE(is_open("[q_proj, w1]}}}"));
  EXPECT_FALSE(is_open("[q_proj, v_proj]}}}"));
  EXPECT_FALSE(is_open("[all-linear]}}, target: {stack: {transformers: 4.57.0}}}"));
}

TEST(UnreadKeysTest, AModelNamedByAFlagIsNotInDoubt) {
  const Node tree =
      parse_yaml("{model: {kind: strange, base_channels: 64}, batch_size: 2}", "x.yaml");
  JobInput input;
  input.files = merge_files({read_tree(tree, detect_format(tree))});
  input.document = input.files.document;
  input.document.assign("model.preset", Node::string("gpt2"));
  input.document.assign("training.sequence_length", Node::integer(8));
  EXPECT_NO_THROW(complete(input));
  Estimate estimate;
  estimate.verdict.status = VerdictStatus::kFits;
  input.annotate(estimate);
  EXPECT_EQ(estimate.verdict.status, VerdictStatus::kFits);
}

// The names in it say nothing; that of the section does.
TEST(UnreadKeysTest, AnUnreadSectionAboutMemoryLeavesTheVerdictOpen) {
  const auto is_open = [](const std::string& section) {
    const std::string yaml = "{model_name: gpt2, batch_size: 2, seq_len: 128, " + section + "}";
    return input_of(yaml.c_str()).is_open();
  };
  for (const char* section :
       {"lora: {r: 8, alpha: 16}", "peft: {kind: x}", "quantization: {group: 32}",
        "fsdp_options: {nested: {wrap: 3}}", "parallelism: {dp: 4}", "attention: {kind: 3}"})
    EXPECT_TRUE(is_open(section)) << section;
  for (const char* section :
       {"lora: {enabled: false, r: 8}", "lora: {seed: 3}", "optim: {betas: [0.9, 0.95]}",
        "dataset_tokens: {name: c4}", "notes: {lora: false}"})
    EXPECT_FALSE(is_open(section)) << section;
}

TEST(UnreadKeysTest, AModelWhoseOwnDescriptionWasNotReadIsRefused) {
  const auto refusal_of = [](const char* yaml) -> std::string {
    try {
      input_of(yaml);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal_of("{model: {name: fno, hidden_dim: 64, projection_channels: 128}, "
                         "batch_size: 2, resolution: 64}"),
              HasSubstr("these keys were not read: model.projection_channels;"));
  EXPECT_THAT(refusal_of("{model: {kind: odd, base_channels: 64}, batch_size: 2, resolution: 64}"),
              HasSubstr("model.base_channels"));
  EXPECT_THAT(refusal_of("{model_name: fno, hiden_dim: 256, num_layers: 4, batch_size: 2, "
                         "resolution: 64}"),
              HasSubstr("hiden_dim (did you mean hidden_dim?)"));
}

}  // namespace
}  // namespace memfathom
