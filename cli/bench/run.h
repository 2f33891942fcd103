// A run of the suite: what was asked for, and the file that grows while it goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "profiler/probe_process.h"
#include "profiler/regression/bench_file.h"

namespace memfathom {

struct BenchRunOptions {
  std::string device;  // cudnn:sm_90, virtual:NAME, cpu, cuda:0
  std::string filter;  // a regular expression; empty: everything
  int repetitions = 3;
  std::string out;
  std::string cudnn_library;  // the folder of another libcudnn.so.9
  std::string libcuda;        // for attention; empty: the toolkit's stub where it is
  std::string plant;          // a change of a virtual GPU
  std::int64_t seed = 0;      // of a virtual GPU's scatter
  std::string scale;          // tiny, small, full; empty: what suits the device
  bool list = false;
};

// The rows of a run. They are kept in OUT.partial as they come, so that a run that was stopped goes
// on where it was; finish() makes OUT of it.
class BenchLog {
 public:
  // `fresh` has no rows. Those of an unfinished run of the same selection in the same environment
  // are taken over.
  BenchLog(std::string out, BenchFile fresh);

  std::size_t taken_over() const { return taken_over_; }
  bool has(const std::string& name, int repetition) const;
  void add(std::vector<BenchRow> rows);
  // Throws Error(kEnvironment), with the first row's own reason, when no row has figures.
  void finish();

 private:
  std::string out_;
  std::string partial_;
  BenchFile file_;
  std::set<std::pair<std::string, int>> known_;
  std::size_t taken_over_ = 0;
};

// Names of the suite that the filter lets through. Throws Error(kUsage) for a bad expression.
class BenchFilter {
 public:
  explicit BenchFilter(const std::string& expression);
  bool admits(const std::string& name) const { return admits_(name); }

 private:
  std::function<bool(const std::string&)> admits_;
};

// Asks cuDNN's planner; each repetition starts a fresh one.
void run_cudnn_suite(const BenchRunOptions& options, const Context& context);

// Runs jobs on a device; each repetition of each is a process of its own.
using Probe = std::function<ProbeOutcome(const ProbeRequest& request)>;
void run_device_suite(const BenchRunOptions& options, const Probe& probe, const Context& context);

// What `--list` prints.
std::vector<std::string> suite_names(const BenchRunOptions& options);

}  // namespace memfathom
