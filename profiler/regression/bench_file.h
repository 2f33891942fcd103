// BenchFile: the file that `bench run` writes and `bench compare` reads: Google Benchmark's JSON
// with additions.
//
// Upstream's compare.py reads these files, and this reader accepts upstream's files: missing fields
// stay empty.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "core/environment.h"

namespace memfathom {

// An allocation whose size is known separately from the total: a library's workspace.
struct BenchOperation {
  std::string component;  // the contract's name: "workspace_cudnn"
  std::string operation;  // readable: "data gradient 7x7/s2 3→64 @224² b32 fp16"
  Bytes bytes;
};

// One repetition of one benchmark, in a separate process.
struct BenchRow {
  std::string name;   // "conv/7x7s2-3-64-224-b32/data_gradient/fp16/nhwc"
  std::string label;  // readable; may be empty
  int repetition = 0;
  std::map<std::string, Bytes> counters;  // names end in "_bytes"
  double seconds = 0;                     // wall time of the event named by time_of
  double cpu_seconds = 0;
  std::string time_of;  // "step", "question", "process"; empty in files of other programs
  std::string error;    // why there are no values; empty if there are
  std::vector<BenchOperation> operations;
};

struct BenchFile {
  std::string device;  // as requested: "cudnn:sm_90"
  std::string date;
  std::string program;  // the program that wrote it
  std::string
      selection;  // the requested benchmarks, to decide whether an unfinished run can be resumed
  int repetitions = 0;
  Environment environment;  // its gpu is empty in files of other programs
  std::vector<BenchRow> rows;
};

// The file's text; equal files have equal texts.
std::string to_text(const BenchFile& file);

// Throws Error(kInput), naming `name`, for text that is not a bench file. Skips aggregates.
BenchFile bench_file_from(std::string_view text, const std::string& name);
BenchFile read_bench_file(const std::string& path);

}  // namespace memfathom
