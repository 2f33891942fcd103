// DriverRecords: the driver's allocations of one process, with their times and modules, as CUPTI
// recorded them; and what they say that readings of a meter do not.
//
// CUPTI records what is allocated by a call: cudaMalloc, cuMemAlloc, their pitched, managed, host
// and stream-ordered forms, arrays, and the variables of modules. The context itself, code that is
// loaded, and the stacks of kernels are in no record.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/sample.h"

namespace memfathom {

// CUpti_ActivityMemoryKind; and what cudaMallocAsync takes from a pool, which holds its memory
// whether it is in use or not.
enum class DriverMemory : int {
  kUnknown = 0,
  kPageable = 1,
  kPinned = 2,
  kDevice = 3,
  kArray = 4,
  kManaged = 5,
  kDeviceStatic = 6,
  kManagedStatic = 7,
  kPool = 8
};
const char* to_string(DriverMemory memory);

struct DriverRecord {
  std::uint64_t nanoseconds = 0;
  bool allocates = true;  // or releases
  DriverMemory memory = DriverMemory::kUnknown;
  int module = -1;  // index; -1: not told
  std::uint64_t address = 0;
  Bytes bytes;

  bool operator==(const DriverRecord&) const = default;
};

struct DriverRecords {
  std::uint32_t version = 0;  // of CUPTI
  std::int64_t dropped = 0;   // records that CUPTI had no buffer for
  std::string missing;        // why there are no records; empty: they were recorded
  std::vector<std::string> modules;
  std::vector<std::uint64_t> marks;  // when each stage's reading was taken, ns
  std::vector<DriverRecord> records;

  // Whether every allocation is there. Records that are not complete say nothing about peaks.
  bool complete() const { return missing.empty() && dropped == 0; }
  bool operator==(const DriverRecords&) const = default;
};

// What the peak of the records lies above the highest of `stages`, the meter's readings at the
// marks. Within an interval the process holds at most its last reading, less what the records hold
// then, plus their highest point: what has no record only grows. 0 if the records are incomplete.
Bytes beyond_readings(const DriverRecords& records, const std::vector<StageReading>& stages);

struct ModuleUse {
  std::string module;  // the file name; empty: not told
  DriverMemory memory = DriverMemory::kUnknown;
  std::int64_t allocations = 0;
  Bytes peak, held;  // held: not released in the end

  bool operator==(const ModuleUse&) const = default;
};
// By largest peak.
std::vector<ModuleUse> uses_by_module(const DriverRecords& records);

// A line for each record: WORKLOAD, the time since the first mark, the stage that follows, and the
// record.
std::string driver_table(const std::string& workload, const DriverRecords& records,
                         const std::vector<StageReading>& stages);
constexpr const char* kDriverTableHeader =
    "workload,microseconds,before,operation,memory,bytes,address,module\n";

nlohmann::json to_json(const DriverRecords& records);
// Throws nlohmann::json::exception for a document that is malformed.
DriverRecords driver_records_from_json(const nlohmann::json& json);

}  // namespace memfathom
