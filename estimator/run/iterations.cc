#include "estimator/run/iterations.h"

#include <algorithm>
#include <optional>

namespace memfathom {

void train(TrainingLoop& loop, const TrainingSpec& training, const StepHook& reached) {
  const auto iterate = [&](std::optional<std::int64_t> size = {}) {
    loop.iterate(size);
    reached("step");
  };
  const std::int64_t batch = training.batch_size;
  if (training.warmup_forward) loop.warm_up();
  const std::int64_t samples = training.samples_per_epoch.value_or(0);
  const std::int64_t rest = samples > 0 && !training.drop_last ? samples % batch : 0;
  // Evaluation comes between iterations: what it leaves in the allocator meets the next one.
  const auto evaluate = [&] {
    if (training.evaluation_batch == 0) return;
    loop.evaluate(training.evaluation_batch);
    iterate();
  };
  if (samples == 0 || rest == 0) {
    iterate();
    loop.iterate_to_repeat();
    reached("step");
    loop.repeat();
    reached("step");
    evaluate();
    return;
  }
  const std::int64_t full = std::min<std::int64_t>(samples / batch, 3);
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (std::int64_t i = 0; i < full; ++i) iterate();
    iterate(rest);
  }
  evaluate();
}

void infer(Session& session, Network& network, const TrainingSpec& training,
           const StepHook& reached) {
  const NoGrad no_grad(session);
  session.training = false;
  network.load_batch(training.batch_size, false);
  for (int iteration = 1; iteration <= 2; ++iteration) {
    session.ledger().begin_phase("forward", iteration);
    const AutocastScope autocast(session, training.precision.autocast);
    const Tensor output = network.forward();
    network.end_generation();  // a cache that the forward built dies with its output
    reached("step");
  }
}

namespace {

// Decoding takes a pass per token up to this many; of a longer answer the cache grows by several
// tokens in a pass, except in the last passes, in which the peak is.
constexpr std::int64_t kMostPasses = 4096;
constexpr std::int64_t kLastPasses = 16;

void decode_all(Network& network, std::int64_t tokens, Tensor& logits) {
  const std::int64_t stride = decoding_stride(tokens);
  for (std::int64_t made = 1; made < tokens; ++made) {
    const std::int64_t skipped =
        std::clamp<std::int64_t>(tokens - made - kLastPasses, 0, stride - 1);
    if (skipped > 0 && network.skip_tokens(skipped)) made += skipped;
    logits = network.decode();
  }
}

}  // namespace

std::int64_t decoding_stride(std::int64_t tokens) {
  return (tokens + kMostPasses - 1) / kMostPasses;
}

void generate(Session& session, Network& network, const TrainingSpec& training,
              const StepHook& reached) {
  const NoGrad no_grad(session);
  session.training = false;
  network.load_batch(training.batch_size, false);
  const std::int64_t tokens = std::max<std::int64_t>(training.settings.new_tokens, 1);
  for (int iteration = 1; iteration <= 2; ++iteration) {
    session.ledger().begin_phase("prefill", iteration);
    const AutocastScope autocast(session, training.precision.autocast);
    Tensor logits = network.prefill();
    session.ledger().begin_phase("decode", iteration);
    decode_all(network, tokens, logits);
    logits.reset();
    network.end_generation();
    reached("step");
  }
}

}  // namespace memfathom
