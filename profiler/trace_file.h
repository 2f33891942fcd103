// TraceFile: the file that receives the trace of a probe's run.
#pragma once

#include <fstream>
#include <string>

#include "kernels/memory/trace/trace.h"

namespace memfathom {

struct TraceFile {
  // Gzipped if the name ends in .gz. Throws Error(kEnvironment) if the file cannot be created.
  TraceFile(const std::string& path, const std::string& device);
  std::ofstream file;
  TraceWriter writer;
};

}  // namespace memfathom
