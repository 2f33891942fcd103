// print_answer: an estimate as `estimate` and `capture` show it, and their exit code.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/command.h"
#include "estimator/session/answer_job.h"

namespace memfathom {

struct AnswerOptions {
  bool explains = false;
  std::string by;        // of a recorded step: module, operation or line; empty: not asked for
  std::string snapshot;  // the file that the step is written to for memory_viz; empty: none
  const nlohmann::ordered_json* live = nullptr;  // of the answer's JSON: `live`
};

// In the context's format. Throws Error(kUsage) if `by` is given for a job that is not a recorded
// step.
void print_answer(const EstimateAnswer& answer, const JobInput& input, const AnswerOptions& options,
                  const Estimator& estimator, Context& context);

// Whether the job fits; with `strict` an undecided answer has its own code.
ExitCode verdict_code(const Estimate& estimate, bool strict);

}  // namespace memfathom
