// Resolving a model: from a job's `model` to a ModelSpec. The only place where files that a model
// names are opened.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/models/model_spec.h"
#include "estimator/models/stored/stored_tensors.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {

// The files that a model names, as they are on the disk. Tests derive from it to count or refuse
// them.
class ModelFiles {
 public:
  virtual ~ModelFiles() = default;
  virtual Node config(const std::filesystem::path& path) const;  // a file, or a folder with one
  virtual std::vector<StoredTensor> stored_tensors(const std::filesystem::path& folder) const;
  // A recorded step, at `sizes` where it was recorded so that it may have others.
  virtual Trace trace(const std::filesystem::path& path, const TraceSizes& sizes) const;
};

// The whole of `model`. Throws Error(kInput) for files that cannot be read, presets that are not
// known and keys of a wrong kind; a configuration's own values are checked when it is built.
// `sizes` are those of the job, which a recorded step must be able to have.
ModelSpec resolve_model(const Node& model, const ModelFiles& files = ModelFiles(),
                        const TraceSizes& sizes = {});

// What `config` stands for: itself, or the file or folder it names, relative to the file that names
// it.
Node load_config(const Node& config, const ModelFiles& files = ModelFiles());

}  // namespace memfathom
