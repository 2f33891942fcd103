// Recorded steps named in place of a job: a trace of `capture`, or a snapshot of PyTorch.
#pragma once

#include <optional>
#include <string>

#include "estimator/readers/parsed_file.h"

namespace memfathom {

// The job about a recorded step: `model.trace`, and the PyTorch that it was recorded with.
Node job_of_recording(const std::string& path);

// The file as a job if it is a recorded step: it begins like a trace, like gzip, or like a pickle.
// Throws Error(kInput) for a compressed file that is no trace.
std::optional<ParsedFile> read_recording(const std::string& path);

}  // namespace memfathom
