#include "estimator/readers/setting_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/job/read_job.h"

namespace memfathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> warnings_of(const std::string& yaml) {
  const Node document = parse_yaml(yaml, "job.yaml");
  return setting_warnings(document, read_job(document));
}

TEST(SettingWarningsTest, AnExtentThatTheModelHasNotIsNamed) {
  EXPECT_THAT(warnings_of("model: {preset: resnet50}\ntraining: {sequence_length: 128}"),
              ElementsAre(HasSubstr("training.sequence_length is set, but models of the family "
                                    "torchvision_resnet have no such input")));
  EXPECT_THAT(
      warnings_of("model: {preset: gpt2}\ntraining: {sequence_length: 128, image_size: "
                  "224, num_frames: 8, num_images: 2}"),
      ElementsAre(HasSubstr("image_size"), HasSubstr("num_frames"), HasSubstr("num_images")));
  EXPECT_THAT(warnings_of("model: {preset: ddpm-unet}\ntraining: {sequence_length: 77}"),
              ElementsAre(HasSubstr("UNet2DModel")));
}

TEST(SettingWarningsTest, ExtentsThatAreReadAreNotNamed) {
  for (const char* job : {
           "model: {preset: gpt2}\ntraining: {sequence_length: 128}",
           "model: {preset: resnet50}\ntraining: {image_size: 128}",
           "model: {preset: sdxl}\ntraining: {sequence_length: 77, image_size: 1024}",
           "model: {preset: flux.1-dev}\ntraining: {sequence_length: 512, image_size: 1024}",
           "model: {preset: whisper-tiny}\ntraining: {sequence_length: 64}",
           "model: {preset: vggt-1b}\ntraining: {image_size: 518, num_frames: 4}",
           "model: {preset: qwen2-vl-2b}\ntraining: {image_size: 448, num_images: 1}",
           "model: {preset: cogvideox-2b}\ntraining: {num_frames: 49, image_size: [480, 720]}",
           "model: {preset: clip-vit-base-patch32}\ntraining: {sequence_length: 77}",
           "model: {preset: fno-2d}\ntraining: {image_size: 64}",
       })
    EXPECT_THAT(warnings_of(job), IsEmpty()) << job;
}

TEST(SettingWarningsTest, FlashAttentionIsRefusedInFp32AndBeforeAmpere) {
  const std::string model = "model: {preset: gpt2}\n";
  EXPECT_THAT(warnings_of(model + "training: {sequence_length: 8, attention: flash}"),
              ElementsAre(HasSubstr("would refuse fp32")));
  EXPECT_THAT(warnings_of(model + "training: {sequence_length: 8, attention: flash, precision: "
                                  "fp16}\ntarget: {gpu: t4}"),
              ElementsAre(HasSubstr("sm_75")));
  EXPECT_THAT(warnings_of(model + "training: {sequence_length: 8, attention: flash, precision: "
                                  "amp-bf16}\ntarget: {gpu: l4}"),
              IsEmpty());
}

TEST(SettingWarningsTest, NewTokensAreGeneratedInOneModeOnly) {
  const std::string model = "model: {preset: gpt2}\n";
  EXPECT_THAT(warnings_of(model + "training: {sequence_length: 8, new_tokens: 64}"),
              ElementsAre(HasSubstr("training.mode is train: nothing is generated")));
  EXPECT_THAT(warnings_of(model + "training: {sequence_length: 8, new_tokens: 64, mode: generate}"),
              IsEmpty());
}

TEST(SettingWarningsTest, GroupsOfGpusHaveToBeWhole) {
  const std::string job = "model: {preset: llama-2-7b}\ntraining: {sequence_length: 8}\nparallel: ";
  EXPECT_THAT(warnings_of(job + "{num_gpus: 2, tensor: 4}"),
              ElementsAre(HasSubstr("no multiple of the 4")));
  EXPECT_THAT(warnings_of(job + "{num_gpus: 12, tensor: 2, pipeline: 4}"),
              ElementsAre(HasSubstr("no multiple of the 8")));
  EXPECT_THAT(warnings_of(job + "{num_gpus: 8, tensor: 4}"), IsEmpty());
  EXPECT_THAT(warnings_of(job + "{tensor: 4}"), IsEmpty());
}

TEST(SettingWarningsTest, QuantizedWeightsNeedAdaptersToBeTrained) {
  const std::string model = "model: {preset: gpt2}\n";
  EXPECT_THAT(warnings_of(model + "training: {sequence_length: 8, quantization: nf4}"),
              ElementsAre(HasSubstr("without adapters")));
  EXPECT_THAT(
      warnings_of(model + "training: {sequence_length: 8, quantization: nf4, lora: {rank: 8}}"),
      IsEmpty());
  EXPECT_THAT(
      warnings_of(model + "training: {sequence_length: 8, quantization: nf4, mode: inference}"),
      IsEmpty());
}

}  // namespace
}  // namespace memfathom
