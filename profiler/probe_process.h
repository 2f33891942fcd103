// ProbeProcess: runs one probe in a separate process and survives its failure.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "profiler/probe_message.h"

namespace memfathom {

// How to start a probe: this program with its internal command, unless $MEMFATHOM_PROBE names
// another.
struct ProbeProgram {
  std::filesystem::path path;  // a bare name is searched in PATH
  std::vector<std::string> arguments;
  std::vector<std::string> variables = {};  // NAME=VALUE, set for it whatever is not inherited
};
ProbeProgram own_probe_program();

struct ProbeOutcome {
  SampleStatus status = SampleStatus::kOk;
  std::string note;  // "signal 11 (Segmentation fault)", "no answer within 60 s", the probe's words
  std::optional<ProbeReply> reply;  // if the probe replied
};

// Starts a probe, sends the request and waits for its reply and exit. A probe that crashes, exceeds
// `limit`, is killed or sends a malformed reply is an outcome; only a failure to start it throws
// Error(kEnvironment). The probe has its own process group, so Ctrl-C does not reach it.
// Kills the probe and its process group once `stop` is set. The probe does not outlive this
// process.
ProbeOutcome run_probe(const ProbeProgram& program, const ProbeRequest& request,
                       std::chrono::milliseconds limit, const std::atomic<bool>* stop = nullptr);

}  // namespace memfathom
