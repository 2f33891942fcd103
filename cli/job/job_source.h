// JobSource: where a command's job comes from: the file JOB, files of --from, flags.
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
  // The word JOB, --from, --batch and the flags of a job; call before parser.parse().
  void declare(OptionParser& parser);
  bool given() const;
  // The batch file of `estimate`, beside which no JOB may be named; in the old scripts --batch with
  // a whole number is the batch size, and then this is empty.
  std::optional<std::string> batch_file() const;
  // Nothing given: Error(kUsage) in the name of `command`.
  JobInput read(const std::string& command) const;
  // For jobs that come one by one, as the lines of a batch file: what --from, --model and the flags
  // say is read once and goes for each. May be called from several threads; this must outlive it.
  std::function<JobInput(Node)> reader() const;

 private:
  std::vector<ParsedFile> other_files() const;

  JobOptions options_;
  std::optional<std::string> file_, batch_;
  std::vector<std::string> from_;
  bool frozen_copy_ = false;
};

}  // namespace memfathom
