// EncoderModel: what text encoders share: batch, loss and output around hidden states and a head.
#pragma once

#include <cstdint>

#include "estimator/models/blocks/attention.h"
#include "estimator/models/blocks/settings.h"
#include "estimator/models/blocks/task_head.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

class EncoderModel : public Network {
 public:
  EncoderModel(Builder& builder, const ModelSettings& settings, TaskHead task);

  void load_batch(std::int64_t size, bool targets) final;
  Tensor loss(Tensor* output) final;
  bool script_holds_output() const final { return loss_is_in_script(settings_); }
  Tensor forward() final;

 protected:
  Session& session() const { return session_; }
  const ModelSettings& settings() const { return settings_; }
  const Tensor& ids() const { return ids_; }
  const Tensor& padding() const { return padding_; }

  // Token ids to the last hidden states [b, s, h].
  virtual Tensor encoded() = 0;
  // Hidden states to logits, or as they are where the model has no head.
  virtual Tensor scored(const Tensor& hidden) const = 0;
  // The family's own loss, from logits.
  virtual Tensor own_loss(const Tensor& logits, const TaskLabels& labels) const;

  // Who may look at whom, for embeddings of this type; `window`: only neighbours this near.
  Tensor mask_for(DType dtype, std::int64_t window = 0) const;

  AttentionStyle attention_style(double dropout, std::int64_t head_size) const;

 private:
  Session& session_;
  ModelSettings settings_;
  TaskHead task_;
  Tensor ids_, padding_;
  TaskLabels labels_;
};

}  // namespace memfathom
