#include "estimator/advise/time_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "estimator/advise/changes.h"
#include "estimator/advise/frontier.h"
#include "estimator/advise/gpu_speed.h"
#include "estimator/advise/recommend.h"
#include "estimator/job/read_job.h"
#include "tests/estimator/advise/estimate_dry.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

Node job(const std::string& training, const std::string& more = "") {
  return parse_yaml("model: {preset: tinyllama-1.1b}\ntraining: {" + training + "}\n" + more,
                    "job.yaml");
}

constexpr const char* kFull = "batch_size: 8, sequence_length: 1024, precision: bf16";
constexpr const char* kAdapters =
    "batch_size: 8, sequence_length: 1024, precision: bf16, lora: {rank: 8, targets: [q_proj]}";

TimeCost cost(const Node& document, const char* strategy) {
  EstimateCache answers(document, estimate_dry);
  return time_cost(answers, strategy_patch(strategy, answers.job()));
}

// 4 passes for 3, and for LoRA 3 for 2: the frozen weights have no gradient. The optimizer's part
// of a full step makes the first a little less.
TEST(GpuSpeedTest, SixteenBitsAreNoFasterWithoutTensorCores) {
  const auto speed_on = [](const char* gpu) {
    return gpu_speed(read_job(parse_yaml(
        std::string("model: {preset: resnet18}\ntarget: {gpu: ") + gpu + "}", "job.yaml")));
  };
  const GpuSpeed pascal = speed_on("gtx-1080-ti");
  EXPECT_EQ(pascal.flops_16_bit, pascal.flops_32_bit);
  EXPECT_NE(pascal.sentence().find("no tensor cores"), std::string::npos);
  EXPECT_GT(speed_on("rtx-3060-12gb").flops_16_bit, speed_on("rtx-3060-12gb").flops_32_bit);
}

TEST(TimeCostTest, CheckpointingIsOneForwardPassMore) {
  EXPECT_NEAR(cost(job(kFull), "checkpointing").factor, 4.0 / 3, 0.03);
  EXPECT_NEAR(cost(job(kAdapters), "checkpointing").factor, 3.0 / 2, 0.01);
  EXPECT_THAT(cost(job(kFull), "checkpointing").basis, HasSubstr("computing +3"));
}

TEST(TimeCostTest, AnAllocatorOptionCostsNothing) {
  const TimeCost free = cost(job(kFull), "expandable");
  EXPECT_DOUBLE_EQ(free.factor, 1);
  EXPECT_EQ(free.basis, "no more FLOPs or bytes over a link");
}

TEST(TimeCostTest, AdaptersSaveTheGradientsOfWeights) {
  EXPECT_NEAR(cost(job(kFull), "lora").factor, 2.0 / 3, 0.05);
}

// A step of decoding reads the same weights for one sequence as for sixteen.
TEST(TimeCostTest, SmallBatchesOfGenerationReadTheWeightsMoreOften) {
  constexpr const char* kGeneration =
      "mode: generate, batch_size: 16, sequence_length: 64, new_tokens: 64, precision: bf16";
  EXPECT_GT(cost(job(kGeneration, "target: {gpu: a100-80gb}\n"), "batch=1").factor, 8);
  EXPECT_GT(cost(job(kGeneration, "target: {gpu: a100-80gb}\n"), "offload-parameters").factor, 8);
}

// Decoding reads packed weights as they are; a step of training unpacks them in every pass.
TEST(TimeCostTest, QuantizedWeightsAreUnpackedOncePerPassNotPerToken) {
  const char* kGeneration =
      "mode: generate, batch_size: 1, sequence_length: 64, new_tokens: 256, precision: bf16";
  const auto generation = [&](const char* preset) {
    return parse_yaml(std::string("model: {preset: ") + preset + "}\ntraining: {" + kGeneration +
                          "}\ntarget: {gpu: a100-80gb}\n",
                      "job.yaml");
  };
  EXPECT_LE(cost(generation("llama-2-7b"), "nf4").factor, 1.01);
  EXPECT_LE(cost(generation("mixtral-8x7b"), "nf4").factor, 1.5);
  EXPECT_GT(cost(generation("llama-2-7b"), "int8").factor, 1);
}

// Without mixed precision the smaller batch would be enough as well, at twice the time.
TEST(TimeCostTest, APlanKeepsWhatMakesItFaster) {
  const Node document = parse_yaml(R"(
model: {preset: vit_large_patch16_224}
training: {batch_size: 256, image_size: 224, precision: fp32, optimizer: adamw}
target: {gpu: v100-16gb}
)",
                                   "job.yaml");
  const Recommendation advice = recommend(document, estimate_dry, {});
  const Configuration* plan = configuration_named(advice, "balanced");
  ASSERT_NE(plan, nullptr);
  EXPECT_THAT(plan->changes, Contains("precision fp32 -> amp-fp16"));
  EXPECT_LT(plan->time_factor, 1);
}

TEST(TimeCostTest, OffloadedActivationsGoThereAndBack) {
  const TimeCost offloaded = cost(job(kFull, "target: {gpu: a100-80gb}\n"), "offload-activations");
  EXPECT_GT(offloaded.factor, 1.2);
  EXPECT_THAT(offloaded.basis, HasSubstr("link to the host +"));
}

TEST(TimeCostTest, AHostServesAllGpusOfItsNode) {
  const Node alone = job(kFull, "parallel: {num_gpus: 1, zero_stage: 2}\n");
  const Node node = job(kFull, "parallel: {num_gpus: 8, zero_stage: 2}\n");
  // Each has an eighth of the states, and an eighth of the host.
  EXPECT_NEAR(cost(node, "offload-optimizer").factor, cost(alone, "offload-optimizer").factor, 0.2);
}

TEST(TimeCostTest, ATargetWithoutADataSheetIsSaidToHaveAStandIn) {
  EXPECT_TRUE(gpu_speed(read_job(job(kFull))).is_stand_in);
  EXPECT_FALSE(gpu_speed(read_job(job(kFull, "target: {gpu: h100-80gb}\n"))).is_stand_in);
  EXPECT_THAT(gpu_speed(read_job(job(kFull))).sentence(),
              HasSubstr("of a100-80gb, used because the target has no data sheet"));
}

TEST(TimeCostTest, SuggestionsComeByKindAndTheCheapestFirst) {
  const std::vector<Suggestion> list =
      suggest(job(kFull, "parallel: {num_gpus: 4}\ntarget: {memory: 10GiB}\n"), estimate_dry);
  std::vector<ChangeKind> kinds;
  for (const Suggestion& one : list) kinds.push_back(*enum_from_name<ChangeKind>(one.kind));
  EXPECT_TRUE(std::is_sorted(kinds.begin(), kinds.end()));
  EXPECT_EQ(kinds.front(), ChangeKind::kFree);
  EXPECT_THAT(kinds, Contains(ChangeKind::kDifferent));
}

TEST(TimeCostTest, CheckpointingComesBeforeOffloadingAndKeepsTheHostEmpty) {
  const Node document = parse_yaml(R"(
model: {preset: llama-3.1-8b}
training: {batch_size: 4, sequence_length: 4096, precision: bf16, optimizer: adamw}
parallel: {num_gpus: 8, zero_stage: 2}
target: {gpu: a100-40gb}
)",
                                   "job.yaml");
  const std::optional<Configuration> plan = cheapest_configuration(document, estimate_dry, {});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->changes, Contains("gradient_checkpointing none -> full"));
  EXPECT_TRUE(plan->trains_the_same);
  EXPECT_FALSE(plan->host_of_node);
}

TEST(TimeCostTest, NoPlanKeepsMoreOnTheHostThanItHas) {
  Node document = parse_yaml(R"(
model: {preset: tinyllama-1.1b}
training: {batch_size: 1, sequence_length: 64, precision: bf16}
target: {memory: 9GiB}
)",
                             "job.yaml");
  RecommendOptions same;
  same.usable = [](const SingleChange& change) { return trains_the_same(change.kind); };
  const auto plan = [&] { return cheapest_configuration(document, estimate_dry, same); };
  ASSERT_TRUE(plan());
  ASSERT_TRUE(plan()->host_of_node);
  document.assign("target.host_memory", Node::string("2GiB"));
  EXPECT_FALSE(plan());
}

TEST(TimeCostTest, NothingOnTheFrontierIsBeatenInMemoryAndInTime) {
  RecommendOptions options;
  options.frontier = true;
  const std::vector<FrontierPoint> points =
      recommend(job(kFull, "parallel: {num_gpus: 4}\ntarget: {memory: 16GiB}\n"), estimate_dry,
                options)
          .frontier;
  ASSERT_GT(points.size(), 3U);
  for (const FrontierPoint& a : points) {
    for (const FrontierPoint& b : points) {
      if (&a == &b || (!a.trains_the_same && b.trains_the_same)) continue;
      const bool better = static_cast<double>(a.device_peak.count()) * 1.01 <
                              static_cast<double>(b.device_peak.count()) &&
                          a.time_factor * 1.01 < b.time_factor;
      EXPECT_FALSE(better) << a.time_factor << " " << b.time_factor;
    }
  }
  EXPECT_THAT(points, Contains(Field(&FrontierPoint::trains_the_same, true)));
}

std::vector<std::string> names_for(const Node& document) {
  std::vector<std::string> names;
  for (const SingleChange& change : possible_changes(document, read_job(document)))
    names.push_back(change.name);
  return names;
}

TEST(PossibleChangesTest, FourierLayersKeepTheirTypesAndTheirOptimizer) {
  const std::vector<std::string> names =
      names_for(parse_yaml("model: {preset: fno-2d}\ntraining: {batch_size: 4}", "job.yaml"));
  for (const char* refused : {"bf16", "fp16", "adafactor", "adamw-8bit"})
    EXPECT_THAT(names, Not(Contains(refused)));
  EXPECT_THAT(names, Contains("checkpointing"));
}

TEST(PossibleChangesTest, AutocastOfFourierLayersSaysThatTheyNeedFp32) {
  const Node document =
      parse_yaml("model: {preset: fno-2d}\ntraining: {batch_size: 4}", "job.yaml");
  const std::vector<SingleChange> changes = possible_changes(document, read_job(document));
  const auto amp = std::find_if(changes.begin(), changes.end(),
                                [](const SingleChange& change) { return change.name == "amp"; });
  ASSERT_NE(amp, changes.end());
  EXPECT_THAT(amp->costs, HasSubstr("Fourier transforms fp32"));
}

TEST(PossibleChangesTest, FlashAttentionAndBf16NeedAmpere) {
  const std::vector<std::string> old = names_for(
      parse_yaml("model: {preset: gpt2}\ntraining: {batch_size: 4, sequence_length: 64, precision: "
                 "fp16}\ntarget: {gpu: t4}",
                 "job.yaml"));
  EXPECT_THAT(old, Not(Contains("flash")));
  EXPECT_THAT(old, Contains("efficient"));
}

TEST(PossibleChangesTest, DeepSpeedKeepsWeightsOnTheHostInStageThreeOnly) {
  const Node document = job(kFull, "parallel: {num_gpus: 4, zero_stage: 1}\n");
  for (const SingleChange& change : possible_changes(document, read_job(document))) {
    const Node tree = patch_tree(change.patch);
    if (change.name == "offload-parameters") {
      EXPECT_EQ(tree.at("parallel").at("zero_stage").as_int(), 3);
    }
  }
}

TEST(PossibleChangesTest, ARecordedStepHasItsOwnBatch) {
  const TemporaryDirectory directory;
  std::ofstream((directory / "step.jsonl").string())
      << R"({"schema": "memfathom.trace/1", "precision": "fp32"})" << '\n'
      << R"({"op": "alloc", "id": 1, "bytes": 1073741824, "phase": "forward"})" << '\n'
      << R"({"op": "free", "id": 1, "phase": "backward"})" << '\n';
  const Node document = parse_yaml("model: {trace: step.jsonl}\ntarget: {memory: 1GiB}",
                                   (directory / "job.yaml").string());
  EXPECT_THAT(names_for(document), testing::ElementsAre("expandable"));
  const Recommendation advice = recommend(document, estimate_dry, {});
  EXPECT_TRUE(advice.largest.empty());
  for (const Suggestion& one : advice.suggestions) EXPECT_EQ(one.name, "expandable");
}

TEST(PossibleChangesTest, AStepRecordedAtSeveralSizesHasALargestBatch) {
  const TemporaryDirectory directory;
  std::ofstream((directory / "step.jsonl").string())
      << R"({"schema": "memfathom.trace/1", "sizes": {"batch_size": 4}, "varies": {"names": ["batch_size"], "terms": [[0], [1]], "recorded": [[4], [8]], "from": {"batch_size": 2}, "checked": {"at": [12], "recorded_peak_bytes": 1, "interpolated_peak_bytes": 1}}})"
      << '\n'
      << R"({"op": "alloc", "id": 1, "bytes": 1073741824, "phase": "forward", "vary": {"/bytes": [0, 268435456]}})"
      << '\n'
      << R"({"op": "free", "id": 1, "phase": "backward"})" << '\n';
  const Node document = parse_yaml("model: {trace: step.jsonl}\ntarget: {memory: 5GiB}",
                                   (directory / "job.yaml").string());
  const Recommendation advice = recommend(document, estimate_dry, {});
  ASSERT_EQ(advice.largest.size(), 1u);
  // 256 MiB a sample: what is available holds at most 20 of them, less a GPU's context.
  ASSERT_TRUE(advice.largest[0].largest);
  EXPECT_GE(*advice.largest[0].largest, 12);
  EXPECT_LE(*advice.largest[0].largest, 20);
  const Bytes peak = advice.largest[0].device_peak;
  EXPECT_LE(peak, *advice.available);
  // The upper end of the interval fits as well, so a part of the memory stays free.
  EXPECT_GT(peak.count() * 3 / 2, advice.available->count());
  for (const Suggestion& one : advice.suggestions) EXPECT_NE(one.name, "accumulation");
}

TEST(PossibleChangesTest, InferenceHearsNothingOfGradients) {
  const Node document = parse_yaml(
      "model: {preset: gpt2}\ntraining: {mode: inference, batch_size: 512, sequence_length: "
      "1024}\ntarget: {memory: 8GiB}",
      "job.yaml");
  for (const Suggestion& one : suggest(document, estimate_dry)) {
    EXPECT_THAT(one.costs, Not(HasSubstr("radient"))) << one.change;
    EXPECT_THAT(one.change, Not(HasSubstr("radient"))) << one.change;
  }
}

TEST(PossibleChangesTest, SaysSlowerWhereTheTimeFactorDoes) {
  SingleChange change;
  change.costs = "weights in 8 bits";
  EXPECT_EQ(change.costs_at(2), "weights in 8 bits") << "not a change that may be slower";
  change.may_be_slower = true;
  EXPECT_EQ(change.costs_at(0.66), "weights in 8 bits");
  EXPECT_EQ(change.costs_at(1.004), "weights in 8 bits") << "shown as x1.00";
  EXPECT_EQ(change.costs_at(1.02), "weights in 8 bits; slower");
}

TEST(PossibleChangesTest, NoSuggestionIsCalledSlowerThatIsNot) {
  const Node document =
      job("batch_size: 8, sequence_length: 1024, precision: fp32, gradient_checkpointing: full",
          "target: {memory: 8GiB}");
  bool any = false;
  for (const Suggestion& one : suggest(document, estimate_dry)) {
    if (one.costs.find("slower") == std::string::npos) continue;
    EXPECT_GT(one.time_factor, 1) << one.change;
    any = true;
  }
  EXPECT_TRUE(any);
}

}  // namespace
}  // namespace memfathom
