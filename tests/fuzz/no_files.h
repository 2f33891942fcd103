// NoFiles: a model's files for fuzzing, where none exists and none is opened.
#pragma once

#include <vector>

#include "core/error.h"
#include "estimator/models/resolve_model.h"

namespace memfathom {

class NoFiles final : public ModelFiles {
 public:
  Node config(const std::filesystem::path&) const override { refuse(); }
  std::vector<StoredTensor> stored_tensors(const std::filesystem::path&) const override {
    return {};
  }
  Trace trace(const std::filesystem::path&, const TraceSizes&) const override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw Error(ErrorKind::kInput, "no files are opened here"); }
};

}  // namespace memfathom
