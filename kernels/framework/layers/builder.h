// Builder: makes the parameters and buffers of a model, in the framework's order, and decides which
// of them learn.
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
// bitsandbytes quantises whole weights when they are loaded; the others are stored quantized.
enum class Quantization : std::uint8_t {
  kNone,
  kInt8,
  kNf4,
  kNf4Double,
  kGptq,
  kAwq,
  kFp8,
  kMxfp4,  // gpt-oss: the experts' matrices alone
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

// How weights that were stored quantized are packed.
struct PackedWeights {
  std::int64_t bits = 4;
  std::int64_t group = 128;                  // weights of a row that share a scale; 0: all
  std::vector<std::string> not_converted{};  // parts of names whose matrices stay whole
};

struct LoraOptions {
  std::int64_t rank = 8;
  std::vector<std::string> targets;  // last part of a linear's name, or "all-linear"
  double dropout = 0;
  DType precision = DType::kFp32;  // of the adapters
};

struct BuildOptions {
  DType dtype = DType::kFp32;  // parameters and persistent buffers
  TrainableSubset train = TrainableSubset::kFull;
  std::int64_t last_blocks = 0;  // kLast: the head and that many blocks at the end learn
  std::optional<LoraOptions> lora;
  Quantization quantization = Quantization::kNone;
  PackedWeights packed{};
  bool quantize_head = false;  // LitGPT does, Hugging Face does not
  bool deferred = false;       // parameters get their memory later, from whoever shards them
  std::int64_t adapter_rank =
      0;  // > 0: a bottleneck of that rank after each block, the only thing that learns
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
  std::int64_t block =
      -1;  // which of the repeated blocks it belongs to, counted over the whole model
};

// What stands after a block in models with bottleneck adapters: x + up(relu(down(x))).
struct BlockAdapter {
  Tensor down, down_bias, up, up_bias;
};

class Builder {
 public:
  Builder(Session& session, BuildOptions options)
      : session_(session), options_(std::move(options)) {}

  Session& session() { return session_; }
  const BuildOptions& options() const { return options_; }

  // A parameter of the current scope, in the model's type unless another is given.
  Tensor parameter(std::string_view name, const Shape& shape, std::optional<DType> dtype = {});
  // Storage of quantized weights: a parameter that never learns.
  Tensor frozen_parameter(std::string_view name, const Shape& shape, DType dtype);
  // Persistent buffers follow the model's type when it is floating; others keep theirs.
  Tensor buffer(std::string_view name, const Shape& shape, DType dtype, bool persistent = true);

  // Makes what must come after the whole base model (PEFT adds its adapters then).
  void after_base(std::function<void()> make);
  // An adapter's parameter: always learns.
  Tensor adapter_parameter(std::string name, const Shape& shape, DType dtype);
  void finish();

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  const std::vector<NamedTensor>& buffers() const { return buffers_; }
  std::vector<Tensor> trainable() const;
  std::int64_t parameter_count() const { return parameter_count_; }
  // For quantized storages: the number of weights they stand for.
  void count_parameters(std::int64_t weights) { parameter_count_ += weights; }
  const std::string& path() const { return path_; }

  // One per block so far, filled by finish(); null without `adapter_rank`.
  std::shared_ptr<const BlockAdapter> block_adapter(std::int64_t block) const;
  std::int64_t blocks() const { return block_count_; }

  bool in_frozen_scope() const { return frozen_depth_ > 0; }
  // Beside the language model: the targets of adapters are meant as the library spells them.
  bool outside_language_model() const { return non_language_depth_ > 0; }
  // Whether a parameter made now would learn.
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
  std::int64_t blocks_left_ = -1;  // inside a block: how many come after it
  std::int64_t block_ = -1;        // inside a block: its number
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

// Names inside it begin with `name.`.
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

// One of the model's repeated blocks, for `train: {last: k}` and for what is sharded by blocks.
// `width` is the size of the hidden states that leave it, where bottleneck adapters can follow; 0:
// the family has no place for them.
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

// An encoder or projector beside a language model.
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

// A part of the model that does not learn, whatever the rest does: no gradients, no adapters.
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
