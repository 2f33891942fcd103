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

RunTracer::RunTracer(Allocator& inner, const std::string& path, const std::string& device)
    : file_(opened(path)),
      writer_(file_, path.ends_with(".gz"), nlohmann::json{{"device", device}}.dump()),
      tracing_(inner, writer_) {}

Allocation RunTracer::allocate(Bytes size, int stream) {
  note_phase();
  if (session_ != nullptr) tracing_.labels().tag = std::string(to_string(session_->component));
  return tracing_.allocate(size, stream);
}

void RunTracer::free(const Allocation& allocation) {
  note_phase();
  tracing_.free(allocation);
}

void RunTracer::note_phase() {
  if (session_ == nullptr) return;
  const std::vector<PhaseRecord>& phases = session_->ledger().phases();
  for (; phases_seen_ < phases.size(); ++phases_seen_)
    tracing_.enter_phase(phases[phases_seen_].name, phases[phases_seen_].iteration);
}

}  // namespace memfathom
