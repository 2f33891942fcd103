#include "estimator/job/read_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "estimator/run/dry_run.h"

namespace memfathom {
namespace {

using testing::HasSubstr;

Job job_of(const char* yaml) { return read_job(parse_yaml(yaml, "job.yaml")); }

std::string refusal_of(const char* yaml) {
  try {
    job_of(yaml);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "";
}

TEST(ReadJobTest, ReadsWhatTheContractNames) {
  const Job job = job_of(R"(
model: {preset: llama-2-7b}
training: {mode: train, batch_size: 4, sequence_length: 2048, precision: amp-bf16, optimizer: adamw-8bit,
           gradient_checkpointing: true, lora: {rank: 16, targets: [q_proj]}, quantization: nf4-double}
parallel: {num_gpus: 8, zero_stage: 2, offload: {optimizer: cpu}}
allocator: {options: "expandable_segments:True"}
target: {gpu: a100-40gb, used_by_others: 20790MiB, margin: 0.1}
)");
  EXPECT_EQ(job.training.batch_size, 4);
  EXPECT_EQ(job.training.settings.sequence_length, 2048);
  EXPECT_EQ(job.training.precision.parameters, DType::kFp32);
  EXPECT_EQ(job.training.precision.autocast, DType::kBf16);
  EXPECT_EQ(job.training.optimizer.name, OptimizerName::kAdamW8bit);
  EXPECT_EQ(job.training.settings.checkpointing, Checkpointing::kFull);
  EXPECT_EQ(job.training.lora->rank, 16);
  EXPECT_EQ(job.training.quantization, Quantization::kNf4Double);
  EXPECT_EQ(job.parallel.zero_stage, 2);
  EXPECT_TRUE(job.parallel.offload_optimizer);
  EXPECT_EQ(job.target.used_by_others, Bytes{20790} * (1 << 20));
  EXPECT_EQ(job.target.margin_fraction, 0.1);
}

TEST(ReadJobTest, NamesFileLineKeyAndTheNearestKnownKey) {
  const std::string sentence = refusal_of("model: {preset: gpt2}\ntraining:\n  bacth_size: 4\n");
  EXPECT_THAT(sentence, HasSubstr("job.yaml:3"));
  EXPECT_THAT(sentence, HasSubstr("bacth_size"));
  EXPECT_THAT(sentence, HasSubstr("batch_size"));
}

TEST(ReadJobTest, WantsExactlyOneWayOfNamingTheModel) {
  EXPECT_THAT(refusal_of("model: {preset: gpt2, parameters: 1e9}"), HasSubstr("exactly one"));
  EXPECT_THAT(refusal_of("model: {}"), HasSubstr("exactly one"));
}

TEST(ReadJobTest, RefusesSizesNoJobHas) {
  for (const char* value : {"0", "-1", "1e18", ".nan", "many"}) {
    const std::string yaml =
        std::string("model: {preset: gpt2}\ntraining: {batch_size: ") + value + "}";
    EXPECT_THAT(refusal_of(yaml.c_str()), HasSubstr("batch_size")) << value;
  }
}

TEST(ReadJobTest, AMarginIsASizeOrAFraction) {
  for (const char* margin : {"200%", "[1]"}) {
    const std::string yaml =
        std::string("model: {preset: gpt2}\ntarget: {gpu: t4, margin: ") + margin + "}";
    EXPECT_THAT(refusal_of(yaml.c_str()), HasSubstr("a size such as 2GiB, or a fraction"));
  }
}

TEST(ReadJobTest, AnArchitectureDescribesAnUnlistedGpu) {
  EXPECT_THAT(refusal_of("model: {preset: gpt2}\ntarget: {memory: 24GiB, architecture: ampere}"),
              HasSubstr("sm_80"));
  EXPECT_THAT(refusal_of("model: {preset: gpt2}\ntarget: {gpu: t4, architecture: sm_75}"),
              HasSubstr("leave it out"));
}

TEST(ReadJobTest, RefusesZeroTogetherWithFsdp) {
  EXPECT_THAT(refusal_of("model: {preset: gpt2}\nparallel: {zero_stage: 3, fsdp: full}"),
              HasSubstr("one of them"));
}

TEST(ReadJobTest, LayersThatDoNotFitTogetherAreOneSentence) {
  const Job job = job_of(R"(
model:
  input: {shape: [8]}
  layers: [{type: linear, in: 8, out: 4}, {type: linear, in: 5, out: 2}]
  loss: cross_entropy
)");
  EXPECT_THROW(run_dry(job, {}), Error);
}

TEST(ReadJobTest, MoreOfAnythingNeverTakesFewerAllocatedBytes) {
  const auto peak = [](int batch, int layers) {
    const std::string yaml =
        "model: {input: {shape: [64]}, layers: [{type: repeat, times: " + std::to_string(layers) +
        ", layers: [{type: linear, out: 64}, {type: relu}]}], loss: cross_entropy}\n"
        "training: {batch_size: " +
        std::to_string(batch) + "}\nallocator: {backend: none}\n";
    return run_dry(job_of(yaml.c_str()), {}).allocated_peak;
  };
  for (int n = 1; n < 6; ++n) {
    EXPECT_LE(peak(n * 100, 3), peak((n + 1) * 100, 3));
    EXPECT_LE(peak(64, n), peak(64, n + 1));
  }
}

}  // namespace
}  // namespace memfathom
