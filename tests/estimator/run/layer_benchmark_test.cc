// Jobs that measure layers: the graph is kept, forward stands alone, norms stay fp32.
#include "estimator/job_model/layer_benchmark.h"

#include <gtest/gtest.h>

#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

Job benchmark(const std::string& layers, const std::string& shape, const std::string& dtype,
              const std::string& training) {
  return read_job(
      parse_json(R"({"model": {"input": {"shape": )" + shape + R"(, "dtype": ")" + dtype +
                     R"(", "requires_grad": true}, "layers": [)" + layers +
                     R"(], "loss": "none"}, "training": {"mode": "train", "precision": ")" + dtype +
                     R"(", "optimizer": "none")" + training + "}}",
                 "job.json"));
}

Job swiglu(const std::string& more = "") {
  return benchmark(R"({"type": "swiglu", "hidden": 4096, "ffn": 11008})", "[1024, 4096]", "bf16",
                   R"(, "batch_size": 4, "gradient_accumulation_steps": 2)" + more);
}

std::int64_t peak_in_mebibytes(const DryRun& run) { return run.allocated_peak.count() / kMiB; }

TEST(LayerBenchmarkTest, BackwardMeetsTheWholeGraph) {
  // Weights 258, input 32, their gradients as much; saved gate, activation, up and product 4 x 86,
  // output and its gradient 2 x 32; in the product's backward three more of 86; two workspaces.
  EXPECT_EQ(peak_in_mebibytes(run_dry(swiglu(), {})),
            2 * (258 + 32) + 4 * 86 + 2 * 32 + 3 * 86 + 48);
}

TEST(LayerBenchmarkTest, AJobMaySayThatItsGraphIsFreed) {
  EXPECT_LT(run_dry(swiglu(R"(, "retain_graph": false)"), {}).allocated_peak,
            run_dry(swiglu(), {}).allocated_peak);
}

TEST(LayerBenchmarkTest, ForwardIsMeasuredWithoutGradients) {
  const DryRun run = run_dry(swiglu(), {});
  EXPECT_EQ(in_phase(run, "forward", {Component::kGradients}), 0);
  EXPECT_EQ(phase_peak(run, "forward") / kMiB, 258 + 32 + 4 * 86 + 32 + 16);
}

TEST(LayerBenchmarkTest, ForwardOfALayerWithoutWeightsHoldsItsInputAndOutput) {
  const Job job = benchmark(R"({"type": "softmax"})", "[4096]", "fp32",
                            R"(, "batch_size": 2048, "gradient_accumulation_steps": 2)");
  const DryRun run = run_dry(job, {});
  EXPECT_EQ(phase_peak(run, "forward") / kMiB, 2 * 32);
  EXPECT_EQ(peak_in_mebibytes(run), 5 * 32);
}

TEST(LayerBenchmarkTest, ANormAloneKeepsFp32WeightsAndItsBackwardHoldsTheCastGradient) {
  const Job job = benchmark(R"({"type": "rms_norm", "features": 1024})", "[1024]", "bf16",
                            R"(, "batch_size": 2048, "gradient_accumulation_steps": 2)");
  EXPECT_TRUE(is_norm_only_benchmark(job));
  DryRunOptions options;
  options.policy = FrameworkPolicy::for_stack("2.4", 80);
  // In units of a bf16 input, 4 MiB: input, gradient of the output, gradient of the input; fp32
  // copy 2, normed 1, output 2, its gradient cast 2; five fp32 tensors in the power's backward.
  EXPECT_EQ(peak_in_mebibytes(run_dry(job, options)), 4 * (3 + 2 + 1 + 2 + 2 + 5 * 2));
}

TEST(LayerBenchmarkTest, LayersThatLearnAreNoBenchmark) {
  Job job = swiglu();
  EXPECT_TRUE(is_layer_benchmark(job));
  job.training.optimizer.name = OptimizerName::kAdamW;
  EXPECT_FALSE(is_layer_benchmark(job));
}

TEST(LayerBenchmarkTest, AnInputThatALayerMadeIsNoLeaf) {
  Job job = swiglu();
  Node model = job.model.source();
  model.assign("input.source", Node::string("layer"));
  job.model = resolve_model(model);
  EXPECT_FALSE(is_layer_benchmark(job));
}

TEST(LayerBenchmarkTest, TheAnswerSaysHowTheJobWasRead) {
  const DryRun run = run_dry(swiglu(), {});
  ASSERT_FALSE(run.assumptions.empty());
  EXPECT_NE(run.assumptions.back().find("retain_graph"), std::string::npos);
}

}  // namespace
}  // namespace memfathom
