// Recorded history: what PyTorch's allocator did in a probe, against the dry replay of its job.
#pragma once

#include <string>
#include <vector>

#include "core/environment.h"
#include "kernels/memory/trace/compare_histories.h"

namespace memfathom {

// `file` is the snapshot that the PyTorch probe wrote for `job` (JSON). Throws Error(kInput) if it
// cannot be read. Assumptions of the replay are added to `notes`.
HistoryComparison compare_with_replay(const std::string& file, const std::string& job,
                                      const Environment& environment,
                                      const std::string& cudnn_directory,
                                      std::vector<std::string>& notes);

}  // namespace memfathom
