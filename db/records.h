// Records: the store's records besides core's samples, observations and calibrations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/environment.h"
#include "core/sample.h"

namespace memfathom {

// One execution of a plan in one environment. Times are ISO 8601, UTC, and come from the caller.
struct Run {
  std::string id;  // set by the store
  Environment environment;
  std::string plan;  // "quick", "standard", "full"
  std::string started;
  std::optional<std::string> finished;  // nullopt while it runs and after an interruption
  std::string program;                  // the version of memfathom that measured
  std::string nonce;  // set by the store if empty: distinguishes runs of the same second
  // Of the cuDNN that the framework loaded, which need not be the system's; empty: not known.
  std::string cudnn_directory;
};

// Sets a sample or an observation aside, or takes it back: the one with the highest number decides.
// What is set aside stays stored, and is left out wherever samples and observations are used.
struct Removal {
  std::string id;           // set by the store
  std::string subject;      // the id of a sample or an observation
  std::int64_t number = 1;  // of this subject; set by the store
  bool removed = true;      // false: restored
  std::string created;
  std::string reason;
};

struct StoredObservation {
  std::string id;
  std::optional<Removal> removal;  // if it is set aside
  Observation observation;
};

struct StoredSample {
  std::string id;
  std::string run;          // the id of its run
  std::int64_t number = 0;  // 1, 2, 3 within the run
  std::shared_ptr<const Environment> environment;
  std::optional<Removal> removal;  // if it is set aside
  Sample sample;
};

// Empty fields match everything. Samples of virtual devices and removed ones are found only if
// requested.
struct SampleFilter {
  std::string run;
  std::string device_key;
  std::string stack_key;
  std::string framework;
  std::optional<bool> validation;
  bool only_ok = false;
  bool include_virtual = false;
  bool include_removed = false;
};

// The output of `bench run`, stored under a name.
struct Baseline {
  std::string id;  // set by the store
  std::string name;
  Environment environment;
  std::string created;
  std::string document;  // JSON
};

// A remark about a baseline, a run or a calibration.
struct Annotation {
  std::string id;  // set by the store
  std::string subject;
  std::string created;
  std::string note;
};

struct TableCount {
  std::string table;
  std::int64_t rows = 0;
};

struct StoreInfo {
  std::string path;
  int schema = 0;
  Bytes file_bytes;
  std::string fingerprint;  // equal for databases with the same rows, in any order
  std::vector<TableCount> tables;
};

// The number of rows that a merge or an import added, without those that existed already.
struct MergeCounts {
  int runs = 0;
  int samples = 0;
  int observations = 0;
  int calibrations = 0;
  int baselines = 0;
  int annotations = 0;
  int removals = 0;

  int total() const {
    return runs + samples + observations + calibrations + baselines + annotations + removals;
  }
};

}  // namespace memfathom
