// JobSource: reads a command's job from the file JOB, --from files and flags.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/job/job_options.h"
#include "cli/option_parser.h"
#include "core/document.h"
#include "estimator/readers/parsed_file.h"
#include "estimator/session/job_input.h"

namespace memfathom {

class JobSource {
 public:
  // Declares JOB, --from, --batch and the job flags; call before parser.parse().
  void declare(OptionParser& parser);
  // The arguments in front of `--`; what stands behind it is a training command to be read.
  Arguments without_command(const Arguments& arguments);
  // Takes a training command as the description of the job.
  void read_command(const std::vector<std::string>& command) { command_ = command; }
  bool given() const;
  // The batch file of `estimate`, which excludes JOB. Empty if --batch is a whole number: older
  // scripts use it as the batch size.
  std::optional<std::string> batch_file() const;
  // Throws Error(kUsage), naming `command`, if no job is given.
  JobInput read(const std::string& command) const;
  // The job of these files instead of JOB and --from, under the same flags.
  JobInput read_from(std::vector<ParsedFile> parsed_files) const;
  // For jobs read one at a time, such as the lines of a batch file: reads --from, --model and the
  // flags once and applies them to each job. The result is thread-safe; this object must outlive
  // it.
  std::function<JobInput(Node)> reader() const;

 private:
  std::vector<ParsedFile> other_files() const;
  // The GPU that --nvidia-smi shows, what others use of it, and which one was taken.
  void place_on_seen_gpu(JobInput& input) const;

  JobOptions options_;
  std::optional<std::string> file_, batch_;
  std::vector<std::string> from_, command_;
  std::optional<std::string> nvidia_smi_;  // its output: a file, or - for standard input
  bool frozen_copy_ = false;
};

}  // namespace memfathom
