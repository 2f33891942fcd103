// ProbeProcess: one probe in a process of its own, whatever becomes of it.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "profiler/probe_message.h"

namespace memfathom {

// How a probe is started: our own program with the internal command, unless $MEMFATHOM_PROBE names
// another one.
struct ProbeProgram {
  std::filesystem::path path;  // a bare name is looked for in PATH
  std::vector<std::string> arguments;
};
ProbeProgram own_probe_program();

struct ProbeOutcome {
  SampleStatus status = SampleStatus::kOk;
  std::string note;  // "signal 11 (Segmentation fault)", "no answer within 60 s", the probe's words
  std::optional<ProbeReply> reply;  // where the probe answered
};

// Starts a probe, hands it the request, waits for its answer and its end. A probe that crashes,
// hangs beyond `limit`, is killed or answers nonsense is an outcome; only a failure to start one
// throws Error(kEnvironment). Ctrl-C does not reach the probe: it stands in a process group of its
// own.
ProbeOutcome run_probe(const ProbeProgram& program, const ProbeRequest& request,
                       std::chrono::milliseconds limit);

}  // namespace memfathom
