#include "profiler/pytorch_probe.h"

namespace memfathom {

ProbeProgram pytorch_probe_program(const std::string& python) {
  return {python, {"-c", std::string(pytorch_probe_files().front().text)}};
}

}  // namespace memfathom
