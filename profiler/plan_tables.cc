#include "profiler/plan_tables.h"

#include <array>

namespace memfathom {
namespace {

using namespace literals;
using enum PlanLevel;

// Every library occurs with and without each other one, so that its constant can be separated:
// elementwise uses none, mlp and attention use gemm, conv uses convolutions with and without gemm,
// spectral uses FFTs with gemm, fno uses all three.
constexpr auto kModels = std::to_array<ModelRow>({
    {kQuick, "elementwise", "norm-gelu", "none",
     R"({"input":{"shape":[4096],"requires_grad":true},"layers":[{"type":"repeat","times":4,"layers":[)"
     R"({"type":"layer_norm","features":4096},{"type":"gelu"}]}],"loss":"mean"})"},
    {kQuick, "elementwise", "activations", "none",
     R"({"input":{"shape":[2048],"requires_grad":true},"layers":[{"type":"silu"},{"type":"tanh"},)"
     R"({"type":"sigmoid"},{"type":"relu"}],"loss":"mse"})"},
    {kQuick, "mlp", "w1024-d4", "adamw",
     R"({"input":{"shape":[1024]},"layers":[{"type":"repeat","times":4,"layers":[{"type":"linear",)"
     R"("in":1024,"out":1024},{"type":"relu"}]},{"type":"linear","in":1024,"out":10}],)"
     R"("loss":"cross_entropy"})"},
    {kQuick, "mlp", "w256-d8", "sgd-momentum",
     R"({"input":{"shape":[256]},"layers":[{"type":"repeat","times":8,"layers":[{"type":"linear",)"
     R"("in":256,"out":256},{"type":"gelu"}]},{"type":"linear","in":256,"out":10}],)"
     R"("loss":"cross_entropy"})"},
    {kQuick, "conv", "3x3-bn-relu", "sgd",
     R"({"input":{"shape":[3,64,64]},"layers":[{"type":"conv2d","in":3,"out":32,"kernel":3,"padding":1},)"
     R"({"type":"batch_norm","features":32},{"type":"relu"},{"type":"conv2d","in":32,"out":64,"kernel":3,)"
     R"("stride":2,"padding":1},{"type":"batch_norm","features":64},{"type":"relu"}],"loss":"mean"})"},
    {kQuick, "conv", "classifier", "adamw",
     R"({"input":{"shape":[3,32,32]},"layers":[{"type":"conv2d","in":3,"out":32,"kernel":5,"padding":2},)"
     R"({"type":"relu"},{"type":"max_pool2d","kernel":2,"stride":2},{"type":"conv2d","in":32,"out":64,)"
     R"("kernel":3,"padding":1},{"type":"relu"},{"type":"flatten"},{"type":"linear","in":16384,)"
     R"("out":256},{"type":"relu"},{"type":"linear","in":256,"out":10}],"loss":"cross_entropy"})"},
    {kQuick, "attention", "h256-s128", "adamw",
     R"({"input":{"shape":[128,256]},"layers":[{"type":"attention","hidden":256,"heads":4,)"
     R"("implementation":"eager"}],"loss":"mean"})"},
    {kQuick, "transformer", "gpt2-h256-s128", "adamw",
     R"({"input":{"shape":[128,256]},"layers":[{"type":"repeat","times":2,"layers":[)"
     R"({"type":"transformer_block","style":"gpt2","hidden":256,"heads":4,"implementation":"eager"}]}],)"
     R"("loss":"mean"})"},
    {kQuick, "transformer", "llama-h256-s128", "adamw",
     R"({"input":{"shape":[128,256]},"layers":[{"type":"repeat","times":2,"layers":[)"
     R"({"type":"transformer_block","style":"llama","hidden":256,"heads":4,"ffn":704,)"
     R"("implementation":"flash"}]}],"loss":"mean"})"},
    {kQuick, "embedding", "v8192-h256", "sgd",
     R"({"input":{"shape":[64],"dtype":"int64"},"layers":[{"type":"embedding","vocab":8192,"size":256},)"
     R"({"type":"layer_norm","features":256},{"type":"linear","in":256,"out":1024}],"loss":"mean"})"},
    {kQuick, "fno", "classic-w16-m8", "adam",
     R"({"input":{"shape":[16,32,32]},"layers":[{"type":"repeat","times":2,"layers":[{"type":"fno_block",)"
     R"("style":"classic","width":16,"modes":[8,8]}]}],"loss":"mean"})"},
    {kQuick, "spectral", "c16-m8", "none",
     R"({"input":{"shape":[16,32,32],"requires_grad":true},"layers":[{"type":"spectral_conv","in":16,)"
     R"("out":16,"modes":[8,8]}],"loss":"mean"})"},
    {kStandard, "mlp", "w2048-d2", "adam",
     R"({"input":{"shape":[2048]},"layers":[{"type":"repeat","times":2,"layers":[{"type":"linear",)"
     R"("in":2048,"out":2048},{"type":"silu"}]}],"loss":"mse"})"},
    {kStandard, "conv", "residual-group-norm", "sgd-momentum",
     R"({"input":{"shape":[16,32,32]},"layers":[{"type":"repeat","times":2,"layers":[{"type":"residual",)"
     R"("layers":[{"type":"conv2d","in":16,"out":16,"kernel":3,"padding":1},{"type":"group_norm",)"
     R"("groups":4,"features":16},{"type":"silu"}]}]}],"loss":"mean"})"},
    {kStandard, "transformer", "vit-h192-s196", "adamw",
     R"({"input":{"shape":[196,192]},"layers":[{"type":"repeat","times":3,"layers":[)"
     R"({"type":"transformer_block","style":"vit","hidden":192,"heads":3,"implementation":"flash"}]}],)"
     R"("loss":"mean"})"},
    {kStandard, "transformer", "checkpointed", "adamw",
     R"({"input":{"shape":[128,256]},"layers":[{"type":"repeat","times":3,"layers":[{"type":"checkpoint",)"
     R"("layers":[{"type":"transformer_block","style":"gpt2","hidden":256,"heads":4,)"
     R"("implementation":"flash"}]}]}],"loss":"mean"})"},
    {kStandard, "fno", "neuralop-w24-m12", "adamw",
     R"({"input":{"shape":[24,48,48]},"layers":[{"type":"repeat","times":2,"layers":[{"type":"fno_block",)"
     R"("style":"neuralop","width":24,"modes":[12,12]}]}],"loss":"mean"})",
     /*own_only=*/true},
    {kFull, "conv", "depthwise", "adamw",
     R"({"input":{"shape":[32,56,56]},"layers":[{"type":"conv2d","in":32,"out":32,"kernel":3,"padding":1,)"
     R"("groups":32},{"type":"batch_norm","features":32},{"type":"silu"},{"type":"conv2d","in":32,)"
     R"("out":64,"kernel":1}],"loss":"mean"})"},
    {kFull, "conv", "transposed", "adam",
     R"({"input":{"shape":[64,16,16]},"layers":[{"type":"conv_transpose2d","in":64,"out":32,"kernel":2,)"
     R"("stride":2},{"type":"relu"},{"type":"conv2d","in":32,"out":16,"kernel":3,"padding":1}],)"
     R"("loss":"mean"})"},
    {kFull, "attention", "h512-s512", "sgd",
     R"({"input":{"shape":[512,512]},"layers":[{"type":"attention","hidden":512,"heads":8,)"
     R"("implementation":"eager"}],"loss":"mean"})"},
});

constexpr const char* kDecoder =
    R"({"input":{"shape":[256],"dtype":"int64"},"layers":[{"type":"embedding","vocab":32000,"size":256},)"
    R"({"type":"repeat","times":4,"layers":[{"type":"transformer_block","style":"llama","hidden":256,)"
    R"("heads":4,"ffn":704,"implementation":"sdpa"}]},{"type":"rms_norm","features":256},)"
    R"({"type":"linear","in":256,"out":32000,"bias":false}],"loss":"cross_entropy"})";

constexpr auto kPytorchRows = std::to_array<PytorchRow>({
    {kStandard, "decoder", "v32000", "fp32", "{}", nullptr, /*on_cpu=*/true},
    {kStandard, "decoder", "v32000", "amp-bf16", "{}"},
    {kStandard, "decoder", "v32000", "bf16", "{}"},
    {kStandard, "decoder", "v32000", "fp16", R"({"training":{"optimizer":"sgd"}})"},
    {kStandard, "decoder", "v32000-expandable", "bf16",
     R"({"allocator":{"options":"expandable_segments:True"}})"},
    {kStandard, "decoder", "v32000-checkpointed", "bf16",
     R"({"model":{"layers":[{"type":"embedding","vocab":32000,"size":256},{"type":"repeat","times":4,)"
     R"("layers":[{"type":"checkpoint","layers":[{"type":"transformer_block","style":"llama",)"
     R"("hidden":256,"heads":4,"ffn":704,"implementation":"sdpa"}]}]},{"type":"rms_norm",)"
     R"("features":256},{"type":"linear","in":256,"out":32000,"bias":false}]}})"},
    {kStandard, "decoder", "v32000-lora", "fp32",
     R"({"training":{"lora":{"rank":8,"targets":"all-linear","dropout":0}}})", nullptr,
     /*on_cpu=*/true},
    {kStandard, "decoder", "v32000-lora", "bf16",
     R"({"training":{"lora":{"rank":8,"targets":"all-linear","dropout":0,"precision":"bf16"}}})"},
    {kStandard, "decoder", "v32000-8bit", "bf16", R"({"training":{"optimizer":"adamw-8bit"}})"},
    {kStandard, "compiled", "v32000", "bf16", "{}", R"({"training":{"compile":true}})"},
    {kStandard, "cuda-graph", "v32000", "bf16", R"({"training":{"optimizer":"sgd"}})",
     R"({"execution":"cuda-graph"})"},
});

constexpr auto kCpuSizes = std::to_array<SizeRow>({
    {kQuick, 64_MiB, false},
    {kQuick, 112_MiB, true},
    {kQuick, 192_MiB, false},
    {kStandard, 320_MiB, false},
    {kStandard, 448_MiB, true},
    {kFull, 1_GiB, false},
});

constexpr auto kGpuSizes = std::to_array<SizeRow>({
    {kQuick, 256_MiB, false},
    {kQuick, 512_MiB, true},
    {kQuick, 1_GiB, false},
    {kStandard, 2_GiB, false},
    {kStandard, 3_GiB, true},
    {kStandard, 4_GiB, false},
    {kFull, 8_GiB, false},
    {kFull, 16_GiB, true},
});

constexpr auto kCpuPrecisions = std::to_array<PrecisionRow>({{kQuick, "fp32"}});
constexpr auto kGpuPrecisions =
    std::to_array<PrecisionRow>({{kQuick, "fp32"}, {kStandard, "amp-bf16"}, {kFull, "fp16", true}});

}  // namespace

std::span<const ModelRow> model_rows() { return kModels; }

std::span<const PytorchRow> pytorch_rows() { return kPytorchRows; }

const char* pytorch_model() { return kDecoder; }

std::span<const SizeRow> size_rows(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu: return kCpuSizes;
    case DeviceKind::kCuda:
    case DeviceKind::kVirtual:
    case DeviceKind::kDry: break;
  }
  return kGpuSizes;
}

std::span<const PrecisionRow> precision_rows(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu: return kCpuPrecisions;
    case DeviceKind::kCuda:
    case DeviceKind::kVirtual:
    case DeviceKind::kDry: break;
  }
  return kGpuPrecisions;
}

}  // namespace memfathom
