// Absolute paths: a job that finds its files from anywhere, to be kept apart from the file it came
// in.
#pragma once

#include "core/document.h"

namespace memfathom {

// Traces and configurations, of the job's modules too, are named relative to the file that names
// them.
Node with_absolute_paths(const Node& job);

}  // namespace memfathom
