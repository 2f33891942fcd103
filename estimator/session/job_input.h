// JobInput: a job as its user gave it, completed: names of models resolved, keys that the files
// leave open filled in, and every assumption that took recorded.
#pragma once

#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/job.h"
#include "estimator/readers/merge.h"

namespace memfathom {

struct JobInput {
  Node document;    // the completed job
  Job job;          // the document as values
  MergedJob files;  // what the files said, before flags and completion

  // Whether the job came from files of other tools: changes are then shown in their format too.
  bool has_foreign_files() const;
  // Adds what reading the files had to assume or leave out, and what the job leaves unspecified.
  // If keys that may change the memory were not read, the verdict becomes undecided.
  void annotate(Estimate& estimate) const;
  // Widens the interval of a model of which only the size in its name is known.
  void widen(Estimate& estimate) const;
  // Whether keys that may change the memory were not read: then nothing is said to fit.
  bool is_open() const;
  // Makes a verdict undecided if keys that may change the memory were not read.
  void withhold(Verdict& verdict) const;
};

struct CompletionOptions {
  // The caller has set the precision: the type of the files' weights does not matter.
  bool sets_precision = false;
  bool frozen_copy = false;  // a frozen copy of the model lies on the GPU as well
};

// Completes `input.document` (merged and edited by the caller) and reads `input.job` from it.
// Throws Error(kInput).
void complete(JobInput& input, const CompletionOptions& options = {});

// A job file, or a folder or file of another tool, as `estimate FILE` reads it.
JobInput read_job_file(const std::string& path);
// A job from a batch line, a request or the database.
JobInput complete_job(Node document);

}  // namespace memfathom
