// Encoders of text and images and encoder-decoders, recorded from PyTorch 2.15 and transformers
// 5.23 with fake tensors on the CPU: two samples, plain forward and backward. On the CPU a norm's
// statistics are in the input's type, which is why 16-bit rows agree to a few KiB only.
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "tests/estimator/models/recorded_step.h"

namespace memfathom {
namespace {

// clang-format off
constexpr const char* kDinov2 =
    R"({"model_type": "dinov2", "architectures": ["Dinov2ForImageClassification"], "hidden_size": 128, "num_hidden_layers": 4,
          "num_attention_heads": 4, "image_size": 112, "patch_size": 14, "num_labels": 10})";

constexpr const char* kDinov2Bare =
    R"({"model_type": "dinov2", "architectures": ["Dinov2Model"], "hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4,
          "image_size": 112, "patch_size": 14, "drop_path_rate": 0.1, "use_swiglu_ffn": true})";

constexpr const char* kModernbert =
    R"({"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 1000,
          "model_type": "modernbert", "local_attention": 64, "max_position_embeddings": 512})";

constexpr const char* kModernbertClass =
    R"({"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 1000,
          "model_type": "modernbert", "architectures": ["ModernBertForSequenceClassification"], "num_labels": 3,
          "classifier_pooling": "mean", "mlp_dropout": 0.1, "attention_dropout": 0.1, "embedding_dropout": 0.1, "classifier_dropout": 0.1})";

constexpr const char* kElectra =
    R"({"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 1000,
          "model_type": "electra", "embedding_size": 64})";

constexpr const char* kDinov2Registers =
    R"({"model_type": "dinov2_with_registers", "architectures": ["Dinov2WithRegistersForImageClassification"], "hidden_size": 128,
          "num_hidden_layers": 4, "num_attention_heads": 4, "image_size": 112, "patch_size": 14, "num_labels": 10})";

constexpr const char* kSiglip =
    R"({"model_type": "siglip", "text_config": {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 3,
          "num_attention_heads": 4, "vocab_size": 1000, "max_position_embeddings": 64, "projection_size": 128},
          "vision_config": {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
          "image_size": 112, "patch_size": 14}})";

constexpr const char* kSiglipVision =
    R"({"model_type": "siglip_vision_model", "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 4,
          "num_attention_heads": 4, "image_size": 112, "patch_size": 14})";

constexpr const char* kSiglipClass =
    R"({"model_type": "siglip", "architectures": ["SiglipForImageClassification"], "num_labels": 10,
          "vision_config": {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
          "image_size": 112, "patch_size": 14}})";

constexpr const char* kBart =
    R"({"model_type": "bart", "d_model": 128, "encoder_layers": 3, "decoder_layers": 4, "encoder_attention_heads": 4,
          "decoder_attention_heads": 4, "encoder_ffn_dim": 256, "decoder_ffn_dim": 256, "vocab_size": 1000, "max_position_embeddings": 256})";

constexpr const char* kMbart =
    R"({"model_type": "mbart", "d_model": 128, "encoder_layers": 3, "decoder_layers": 4, "encoder_attention_heads": 4,
          "decoder_attention_heads": 4, "encoder_ffn_dim": 256, "decoder_ffn_dim": 256, "vocab_size": 1000, "max_position_embeddings": 256,
          "scale_embedding": true, "activation_function": "relu", "dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.1})";

constexpr const char* kWhisperCached =
    R"({"model_type": "whisper", "d_model": 128, "encoder_layers": 3, "decoder_layers": 4, "encoder_attention_heads": 4,
          "decoder_attention_heads": 4, "encoder_ffn_dim": 512, "decoder_ffn_dim": 512, "vocab_size": 1000, "num_mel_bins": 80,
          "max_source_positions": 200, "max_target_positions": 128})";

constexpr const char* kElectraDisc =
    R"({"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 1000,
          "model_type": "electra", "embedding_size": 64, "architectures": ["ElectraForPreTraining"]})";

constexpr const char* kElectraClass =
    R"({"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 1000,
          "model_type": "electra", "embedding_size": 128, "architectures": ["ElectraForSequenceClassification"], "num_labels": 3})";

constexpr const char* kDebertaV2 =
    R"({"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 1000,
          "model_type": "deberta-v2", "relative_attention": true, "max_position_embeddings": 512, "position_buckets": 256,
          "norm_rel_ebd": "layer_norm", "share_att_key": true, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0,
          "position_biased_input": false, "max_relative_positions": -1, "pooler_hidden_size": 128})";

constexpr const char* kDebertaV2Class =
    R"({"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 1000,
          "model_type": "deberta-v2", "architectures": ["DebertaV2ForSequenceClassification"], "relative_attention": true,
          "max_position_embeddings": 512, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": true,
          "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0, "position_biased_input": false, "max_relative_positions": -1,
          "pooler_hidden_size": 128, "num_labels": 3})";

constexpr const char* kDinov2Larger =
    R"({"model_type": "dinov2", "architectures": ["Dinov2ForImageClassification"], "hidden_size": 128, "num_hidden_layers": 4,
          "num_attention_heads": 4, "image_size": 112, "patch_size": 14, "num_labels": 10})";

constexpr const char* kWhisper =
    R"({"model_type": "whisper", "d_model": 128, "encoder_layers": 3, "decoder_layers": 4, "encoder_attention_heads": 4,
          "decoder_attention_heads": 4, "encoder_ffn_dim": 512, "decoder_ffn_dim": 512, "vocab_size": 1000, "num_mel_bins": 80,
          "max_source_positions": 200, "max_target_positions": 128})";

struct Recorded {
  const char* config;
  const char* training;            // beside what all have
  std::int64_t forward, backward;  // highest live bytes
  std::int64_t parameters;
};

const Recorded kRecorded[] = {
    {kDinov2, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "sdpa", "image_size": 112)",
     4413952, 4651008, 880906},
    {kDinov2, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "attention": "sdpa", "image_size": 112)",
     2392064, 4036096, 880906},
    {kDinov2, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa", "image_size": 112)",
     8788992, 9259520, 880906},
    {kDinov2, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager", "image_size": 112)",
     9315328, 9785856, 880906},
    {kDinov2, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "eager", "image_size": 112)",
     4672000, 4909056, 880906},
    {kDinov2Bare, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "sdpa", "image_size": 112)",
     4823552, 4993536, 883136},
    {kDinov2Bare, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "attention": "sdpa", "image_size": 112)",
     2400768, 4108800, 883136},
    {kDinov2Bare, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa", "image_size": 112)",
     9601024, 9938432, 883136},
    {kDinov2Bare, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager", "image_size": 112)",
     10127360, 10464768, 883136},
    {kModernbert, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "sdpa")",
     9414656, 9926656, 802024},
    {kModernbert, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "attention": "sdpa")",
     4881408, 5393408, 802024},
    {kModernbert, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa")",
     15724544, 16748544, 802024},
    {kModernbert, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager")",
     16490496, 17514496, 802024},
    {kModernbertClass, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "sdpa")",
     7161856, 7311872, 801411},
    {kModernbertClass, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "attention": "sdpa")",
     2874368, 4295168, 801411},
    {kModernbertClass, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa")",
     13849088, 14228992, 801411},
    {kModernbertClass, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager")",
     17351168, 17616384, 801411},
    {kElectra, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "sdpa")",
     6023680, 6535680, 644648},
    {kElectra, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "attention": "sdpa")",
     2849280, 3436544, 644648},
    {kElectra, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa")",
     11712000, 12736000, 644648},
    {kElectra, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager")",
     16410112, 17434112, 644648},
    {kDinov2Registers, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "sdpa", "image_size": 112)",
     4566528, 4809728, 881418},
    {kDinov2Registers, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "attention": "sdpa", "image_size": 112)",
     2421760, 4084224, 881418},
    {kDinov2Registers, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa", "image_size": 112)",
     9094144, 9576960, 881418},
    {kDinov2Registers, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager", "image_size": 112)",
     9688064, 10170880, 881418},
    {kSiglip, R"("sequence_length": 64, "precision": "bf16", "gradient_checkpointing": "none", "attention": "sdpa", "image_size": 112)",
     5800448, 5901312, 1296514},
    {kSiglip, R"("sequence_length": 64, "precision": "bf16", "gradient_checkpointing": "full", "attention": "sdpa", "image_size": 112)",
     3363840, 5508096, 1296514},
    {kSiglip, R"("sequence_length": 64, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa", "image_size": 112)",
     11514368, 11718656, 1296514},
    {kSiglip, R"("sequence_length": 64, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager", "image_size": 112)",
     12410368, 12600832, 1296514},
    {kSiglipVision, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "sdpa", "image_size": 112)",
     3479552, 3414528, 746112},
    {kSiglipVision, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "attention": "sdpa", "image_size": 112)",
     2017280, 3021312, 746112},
    {kSiglipVision, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa", "image_size": 112)",
     6914048, 6782464, 746112},
    {kSiglipVision, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager", "image_size": 112)",
     7426048, 7294464, 746112},
    {kSiglipClass, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "sdpa", "image_size": 112)",
     3483136, 3421184, 747402},
    {kSiglipClass, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "attention": "sdpa", "image_size": 112)",
     2020864, 3027968, 747402},
    {kSiglipClass, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa", "image_size": 112)",
     6920192, 6794240, 747402},
    {kSiglipClass, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager", "image_size": 112)",
     7432192, 7306240, 747402},
    {kBart, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "sdpa", "target_sequence_length": 96)",
     10452992, 10836992, 1387136},
    {kBart, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "attention": "sdpa", "target_sequence_length": 96)",
     4258816, 6457344, 1387136},
    {kBart, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa", "target_sequence_length": 96)",
     20253184, 21021184, 1387136},
    {kBart, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager", "target_sequence_length": 96)",
     24530432, 25298432, 1387136},
    {kMbart, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "sdpa", "target_sequence_length": 96)",
     10964992, 11348992, 1387648},
    {kMbart, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "attention": "sdpa", "target_sequence_length": 96)",
     4377600, 6592512, 1387648},
    {kMbart, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa", "target_sequence_length": 96)",
     20881920, 21649920, 1387648},
    {kMbart, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager", "target_sequence_length": 96)",
     30565888, 31333888, 1387648},
    {kWhisperCached, R"("sequence_length": 96, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa", "use_cache": true)",
     30482944, 31250944, 1902336},
    {kElectraDisc, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "sdpa")",
     5046784, 5113344, 651905},
    {kElectraDisc, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "attention": "sdpa")",
     2067968, 3337216, 651905},
    {kElectraDisc, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa")",
     9757696, 9921024, 651905},
    {kElectraDisc, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager")",
     14455808, 14619136, 651905},
    {kElectraClass, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "sdpa")",
     5171200, 5305856, 740867},
    {kElectraClass, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "attention": "sdpa")",
     2259968, 3529728, 740867},
    {kElectraClass, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa")",
     9994240, 10292224, 740867},
    {kElectraClass, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager")",
     14692352, 14990336, 740867},
    {kDebertaV2, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager")",
     41002496, 42026496, 741736},
    {kDebertaV2Class, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager")",
     39239680, 39769088, 740867},
    {kDinov2Larger, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "sdpa", "image_size": 56)",
     2476544, 3597824, 880906},
    {kDinov2Larger, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "attention": "sdpa", "image_size": 56)",
     1935360, 3597824, 880906},
    {kDinov2Larger, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa", "image_size": 56)",
     4908544, 7141888, 880906},
    {kDinov2Larger, R"("sequence_length": 128, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager", "image_size": 56)",
     4939264, 7141888, 880906},
    {kWhisper, R"("sequence_length": 96, "precision": "bf16", "gradient_checkpointing": "none", "attention": "sdpa")",
     15992832, 16376832, 1902336},
    {kWhisper, R"("sequence_length": 96, "precision": "bf16", "gradient_checkpointing": "full", "attention": "sdpa")",
     6049280, 10079744, 1902336},
    {kWhisper, R"("sequence_length": 96, "precision": "fp32", "gradient_checkpointing": "none", "attention": "sdpa")",
     30482944, 31250944, 1902336},
    {kWhisper, R"("sequence_length": 96, "precision": "fp32", "gradient_checkpointing": "none", "attention": "eager")",
     37902848, 38670848, 1902336},
    {kDebertaV2, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "eager")",
     21650432, 22162432, 741736},
    {kDebertaV2, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "attention": "eager")",
     5475328, 8438784, 741736},
    {kDebertaV2Class, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "attention": "eager")",
     20886528, 20920320, 740867},
    {kDebertaV2Class, R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "attention": "eager")",
     5472256, 8178176, 740867},
};
// clang-format on

TEST(RecordedEncodersTest, EachAllocatesWhatPyTorchAllocates) {
  for (const Recorded& recorded : kRecorded) {
    const DryRun done = run_recorded(recorded_job(recorded.config, recorded.training));
    const std::string what = std::string(recorded.config) + " " + recorded.training;
    EXPECT_EQ(done.parameter_count, recorded.parameters) << what;
    expect_recorded(peak_of(done, "forward"), recorded.forward, what);
    expect_recorded(peak_of(done, "backward"), recorded.backward, what);
  }
}

// By name, at the size of an image.
struct RecordedClassifier {
  const char* preset;
  const char* training;
  std::int64_t forward, backward, parameters;
};

const RecordedClassifier kClassifiers[] = {
    {"efficientnet_v2_s", R"("image_size": 128, "precision": "fp32")", 188409344, 231129088,
     21458488},
    {"efficientnet_v2_s", R"("image_size": 128, "precision": "bf16")", 94297600, 115650048,
     21458488},
    {"mixer_b16_224", R"("precision": "fp32")", 473286144, 494045184, 59880472},
    {"mixer_b16_224", R"("precision": "bf16")", 236646400, 247029248, 59880472},
};

TEST(RecordedEncodersTest, SoDoClassifiersOfTorchvisionAndTimm) {
  for (const RecordedClassifier& recorded : kClassifiers) {
    const std::string model = std::string(R"({"preset": ")") + recorded.preset + "\"}";
    const DryRun done = run_recorded(recorded_job_of(model, recorded.training));
    EXPECT_EQ(done.parameter_count, recorded.parameters) << recorded.preset;
    expect_recorded(peak_of(done, "forward"), recorded.forward, recorded.preset);
    expect_recorded(peak_of(done, "backward"), recorded.backward, recorded.preset);
  }
}

// What is said about a config that cannot be right.
std::string refusal_of(const std::string& job) {
  try {
    run_recorded(job);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(EncoderFamiliesTest, LayerTypesOfAnotherNumberThanLayersAreRefused) {
  const std::string said = refusal_of(recorded_job(
      R"({"model_type": "modernbert", "num_hidden_layers": 3, "layer_types": ["full_attention"]})",
      R"("sequence_length": 64)"));
  EXPECT_NE(said.find("as many layers as num_hidden_layers"), std::string::npos) << said;
}

TEST(EncoderFamiliesTest, TowersOfDifferentWidthsAreRefused) {
  const std::string said =
      refusal_of(recorded_job(R"({"model_type": "siglip", "text_config": {"hidden_size": 384}})",
                              R"("sequence_length": 64)"));
  EXPECT_NE(said.find("towers end in vectors of different widths"), std::string::npos) << said;
}

TEST(EncoderFamiliesTest, ImagesSmallerThanAPatchAreRefused) {
  const std::string said =
      refusal_of(recorded_job(R"({"model_type": "dinov2"})", R"("image_size": 8)"));
  EXPECT_NE(said.find("patches are larger than the images"), std::string::npos) << said;
}

TEST(EncoderFamiliesTest, AnUnknownFamilyIsToldWhatElseWouldDo) {
  const std::string said =
      refusal_of(recorded_job(R"({"model_type": "nobody"})", R"("sequence_length": 64)"));
  for (const char* way : {"model.safetensors", "memfathom models", "model.layers", "trace"})
    EXPECT_NE(said.find(way), std::string::npos) << way << ": " << said;
}

TEST(EncoderFamiliesTest, MoreTokensThanPositionsAreRefused) {
  const char* config = R"({"model_type": "whisper", "d_model": 64, "encoder_attention_heads": 4,
      "decoder_attention_heads": 4, "vocab_size": 100, "max_target_positions": 448})";
  const std::string said = refusal_of(recorded_job(config, R"("sequence_length": 449)"));
  EXPECT_NE(said.find("448 positions, and the labels have 449 tokens"), std::string::npos) << said;
}

TEST(EncoderFamiliesTest, ReentrantCheckpointsKeepWhatTheOthersKeep) {
  const auto peak = [](const char* kind) {
    return run_recorded(recorded_job(kBart, std::string(R"("sequence_length": 128,
        "precision": "bf16", "gradient_checkpointing": "full", "checkpoint_reentrant": )") +
                                                kind))
        .allocated_peak.count();
  };
  const auto plain = static_cast<double>(peak("false"));
  EXPECT_NEAR(static_cast<double>(peak("true")), plain, 0.15 * plain);
}

TEST(EncoderFamiliesTest, DebertaWithAConvolutionIsRefused) {
  const std::string said = refusal_of(recorded_job(
      R"({"model_type": "deberta-v2", "conv_kernel_size": 3})", R"("sequence_length": 64)"));
  EXPECT_NE(said.find("with a convolution"), std::string::npos) << said;
}

TEST(EncoderFamiliesTest, WaysOfAttentionMayBeOneWord) {
  const auto parameters = [](const char* types) {
    const std::string config = std::string(R"({"model_type": "deberta-v2", "hidden_size": 64,
        "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
        "vocab_size": 100, "relative_attention": true, "pos_att_type": )") +
                               types + "}";
    return run_recorded(recorded_job(config, R"("sequence_length": 64)")).parameter_count;
  };
  EXPECT_EQ(parameters(R"("p2c|c2p")"), parameters(R"(["p2c", "c2p"])"));
  EXPECT_LT(parameters(R"("c2p")"), parameters(R"("p2c|c2p")"));
}

}  // namespace
}  // namespace memfathom
