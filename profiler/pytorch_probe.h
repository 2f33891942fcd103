// The PyTorch probe: a Python package embedded in the program that takes a sample in the user's
// PyTorch.
#pragma once

#include <span>
#include <string>

#include "core/embedded_file.h"
#include "profiler/probe_process.h"

namespace memfathom {

// `python` is a path, or a name searched in PATH. It receives the modules' texts as arguments, so
// nothing has to be installed or written to disk. Linux allows 128 KiB an argument.
ProbeProgram pytorch_probe_program(const std::string& python);

// The texts of profiler/pytorch_probe/, boot.py first: it makes a package of the others.
std::span<const EmbeddedFile> pytorch_probe_files();

}  // namespace memfathom
