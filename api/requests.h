// Requests: the functions of the public API with JSON input and output
// (include/memfathom/memfathom.h documents the requests).
//
// Results equal the output of the commands with --format json. Bad requests throw Error(kInput).
#pragma once

#include <string>
#include <string_view>

#include "estimator/session/estimator.h"

namespace memfathom {

std::string estimate_request(std::string_view request, const Estimator& estimator);
// Whether a job may start: what a scheduler's admission asks.
std::string admission_request(std::string_view request, const Estimator& estimator);
// JSON lines in, JSON lines out, in order, on all cores; a line that fails becomes an error object.
std::string batch_request(std::string_view lines, std::string_view options,
                          const Estimator& estimator);
std::string recommend_request(std::string_view request, const Estimator& estimator);
std::string compare_request(std::string_view request, const Estimator& estimator);
std::string models_request();
// An empty request lists all GPUs; a job lists the GPUs it fits on.
std::string gpus_request(std::string_view request, const Estimator& estimator);
// An out-of-memory message as figures: {"text": a log} in.
std::string oom_request(std::string_view request);
std::string accuracy_request(std::string_view request, const Estimator& estimator);

}  // namespace memfathom
