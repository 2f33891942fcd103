#include "profiler/pytorch_probe.h"

namespace memfathom {

ProbeProgram pytorch_probe_program(const std::string& python) {
  const std::span<const EmbeddedFile> files = pytorch_probe_files();
  ProbeProgram program{python, {"-c", std::string(files.front().text)}, {}};
  for (const EmbeddedFile& file : files.subspan(1)) {
    program.arguments.emplace_back(file.name);
    program.arguments.emplace_back(file.text);
  }
  return program;
}

}  // namespace memfathom
