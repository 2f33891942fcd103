#include "kernels/framework/layers/linear.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/quantized.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr std::int64_t kNf4Block = 64;
constexpr std::int64_t kNestedBlock = 256;

std::int64_t blocks_of(std::int64_t n, std::int64_t block) { return (n + block - 1) / block; }

constexpr std::int64_t kFp8Block = 128;

// GPTQ packs along the rows of a column, AWQ along the columns of a row: the number of words is
// equal.
void pack(Builder& builder, std::int64_t in, std::int64_t out, QuantizedWeight& made) {
  const PackedWeights& packed = builder.options().packed;
  const std::int64_t groups = packed.group > 0 ? blocks_of(in, packed.group) : 1;
  const std::int64_t words = blocks_of(packed.bits * in, 32);
  made.packed = builder.frozen_parameter("qweight", {words, out}, DType::kInt32);
  made.zeros =
      builder.frozen_parameter("qzeros", {groups, blocks_of(packed.bits * out, 32)}, DType::kInt32);
  made.scales = builder.frozen_parameter("scales", {groups, out}, DType::kFp16);
  if (builder.options().quantization == Quantization::kGptq)
    made.order = builder.frozen_parameter("g_idx", {in}, DType::kInt32);
}

// Whether the current matrix's name is excluded from quantization.
bool is_excluded_from_quantization(const Builder& builder) {
  const std::string path = "." + builder.path();
  const std::vector<std::string>& whole = builder.options().packed.not_converted;
  return std::any_of(whole.begin(), whole.end(), [&](const std::string& part) {
    return path.find("." + part + ".") != std::string::npos;
  });
}

bool is_quantized(const Builder& builder, const LinearOptions& options) {
  switch (builder.options().quantization) {
    case Quantization::kNone:
    case Quantization::kMxfp4: return false;
    case Quantization::kInt8:
    case Quantization::kNf4:
    case Quantization::kNf4Double:
    case Quantization::kGptq:
    case Quantization::kAwq:
    case Quantization::kFp8: break;
  }
  return (!options.head || builder.options().quantize_head) &&
         !is_excluded_from_quantization(builder);
}

// NF4: two weights a byte and a scale per block.
void pack_nf4(Builder& builder, std::string_view name, std::int64_t n, bool quantize_scales,
              QuantizedWeight& made) {
  made.packed = builder.frozen_parameter(name, {blocks_of(n, 2), 1}, DType::kUint8);
  const std::int64_t blocks = blocks_of(n, kNf4Block);
  made.scales =
      builder.frozen_parameter("absmax", {blocks}, quantize_scales ? DType::kUint8 : DType::kFp32);
  if (quantize_scales)
    made.second_scales =
        builder.frozen_parameter("nested_absmax", {blocks_of(blocks, kNestedBlock)}, DType::kFp32);
}

std::shared_ptr<QuantizedWeight> quantize(Builder& builder, std::string_view name, std::int64_t in,
                                          std::int64_t out) {
  auto made = std::make_shared<QuantizedWeight>();
  const std::int64_t n = Shape{in, out}.elements();
  made->shape = {out, in};
  builder.count_parameters(n);
  switch (builder.options().quantization) {
    case Quantization::kGptq:
    case Quantization::kAwq:
      made->direct = true;
      pack(builder, in, out, *made);
      return made;
    case Quantization::kFp8:
      made->eight_bit = made->direct = true;
      made->packed = builder.frozen_parameter(name, {out, in}, DType::kInt8);
      made->scales = builder.frozen_parameter(
          "weight_scale_inv", {blocks_of(out, kFp8Block), blocks_of(in, kFp8Block)}, DType::kFp32);
      return made;
    case Quantization::kInt8:
      made->eight_bit = true;
      made->packed = builder.frozen_parameter(name, {out, in}, DType::kInt8);
      made->scales = builder.frozen_parameter("scales", {out}, DType::kFp32);
      return made;
    case Quantization::kNf4: pack_nf4(builder, name, n, false, *made); return made;
    case Quantization::kNf4Double: pack_nf4(builder, name, n, true, *made); return made;
    case Quantization::kNone:
    case Quantization::kMxfp4: break;  // is_quantized() is false
  }
  throw Error(ErrorKind::kInternal, "a linear layer has no form for this quantization");
}

// Maps names that other families and transformers versions use for a module to Llama's name, so
// that jobs can use either.
std::string_view canonical_module_name(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kUsual{{
      {"query", "q_proj"},
      {"key", "k_proj"},
      {"value", "v_proj"},
      {"q", "q_proj"},
      {"k", "k_proj"},
      {"v", "v_proj"},
      {"dense", "o_proj"},
      {"out_proj", "o_proj"},
      {"fc1", "up_proj"},
      {"fc2", "down_proj"},
      {"dense_h_to_4h", "up_proj"},
      {"dense_4h_to_h", "down_proj"},
  }};
  for (const auto& [own, usual] : kUsual) {
    if (name == own) return usual;
  }
  return name;
}

bool is_target(const LoraOptions& lora, std::string_view name, const LinearOptions& options,
               bool as_spelt) {
  // Where q, k and v are one fused matrix, a target that names one of them adapts the fused matrix.
  const bool fused =
      name == "query_key_value" || name == "c_attn" || name == "qkv_proj" || name == "qkv";
  return std::any_of(lora.targets.begin(), lora.targets.end(), [&](const std::string& target) {
    const bool part = target == "q_proj" || target == "k_proj" || target == "v_proj";
    const bool suffix = name.size() > target.size() && name.ends_with(target) &&
                        name[name.size() - target.size() - 1] == '.';
    if (suffix || target == name || (target == "all-linear" && !options.head)) return true;
    return !as_spelt &&
           (canonical_module_name(target) == canonical_module_name(name) || (fused && part));
  });
}

Tensor base_product(const Linear& layer, const Tensor& x) {
  if (layer.quantized) return linear_quantized(x, *layer.quantized, layer.bias);
  if (layer.unfused) {
    // Autocast does not cache casts of views, because they are not leaves.
    const Tensor product = matmul(x, transpose(layer.weight, 0, 1));
    return layer.bias ? add(product, layer.bias) : product;
  }
  return layer.transposed ? linear_transposed(x, layer.weight, layer.bias)
                          : linear(x, layer.weight, layer.bias);
}

}  // namespace

Tensor Linear::operator()(const Tensor& x) const {
  if (!lora || !x.session().adapters_enabled) return base_product(*this, x);
  // PEFT casts the input to the adapters' type and the sum to the base layer's.
  Tensor result = base_product(*this, x);
  const DType dtype = result.dtype();
  const Tensor cast = to_dtype(x, lora->a.dtype());
  Tensor t = linear(dropout(cast, lora->dropout), lora->a);
  t = linear(t, lora->b);
  t = mul_scalar(t, lora->scale);
  const Tensor sum = add(result, t);
  t.reset();
  result.reset();
  return to_dtype(sum, dtype);
}

Linear make_linear(Builder& builder, std::string_view name, std::int64_t in, std::int64_t out,
                   LinearOptions options) {
  const PathScope scope(builder, name);
  Linear layer;
  layer.transposed = options.transposed;
  layer.unfused = options.unfused;
  if (is_quantized(builder, options)) {
    layer.quantized = quantize(builder, "weight", in, out);
  } else {
    layer.weight =
        builder.parameter("weight", options.transposed ? Shape{in, out} : Shape{out, in});
  }
  if (options.bias) layer.bias = builder.parameter("bias", {out});
  const std::optional<LoraOptions>& lora = builder.options().lora;
  if (builder.options().train == TrainableSubset::kLora && lora && !builder.in_frozen_scope() &&
      is_target(*lora, name, options, builder.outside_language_model())) {
    layer.lora = std::make_shared<LoraAdapter>();
    layer.lora->dropout = lora->dropout;
    builder.after_base([&builder, adapter = layer.lora, path = builder.path(), in, out] {
      const LoraOptions& wanted = *builder.options().lora;
      adapter->a =
          builder.adapter_parameter(path + "lora_A.weight", {wanted.rank, in}, wanted.precision);
      adapter->b =
          builder.adapter_parameter(path + "lora_B.weight", {out, wanted.rank}, wanted.precision);
    });
  }
  return layer;
}

}  // namespace memfathom
