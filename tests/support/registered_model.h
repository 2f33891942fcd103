// The network of a configuration whose family is registered, for tests that need no assumptions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "estimator/models/registry.h"

namespace memfathom {

inline std::unique_ptr<Network> make_registered_model(Builder& builder, const Node& config,
                                                      const ModelSettings& settings) {
  std::vector<std::string> assumptions;
  return make_from_family(builder, config, settings, assumptions);
}

}  // namespace memfathom
