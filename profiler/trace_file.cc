#include "profiler/trace_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace memfathom {
namespace {

std::ofstream opened(const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file)
    throw Error(ErrorKind::kEnvironment, fmt::format("cannot write the trace to {}", path));
  return file;
}

}  // namespace

TraceFile::TraceFile(const std::string& path, const std::string& device)
    : file(opened(path)),
      writer(file, path.ends_with(".gz"), nlohmann::json{{"device", device}}.dump()) {}

}  // namespace memfathom
