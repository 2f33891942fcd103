// CausalModel: what all decoder language models share: batch, head, loss, cache and generation
// around a body of blocks.
#pragma once

#include <cstdint>
#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/attention.h"
#include "estimator/models/blocks/key_value_cache.h"
#include "estimator/models/blocks/pass.h"
#include "estimator/models/blocks/settings.h"
#include "estimator/models/blocks/task_head.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/linear.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

class CausalModel : public Network {
 public:
  CausalModel(Builder& builder, const ModelSettings& settings, std::int64_t layers);

  void load_batch(std::int64_t size, bool targets) final;
  bool set_length(std::int64_t length) final;
  Tensor loss(Tensor* output) final;
  bool script_holds_output() const final { return loss_is_in_script(settings_); }
  Tensor forward() final;
  Tensor prefill() final;
  Tensor decode() final;
  bool skip_tokens(std::int64_t tokens) final;
  void end_generation() final;

 protected:
  Session& session() const { return session_; }
  const ModelSettings& settings() const { return settings_; }

  // The base model: token ids [b, s] to the last hidden states [b, s, h].
  virtual Tensor body(const Tensor& ids, KeyValueCache* cache) = 0;
  // The head: hidden states to logits. Families that scale or cap them do it here.
  virtual Tensor head(const Tensor& hidden) { return head_(hidden); }

  // What comes with a batch of `size` samples beside their tokens.
  virtual void load_extra_inputs(std::int64_t /*size*/) {}

  // Whether a mask is made even where the kernel's flag would say as much.
  virtual bool always_masks() const { return false; }

  // Whether the library's older versions made fp32 logits of this family's, in every forward.
  virtual bool widened_logits() const { return false; }

  // The head that the configuration names, made last, as in the libraries. Over the vocabulary and
  // tied it is the embedding itself.
  void make_head(Builder& builder, const Node& config, const Tensor& embedding, std::int64_t hidden,
                 std::int64_t vocabulary, bool tied_by_default, bool bias = false);
  // The token table; under HeadScope when the head is tied to it.
  Tensor make_embedding(Builder& builder, const char* name, const Node& config,
                        std::int64_t vocabulary, std::int64_t width, bool tied_by_default);

  // Mask and positions of a pass over these embeddings.
  Pass begin_pass(const Tensor& embeddings, KeyValueCache* cache, std::int64_t window = 0) const;
  Tensor mask_for(const Tensor& embeddings, KeyValueCache* cache, std::int64_t window) const;
  // One row for all samples; generate() counts them along each sample's mask, a row for each.
  Tensor positions_for(const Tensor& embeddings, const KeyValueCache* cache) const;

  AttentionStyle attention_style(double dropout, std::int64_t head_size) const;
  // The job's dropout where it gives one, else the model's own.
  double dropout_or(double own) const { return settings_.dropout.value_or(own); }

 private:
  void make_task_head(Builder& builder, const Node& config, std::int64_t hidden);
  Tensor task_scores(const Tensor& hidden) const;
  Tensor logits_of(const Tensor& hidden, std::int64_t keep);
  Tensor loss_of(const Tensor& logits);
  bool widens_logits() const;
  std::unique_ptr<KeyValueCache> new_cache() const;
  Tensor next_token(const Tensor& ids);

  Session& session_;
  ModelSettings settings_;
  std::int64_t layers_;
  TaskHead task_ = TaskHead::kVocabulary;
  double task_dropout_ = 0;
  Linear head_;
  Tensor ids_, padding_;
  TaskLabels labels_;
  Tensor token_;
  std::unique_ptr<KeyValueCache> cache_;       // of generation
  std::unique_ptr<KeyValueCache> held_cache_;  // part of an output that the loop holds
};

}  // namespace memfathom
