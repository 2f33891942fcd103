#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/layers/training_loop.h"
#include "kernels/memory/allocator/bare_allocator.h"
#include "tests/support/registered_model.h"

namespace memfathom {
namespace {

constexpr const char* kLlamaConfig =
    R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 3, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 100})";

// A model on the dry device in tensor-level accounts.
struct Bench {
  explicit Bench(const std::string& config, ModelSettings wanted = {}, BuildOptions options = {})
      : settings(std::move(wanted)), builder(session, std::move(options)) {
    if (settings.sequence_length == 0) settings.sequence_length = 16;
    network = make_registered_model(builder, parse_json(config, "config.json"), settings);
  }

  static FrameworkPolicy policy() {
    FrameworkPolicy made = FrameworkPolicy::for_stack("2.15", 80);
    made.count_workspaces = false;
    return made;
  }
  std::int64_t live(Component component) {
    std::int64_t bytes = 0;
    for (const ComponentBytes& module : session.ledger().live())
      bytes += module[static_cast<std::size_t>(component)];
    return bytes;
  }

  DryDevice device;
  BareAllocator allocator;
  Session session{device, allocator, device.workspaces(), policy()};
  ModelSettings settings;
  Builder builder;
  std::unique_ptr<Network> network;
};

struct ReferenceModel {
  const char* name;
  std::int64_t parameters;
  const char* config;
};

// Counted by the libraries themselves from the same configs.
constexpr ReferenceModel
    kKnown
        [] =
            {
                {"llama-2-7b", 6738415616,
                 R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000})"},
                {"falcon-7b", 6921720704,
                 R"({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71, "vocab_size": 65024})"},
                {"falcon-40b", 41303293952,
                 R"({"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128, "num_kv_heads": 8, "vocab_size": 65024, "new_decoder_architecture": true})"},
                {"starcoder", 15517456384,
                 R"({"model_type": "gpt_bigcode", "hidden_size": 6144, "num_hidden_layers": 40, "num_attention_heads": 48, "n_inner": 24576, "vocab_size": 49152, "n_positions": 8192, "multi_query": true})"},
                {"gpt-neox-20b", 20554567680,
                 R"({"model_type": "gpt_neox", "hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64, "intermediate_size": 24576, "vocab_size": 50432})"},
                {"pythia-1b", 1011781632,
                 R"({"model_type": "gpt_neox", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 8, "intermediate_size": 8192, "vocab_size": 50304})"},
                {"opt-350m", 331196416,
                 R"({"model_type": "opt", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "ffn_dim": 4096, "vocab_size": 50272, "word_embed_proj_dim": 512, "do_layer_norm_before": false})"},
                {"opt-1.3b", 1315758080,
                 R"({"model_type": "opt", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "ffn_dim": 8192, "vocab_size": 50272, "word_embed_proj_dim": 2048})"},
                {"gemma-2b", 2506172416,
                 R"({"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 16384, "vocab_size": 256000})"},
                {"gemma-2-9b", 9241705984,
                 R"({"model_type": "gemma2", "hidden_size": 3584, "num_hidden_layers": 42, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "intermediate_size": 14336, "vocab_size": 256000})"},
                {"granite-3-8b", 8170848256,
                 R"({"model_type": "granite", "hidden_size": 4096, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 12800, "vocab_size": 49155, "tie_word_embeddings": true})"},
                {"mixtral-8x7b", 46702792704,
                 R"({"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "num_local_experts": 8})"},
                {"olmo-7b", 6888095744,
                 R"({"model_type": "olmo", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 50304})"},
                {"olmo-2-7b", 7298617344,
                 R"({"model_type": "olmo2", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 100352})"},
                {"phi-3-mini", 3821079552,
                 R"({"model_type": "phi3", "hidden_size": 3072, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 8192, "vocab_size": 32064})"},
                {"qwen-7b", 7721324544,
                 R"({"model_type": "qwen", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 22016, "vocab_size": 151936})"},
                {"qwen3-8b", 8190735360, R"({"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936})"},
                {"roberta-base", 124697433,
                 R"({"model_type": "roberta", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1})"},
                {"distilbert", 66985530,
                 R"({"model_type": "distilbert", "dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072, "vocab_size": 30522})"},
                {"bert-base", 109514298,
                 R"({"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30522})"},
                {"gemma-3-1b", 999885952,
                 R"({"model_type": "gemma3_text", "hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 26, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "sliding_window": 512, "sliding_window_pattern": 6, "vocab_size": 262144})"},
                {"gemma-3-4b-text", 3880263168,
                 R"({"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 1024, "vocab_size": 262208})"},
                {"starcoder2-3b", 3030371328,
                 R"({"model_type": "starcoder2", "hidden_size": 3072, "intermediate_size": 12288, "num_hidden_layers": 30, "num_attention_heads": 24, "num_key_value_heads": 2, "vocab_size": 49152, "sliding_window": 4096})"},
                {"stablelm-2-1.6b", 1644515328,
                 R"({"model_type": "stablelm", "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 100352, "use_qkv_bias": true, "partial_rotary_factor": 0.25})"},
                {"stablelm-2-12b", 12143185920,
                 R"({"model_type": "stablelm", "hidden_size": 5120, "intermediate_size": 13824, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 100352, "qk_layernorm": true, "use_parallel_residual": true})"},
                {"command-r-35b", 34980831232,
                 R"({"model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": 64, "vocab_size": 256000})"},
                {"command-r-plus", 103810674688,
                 R"({"model_type": "cohere", "hidden_size": 12288, "intermediate_size": 33792, "num_hidden_layers": 64, "num_attention_heads": 96, "num_key_value_heads": 8, "use_qk_norm": true, "vocab_size": 256000})"},
                {"command-r7b", 8028033024, R"({"model_type": "cohere2", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 256000, "sliding_window": 4096, "sliding_window_pattern": 4})"},
                {"glm-4-9b", 9399951360,
                 R"({"model_type": "glm", "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 151552})"},
                {"glm-4-9b-0414", 9400094720,
                 R"({"model_type": "glm4", "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 151552, "attention_bias": false, "partial_rotary_factor": 0.5})"},
                {"smollm3-3b", 3075098624,
                 R"({"model_type": "smollm3", "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 128256})"},
                {"qwen1.5-moe-a2.7b", 14315784192,
                 R"({"model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 151936, "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632})"},
                {"olmo-3-7b", 7298011136,
                 R"({"model_type": "olmo3", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 100278, "sliding_window": 4096})"},
                {"seed-oss-36b", 36151104512,
                 R"({"model_type": "seed_oss", "hidden_size": 5120, "intermediate_size": 27648, "num_hidden_layers": 64, "num_attention_heads": 80, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 155136})"},
                {"phi-4-mini", 3836021760,
                 R"({"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 24, "num_key_value_heads": 8, "vocab_size": 200064, "partial_rotary_factor": 0.75, "tie_word_embeddings": true})"},
                {"internlm2-7b", 7737708544,
                 R"({"model_type": "internlm2", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 92544})"},
                {"deepseek-v2-lite", 15706484224,
                 R"({"model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944, "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 102400, "first_k_dense_replace": 1, "kv_lora_rank": 512, "q_lora_rank": null, "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "topk_method": "greedy"})"},
                {"deepseek-v3", 671026404352,
                 R"({"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "vocab_size": 129280, "first_k_dense_replace": 3, "kv_lora_rank": 512, "q_lora_rank": 1536, "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})"},
                {"gpt-oss-20b", 20914757184,
                 R"({"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088, "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128})"},
                {"gpt-oss-120b", 116829156672,
                 R"({"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088, "num_local_experts": 128, "num_experts_per_tok": 4, "sliding_window": 128})"},
};

class KnownModelTest : public testing::TestWithParam<ReferenceModel> {};

TEST_P(KnownModelTest, HasTheParametersTheLibraryCounts) {
  const Bench bench(GetParam().config);
  EXPECT_EQ(bench.builder.parameter_count(), GetParam().parameters) << GetParam().name;
}

TEST_P(KnownModelTest, TrainsWithEveryKindOfAttentionAndLeavesNothingBehind) {
  for (const AttentionImplementation attention :
       {AttentionImplementation::kAuto, AttentionImplementation::kEager,
        AttentionImplementation::kFlash}) {
    for (const Checkpointing checkpointing : {Checkpointing::kNone, Checkpointing::kFull}) {
      ModelSettings settings;
      settings.attention = attention;
      settings.checkpointing = checkpointing;
      Bench bench(GetParam().config, settings, {.dtype = DType::kBf16});
      LoopOptions options;
      options.optimizer.name = OptimizerName::kNone;
      options.batch_size = 2;
      TrainingLoop loop(bench.session, *bench.network, bench.builder.trainable(), options);
      loop.iterate();
      const std::int64_t after_one = bench.session.ledger().total();
      loop.iterate();
      EXPECT_EQ(bench.session.ledger().total(), after_one) << GetParam().name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, KnownModelTest, testing::ValuesIn(kKnown),
                         [](const auto& tested) {
                           std::string name = tested.param.name;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

std::string error_of(const std::string& config, const ModelSettings& settings = {}) {
  try {
    const Bench bench(config, settings);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

TEST(LanguageConfigTest, NamesTheKeyTheValueAndTheRemedyOfAHostileConfig) {
  const std::string begin =
      R"({"model_type": "llama", "intermediate_size": 160, "num_hidden_layers": 2, "vocab_size": 100, )";
  EXPECT_THAT(error_of(begin + R"("hidden_size": 64, "num_attention_heads": 0})"),
              testing::HasSubstr("num_attention_heads"));
  EXPECT_THAT(error_of(begin + R"("hidden_size": -64, "num_attention_heads": 4})"),
              testing::HasSubstr("hidden_size"));
  EXPECT_THAT(error_of(begin + R"("hidden_size": 1000000000000000000, "num_attention_heads": 4})"),
              testing::HasSubstr("hidden_size"));
  EXPECT_THAT(error_of(begin + R"("hidden_size": 65, "num_attention_heads": 4})"),
              testing::HasSubstr("divide hidden_size"));
  EXPECT_THAT(
      error_of(begin + R"("hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 3})"),
      testing::HasSubstr("num_key_value_heads"));
  EXPECT_THAT(
      error_of(begin + R"("hidden_size": 64, "num_attention_heads": 4, "hidden_act": "wobble"})"),
      testing::HasSubstr("wobble"));
  EXPECT_THAT(
      error_of(begin + R"("hidden_size": 64, "num_attention_heads": 4, "attention_dropout": 1.0})"),
      testing::HasSubstr("attention_dropout"));
  EXPECT_THAT(error_of(R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "vocab_size": 100})"),
              testing::HasSubstr("n_layer"));
}

TEST(LanguageConfigTest, AsksForTheSequenceLength) {
  DryDevice device;
  BareAllocator allocator;
  Session session(device, allocator, device.workspaces(), Bench::policy());
  Builder builder(session, {});
  try {
    make_registered_model(builder, parse_json(kLlamaConfig, "config.json"), {});
    FAIL() << "a model without a sequence length was built";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("training.sequence_length"));
  }
}

TEST(LanguageConfigTest, LeavesUnknownModelTypesToOthers) {
  const Bench bench(R"({"model_type": "resnet"})");
  EXPECT_EQ(bench.network, nullptr);
}

struct Generated {
  std::int64_t cache_after = 0;
  std::int64_t decode_peak = 0;
};

Generated generate(KvCache kind) {
  ModelSettings settings;
  settings.kv_cache = kind;
  settings.new_tokens = 4;
  Bench bench(kLlamaConfig, settings, {.dtype = DType::kBf16, .train = TrainableSubset::kFrozen});
  const NoGrad no_grad(bench.session);
  bench.session.training = false;
  bench.network->load_batch(8, false);
  Tensor logits = bench.network->prefill();
  bench.session.ledger().begin_phase("decode", 1);
  for (int i = 1; i < 4; ++i) logits = bench.network->decode();
  return {bench.live(Component::kKvCache), bench.session.ledger().phases().back().allocated_peak};
}

TEST(GenerationTest, TheCacheHoldsKeysAndValuesOfEveryTokenSeen) {
  // 2 tensors x 3 layers x [8, 2, tokens, 16] x 2 bytes; the last token made was not yet read.
  EXPECT_EQ(generate(KvCache::kDynamic).cache_after, 2 * 3 * 8 * 2 * 19 * 16 * 2 / 512 * 512 + 0);
  EXPECT_EQ(generate(KvCache::kStatic).cache_after, 2 * 3 * 8 * 2 * 20 * 16 * 2);
}

TEST(GenerationTest, ATupleCacheExistsTwiceWhileADynamicOneGrowsLayerByLayer) {
  EXPECT_GT(generate(KvCache::kTuple).decode_peak, generate(KvCache::kDynamic).decode_peak);
}

TEST(InferenceTest, APlainForwardKeepsItsCacheUntilTheNextOneIsDone) {
  ModelSettings settings;
  settings.use_cache = true;
  Bench bench(kLlamaConfig, settings, {.dtype = DType::kBf16, .train = TrainableSubset::kFrozen});
  const NoGrad no_grad(bench.session);
  bench.session.training = false;
  bench.network->load_batch(8, false);
  const Tensor first = bench.network->forward();
  const std::int64_t one = bench.live(Component::kKvCache);
  EXPECT_EQ(one, 2 * 3 * 8 * 2 * 16 * 16 * 2);
  const Tensor second = bench.network->forward();
  EXPECT_EQ(bench.live(Component::kKvCache), one);
}

TEST(FusedLossTest, NeverMaterialisesTheLogits) {
  const auto peak = [](bool fused) {
    ModelSettings settings;
    settings.fused_loss = fused;
    settings.sequence_length = 512;
    Bench bench(
        R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1,
                    "num_attention_heads": 1, "vocab_size": 32000})",
        settings, {.dtype = DType::kBf16});
    LoopOptions options;
    TrainingLoop loop(bench.session, *bench.network, bench.builder.trainable(), options);
    loop.iterate();
    std::int64_t most = 0;
    for (const PhaseRecord& phase : bench.session.ledger().phases())
      most = std::max(most, phase.allocated_peak);
    return most;
  };
  const std::int64_t logits = 512 * std::int64_t{32000} * 12;
  EXPECT_GT(peak(false), logits);
  EXPECT_LT(peak(true), logits / 4);
}

std::int64_t bytes_of(const Bench& bench, const std::string& name) {
  for (const NamedTensor& parameter : bench.builder.parameters()) {
    if (parameter.name == name)
      return parameter.tensor.elements() * bits_of(parameter.tensor.dtype()) / 8;
  }
  return -1;
}

TEST(StoredQuantizedTest, GptqAndAwqPackWeightsZerosAndScalesAndLeaveTheHeadWhole) {
  BuildOptions options;
  options.dtype = DType::kFp16;
  options.quantization = Quantization::kGptq;
  options.packed.group = 32;
  const Bench gptq(kLlamaConfig, {}, options);
  const std::string gate = "model.layers.1.mlp.gate_proj.";  // 64 -> 160
  EXPECT_EQ(bytes_of(gptq, gate + "qweight"), 64 * 160 / 2);
  EXPECT_EQ(bytes_of(gptq, gate + "qzeros"), 2 * 160 / 2);
  EXPECT_EQ(bytes_of(gptq, gate + "scales"), 2 * 160 * 2);
  EXPECT_EQ(bytes_of(gptq, gate + "g_idx"), 64 * 4);
  EXPECT_EQ(bytes_of(gptq, "lm_head.weight"), 100 * 64 * 2);
  EXPECT_EQ(gptq.builder.parameter_count(), Bench(kLlamaConfig).builder.parameter_count());

  options.quantization = Quantization::kAwq;
  options.packed.not_converted = {"down_proj"};
  const Bench awq(kLlamaConfig, {}, options);
  EXPECT_EQ(bytes_of(awq, gate + "g_idx"), -1);
  EXPECT_EQ(bytes_of(awq, "model.layers.1.mlp.down_proj.weight"), 160 * 64 * 2);
}

TEST(StoredQuantizedTest, Fp8AndMxfp4PackTheExpertsToo) {
  const std::string config =
      R"({"model_type": "gpt_oss", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
          "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 100, "num_local_experts": 4, "num_experts_per_tok": 2})";
  BuildOptions options;
  options.dtype = DType::kBf16;
  options.quantization = Quantization::kMxfp4;
  const Bench mxfp4(config, {}, options);
  EXPECT_EQ(bytes_of(mxfp4, "model.layers.0.mlp.experts.down_proj"), 4 * 64 * 64 / 2);
  EXPECT_EQ(bytes_of(mxfp4, "model.layers.0.mlp.experts.scales"), 4 * 128 * 64 / 32);
  EXPECT_EQ(bytes_of(mxfp4, "model.layers.0.self_attn.q_proj.weight"), 64 * 64 * 2);
  options.quantization = Quantization::kFp8;
  const Bench fp8(config, {}, options);
  EXPECT_EQ(bytes_of(fp8, "model.layers.0.mlp.experts.gate_up_proj"), 4 * 128 * 64);
  EXPECT_EQ(bytes_of(fp8, "model.layers.0.self_attn.q_proj.weight"), 64 * 64);
  EXPECT_EQ(fp8.builder.parameter_count(), mxfp4.builder.parameter_count());
}

TEST(AdapterTest, TargetsAreTheLastPartsOfTheLibrariesNames) {
  const auto adapters = [](const char* config, std::vector<std::string> targets) {
    BuildOptions options;
    options.train = TrainableSubset::kLora;
    options.lora = LoraOptions{.rank = 2, .targets = std::move(targets)};
    const Bench bench(config, {}, options);
    return bench.builder.trainable().size() / 2;
  };
  EXPECT_EQ(adapters(kLlamaConfig, {"q_proj", "v_proj"}), 6u);
  EXPECT_EQ(adapters(kLlamaConfig, {"all-linear"}), 21u);
  EXPECT_EQ(
      adapters(
          R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 3, "vocab_size": 100})",
          {"c_attn"}),
      3u);
  EXPECT_EQ(
      adapters(
          R"({"model_type": "falcon", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 3, "vocab_size": 100})",
          {"query_key_value"}),
      3u);
  EXPECT_EQ(
      adapters(
          R"({"model_type": "bert", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 3,
                         "intermediate_size": 64, "vocab_size": 100})",
          {"query", "value"}),
      6u);
  // Llama's names mean the same parts in families that call them otherwise.
  EXPECT_EQ(
      adapters(
          R"({"model_type": "phi", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 3,
                         "intermediate_size": 64, "vocab_size": 100})",
          {"q_proj", "o_proj", "up_proj", "down_proj"}),
      12u);
}

}  // namespace
}  // namespace memfathom
