// The suite of `bench run`: an explicit list, with the shapes that regressed in the wild among
// them.
#pragma once

#include <string>
#include <vector>

#include "core/workspace.h"

namespace memfathom {

// What a library's planner is asked.
struct ConvolutionCase {
  std::string name;   // "conv/7x7s2-3-64-224-b32/data_gradient/fp16/nhwc"
  std::string label;  // "data gradient 7x7/s2 3→64 @224² b32 fp16 NHWC"
  ConvolutionQuery query;
};
std::vector<ConvolutionCase> convolution_suite();

struct AttentionCase {
  std::string name;
  std::string label;
  std::string question;  // a line of the planner's language
};
std::vector<AttentionCase> attention_suite();

// What a device runs.
struct JobCase {
  std::string name;  // "layer/conv3d/bf16"
  std::string label;
  std::string job;  // JSON of the contract
};
enum class SuiteScale { kTiny, kSmall, kFull };  // for an imitated device; a processor; a GPU
std::vector<JobCase> job_suite(SuiteScale scale);

}  // namespace memfathom
