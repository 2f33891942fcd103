// Runs the real memfathom binary and returns its output.
#pragma once

#include <string>
#include <vector>

namespace memfathom {

struct Outcome {
  int exit_code = -1;  // 128 + n for a signal
  std::string out;
  std::string err;
};

// `environment` holds NAME=value pairs that are added to the environment.
Outcome run_binary(const std::vector<std::string>& words,
                   const std::vector<std::string>& environment = {});

}  // namespace memfathom
