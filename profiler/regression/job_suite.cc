#include <fmt/format.h>

#include <array>
#include <span>
#include <string_view>

#include "profiler/regression/suite.h"

namespace memfathom {
namespace {

struct Row {
  const char* name;
  const char* label;
  const char* optimizer;
  const char* model;  // JSON of the contract's `model`
  const char* tiny;   // the same layers, for a simulated device
  int small_batch;
  int full_batch;
};

constexpr std::array kRows{
    Row{"linear", "linear 1024→4096", "adamw",
        R"({"input":{"shape":[1024],"requires_grad":true},"layers":[{"type":"linear","in":1024,"out":4096}],"loss":"mean"})",
        R"({"input":{"shape":[64],"requires_grad":true},"layers":[{"type":"linear","in":64,"out":128}],"loss":"mean"})",
        64, 65536},
    Row{"elementwise", "layer norm and GELU of 4096", "none",
        R"({"input":{"shape":[4096],"requires_grad":true},"layers":[{"type":"layer_norm","features":4096},{"type":"gelu"}],"loss":"mean"})",
        R"({"input":{"shape":[256],"requires_grad":true},"layers":[{"type":"layer_norm","features":256},{"type":"gelu"}],"loss":"mean"})",
        512, 32768},
    Row{"mlp", "MLP 1024, ffn 4096", "adamw",
        R"({"input":{"shape":[64,1024]},"layers":[{"type":"mlp","hidden":1024,"ffn":4096,"activation":"gelu"}],"loss":"mean"})",
        R"({"input":{"shape":[8,32]},"layers":[{"type":"mlp","hidden":32,"ffn":128,"activation":"gelu"}],"loss":"mean"})",
        1, 256},
    Row{"conv2d-stem", "convolution 7x7/s2 3→64 @112²", "sgd",
        R"({"input":{"shape":[3,112,112],"requires_grad":true},"layers":[{"type":"conv2d","in":3,"out":64,"kernel":7,"stride":2,"padding":3},{"type":"batch_norm","features":64},{"type":"relu"}],"loss":"mean"})",
        R"({"input":{"shape":[3,16,16],"requires_grad":true},"layers":[{"type":"conv2d","in":3,"out":8,"kernel":7,"stride":2,"padding":3},{"type":"batch_norm","features":8},{"type":"relu"}],"loss":"mean"})",
        2, 128},
    Row{"conv2d", "convolution 3x3 64→128 @32²", "sgd",
        R"({"input":{"shape":[64,32,32],"requires_grad":true},"layers":[{"type":"conv2d","in":64,"out":128,"kernel":3,"padding":1},{"type":"relu"}],"loss":"mean"})",
        R"({"input":{"shape":[4,8,8],"requires_grad":true},"layers":[{"type":"conv2d","in":4,"out":8,"kernel":3,"padding":1},{"type":"relu"}],"loss":"mean"})",
        2, 512},
    Row{"conv3d", "convolution 3x3x3 16→32 @16³", "sgd",
        R"({"input":{"shape":[16,16,16,16],"requires_grad":true},"layers":[{"type":"conv3d","in":16,"out":32,"kernel":3,"padding":1},{"type":"relu"}],"loss":"mean"})",
        R"({"input":{"shape":[4,6,6,6],"requires_grad":true},"layers":[{"type":"conv3d","in":4,"out":8,"kernel":3,"padding":1},{"type":"relu"}],"loss":"mean"})",
        2, 256},
    Row{"attention-eager", "attention 8 heads of 64, 256 tokens, eager", "adamw",
        R"({"input":{"shape":[256,512]},"layers":[{"type":"attention","hidden":512,"heads":8,"implementation":"eager"}],"loss":"mean"})",
        R"({"input":{"shape":[16,32]},"layers":[{"type":"attention","hidden":32,"heads":2,"implementation":"eager"}],"loss":"mean"})",
        1, 128},
    Row{"attention-flash", "attention 8 heads of 64, 256 tokens, flash", "adamw",
        R"({"input":{"shape":[256,512]},"layers":[{"type":"attention","hidden":512,"heads":8,"implementation":"flash"}],"loss":"mean"})",
        R"({"input":{"shape":[16,32]},"layers":[{"type":"attention","hidden":32,"heads":2,"implementation":"flash"}],"loss":"mean"})",
        1, 256},
    Row{"transformer-gpt2", "two GPT-2 blocks of 256", "adamw",
        R"({"input":{"shape":[128,256]},"layers":[{"type":"repeat","times":2,"layers":[{"type":"transformer_block","style":"gpt2","hidden":256,"heads":4,"implementation":"eager"}]}],"loss":"mean"})",
        R"({"input":{"shape":[16,32]},"layers":[{"type":"repeat","times":2,"layers":[{"type":"transformer_block","style":"gpt2","hidden":32,"heads":2,"implementation":"eager"}]}],"loss":"mean"})",
        1, 256},
    Row{"transformer-llama", "two Llama blocks of 256", "adamw",
        R"({"input":{"shape":[128,256]},"layers":[{"type":"repeat","times":2,"layers":[{"type":"transformer_block","style":"llama","hidden":256,"heads":4,"ffn":704,"implementation":"flash"}]}],"loss":"mean"})",
        R"({"input":{"shape":[16,32]},"layers":[{"type":"repeat","times":2,"layers":[{"type":"transformer_block","style":"llama","hidden":32,"heads":2,"ffn":64,"implementation":"flash"}]}],"loss":"mean"})",
        1, 512},
    Row{"large-vocabulary", "cross entropy over 32,000 words", "sgd",
        R"({"input":{"shape":[64,128]},"layers":[{"type":"linear","in":128,"out":32000,"bias":false}],"loss":"cross_entropy"})",
        R"({"input":{"shape":[4,16]},"layers":[{"type":"linear","in":16,"out":2000,"bias":false}],"loss":"cross_entropy"})",
        1, 64},
    Row{"fno2d", "2-D FNO block, width 16, 8 modes @32²", "adam",
        R"({"input":{"shape":[16,32,32]},"layers":[{"type":"fno_block","style":"classic","width":16,"modes":[8,8]}],"loss":"mean"})",
        R"({"input":{"shape":[4,8,8]},"layers":[{"type":"fno_block","style":"classic","width":4,"modes":[3,3]}],"loss":"mean"})",
        8, 1024},
    Row{"fno3d", "3-D FNO block, width 8, 4 modes @16³", "adam",
        R"({"input":{"shape":[8,16,16,16]},"layers":[{"type":"fno_block","style":"classic","width":8,"modes":[4,4,4]}],"loss":"mean"})",
        R"({"input":{"shape":[4,8,8,8]},"layers":[{"type":"fno_block","style":"classic","width":4,"modes":[2,2,2]}],"loss":"mean"})",
        4, 512},
};

std::vector<std::pair<std::string_view, int>> pairs_of(std::span<const std::string_view> precisions,
                                                       const std::vector<int>& batches) {
  std::vector<std::pair<std::string_view, int>> pairs;
  for (const int batch : batches) {
    for (const std::string_view precision : precisions) pairs.emplace_back(precision, batch);
  }
  return pairs;
}

}  // namespace

std::vector<JobCase> job_suite(SuiteScale scale) {
  constexpr std::array<std::string_view, 1> kSmallPrecisions{"fp32"};
  constexpr std::array<std::string_view, 3> kFullPrecisions{"fp32", "fp16", "bf16"};
  // The cpu device computes 16-bit types through fp32 copies, which GPUs do not make.
  const bool tiny = scale == SuiteScale::kTiny;
  const bool small = scale == SuiteScale::kSmall;
  const std::span<const std::string_view> precisions =
      small ? std::span<const std::string_view>(kSmallPrecisions) : kFullPrecisions;
  std::vector<JobCase> cases;
  for (const Row& row : kRows) {
    std::vector<int> batches{tiny ? 1 : small ? row.small_batch : row.full_batch};
    // A library may choose another algorithm for a smaller call.
    if (scale == SuiteScale::kFull) batches.push_back(row.full_batch / 4);
    for (const auto& [precision, batch] : pairs_of(precisions, batches)) {
      // FFTs run in fp32: cuFFT does not support bf16, and fp16 only for powers of two.
      if (precision != "fp32" && std::string_view(row.name).starts_with("fno")) continue;
      cases.push_back(
          {fmt::format("layer/{}/b{}/{}", row.name, batch, precision),
           tiny ? fmt::format("tiny {} {}", row.name, precision)
                : fmt::format("{} b{} {}", row.label, batch, precision),
           fmt::format(
               R"({{"model":{},"training":{{"batch_size":{},"precision":"{}","optimizer":"{}"}}}})",
               tiny ? row.tiny : row.model, batch, precision, row.optimizer)});
    }
  }
  return cases;
}

}  // namespace memfathom
