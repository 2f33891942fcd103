// BenchFile: what `bench run` writes and `bench compare` reads: Google Benchmark's JSON, and more.
//
// Upstream's compare.py reads these files, and files that upstream's programs write are read here:
// what they do not know is left empty.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "core/environment.h"

namespace memfathom {

// One thing of which the size is known apart from the total: a library's workspace.
struct BenchOperation {
  std::string component;  // the contract's name of it: "workspace_cudnn"
  std::string operation;  // for people: "data gradient 7x7/s2 3→64 @224² b32 fp16"
  Bytes bytes;
};

// One repetition of one benchmark, in a process of its own.
struct BenchRow {
  std::string name;   // "conv/7x7s2-3-64-224-b32/data_gradient/fp16/nhwc"
  std::string label;  // the same for people; may be empty
  int repetition = 0;
  std::map<std::string, Bytes> counters;  // names end in "_bytes"
  double seconds = 0;                     // wall time of what time_of names
  double cpu_seconds = 0;
  std::string time_of;  // "step", "question", "process"; empty in files of other programs
  std::string error;    // why there are no figures; empty when there are
  std::vector<BenchOperation> operations;
};

struct BenchFile {
  std::string device;  // as it was asked for: "cudnn:sm_90"
  std::string date;
  std::string program;    // who wrote it
  std::string selection;  // what was asked for, to tell whether an unfinished run goes on
  int repetitions = 0;
  Environment environment;  // its gpu is empty in files of other programs
  std::vector<BenchRow> rows;
};

// The file's text; equal files give equal texts.
std::string to_text(const BenchFile& file);

// Throws Error(kInput), naming `name`, for a text that is no such file. Aggregates are left out.
BenchFile bench_file_from(std::string_view text, const std::string& name);
BenchFile read_bench_file(const std::string& path);

}  // namespace memfathom
