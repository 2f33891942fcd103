// A run of the suite: its options and its growing result file.
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
  std::string cudnn_library;  // directory of another libcudnn.so.9
  std::string libcuda;        // for attention; empty: the toolkit's stub, if present
  std::string plant;          // a change of a virtual GPU
  std::int64_t seed = 0;      // of a virtual GPU's scatter
  std::string scale;          // tiny, small, full; empty: chosen for the device
  bool list = false;
};

// The rows of a run. It appends them to OUT.partial, so that an interrupted run can resume;
// finish() writes OUT.
class BenchLog {
 public:
  // `fresh` has no rows. Reuses the rows of an unfinished run with the same selection and
  // environment.
  BenchLog(std::string out, BenchFile fresh);

  std::size_t taken_over() const { return taken_over_; }
  bool has(const std::string& name, int repetition) const;
  void add(std::vector<BenchRow> rows);
  // Throws Error(kEnvironment), with the first row's error, if no row has values.
  void finish();

 private:
  std::string out_;
  std::string partial_;
  BenchFile file_;
  std::set<std::pair<std::string, int>> known_;
  std::size_t taken_over_ = 0;
};

// Benchmark names that match the filter. Throws Error(kUsage) for an invalid expression.
class BenchFilter {
 public:
  explicit BenchFilter(const std::string& expression);
  bool admits(const std::string& name) const { return admits_(name); }

 private:
  std::function<bool(const std::string&)> admits_;
};

// Queries cuDNN's planner; each repetition starts a new one.
void run_cudnn_suite(const BenchRunOptions& options, const Context& context);

// Runs jobs on a device, each repetition in its own process.
using Probe = std::function<ProbeOutcome(const ProbeRequest& request)>;
void run_device_suite(const BenchRunOptions& options, const Probe& probe, const Context& context);

// What `--list` prints.
std::vector<std::string> suite_names(const BenchRunOptions& options);

}  // namespace memfathom
