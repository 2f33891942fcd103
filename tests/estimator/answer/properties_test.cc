// What holds for every job: shown on random ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "estimator/answer/estimate.h"
#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

constexpr int kJobs = 60;

// A random job of a random family, with every knob at a random place.
class RandomJobs {
 public:
  explicit RandomJobs(unsigned seed) : random_(seed) {}

  struct Drawn {
    std::int64_t batch, sequence, layers, rank, gpus;
    int zero;
    std::string family, precision, optimizer, checkpointing, attention, allocator;
    bool lora, clipping;

    std::string model() const {
      if (family == "gpt2")
        return fmt::format(
            R"({{"config":{{"model_type":"gpt2","n_embd":64,"n_layer":{},"n_head":4,"vocab_size":500}}}})",
            layers);
      if (family == "bloom")
        return fmt::format(
            R"({{"config":{{"model_type":"bloom","hidden_size":64,"n_layer":{},"n_head":4,"vocab_size":500}}}})",
            layers);
      return fmt::format(
          R"({{"config":{{"model_type":"{}","hidden_size":64,"intermediate_size":160,"num_hidden_layers":{},
              "num_attention_heads":4,"num_key_value_heads":2,"num_local_experts":4,"vocab_size":500}}}})",
          family, layers);
    }
    std::string text(bool bare) const {
      const std::string adapters =
          lora ? fmt::format(R"(,"lora":{{"rank":{},"targets":"all-linear"}})", rank) : "";
      return fmt::format(
          R"({{"model":{},"training":{{"batch_size":{},"sequence_length":{},"precision":"{}","optimizer":"{}",
              "gradient_checkpointing":"{}","attention":"{}","gradient_clipping":{}{}}},
              "parallel":{{"num_gpus":{},"zero_stage":{}}},"allocator":{{{}}}}})",
          model(), batch, sequence, precision, optimizer, checkpointing, attention, clipping,
          adapters, gpus, zero,
          bare ? R"("backend":"none")" : fmt::format(R"("options":"{}")", allocator));
    }
  };

  Drawn next() {
    Drawn job;
    job.batch = number(1, 6);
    job.sequence = 8 * number(1, 12);
    job.layers = number(1, 4);
    job.rank = number(1, 16);
    job.gpus = 1;
    job.zero = 0;
    job.family = one_of({"llama", "mistral", "qwen2", "gpt2", "bloom", "mixtral"});
    job.precision = one_of({"fp32", "bf16", "fp16", "amp-bf16"});
    job.optimizer = one_of({"none", "sgd", "sgd-momentum", "adam", "adamw", "adamw-8bit",
                            "adafactor", "lion", "rmsprop", "adagrad"});
    job.checkpointing = one_of({"none", "full", "selective"});
    job.attention = one_of({"eager", "sdpa", "flash"});
    job.allocator = one_of({"", "expandable_segments:True", "max_split_size_mb:64"});
    job.lora = number(0, 2) == 0;
    job.clipping = number(0, 1) == 1;
    return job;
  }

  std::int64_t number(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

 private:
  std::string one_of(const std::vector<std::string>& choices) {
    return choices[static_cast<std::size_t>(
        number(0, static_cast<std::int64_t>(choices.size()) - 1))];
  }

  std::mt19937 random_;
};

std::int64_t tensor_bytes(const RandomJobs::Drawn& job) {
  return run_job(job.text(true)).allocated_peak.count();
}

TEST(JobPropertiesTest, TensorsNeverShrinkWithBatchSequenceOrLayers) {
  RandomJobs random(1);
  for (int i = 0; i < kJobs; ++i) {
    const RandomJobs::Drawn job = random.next();
    const std::int64_t before = tensor_bytes(job);
    RandomJobs::Drawn larger = job;
    larger.batch += random.number(1, 4);
    EXPECT_GE(tensor_bytes(larger), before) << larger.text(true);
    larger = job;
    larger.sequence += 8 * random.number(1, 4);
    EXPECT_GE(tensor_bytes(larger), before) << larger.text(true);
    larger = job;
    larger.layers += random.number(1, 3);
    EXPECT_GE(tensor_bytes(larger), before) << larger.text(true);
  }
}

TEST(JobPropertiesTest, TensorsNeverShrinkWithTheAdaptersRank) {
  RandomJobs random(2);
  for (int i = 0; i < kJobs; ++i) {
    RandomJobs::Drawn job = random.next();
    job.lora = true;
    const std::int64_t before = tensor_bytes(job);
    job.rank += random.number(1, 32);
    EXPECT_GE(tensor_bytes(job), before) << job.text(true);
  }
}

// Parameters, gradients and optimizer states at the end of the steady step, by accounts.
std::int64_t states(const RandomJobs::Drawn& job) {
  const DryRun run = run_job(job.text(true));
  return in_phase(run, "step",
                  {Component::kParameters, Component::kGradients, Component::kOptimizerState,
                   Component::kAdapterParameters});
}

TEST(JobPropertiesTest, ShardedStatesNeverGrowWithMoreGpusOrAHigherStage) {
  RandomJobs random(3);
  for (int i = 0; i < kJobs / 2; ++i) {
    RandomJobs::Drawn job = random.next();
    job.optimizer = "adamw";
    job.zero = static_cast<int>(random.number(1, 3));
    job.gpus = 2;
    const std::int64_t on_two = states(job);
    job.gpus = 8;
    const std::int64_t on_eight = states(job);
    EXPECT_LE(on_eight, on_two) << job.text(true);
    if (job.zero == 3) continue;
    ++job.zero;
    // Stage 3 keeps parameters of less than 100,000 elements whole, beside their partitions.
    const std::int64_t partitions = job.zero == 3 ? on_eight / job.gpus : 0;
    EXPECT_LE(states(job), on_eight + partitions) << job.text(true);
  }
}

TEST(JobPropertiesTest, ComponentsAreNotNegativeAndAddUpAndReservedHoldsAllocated) {
  RandomJobs random(4);
  for (int i = 0; i < kJobs; ++i) {
    const std::string text = random.next().text(random.number(0, 3) == 0);
    const Job job = read_job(parse_json(text, "job.json"));
    const DryRun run = run_dry(job, {});
    const Estimate estimate = make_estimate(job, run, {});
    Bytes sum;
    for (const ComponentLine& line : estimate.components) {
      EXPECT_GE(line.bytes.count(), 0) << text;
      sum += line.bytes;
    }
    EXPECT_EQ(sum, estimate.totals.device_peak) << text;
    EXPECT_GE(estimate.totals.reserved_peak, estimate.totals.allocated_peak) << text;
    EXPECT_GE(estimate.totals.device_peak, estimate.totals.reserved_peak) << text;
    for (const PhaseRecord& phase : run.phases)
      EXPECT_GE(phase.reserved_peak, 0) << text << " " << phase.name;
  }
}

}  // namespace
}  // namespace memfathom
