#include "profiler/driver_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace memfathom {
namespace {

using nlohmann::json;

constexpr std::array kMemoryNames{"unknown", "pageable",      "pinned",         "device", "array",
                                  "managed", "device-static", "managed-static", "pool"};

// Managed memory is on the GPU only while it is used there. A pool's memory may be in the readings
// before it is used and after.
bool is_on_device(DriverMemory memory) {
  return memory == DriverMemory::kDevice || memory == DriverMemory::kArray ||
         memory == DriverMemory::kDeviceStatic;
}

// What is allocated and not released yet.
class Held {
 public:
  void add(const DriverRecord& record) {
    if (record.allocates) {
      release(record.address);  // its release was before the first record
      sizes_[record.address] = record.bytes;
      total_ += record.bytes;
    } else {
      release(record.address);
    }
  }
  Bytes total() const { return total_; }

 private:
  void release(std::uint64_t address) {
    const auto at = sizes_.find(address);
    if (at == sizes_.end()) return;
    total_ = total_ - at->second;
    sizes_.erase(at);
  }

  std::map<std::uint64_t, Bytes> sizes_;
  Bytes total_;
};

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// The position of the first mark at or after a time: the stage whose reading follows.
std::size_t next_mark(const std::vector<std::uint64_t>& marks, std::uint64_t nanoseconds) {
  return static_cast<std::size_t>(std::lower_bound(marks.begin(), marks.end(), nanoseconds) -
                                  marks.begin());
}

}  // namespace

const char* to_string(DriverMemory memory) {
  const auto place = static_cast<std::size_t>(memory);
  return place < kMemoryNames.size() ? kMemoryNames[place] : kMemoryNames.front();
}

Bytes beyond_readings(const DriverRecords& records, const std::vector<StageReading>& stages) {
  if (!records.complete() || stages.empty() || records.marks.size() != stages.size()) return {};
  Held held;
  auto at = records.records.begin();
  Bytes highest_reading;
  Bytes highest;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    Bytes peak = held.total();
    for (; at != records.records.end() && at->nanoseconds <= records.marks[stage]; ++at) {
      if (!is_on_device(at->memory)) continue;
      held.add(*at);
      peak = std::max(peak, held.total());
    }
    const Bytes reading = stages[stage].device_used;
    highest_reading = std::max(highest_reading, reading);
    highest = std::max(highest, reading + (peak - held.total()));
  }
  return highest - highest_reading;
}

std::vector<ModuleUse> uses_by_module(const DriverRecords& records) {
  std::map<std::pair<int, DriverMemory>, std::pair<ModuleUse, Held>> uses;
  std::map<std::uint64_t, std::pair<int, DriverMemory>> owners;
  for (const DriverRecord& record : records.records) {
    // A release is its allocation's, whichever module called it.
    std::pair<int, DriverMemory> key{record.module, record.memory};
    if (record.allocates) {
      owners[record.address] = key;
    } else if (const auto owner = owners.find(record.address); owner != owners.end()) {
      key = owner->second;
      owners.erase(owner);
    } else {
      continue;
    }
    auto& [use, held] = uses[key];
    use.memory = key.second;
    if (key.first >= 0)
      use.module = file_name(records.modules.at(static_cast<std::size_t>(key.first)));
    use.allocations += record.allocates ? 1 : 0;
    held.add(record);
    use.peak = std::max(use.peak, held.total());
    use.held = held.total();
  }
  std::vector<ModuleUse> found;
  for (auto& [key, use] : uses) found.push_back(std::move(use.first));
  std::stable_sort(found.begin(), found.end(),
                   [](const ModuleUse& a, const ModuleUse& b) { return a.peak > b.peak; });
  return found;
}

std::string driver_table(const std::string& workload, const DriverRecords& records,
                         const std::vector<StageReading>& stages) {
  std::string text;
  const std::uint64_t start = records.marks.empty() ? 0 : records.marks.front();
  for (const DriverRecord& record : records.records) {
    const std::size_t next = next_mark(records.marks, record.nanoseconds);
    const auto module = static_cast<std::size_t>(record.module);
    text += fmt::format(
        "{},{:.3f},{},{},{},{},0x{:x},\"{}\"\n", workload,
        (static_cast<double>(record.nanoseconds) - static_cast<double>(start)) / 1000,
        next < stages.size() ? stages[next].stage : "the end", record.allocates ? "alloc" : "free",
        to_string(record.memory), record.bytes.count(), record.address,
        module < records.modules.size() ? records.modules[module] : "");
  }
  return text;
}

json to_json(const DriverRecords& records) {
  json rows = json::array();
  for (const DriverRecord& record : records.records) {
    rows.push_back({record.nanoseconds, record.allocates, static_cast<int>(record.memory),
                    record.module, record.address, record.bytes.count()});
  }
  return {{"version", records.version}, {"dropped", records.dropped}, {"missing", records.missing},
          {"modules", records.modules}, {"marks", records.marks},     {"records", std::move(rows)}};
}

DriverRecords driver_records_from_json(const json& document) {
  DriverRecords records;
  document.at("version").get_to(records.version);
  document.at("dropped").get_to(records.dropped);
  document.at("missing").get_to(records.missing);
  document.at("modules").get_to(records.modules);
  document.at("marks").get_to(records.marks);
  const auto modules = static_cast<int>(records.modules.size());
  for (const json& row : document.at("records")) {
    DriverRecord record;
    row.at(0).get_to(record.nanoseconds);
    row.at(1).get_to(record.allocates);
    const int memory = row.at(2).get<int>();
    if (memory >= 0 && memory < static_cast<int>(kMemoryNames.size()))
      record.memory = static_cast<DriverMemory>(memory);
    const int module = row.at(3).get<int>();
    if (module >= 0 && module < modules) record.module = module;
    row.at(4).get_to(record.address);
    record.bytes = Bytes{row.at(5).get<std::int64_t>()};
    records.records.push_back(record);
  }
  // CUPTI's buffers come in the order in which they were filled, threads side by side.
  std::stable_sort(
      records.records.begin(), records.records.end(),
      [](const DriverRecord& a, const DriverRecord& b) { return a.nanoseconds < b.nanoseconds; });
  return records;
}

}  // namespace memfathom
