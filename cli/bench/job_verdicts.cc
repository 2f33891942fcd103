#include "cli/bench/job_verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "api/local_session.h"
#include "cli/database.h"
#include "cli/job/job_source.h"
#include "core/error.h"

namespace memfathom {
namespace {

std::vector<std::string> job_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failure;
  for (std::filesystem::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string extension = entry->path().extension();
    if (extension == ".yaml" || extension == ".yml" || extension == ".json")
      files.push_back(entry->path().string());
  }
  if (failure || files.empty()) {
    throw Error(ErrorKind::kInput, fmt::format("--jobs is \"{}\", which {}", folder,
                                               failure ? "cannot be read: " + failure.message()
                                                       : std::string("has no *.yaml or *.json")));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<JobVerdictChange> compare_job_verdicts(const std::string& folder,
                                                   const std::string& before,
                                                   const std::string& after,
                                                   const Context& context) {
  const LocalSession session(find_database(context));
  const Estimator& estimator = session.estimator();
  estimator.require_calibration(before);
  estimator.require_calibration(after);
  std::vector<JobVerdictChange> judged;
  for (const std::string& file : job_files(folder)) {
    JobVerdictChange result;
    result.file = file;
    try {
      Job job = read_job_file(file).job;
      job.target.calibration = before;
      const Estimate old = estimator.estimate(job);
      job.target.calibration = after;
      const Estimate now = estimator.estimate(job);
      result.before = old.totals.device_peak;
      result.after = now.totals.device_peak;
      result.available = now.verdict.available.value_or(Bytes{});
      result.status_before = old.verdict.status;
      result.status_after = now.verdict.status;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInternal) throw;
      result.error = error.what();
    }
    judged.push_back(std::move(result));
  }
  return judged;
}

}  // namespace memfathom
