#include "cli/fleet/fleet_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <tuple>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json_io.h"
#include "core/json_value.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMaxRecordBytes = std::size_t{1} << 20;
constexpr std::streamoff kTail = 4096;

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{} cannot be created ({}); name a folder that all nodes share with "
                            "--folder",
                            path.string(), error.message()));
  }
}

std::optional<json> read_record(const fs::path& file, const char* schema) {
  std::ifstream input(file, std::ios::binary);
  if (!input) return std::nullopt;
  std::string text(kMaxRecordBytes + 1, '\0');
  input.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(input.gcount()));
  DocumentLimits limits;
  limits.max_file_bytes = kMaxRecordBytes;
  json record = parse_json_value(text, file.string(), limits);
  if (!record.is_object() || record.value("schema", json()) != schema) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} is not a file of {}; remove it", file.string(), schema));
  }
  return record;
}

std::string text_at(const json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

constexpr const char* kOutcomeSchema = "memfathom.fleet-outcome/1";
constexpr const char* kNodeSchema = "memfathom.fleet-node/1";
constexpr const char* kStateSchema = "memfathom.fleet-state/1";

}  // namespace

FleetFolder::FleetFolder(const fs::path& path) : path_(fs::absolute(path)) {
  make_folder(path_);
  // sbatch copies the script of a job, so replacing it never changes a queued one.
  write_file_atomically(script().string(), "#!/bin/sh\nexec \"$@\"\n");
}

fs::path FleetFolder::campaign(const std::string& name) const {
  fs::path folder = path_ / name;
  make_folder(folder);
  return folder;
}

std::vector<SeenNode> FleetFolder::seen_nodes() const {
  std::vector<SeenNode> seen;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_ / "nodes", missing)) {
    if (entry.path().extension() != ".json") continue;
    const std::optional<json> record = read_record(entry.path(), kNodeSchema);
    if (!record) continue;
    seen.push_back({text_at(*record, "node"), text_at(*record, "type"), text_at(*record, "job"),
                    text_at(*record, "seen"),
                    environment_from_json(record->value("environment", json::object()))});
  }
  std::sort(seen.begin(), seen.end(), [](const SeenNode& a, const SeenNode& b) {
    return std::tie(a.node, a.type, b.seen) < std::tie(b.node, b.type, a.seen);
  });
  // The newest of a node and type: a node's name alone named its file before there were types.
  const auto same = [](const SeenNode& a, const SeenNode& b) {
    return a.node == b.node && a.type == b.type;
  };
  seen.erase(std::unique(seen.begin(), seen.end(), same), seen.end());
  return seen;
}

void FleetFolder::write_seen(const SeenNode& seen) const {
  const json record{{"schema", kNodeSchema}, {"node", seen.node},
                    {"type", seen.type},     {"job", seen.job},
                    {"seen", seen.seen},     {"environment", to_json(seen.environment)}};
  write_file_atomically((campaign("nodes") / (seen.node + "@" + seen.type + ".json")).string(),
                        record.dump(2) + "\n");
}

std::optional<JobOutcome> read_outcome(const fs::path& file) {
  const std::optional<json> record = read_record(file, kOutcomeSchema);
  if (!record) return std::nullopt;
  JobOutcome outcome;
  const auto code = record->find("exit_code");
  if (code == record->end() || !code->is_number_integer())
    throw Error(ErrorKind::kInput, fmt::format("{} has no exit_code; remove it", file.string()));
  outcome.exit_code = code->get<int>();
  outcome.node = text_at(*record, "node");
  outcome.job = text_at(*record, "job");
  outcome.finished = text_at(*record, "finished");
  outcome.message = text_at(*record, "message");
  return outcome;
}

void write_outcome(const fs::path& file, const JobOutcome& outcome) {
  const json record{{"schema", kOutcomeSchema},     {"exit_code", outcome.exit_code},
                    {"node", outcome.node},         {"job", outcome.job},
                    {"finished", outcome.finished}, {"message", outcome.message}};
  write_file_atomically(file.string(), record.dump(2) + "\n");
}

CampaignState read_state(const fs::path& campaign) {
  CampaignState state;
  const std::optional<json> record = read_record(campaign / "state.json", kStateSchema);
  if (!record) return state;
  state.finished = record->value("finished", json(true)) != json(false);
  const auto jobs = record->find("jobs");
  if (jobs == record->end() || !jobs->is_object()) return state;
  for (const auto& [label, id] : jobs->items()) {
    if (id.is_string()) state.jobs[label] = id.get<std::string>();
  }
  return state;
}

void write_state(const fs::path& campaign, const CampaignState& state) {
  const json record{{"schema", kStateSchema}, {"finished", state.finished}, {"jobs", state.jobs}};
  write_file_atomically((campaign / "state.json").string(), record.dump(2) + "\n");
}

std::string last_line_of(const fs::path& log) {
  std::ifstream input(log, std::ios::binary | std::ios::ate);
  if (!input) return "";
  const std::streamoff size = input.tellg();
  input.seekg(std::max<std::streamoff>(0, size - kTail));
  std::string line;
  std::string last;
  while (std::getline(input, line)) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last;
}

}  // namespace memfathom
