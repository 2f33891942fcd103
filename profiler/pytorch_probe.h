// The PyTorch probe: a single Python file inside the program that takes a sample in the user's own
// PyTorch.
#pragma once

#include <span>
#include <string>

#include "core/embedded_file.h"
#include "profiler/probe_process.h"

namespace memfathom {

// `python` is a path, or a name that is looked for in PATH. It is handed the file's text, so that
// nothing must be installed beside the program or written to disk.
ProbeProgram pytorch_probe_program(const std::string& python);

// pytorch_probe.py alone.
std::span<const EmbeddedFile> pytorch_probe_files();

}  // namespace memfathom
