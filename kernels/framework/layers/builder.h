// Builder: creates a model's parameters and buffers in the framework's order and decides which are
// trainable.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/enum_names.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {

enum class TrainableSubset : std::uint8_t { kFull, kFrozen, kLora, kLast };
// bitsandbytes quantizes weights when they are loaded; the other schemes store quantized weights.
enum class Quantization : std::uint8_t {
  kNone,
  kInt8,
  kNf4,
  kNf4Double,
  kGptq,
  kAwq,
  kFp8,
  kMxfp4,  // gpt-oss: only the experts' matrices
};

template <>
inline constexpr auto kEnumNames<Quantization> =
    std::to_array<EnumName<Quantization>>({{Quantization::kNone, "none"},
                                           {Quantization::kInt8, "int8"},
                                           {Quantization::kNf4, "nf4"},
                                           {Quantization::kNf4Double, "nf4-double"},
                                           {Quantization::kGptq, "gptq"},
                                           {Quantization::kAwq, "awq"},
                                           {Quantization::kFp8, "fp8"},
                                           {Quantization::kMxfp4, "mxfp4"}});

// The packing of weights that are stored quantized.
struct PackedWeights {
  std::int64_t bits = 4;
  std::int64_t group = 128;                  // weights of a row that share a scale; 0: all
  std::vector<std::string> not_converted{};  // parts of the names of unquantized matrices
};

struct LoraOptions {
  std::int64_t rank = 8;
  std::vector<std::string> targets;  // the last component of a linear's name, or "all-linear"
  double dropout = 0;
  DType precision = DType::kFp32;  // of the adapters
};

struct BuildOptions {
  DType dtype = DType::kFp32;  // parameters and persistent buffers
  TrainableSubset train = TrainableSubset::kFull;
  std::int64_t last_blocks = 0;  // kLast: the head and the last `last_blocks` blocks are trainable
  std::optional<LoraOptions> lora;
  Quantization quantization = Quantization::kNone;
  PackedWeights packed{};
  bool quantize_head = false;  // true in LitGPT, false in Hugging Face
  bool deferred = false;       // parameters get their memory later, from the sharding code
  std::int64_t adapter_rank =
      0;  // > 0: the rank of a bottleneck after each block; only these adapters are trainable
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
  std::int64_t block = -1;  // the repeated block it belongs to, counted over the whole model
};

// The adapter after a block in models with bottleneck adapters: x + up(relu(down(x))).
struct BlockAdapter {
  Tensor down, down_bias, up, up_bias;
};

class Builder {
 public:
  Builder(Session& session, BuildOptions options)
      : session_(session), options_(std::move(options)) {}

  Session& session() { return session_; }
  const BuildOptions& options() const { return options_; }

  // A parameter of the current scope, in the model's type unless `dtype` is given.
  Tensor parameter(std::string_view name, const Shape& shape, std::optional<DType> dtype = {});
  // Storage of quantized weights: always frozen.
  Tensor frozen_parameter(std::string_view name, const Shape& shape, DType dtype);
  // Floating-point persistent buffers have the model's type; others keep their own.
  Tensor buffer(std::string_view name, const Shape& shape, DType dtype, bool persistent = true);

  // Creates the parameters that follow the whole base model, such as PEFT's adapters.
  void after_base(std::function<void()> make);
  // An adapter's parameter: always trainable.
  Tensor adapter_parameter(std::string name, const Shape& shape, DType dtype);
  void finish();

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  const std::vector<NamedTensor>& buffers() const { return buffers_; }
  std::vector<Tensor> trainable() const;
  std::int64_t parameter_count() const { return parameter_count_; }
  // For quantized storage: the number of weights it holds.
  void count_parameters(std::int64_t weights) { parameter_count_ += weights; }
  const std::string& path() const { return path_; }

  // One per block so far, set by finish(); null without `adapter_rank`.
  std::shared_ptr<const BlockAdapter> block_adapter(std::int64_t block) const;
  std::int64_t blocks() const { return block_count_; }

  bool in_frozen_scope() const { return frozen_depth_ > 0; }
  // Outside the language model, adapter targets are matched exactly as the library spells them.
  bool outside_language_model() const { return non_language_depth_ > 0; }
  // Whether a parameter created in the current scope is trainable.
  bool new_parameters_trainable() const;

 private:
  friend class PathScope;
  friend class BlockScope;
  friend class HeadScope;
  friend class FrozenScope;
  friend class NonLanguageScope;

  Tensor make(const Shape& shape, DType dtype);
  void begin_block(std::int64_t width);

  Session& session_;
  BuildOptions options_;
  std::string path_;
  std::int64_t blocks_left_ = -1;  // inside a block: the number of blocks after it
  std::int64_t block_ = -1;        // inside a block: its index
  std::int64_t block_count_ = 0;
  std::vector<std::shared_ptr<BlockAdapter>> block_adapters_;
  int head_depth_ = 0;
  int frozen_depth_ = 0;
  int non_language_depth_ = 0;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  std::vector<std::function<void()>> after_base_;
  std::int64_t parameter_count_ = 0;
};

// Prefixes names in the scope with `name.`.
class PathScope {
 public:
  PathScope(Builder& builder, std::string_view name);
  PathScope(Builder& builder, std::string_view name, std::int64_t index);
  ~PathScope() { builder_.path_.resize(length_); }
  PathScope(const PathScope&) = delete;
  PathScope& operator=(const PathScope&) = delete;

 private:
  Builder& builder_;
  std::size_t length_;
};

// One of the model's repeated blocks, for `train: {last: k}` and for sharding by block. `width` is
// the size of the block's output hidden states; 0 if the family does not support bottleneck
// adapters.
class BlockScope {
 public:
  BlockScope(Builder& builder, std::int64_t index, std::int64_t count, std::int64_t width = 0)
      : builder_(builder) {
    builder_.blocks_left_ = count - 1 - index;
    builder_.begin_block(width);
  }
  ~BlockScope() {
    builder_.blocks_left_ = -1;
    builder_.block_ = -1;
  }
  BlockScope(const BlockScope&) = delete;
  BlockScope& operator=(const BlockScope&) = delete;

 private:
  Builder& builder_;
};

// The output matrix or classifier.
class HeadScope {
 public:
  explicit HeadScope(Builder& builder) : builder_(builder) { ++builder_.head_depth_; }
  ~HeadScope() { --builder_.head_depth_; }
  HeadScope(const HeadScope&) = delete;
  HeadScope& operator=(const HeadScope&) = delete;

 private:
  Builder& builder_;
};

// An encoder or projector next to a language model.
class NonLanguageScope {
 public:
  explicit NonLanguageScope(Builder& builder) : builder_(builder) {
    ++builder_.non_language_depth_;
  }
  ~NonLanguageScope() { --builder_.non_language_depth_; }
  NonLanguageScope(const NonLanguageScope&) = delete;
  NonLanguageScope& operator=(const NonLanguageScope&) = delete;

 private:
  Builder& builder_;
};

// A frozen part of the model: no gradients, no adapters.
class FrozenScope {
 public:
  FrozenScope(Builder& builder, bool frozen) : builder_(builder), frozen_(frozen ? 1 : 0) {
    builder_.frozen_depth_ += frozen_;
  }
  ~FrozenScope() { builder_.frozen_depth_ -= frozen_; }
  FrozenScope(const FrozenScope&) = delete;
  FrozenScope& operator=(const FrozenScope&) = delete;

 private:
  Builder& builder_;
  int frozen_;
};

}  // namespace memfathom
