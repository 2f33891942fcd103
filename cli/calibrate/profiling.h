// Profiling: measures a plan on a device into the store; used by `profile` and `calibrate`.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/option_parser.h"
#include "db/store.h"
#include "profiler/campaign.h"

namespace memfathom {

struct ProfileOptions {
  std::string device = "cpu";
  std::string plan = "quick";
  std::string framework = "memfathom";        // or "pytorch"
  std::optional<std::string> python;          // the Python that has PyTorch
  std::string filter;                         // substring of the workload names
  std::optional<std::string> memory_ceiling;  // "4GiB", or a share of the free memory: "0.5"
  std::optional<double> timeout;              // seconds of one probe
  std::string module_loading;                 // "lazy" or "eager"; empty: CUDA's default
  std::string trace;
  bool collectives = false;        // measure communicators of several ranks too
  bool no_cupti = false;           // sample peaks only
  std::string driver_allocations;  // a file for the driver's allocations; empty: none
};
void declare(OptionParser& parser, ProfileOptions& options);

// A plan for the current state of a device.
struct PreparedProfile {
  Environment environment;
  Bytes memory_free;
  std::string cudnn_directory;  // of the cuDNN that the framework loads; empty: not reported
  Plan plan;
  std::string plan_name;  // including the filter, if any: "quick:mlp"
  std::string driver_allocations;
  CampaignOptions campaign;
};
// How long the first probe may take to describe the device. A cold `import torch` from network
// storage takes minutes; --timeout extends it.
std::chrono::milliseconds ask_limit(Framework framework, const std::optional<double>& timeout);

PreparedProfile prepare(const ProfileOptions& options);

struct ProfileResult {
  std::string run;
  int taken = 0;                // in this run
  int resumed = 0;              // already stored
  bool interrupted = false;     // by Ctrl-C or another signal
  int signal = 0;               // a signal that ended the current sample too; 0: none
  std::vector<Sample> samples;  // of the whole run
};
// Of an interrupted run: 1 after Ctrl-C, 128 plus the signal number otherwise, as shells do.
ExitCode interrupted_code(const ProfileResult& profiled);

// Starts a run, or resumes the unfinished one of this plan and environment. Each sample is durable
// before it is reported.
ProfileResult profile(const PreparedProfile& prepared, Store& store, const Context& context);

}  // namespace memfathom
