// Describe: a job in one line, and what it left unsaid: for whoever wants to see which question was
// answered.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/document.h"
#include "estimator/job/job.h"
#include "estimator/job/unread_key.h"

namespace memfathom {

std::string_view precision_name(const Precision& precision);

// "llama-2-7b, training: batch 4 of 2048 tokens, bf16, adamw, LoRA of rank 8". `document` is what
// `job` was read from.
std::string describe(const Node& document, const Job& job);

// What the job does not say and a reader would want to know was chosen for it, as one sentence;
// empty where everything is said. `unread` are keys of its files that may have said it.
std::string unspecified_settings(const Node& document, const Job& job,
                                 const std::vector<UnreadKey>& unread = {});

}  // namespace memfathom
