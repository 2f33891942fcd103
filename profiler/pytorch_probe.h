// The PyTorch probe: a Python file embedded in the program that takes a sample in the user's
// PyTorch.
#pragma once

#include <span>
#include <string>

#include "core/embedded_file.h"
#include "profiler/probe_process.h"

namespace memfathom {

// `python` is a path, or a name searched in PATH. It receives the file's text as an argument, so
// nothing has to be installed or written to disk.
ProbeProgram pytorch_probe_program(const std::string& python);

// The text of pytorch_probe.py.
std::span<const EmbeddedFile> pytorch_probe_files();

}  // namespace memfathom
