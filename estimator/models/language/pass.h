// Pass: what one forward pass hands to each block, and how blocks are run, checkpointed or not.
#pragma once

#include <memory>
#include <utility>

#include "estimator/models/checkpointed.h"
#include "estimator/models/language/key_value_cache.h"
#include "estimator/models/language/rotary.h"
#include "estimator/models/settings.h"
#include "kernels/layers/block_adapters.h"

namespace memfathom {

struct Pass {
  Tensor positions;
  Tensor mask;
  Tensor window_mask;  // of layers with a sliding window, in models that mix both
  Tensor biases;       // added to the scores, in families without other positions
  RotaryTables rotary;
  RotaryTables window_rotary;  // of layers with a sliding window, where they have their own
  KeyValueCache* cache = nullptr;
  // Of loops that keep the whole result of a block, its attention weights too, until the next block
  // returns. Nobody holds them when a checkpoint runs again.
  std::weak_ptr<Tensor> last_weights;
};

inline bool checkpoints(const ModelSettings& settings, const Session& session) {
  return settings.checkpointing != Checkpointing::kNone && session.training;
}

// The block, and the adapters after it if the job has any.
template <typename Block>
Tensor run_adapted(const ModelSettings& settings, const Block& block, const Tensor& x,
                   const Pass& pass) {
  if (!settings.adapters) return block(x, pass);
  const Tensor output = block(x, pass);
  return settings.adapters->after(&block, output);
}

// x = block(x, pass), checkpointed where the job wants it. Inside a
// checkpoint no cache is written: it would be written twice.
template <typename Block>
Tensor run_block(const ModelSettings& settings, const Block& block, const Tensor& x,
                 const Pass& pass) {
  if (!checkpoints(settings, x.session())) return run_adapted(settings, block, x, pass);
  Pass kept = pass;
  kept.cache = nullptr;
  const Segment segment = [&settings, &block, kept = std::move(kept)](const Tensor& input) {
    return run_adapted(settings, block, input, kept);
  };
  return run_checkpointed(settings, segment, x);
}

// enable_input_require_grads: in front of checkpoints, frozen embeddings are made to require a
// gradient, and get one.
inline void prepare_embeddings(const ModelSettings& settings, Tensor& embeddings) {
  const Session& session = embeddings.session();
  // A later pipeline stage gets its input from the one before, and sends the gradient back.
  const bool wanted = checkpoints(settings, session) || settings.stage == PipelineStage::kLast;
  if (wanted && session.grad_enabled && !embeddings.requires_grad())
    embeddings.set_requires_grad(true);
}

// sequence_length, which every model here needs; absent: Error(kInput).
void require_sequence_length(const ModelSettings& settings);

}  // namespace memfathom
