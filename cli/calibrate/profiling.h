// Profiling: a plan measured on a device into the store; what `profile` and `calibrate` share.
#pragma once

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
  std::optional<std::string> python;          // whose PyTorch
  std::string filter;                         // a part of the workloads' names
  std::optional<std::string> memory_ceiling;  // "4GiB", or a share of the free memory: "0.5"
  std::optional<double> timeout;              // seconds of one probe
  std::string trace;
};
void declare(OptionParser& parser, ProfileOptions& options);

// A plan made for a device as it is now.
struct PreparedProfile {
  Environment environment;
  Bytes memory_free;
  Plan plan;
  std::string plan_name;  // with the filter, when there is one: "quick:mlp"
  CampaignOptions campaign;
};
PreparedProfile prepare(const ProfileOptions& options);

struct ProfileResult {
  std::string run;
  int taken = 0;                // now
  int resumed = 0;              // were there already
  bool interrupted = false;     // by Ctrl-C
  std::vector<Sample> samples;  // of the whole run
};
// Begins a run, or goes on with the unfinished one of this plan and environment. Each sample is
// durable before it is told.
ProfileResult profile(const PreparedProfile& prepared, Store& store, const Context& context);

}  // namespace memfathom
