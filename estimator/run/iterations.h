// Iterations: the steps of a job that matter for its memory, played in a session.
#pragma once

#include <cstdint>

#include "estimator/job/job.h"
#include "estimator/run/dry_run.h"
#include "kernels/framework/layers/network.h"
#include "kernels/framework/layers/training_loop.h"

namespace memfathom {

// Two full ones and what repeats after them; where an epoch ends with a shorter batch, that one and
// the full ones after it.
void train(TrainingLoop& loop, const TrainingSpec& training, const StepHook& reached);

void infer(Session& session, Network& network, const TrainingSpec& training,
           const StepHook& reached);

// How many tokens the cache grows by in one pass of `generate`: 1 up to 4,096 of them.
std::int64_t decoding_stride(std::int64_t tokens);

// A prompt, then token after token.
void generate(Session& session, Network& network, const TrainingSpec& training,
              const StepHook& reached);

}  // namespace memfathom
