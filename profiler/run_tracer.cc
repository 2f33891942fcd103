#include "profiler/run_tracer.h"

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

RunTracer::RunTracer(Allocator& inner, const std::string& path, const std::string& device)
    : TraceFile(path, device), TracingAllocator(inner, writer) {}

Allocation RunTracer::allocate(Bytes size, int stream) {
  note_phase();
  if (session_ != nullptr) set_tag(to_string(session_->component));
  return TracingAllocator::allocate(size, stream);
}

void RunTracer::free(const Allocation& allocation) {
  note_phase();
  TracingAllocator::free(allocation);
}

void RunTracer::note_phase() {
  if (session_ == nullptr) return;
  const std::vector<PhaseRecord>& phases = session_->ledger().phases();
  for (; phases_seen_ < phases.size(); ++phases_seen_)
    enter_phase(phases[phases_seen_].name, phases[phases_seen_].iteration);
}

}  // namespace memfathom
