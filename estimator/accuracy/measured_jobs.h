// Measured jobs: folders of JSON lines {"id", "job", "measured", "group"} (docs/contract.md §6),
// read for accuracy and observe.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/document.h"
#include "core/sample.h"
#include "estimator/job/job.h"

namespace memfathom {

struct MeasuredJob {
  std::string id;
  std::string dataset;  // the file's name without its ending
  std::string group;
  Job job;
  std::string job_text;  // the job as JSON
  Metric metric = Metric::kDevice;
  std::optional<Bytes> bytes;
  std::optional<bool> fits;
  std::string refusal;  // why the job has no model to run; empty: it has one
  std::string phase;    // the metric of that phase only; empty: the total
};

// Which lines are wanted, and as what.
struct MeasuredJobsFilter {
  std::string only;                     // groups that begin so; empty: all
  std::function<Node(Node)> rewritten;  // the job instead of the line's; empty: as it is
};

// A file, or every *.jsonl of a folder in the order of their names. Lines with `exclude` are left
// out. Throws Error(kInput) with file and line.
std::vector<MeasuredJob> read_measured_jobs(const std::filesystem::path& path,
                                            const MeasuredJobsFilter& filter = {});

}  // namespace memfathom
