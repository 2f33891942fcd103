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
    for (int i = 0; i < 3; ++i) iterate();
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
    for (std::int64_t i = 1; i < tokens; ++i) logits = network.decode();
    logits.reset();
    network.end_generation();
    reached("step");
  }
}

}  // namespace memfathom
