#include "estimator/readers/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "estimator/job/patch.h"
#include "estimator/job/read_job.h"
#include "estimator/run/dry_run.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A small CogVideoX as diffusers stores one.
class PipelineTest : public testing::Test {
 protected:
  PipelineTest() {
    write("model_index.json", R"({"_class_name": "CogVideoXPipeline"})");
    write("transformer/config.json",
          R"({"_class_name": "CogVideoXTransformer3DModel", "num_layers": 1,
              "num_attention_heads": 2, "attention_head_dim": 16, "text_embed_dim": 64,
              "max_text_seq_length": 24, "sample_height": 8, "sample_width": 8, "sample_frames": 9})");
    write("text_encoder/config.json",
          R"({"model_type": "t5", "architectures": ["T5EncoderModel"], "d_model": 64, "d_ff": 128,
              "d_kv": 16, "num_layers": 1, "num_heads": 4, "vocab_size": 500})");
    write("vae/config.json", R"({"_class_name": "AutoencoderKLCogVideoX",
          "block_out_channels": [32, 32, 32, 32], "layers_per_block": 1})");
  }

  void write(const char* name, const char* text) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  Node document() const { return patch_tree(read_pipeline(folder_.path()).settings); }
  static std::vector<std::string> names(const Node& document) {
    std::vector<std::string> all;
    for (const Node& module : document.at("model").at("modules").items())
      all.push_back(module.at("name").as_string());
    return all;
  }

  TemporaryDirectory folder_;
};

TEST_F(PipelineTest, WhatEncodesIsFrozenAndRunsBeforeWhatLearns) {
  const ParsedFile parsed = read_pipeline(folder_.path());
  EXPECT_THAT(names(document()), ElementsAre("text_encoder", "vae", "transformer"));
  const Node vae = document().at("model").at("modules").items()[1];
  EXPECT_EQ(vae.at("train").as_string(), "frozen");
  EXPECT_EQ(vae.at("model").at("part").as_string(), "encoder");
  EXPECT_EQ(vae.at("batch_size").as_int(), 1);  // videos are encoded one by one
  EXPECT_THAT(parsed.assumptions, Contains(HasSubstr("encodes one video at a time")));
  EXPECT_THAT(parsed.not_modelled, IsEmpty());
}

TEST_F(PipelineTest, EveryPartHasItsOwnLines) {
  const DryRun run = run_dry(read_job(document()), {});
  EXPECT_EQ(run.parameter_count, 528544 + 65088 + 1013027);
}

TEST_F(PipelineTest, OutsideTrainingTheAutoencoderMakesPicturesAfterTheDenoiser) {
  const std::vector<ParsedFile> files{read_pipeline(folder_.path())};
  Node job = document();
  select_autoencoder_part(files, job);
  EXPECT_THAT(names(job), ElementsAre("text_encoder", "vae", "transformer"));
  job.assign("training.mode", Node::string("inference"));
  select_autoencoder_part(files, job);
  EXPECT_THAT(names(job), ElementsAre("text_encoder", "transformer", "vae"));
  const Node vae = job.at("model").at("modules").items()[2];
  EXPECT_EQ(vae.at("model").at("part").as_string(), "decoder");
  EXPECT_EQ(vae.find("batch_size"), nullptr);
}

TEST_F(PipelineTest, AnAutoencoderThatIsNotKnownIsNamedAndLeftOut) {
  write("vae/config.json", R"({"_class_name": "AutoencoderOfTomorrow"})");
  EXPECT_THAT(names(document()), ElementsAre("text_encoder", "transformer"));
  EXPECT_THAT(read_pipeline(folder_.path()).not_modelled,
              Contains(HasSubstr("AutoencoderOfTomorrow")));
}

}  // namespace
}  // namespace memfathom
