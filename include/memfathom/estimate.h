// Estimate: the answer about a job: how much memory it takes, what that is made of, how sure the
// figure is, and whether it fits.
//
//     #include <memfathom/session.h>
//     #include <iostream>
//
//     int main() {
//       const memfathom::Estimate estimate = memfathom::Session().estimate(
//           memfathom::Job("model: {preset: gpt2}").set("training.sequence_length", 1024));
//       for (const memfathom::Component& one : estimate.components)
//         std::cout << one.name << ' ' << to_string(one.bytes) << " (" << one.source << ")\n";
//     }
//
// Names and meanings are those of docs/contract.md section 4.
#pragma once

#include <memfathom/bytes.h>
#include <memfathom/calibration.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace memfathom {
inline namespace v0 {

struct Totals {
  Bytes allocated_peak;  // torch.cuda.max_memory_allocated, from the second iteration on
  Bytes reserved_peak;   // torch.cuda.max_memory_reserved
  Bytes device_peak;     // what nvidia-smi shows for the process
  Bytes device_low, device_high;
  double interval = 0.9;           // the level of device_low to device_high
  std::optional<Bytes> host_peak;  // of one process, where something is offloaded
  // The highest figure that the target can show, where its memory ends below device_high.
  std::optional<Bytes> device_high_on_gpu;
};

struct Component {
  std::string name;    // "activations"
  std::string module;  // empty: the job itself
  Bytes bytes;
  std::string source;  // exact, measured, fitted, published, default
};

struct Phase {
  std::string name;  // load, forward, backward, step, ...
  int iteration = 0;
  Bytes allocated_peak, reserved;
  std::map<std::string, Bytes> live_at_peak;  // by component
};

enum class VerdictStatus { kFits, kTight, kDoesNotFit, kUnknown, kUndecided };

struct Verdict {
  VerdictStatus status = VerdictStatus::kUnknown;
  std::string gpu;  // its name, or a device of this machine; empty if only a size is known
  std::optional<double> probability_fits;
  std::optional<Bytes> capacity, available, headroom;
};

// A change of the job that saves memory, estimated with the change made.
struct Suggestion {
  std::string name, change, costs;
  Bytes saves, device_peak;
  bool fits = false;       // this change alone is enough
  nlohmann::json patch;    // {"training": {"gradient_checkpointing": "full"}}
  std::string kind;        // what one gives up: "free", "checkpointing", ..., "different training"
  double time_factor = 1;  // roughly, of the time per sample of the unchanged job
  std::string time_basis;
};

struct Explanation {
  std::string name, module, text;
};

// A key of a file that was not read; `concerns` is empty if it changes nothing by its name.
struct UnreadKey {
  std::string file, key, concerns;
};

struct EstimateOptions {
  bool explain = false;
};

struct Estimate {
  std::string id;   // the job's, if it has one
  std::string job;  // the job in one line
  Totals totals;
  std::vector<Component> components;  // they add up exactly to totals.device_peak
  std::vector<Phase> phases;
  Verdict verdict;
  std::vector<Suggestion> suggestions;  // where the job does not fit
  CalibrationNote calibration;
  std::int64_t parameters = 0, trainable_parameters = 0;
  std::vector<std::string> assumptions, not_modelled, warnings;
  std::vector<UnreadKey> unread;
  std::vector<Explanation> explanations;  // with EstimateOptions::explain
  nlohmann::json json;                    // the whole result
};

}  // namespace v0
}  // namespace memfathom
