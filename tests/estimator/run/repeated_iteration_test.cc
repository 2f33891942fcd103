// An iteration that is played again against one that is run again: nothing may tell them apart.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "estimator/job_model/built_model.h"
#include "estimator/parallel/strategy.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/layers/training_loop.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

struct Outcome {
  std::string memory;  // every segment and block, and the statistics
  std::vector<PhaseRecord> phases;
};

Outcome after_four(const Job& job, LoopOptions options, bool repeats) {
  DryDevice device;
  CachingAllocator allocator(device.memory());
  Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
  std::vector<std::string> assumptions;
  const BuiltModel model = build_model(session, job, build_overrides(job), assumptions);
  options.optimizer = job.training.optimizer_options();
  options.batch_size = job.training.batch_size;
  options.autocast = job.training.precision.autocast;
  TrainingLoop loop(session, *model.network, model.trainable(), options);
  loop.iterate();
  if (repeats) {
    loop.iterate_to_repeat();
    loop.repeat();
  } else {
    loop.iterate();
    loop.iterate();
  }
  loop.iterate();  // meets what the replay left
  EXPECT_EQ(loop.iterations(), 4);
  return {to_json(allocator.snapshot()), session.ledger().phases()};
}

void expect_the_same(const std::string& training, const LoopOptions& options,
                     const std::string& model = small_llama()) {
  const Job job =
      read_job(parse_json(R"({"model": )" + model + R"(, "training": {)" + training + "}}", "job"));
  const Outcome run = after_four(job, options, false);
  const Outcome played = after_four(job, options, true);
  EXPECT_EQ(run.memory, played.memory) << training;
  ASSERT_EQ(run.phases.size(), played.phases.size());
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    const PhaseRecord& a = run.phases[i];
    const PhaseRecord& b = played.phases[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.iteration, b.iteration);
    EXPECT_EQ(a.allocated_peak, b.allocated_peak) << a.name << a.iteration << training;
    EXPECT_EQ(a.allocated_end, b.allocated_end) << a.name << a.iteration << training;
    EXPECT_EQ(a.reserved_peak, b.reserved_peak) << a.name << a.iteration << training;
    EXPECT_EQ(a.live_at_peak, b.live_at_peak) << a.name << a.iteration << training;
  }
}

constexpr const char* kPlain = R"("batch_size": 2, "sequence_length": 96)";

TEST(RepeatedIterationTest, IsTheSameForEveryKindOfLoop) {
  LoopOptions script;
  script.mimic_user_script = true;
  LoopOptions accumulating;
  accumulating.accumulation_steps = 2;
  accumulating.gradient_clipping = true;
  LoopOptions scaled;
  scaled.grad_scaler = true;
  scaled.hold_output = true;
  LoopOptions old;
  old.zero_grad = ZeroGrad::kInPlace;
  LoopOptions late;
  late.zero_grad = ZeroGrad::kBeforeBackward;
  LoopOptions retained;
  retained.retain_graph = true;
  for (const LoopOptions& options :
       {LoopOptions{}, script, accumulating, scaled, old, late, retained})
    expect_the_same(kPlain, options);
}

TEST(RepeatedIterationTest, IsTheSameForEveryKindOfTraining) {
  LoopOptions script;
  script.mimic_user_script = true;
  for (const char* more :
       {R"(, "precision": "bf16")", R"(, "autocast": "bf16")", R"(, "optimizer": "sgd")",
        R"(, "optimizer": "adafactor")", R"(, "gradient_checkpointing": true)",
        R"(, "lora": {"rank": 4, "targets": ["q_proj"]})", R"(, "preference": "dpo")"})
    expect_the_same(std::string(kPlain) + more, script);
}

TEST(RepeatedIterationTest, IsTheSameForConvolutions) {
  LoopOptions script;
  script.mimic_user_script = true;
  expect_the_same(R"("batch_size": 2)", script, R"({"preset": "resnet18"})");
}

}  // namespace
}  // namespace memfathom
