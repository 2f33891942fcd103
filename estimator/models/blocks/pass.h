// Pass: what one forward pass hands to each block, and how blocks are run, checkpointed or not.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "estimator/models/blocks/checkpointed.h"
#include "estimator/models/blocks/key_value_cache.h"
#include "estimator/models/blocks/rotary.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/block_adapters.h"

namespace memfathom {

struct Pass {
  Tensor positions;
  Tensor mask;
  Tensor window_mask;  // of layers with a sliding window, in models that mix both
  Tensor biases;       // added to the scores, in families without other positions
  RotaryTables rotary;
  RotaryTables window_rotary;  // of layers with a sliding window, where they have their own
  KeyValueCache* cache = nullptr;
  // Models that hand the mask to a block without its name: a reentrant checkpoint saves it, and it
  // goes with the block's backward. Named, it lives as long as the graph.
  bool mask_is_positional = false;
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

// Weights that a block returns beside its output are an output of the checkpoint too; nobody uses
// them, so backward begins with zeros of their size.
template <typename Block>
Tensor run_reentrant(const ModelSettings& settings, const Block& block, const Tensor& x,
                     const Pass& pass, Pass kept) {
  Tensor mask;
  if (kept.mask_is_positional) mask = std::move(kept.mask);
  // DeBERTa's relative embeddings have a history of their own.
  Tensor biases;
  if (kept.biases && kept.biases.requires_grad()) biases = std::move(kept.biases);
  const CheckpointedMultiFunction segment =
      [&settings, &block, kept = std::move(kept)](std::span<const Tensor> given) {
        Pass own = kept;
        if (own.mask_is_positional) own.mask = given[1];
        if (given[2]) own.biases = given[2];
        const auto weights = std::make_shared<Tensor>();
        own.last_weights = weights;
        Tensor output = run_adapted(settings, block, given[0], own);
        return std::vector<Tensor>{std::move(output), std::move(*weights)};
      };
  const Tensor inputs[] = {x, std::move(mask), std::move(biases)};
  std::vector<Tensor> outputs = checkpoint_reentrant(segment, inputs);
  if (const auto last = pass.last_weights.lock()) *last = std::move(outputs[1]);
  return std::move(outputs[0]);
}

// x = block(x, pass), checkpointed where the job wants it. Inside a
// checkpoint no cache is written: it would be written twice.
template <typename Block>
Tensor run_block(const ModelSettings& settings, const Block& block, const Tensor& x,
                 const Pass& pass) {
  if (!checkpoints(settings, x.session())) return run_adapted(settings, block, x, pass);
  Pass kept = pass;
  kept.cache = nullptr;
  if (settings.checkpointing == Checkpointing::kFull && settings.checkpoint_reentrant)
    return run_reentrant(settings, block, x, pass, std::move(kept));
  const CheckpointedFunction segment = [&settings, &block,
                                        kept = std::move(kept)](const Tensor& input) {
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
