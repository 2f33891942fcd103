// Write back: changes of a job in the words of the files it was read from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/job/patch.h"
#include "estimator/readers/parsed_file.h"

namespace memfathom {

struct ChangedFile {
  std::string file;
  FileFormat format = FileFormat::kJob;
  Node content;  // the whole file after the change
  Node patch;    // what changed in it, in its own keys; null: the key goes
};

struct WrittenBack {
  std::vector<ChangedFile> files;
  std::vector<ParsedFile> all;  // every file, read again after the changes
  Patch left_over;  // what no file can say: it is set in the script or in the environment
};

// The files with the changes in them. A change is made in every file that says its key (a Trainer
// and its DeepSpeed configuration must agree); a new one in the last file whose format can say it.
// `num_gpus` is what the command line says, if anything: a DeepSpeed batch is that of all GPUs.
// Read again, the files and `left_over` are exactly the changed job: this is checked, and a change
// that would read back as something else is left over.
WrittenBack write_back(const std::vector<ParsedFile>& files, const Patch& patch,
                       std::optional<std::int64_t> num_gpus = std::nullopt);

// How a change is made without a file: "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True".
std::string manual_setting(const KeyChange& change);

}  // namespace memfathom
