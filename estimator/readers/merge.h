// Merge: several files of a training set-up as one job, and changes of the job back into those
// files.
#pragma once

#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/advise/patch.h"
#include "estimator/readers/reading.h"

namespace memfathom {

struct MergedJob {
  Node document;
  std::vector<Reading> files;
  std::vector<std::string> assumptions;
  std::vector<std::string> not_modelled;
  std::vector<std::string> warnings;  // contradictions, each with both files
};

// A later file wins over an earlier one, and a contradiction is named. What a DeepSpeed file leaves
// to the integration
// ("auto") is resolved as that does it: from the other files, bucket sizes from the hidden size.
MergedJob merge_files(std::vector<Reading> files);
MergedJob read_job_files(const std::vector<std::string>& paths);

struct ChangedFile {
  std::string file;
  FileFormat format = FileFormat::kJob;
  Node content;
};

// The files with the changes in them, each in its own format. A change is made where its key was
// said; a new one in the first file whose format can say it. What no file can say is listed in
// `left_over`.
std::vector<ChangedFile> write_back(const MergedJob& job, const Patch& patch, Patch& left_over);

}  // namespace memfathom
