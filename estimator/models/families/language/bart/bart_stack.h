// BartStack: encoder or decoder of BART and the families that share its code, down to Whisper.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/document.h"
#include "estimator/models/blocks/attention.h"
#include "estimator/models/blocks/key_value_cache.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/linear.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/activation.h"

namespace memfathom {

struct BartSide {
  std::int64_t layers = 0, heads = 0, ffn = 0;
};

// How tokens know their places.
enum class BartPositions : std::uint8_t {
  kOffsetTable,  // BART: learnt; the table begins with two rows nobody reads
  kTable,        // Blenderbot: learnt
  kSinusoids,    // Pegasus, Marian: a frozen parameter
  kBuffer,       // M2M-100: sinusoids of the padded positions, gathered for every sample
};

struct BartConfig {
  std::int64_t hidden = 0, vocabulary = 0, source_positions = 0, target_positions = 0;
  BartSide encoder, decoder;
  double dropout = 0, attention_dropout = 0, activation_dropout = 0;
  bool norm_first = false;  // and once more after the last block: mBART, Pegasus and Whisper
  bool norms_embeddings = true;
  bool final_bias = true;  // a buffer added to the logits
  bool tied = true;        // encoder, decoder and head have one table
  bool shared = true;      // Marian: untied, the model has no fourth table that nobody reads
  std::int64_t target_vocabulary = 0;
  BartPositions positions = BartPositions::kOffsetTable;
  std::int64_t mel_bins = 0;  // Whisper: it hears instead of reading, and has habits of its own
  Activation activation = Activation::kGelu;

  bool is_speech_model() const { return mel_bins > 0; }
};

BartConfig read_bart_config(const Node& config, const ModelSettings& settings);

// What a decoder's blocks are given beside the hidden states.
struct BartPass {
  Tensor mask, cross_mask;
  Tensor encoded;  // the encoder's result; undefined in the encoder itself
  KeyValueCache *cache = nullptr, *cross_cache = nullptr;
};

class BartAttention {
 public:
  BartAttention(Builder& builder, const char* name, const BartConfig& cfg, std::int64_t heads,
                const ModelSettings& settings, bool causal);

  Attended operator()(const Tensor& x, const Tensor& source, const Tensor& mask,
                      KeyValueCache* cache, std::size_t layer) const;

 private:
  Tensor in_heads(const Tensor& projected) const;

  bool is_speech_model_;
  std::int64_t head_size_;
  double scale_;
  AttentionStyle style_;
  Linear q_, k_, v_, output_;
};

class BartBlock {
 public:
  BartBlock(Builder& builder, const BartConfig& cfg, const ModelSettings& settings, bool decoder,
            std::size_t index);

  Tensor operator()(const Tensor& x, const BartPass& pass) const;

 private:
  Tensor feed_forward(const Tensor& x) const;

  BartConfig config_;
  std::size_t index_;
  BartAttention self_;
  LayerNorm self_norm_, cross_norm_, mlp_norm_;
  std::optional<BartAttention> cross_;  // a decoder's
  Linear first_, second_;
};

class BartStack {
 public:
  BartStack(Builder& builder, const char* name, const BartConfig& cfg,
            const ModelSettings& settings, bool decoder);

  // Embeddings with their positions to the last hidden states.
  Tensor operator()(const Tensor& embedded, const BartPass& pass) const;

 private:
  Tensor run(const BartBlock& block, const Tensor& x, const BartPass& pass) const;

  ModelSettings settings_;
  std::vector<BartBlock> blocks_;
  std::optional<LayerNorm> last_norm_;
};

}  // namespace memfathom
