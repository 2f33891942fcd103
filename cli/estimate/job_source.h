// JobSource: where a command's job comes from: the file JOB, files of --from, flags.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/estimate/job_options.h"
#include "cli/option_parser.h"
#include "core/document.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/job.h"
#include "estimator/readers/merge.h"

namespace memfathom {

// A job as it was given.
struct JobInput {
  Node document;
  Job job;          // what the document says
  MergedJob files;  // what the files said, before the flags

  // Whether the job came from files that are not ours: changes are then said in their words too.
  bool has_foreign_files() const;
  // What reading the files had to assume or leave out, and what the job left unsaid, belongs to
  // every answer about it.
  void annotate(Estimate& estimate) const;
};

class JobSource {
 public:
  JobSource() = default;
  explicit JobSource(std::string file) : file_(std::move(file)) {}
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
  void complete(JobInput& input) const;

  JobOptions options_;
  std::optional<std::string> file_, batch_;
  std::vector<std::string> from_;
  bool frozen_copy_ = false;
};

// A job from another place than the command line, read as `estimate FILE` reads it: names of the
// hub, our own families and models with a language part become what they stand for.
JobInput read_job_file(const std::string& path);
JobInput complete_job(Node document);  // one that stands in a line or in the database

}  // namespace memfathom
