// Decoder: a causal model that is an embedding, a list of blocks, a norm and a head.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "estimator/models/blocks/block_replays.h"
#include "estimator/models/blocks/causal_model.h"
#include "estimator/models/blocks/norm_layer.h"
#include "estimator/models/blocks/rotary.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/loss.h"

namespace memfathom {

// What tells such families apart outside their blocks.
struct DecoderOutline {
  std::int64_t layers = 0, hidden = 0, vocabulary = 0;
  std::int64_t rotary = 0;           // extent of a head that is rotated; 0: none
  std::optional<DType> rotary_type;  // of the tables; absent: the embeddings'
  double embedding_dropout = 0;
  NormKind norm = NormKind::kLayer;
  bool blocks_are_alike = true;  // false: which one a block is decides more than its cache
  bool tied_by_default = false, head_bias = false, norm_bias = true;
  const char* scope = "model";
  const char* embedding = "embed_tokens";
  const char* blocks = "layers";
  const char* last_norm = "norm";
};

// `Block` is called with the hidden states and the Pass.
template <typename Block>
class Decoder : public CausalModel {
 protected:
  Decoder(Builder& builder, const ModelSettings& settings, const DecoderOutline& outline)
      : CausalModel(builder, settings, outline.layers), outline_(outline) {
    outline_.embedding_dropout = dropout_or(outline.embedding_dropout);
  }

  // Makes everything in the library's order; `make_block(index)` makes one block.
  template <typename MakeBlock>
  void build(Builder& builder, const Node& config, MakeBlock make_block) {
    {
      const PathScope scope(builder, outline_.scope);
      embedding_ = make_embedding(builder, outline_.embedding, config, outline_.vocabulary,
                                  outline_.hidden, outline_.tied_by_default);
      make_beside_embedding(builder);
      blocks_.reserve(static_cast<std::size_t>(outline_.layers));
      for (std::int64_t i = 0; i < outline_.layers; ++i) {
        const PathScope block(builder, outline_.blocks, i);
        const BlockScope counted(builder, i, outline_.layers, outline_.hidden);
        replays_.add(builder, outline_.blocks_are_alike ? 0 : static_cast<std::uint32_t>(i));
        blocks_.push_back(make_block(static_cast<std::size_t>(i)));
      }
      norm_ = make_norm(builder, outline_.last_norm, outline_.norm, outline_.hidden,
                        outline_.norm_bias);
      if (outline_.rotary > 0) rotary_.emplace(builder, outline_.rotary);
    }
    make_head(builder, config, embedding_, outline_.hidden, outline_.vocabulary,
              outline_.tied_by_default, outline_.head_bias);
  }

  // For families with more around the blocks than this.
  virtual void make_beside_embedding(Builder&) {}
  virtual Tensor embedded(const Tensor& words) { return words; }
  virtual void complete(Pass&, const Tensor& /*embeddings*/) {}

 private:
  Tensor body(const Tensor& ids, KeyValueCache* cache) final {
    Tensor words = embedding(embedding_, ids);
    prepare_embeddings(settings(), words);
    Pass pass = begin_pass(words, cache);
    Tensor hidden = dropout(embedded(words), outline_.embedding_dropout);
    if (rotary_)
      pass.rotary = rotary_->tables(pass.positions, outline_.rotary_type.value_or(words.dtype()));
    complete(pass, words);
    const auto last_weights = std::make_shared<Tensor>();
    pass.last_weights = last_weights;
    BlockReplays::Pass replayed(replays_, settings(), cache, last_weights.get());
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      hidden = replayed(
          i, hidden, [&](const Tensor& x) { return run_block(settings(), blocks_[i], x, pass); });
    }
    return norm_(hidden);
  }

  DecoderOutline outline_;
  Tensor embedding_;
  std::vector<Block> blocks_;
  BlockReplays replays_;
  NormLayer norm_;
  std::optional<Rotary> rotary_;
};

}  // namespace memfathom
