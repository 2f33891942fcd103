// BART: transformers' encoder-decoders of text, and Whisper, which is one of them with ears.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/gather_rows.h"
#include "estimator/models/blocks/language_loss.h"
#include "estimator/models/blocks/losses.h"
#include "estimator/models/blocks/masks.h"
#include "estimator/models/blocks/pass.h"
#include "estimator/models/families/families.h"
#include "estimator/models/families/language/bart/bart_stack.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/convolution.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr std::int64_t kPositionOffset = 2;  // BART's tables begin with two rows nobody reads

// Whisper's: two convolutions over the frames of a recording, the second of every other frame.
class AudioFrontEnd {
 public:
  AudioFrontEnd(Builder& builder, const BartConfig& cfg) : config_(cfg) {
    const PathScope scope(builder, "encoder");
    first_ = make_conv(builder, "conv1", cfg.mel_bins);
    second_ = make_conv(builder, "conv2", cfg.hidden);
    const FrozenScope frozen(builder, true);  // sinusoids
    positions_ = builder.parameter("embed_positions.weight", {cfg.source_positions, cfg.hidden});
  }

  Tensor operator()(const ModelSettings& settings, const Tensor& features, double dropped) const {
    Session& session = features.session();
    Tensor heard = convolved(first_, features, 1);
    prepare_embeddings(settings, heard);  // as PEFT and its recipe for Whisper have it
    heard = activate(Activation::kGelu, heard);
    heard = activate(Activation::kGelu, convolved(second_, heard, 2));
    heard = permute(heard, {0, 2, 1});
    const Tensor all = session.empty({config_.source_positions}, DType::kInt64);
    return dropout(add(heard, embedding(positions_, all)), dropped);
  }

 private:
  struct Conv {
    Tensor weight, bias;
  };

  Conv make_conv(Builder& builder, const char* name, std::int64_t in) const {
    const PathScope scope(builder, name);
    const Tensor weight = builder.parameter("weight", {config_.hidden, in, 3});
    return {weight, builder.parameter("bias", {config_.hidden})};
  }

  static Tensor convolved(const Conv& conv, const Tensor& x, std::int64_t stride) {
    ConvolutionOptions options;
    options.stride = {stride};
    options.padding = {1};
    options.dilation = {1};
    return convolution(x, conv.weight, conv.bias, options);
  }

  BartConfig config_;
  Conv first_, second_;
  Tensor positions_;
};

class Bart final : public Network {
 public:
  Bart(Builder& builder, const Node& config, const ModelSettings& settings, const BartConfig& cfg)
      : session_(builder.session()), settings_(settings), config_(cfg) {
    require_sequence_length(settings_);
    require_positions(config);
    make_words(builder);
    if (cfg.is_speech_model()) {
      audio_front_end_.emplace(builder, cfg);
      target_positions_ =
          builder.parameter("decoder.embed_positions.weight", {cfg.target_positions, cfg.hidden});
    } else {
      source_positions_ = make_positions_of(builder, "encoder");
      target_positions_ = make_positions_of(builder, "decoder");
      if (cfg.norms_embeddings) {
        source_norm_ = make_layer_norm(builder, "encoder.layernorm_embedding", cfg.hidden);
        target_norm_ = make_layer_norm(builder, "decoder.layernorm_embedding", cfg.hidden);
      }
      if (cfg.final_bias)
        final_bias_ = builder.buffer("final_logits_bias", {1, cfg.target_vocabulary}, DType::kFp32);
    }
    encoder_.emplace(builder, "encoder", cfg, settings, false);
    decoder_.emplace(builder, "decoder", cfg, settings, true);
    if (cfg.tied) return;
    const HeadScope head(builder);
    head_ = builder.parameter(cfg.is_speech_model() ? "proj_out.weight" : "lm_head.weight",
                              {cfg.target_vocabulary, cfg.hidden});
  }

  void load_batch(std::int64_t size, bool) override {
    const BatchScope scope(session_, {&source_, &labels_, &padding_});
    if (config_.is_speech_model()) {
      source_ = session_.zeros({size, config_.mel_bins, 2 * config_.source_positions},
                               settings_.precision);
    } else {
      source_ = session_.zeros({size, settings_.sequence_length}, DType::kInt64);
      if (settings_.padding_mask) padding_ = session_.zeros(source_.shape(), DType::kInt64);
    }
    labels_ = session_.zeros({size, target_length()}, DType::kInt64);
  }

  Tensor loss(Tensor* output) override {
    Held held;
    const Tensor logits = scored(held);
    const ComponentScope scope(session_, Component::kLogitsLoss);
    Tensor value = loss_is_in_script(settings_)
                       ? apply_loss(settings_.loss, logits, labels_, settings_.label_smoothing)
                   : trainer_smooths_labels(settings_) ? smoothed_loss(logits, labels_, false)
                                                       : token_loss(logits, labels_);
    if (output != nullptr) {
      *output = logits;
      held_ = std::move(held);
    }
    return value;
  }

  bool script_holds_output() const override { return loss_is_in_script(settings_); }

  Tensor forward() override {
    Held held;
    Tensor logits = scored(held);
    held_ = std::move(held);
    return logits;
  }

  void end_generation() override { held_ = {}; }

 private:
  // What is in the output object beside the logits.
  struct Held {
    Tensor encoded;
    std::optional<KeyValueCache> cache, cross_cache;
  };

  std::int64_t target_length() const {
    return settings_.target_sequence_length > 0 ? settings_.target_sequence_length
                                                : settings_.sequence_length;
  }

  void require_positions(const Node& config) const {
    const auto require = [&](std::int64_t tokens, std::int64_t most, const char* what) {
      if (tokens > most)
        config.refuse(fmt::format("it has {} positions, and {} {} tokens", most, what, tokens));
    };
    require(target_length(), config_.target_positions, "the labels have");
    if (!config_.is_speech_model())
      require(settings_.sequence_length, config_.source_positions, "training.sequence_length says");
  }

  // Tied: encoder, decoder and head have one table, or those of Marian that share none, one each.
  // Untied, each has its own, and the shared one stays, which nobody reads then.
  void make_words(Builder& builder) {
    const Shape table{config_.vocabulary, config_.hidden};
    const Shape target{config_.target_vocabulary, config_.hidden};
    if (config_.is_speech_model() || (config_.tied && config_.shared)) {
      std::optional<HeadScope> head;
      if (config_.tied) head.emplace(builder);
      words_ = target_words_ = head_ = builder.parameter(
          config_.is_speech_model() ? "decoder.embed_tokens.weight" : "shared.weight", table);
      return;
    }
    if (config_.shared) unread_words_ = builder.parameter("shared.weight", table);
    words_ = builder.parameter("encoder.embed_tokens.weight", table);
    std::optional<HeadScope> head;
    if (config_.tied) head.emplace(builder);
    target_words_ = head_ = builder.parameter("decoder.embed_tokens.weight", target);
  }

  Tensor make_positions_of(Builder& builder, const char* side) const {
    const PathScope scope(builder, side);
    const bool offset = config_.positions == BartPositions::kOffsetTable ||
                        config_.positions == BartPositions::kBuffer;
    const Shape table{config_.source_positions + (offset ? kPositionOffset : 0), config_.hidden};
    if (config_.positions == BartPositions::kBuffer)
      return builder.buffer("embed_positions.weights", table, builder.options().dtype, false);
    const FrozenScope frozen(builder, config_.positions == BartPositions::kSinusoids);
    return builder.parameter("embed_positions.weight", table);
  }

  // The rows of the table for tokens of this shape; BART and its relatives of one sample only in
  // the decoder.
  Tensor positions_of(const Tensor& table, const Shape& shape) const {
    if (config_.positions != BartPositions::kBuffer)
      return embedding(table, session_.empty(shape, DType::kInt64));
    const NoGrad no_grad(session_);
    const Tensor rows = session_.empty({labels_.size(0), shape[1]}, DType::kInt64);
    return session_.empty({labels_.size(0), shape[1], config_.hidden}, table.dtype());
  }

  Tensor mask_of(std::int64_t queries, std::int64_t keys, bool causal, const Tensor& padding,
                 bool cached) const {
    MaskCase c;
    c.batch = labels_.size(0);
    c.queries = queries;
    c.keys = keys;
    c.causal = causal;
    c.cached = cached;
    c.positions = config_.is_speech_model();
    c.padding = padding;
    c.eager = settings_.attention == AttentionImplementation::kEager;
    c.dtype = words_.dtype();
    return make_mask(session_, c);
  }

  // BART's factor is there even where it is one.
  Tensor scaled_words(const Tensor& table, const Tensor& ids) const {
    Tensor words = embedding(table, ids);
    prepare_embeddings(settings_, words);
    return config_.is_speech_model() ? words : mul_scalar(words, 1);
  }

  Tensor encoded() const {
    BartPass pass;
    if (config_.is_speech_model())
      return (*encoder_)((*audio_front_end_)(settings_, source_, config_.dropout), pass);
    const Tensor words = scaled_words(words_, source_);
    const bool once = config_.positions == BartPositions::kTable ||
                      config_.positions == BartPositions::kSinusoids;
    const Tensor positions =
        positions_of(source_positions_, once ? Shape{1, source_.size(1)} : source_.shape());
    Tensor hidden = add(words, positions);
    if (source_norm_) hidden = (*source_norm_)(hidden);
    hidden = dropout(hidden, config_.dropout);
    pass.mask = mask_of(source_.size(1), source_.size(1), false, padding_, false);
    return (*encoder_)(hidden, pass);
  }

  Tensor placed(const Tensor& words) const {
    const std::int64_t length = words.size(1);
    if (config_.is_speech_model()) {
      const Tensor rows = session_.empty({words.size(0) * length}, DType::kInt64);
      const Tensor positions = gather_rows(target_positions_, rows);
      return add(words, view(positions, words.shape()));
    }
    const Tensor positions = positions_of(target_positions_, {1, length});
    const Tensor hidden = add(words, positions);
    return target_norm_ ? (*target_norm_)(hidden) : hidden;
  }

  Tensor decoded(Held& held) const {
    const Tensor ids = shifted_right(labels_);
    const Tensor words = scaled_words(target_words_, ids);
    const bool cached = settings_.use_cache && !checkpoints(settings_, session_);
    if (cached) {
      held.cache.emplace(settings_.kv_cache, config_.decoder.layers, ids.size(1));
      held.cross_cache.emplace(settings_.kv_cache, config_.decoder.layers, held.encoded.size(1));
    }
    BartPass pass;
    pass.encoded = held.encoded;
    pass.cache = cached ? &*held.cache : nullptr;
    pass.cross_cache = cached ? &*held.cross_cache : nullptr;
    pass.mask = mask_of(ids.size(1), ids.size(1), true, {}, cached);
    if (padding_)
      pass.cross_mask = mask_of(ids.size(1), held.encoded.size(1), false, padding_, false);
    Tensor hidden = placed(words);
    hidden = dropout(hidden, config_.dropout);
    return (*decoder_)(hidden, pass);
  }

  Tensor scored(Held& held) const {
    held.encoded = encoded();
    const Tensor hidden = decoded(held);
    const ComponentScope scope(session_, Component::kLogitsLoss);
    const Tensor logits = linear(hidden, head_);
    return final_bias_ ? add(logits, final_bias_) : logits;
  }

  Session& session_;
  ModelSettings settings_;
  BartConfig config_;
  Tensor words_, target_words_, unread_words_, head_, source_positions_, target_positions_,
      final_bias_;
  std::optional<AudioFrontEnd> audio_front_end_;
  std::optional<LayerNorm> source_norm_, target_norm_;
  std::optional<BartStack> encoder_, decoder_;
  Tensor source_, labels_, padding_;
  Held held_;  // of an output that the loop holds
};

}  // namespace

// For conditional generation. Whisper's recordings have the
// length that its config fixes; training.sequence_length counts the tokens it writes.
std::unique_ptr<Network> make_bart(Builder& builder, const Node& config,
                                   const ModelSettings& settings) {
  return std::make_unique<Bart>(builder, config, settings, read_bart_config(config, settings));
}

}  // namespace memfathom
