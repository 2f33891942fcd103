// suite: the benchmarks of `bench run`: an explicit list that includes shapes with known
// regressions.
#pragma once

#include <string>
#include <vector>

#include "core/workspace.h"

namespace memfathom {

// A query to a library's planner.
struct ConvolutionCase {
  std::string name;   // "conv/7x7s2-3-64-224-b32/data_gradient/fp16/nhwc"
  std::string label;  // "data gradient 7x7/s2 3→64 @224² b32 fp16 NHWC"
  ConvolutionQuery query;
};
std::vector<ConvolutionCase> convolution_suite();

struct AttentionCase {
  std::string name;
  std::string label;
  std::string question;  // a line of the planner's protocol
};
std::vector<AttentionCase> attention_suite();

// A job that a device runs.
struct JobCase {
  std::string name;  // "layer/conv3d/bf16"
  std::string label;
  std::string job;  // JSON of the contract
};
enum class SuiteScale { kTiny, kSmall, kFull };  // for a simulated device; a CPU; a GPU
std::vector<JobCase> job_suite(SuiteScale scale);

}  // namespace memfathom
