// A line of a batch: one job in, one line of JSON out.
#pragma once

#include <functional>
#include <string>

#include "core/document.h"
#include "estimator/session/estimator.h"
#include "estimator/session/job_input.h"

namespace memfathom {

// A line of a batch: a job, or an object with `id` and `job`.
struct BatchAnswer {
  std::string text;  // one line of JSON: the estimate, or the error of this line
  bool failed = false;
  bool undecided = false;
};

// `read` completes a line's job; `name` and `line` say where the text comes from. A job for
// which the memory of this machine is too small is an error of its line too.
BatchAnswer answer_line(const std::string& text, const std::string& name, int line,
                        const std::function<JobInput(Node)>& read, bool explains,
                        const Estimator& estimator);

}  // namespace memfathom
