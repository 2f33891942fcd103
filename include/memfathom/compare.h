// Comparison: strategies of a job side by side, each against the unchanged job.
//
//     #include <memfathom/session.h>
//     #include <iostream>
//
//     void table(const memfathom::Session& session, const memfathom::Job& job) {
//       memfathom::CompareOptions options;
//       options.strategies = {"checkpointing", "adamw-8bit", "checkpointing+adamw-8bit"};
//       for (const memfathom::Strategy& one : session.compare(job, options).strategies)
//         std::cout << one.name << ' ' << to_string(one.device_peak) << '\n';
//     }
#pragma once

#include <memfathom/estimate.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace memfathom {
inline namespace v0 {

struct CompareOptions {
  std::vector<std::string> strategies;  // empty: those usual for the job
  std::vector<std::string> grid;  // {"batch=4,2,1", "baseline,checkpointing"}; excludes strategies
  std::vector<std::string> targets;  // further GPUs or sizes: {"rtx-4090", "24GiB"}
  bool ranked = false;               // the largest saving first
};

struct Strategy {
  std::string name;
  Bytes device_peak, allocated_peak;
  double saved_fraction = 0;  // of the baseline's device peak; negative: it takes more
  VerdictStatus verdict = VerdictStatus::kUnknown;
  nlohmann::json json;  // with `grid` and `targets`, where asked for
};

struct Comparison {
  std::string baseline;
  std::vector<Strategy> strategies;
  nlohmann::json json;
};

}  // namespace v0
}  // namespace memfathom
