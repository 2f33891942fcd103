// ConvolutionPlanner: whoever can say what workspace cuDNN itself would ask for.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/workspace.h"

namespace memfathom {

class ConvolutionPlanner {
 public:
  virtual ~ConvolutionPlanner() = default;

  // One answer per query, in order; nothing where cuDNN will not plan it. Throws
  // Error(kEnvironment) when cuDNN cannot be asked at all. May be called from several threads.
  virtual std::vector<std::optional<Bytes>> ask(std::span<const ConvolutionQuery> queries) = 0;
};

}  // namespace memfathom
