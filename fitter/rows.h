// Rows: what the fitter is given; jobs measured somewhere and replayed here, and workspaces that
// libraries asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/predictor.h"
#include "core/sample.h"
#include "core/source.h"
#include "core/workspace.h"
#include "core/workspace_features.h"
#include "fitter/parameters.h"

namespace memfathom {

// One measured job. Either `measured` is known, or only whether the job fitted into `capacity` (a
// censored row).
struct FitRow {
  std::string id;
  std::string family;  // left out as a whole for the published error: transformer, conv, mlp, ...
  std::string group;   // rows that share an interval when they differ; empty: the family
  Metric metric = Metric::kDevice;
  std::optional<Bytes> measured;
  std::optional<bool> fits;
  Bytes capacity;     // of a censored row
  double weight = 1;  // relative; a row of weight 0.25 counts like a quarter of one
  Source tag =
      Source::kMeasured;  // a profile of this environment, or somebody's observation (kPublished)
  ReplayedJob replay;
  bool validation = false;  // never fitted

  bool is_censored() const { return !measured.has_value(); }
  // Which modules the job pays for: bit i is the module of parameter kFirstModule + i.
  int library_pattern() const {
    int pattern = 0;
    for (int p = kFirstModule; p < kSolvedConstants; ++p) {
      if (applies_to(module_of(p).condition, replay)) pattern |= 1 << (p - kFirstModule);
    }
    return pattern;
  }
  // Rows of one class scatter alike: what cuDNN and cuFFT load and ask for is known less well than
  // a bare matrix product. 0 no library, 1 cuBLAS alone, 2 with cuDNN, 3 with cuFFT, 4 with both.
  int noise_class() const {
    if (replay.uses_cudnn) return replay.uses_cufft ? 4 : 2;
    if (replay.uses_cufft) return 3;
    return replay.uses_cublas ? 1 : 0;
  }
  const std::string& interval_group() const { return group.empty() ? family : group; }
};

// One workspace that a library asked for.
struct WorkspaceRow {
  Library library = Library::kCudnn;
  std::string operation;  // operation_of(query)
  WorkspaceFeatures features{};
  Bytes measured;
};

}  // namespace memfathom
