#include "cli/fleet/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/fleet/slurm.h"
#include "core/document.h"
#include "core/error.h"
#include "core/gpus.h"
#include "core/json_value.h"
#include "core/lowercase.h"
#include "core/parse_number.h"
#include "estimator/command_line/command_line.h"
#include "estimator/readers/merge.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kMark = "memfathom=";
constexpr const char* kBeside = ".memfathom.yaml";

std::string text_at(const json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

// The script that sbatch was given, in its own JSON: {"argv": ["train.sh", "--x"]}.
std::string script_in(const json& options) {
  const auto words = options.find("argv");
  if (words == options.end() || !words->is_array() || words->empty()) return "";
  return words->front().is_string() ? words->front().get<std::string>() : "";
}

// "ALL,MEMFATHOM_JOB=job.yaml"
std::string exported_job(const std::string& list) {
  constexpr std::string_view kVariable = "MEMFATHOM_JOB=";
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string_view entry = std::string_view(list).substr(at, end - at);
    if (entry.starts_with(kVariable)) return std::string(entry.substr(kVariable.size()));
    at = end + 1;
  }
  return "";
}

// What follows "memfathom=" in a comment: a job as JSON to its end, or a path up to a blank.
std::string job_in_comment(const std::string& comment) {
  const std::size_t at = comment.find(kMark);
  if (at == std::string::npos) return "";
  const std::string value = comment.substr(at + kMark.size());
  return value.starts_with('{') ? value : value.substr(0, value.find_first_of(" \t;"));
}

std::string from_folder(const AdmissionRequest& request, const std::string& path) {
  return (fs::path(request.work_dir) / path).string();  // an absolute path stays as it is
}

JobInput read_named(const AdmissionRequest& request, const std::string& named) {
  JobInput input;
  if (named.starts_with('{')) {
    input.document = parse_json(named, "the job's comment", 0);
  } else {
    input.files = merge_files(read_source(from_folder(request, named)));
    input.document = input.files.document;
  }
  return input;
}

std::optional<std::string> file_beside(const AdmissionRequest& request) {
  const std::string script =
      request.script_path.empty() ? request.script_name : request.script_path;
  if (script.empty()) return std::nullopt;
  std::string file = from_folder(request, script + kBeside);
  std::error_code missing;
  return fs::is_regular_file(file, missing) ? std::optional(file) : std::nullopt;
}

// Comment, exported variable, file next to the script, the script's own training command. Nullopt
// if there is nothing to read; throws Error if it cannot be read.
std::optional<JobInput> job_of(const AdmissionRequest& request) {
  const std::string commented = job_in_comment(request.comment);
  if (!commented.empty()) return read_named(request, commented);
  if (!request.job.empty()) return read_named(request, request.job);
  JobInput input;
  if (const std::optional<std::string> beside = file_beside(request)) {
    input.files = merge_files(read_source(*beside));
  } else if (!request.script.empty()) {
    input.files = merge_files(read_script_text(
        request.script, request.script_name.empty() ? "the script" : request.script_name, 0));
  } else if (!request.script_path.empty()) {
    input.files = merge_files(read_script(from_folder(request, request.script_path)));
  } else {
    return std::nullopt;
  }
  input.document = input.files.document;
  return input;
}

// The largest number in "4", "2-4"; 0 for anything else and for Slurm's "not set".
std::int64_t count_in(const std::string& text) {
  constexpr std::int64_t kUnset16 = 65534;  // NO_VAL16; NO_VAL is larger
  const std::size_t dash = text.find('-');
  const std::string last = dash == std::string::npos ? text : text.substr(dash + 1);
  const std::int64_t count = parse_number<std::int64_t>(last).value_or(0);
  return count > 0 && count < kUnset16 ? count : 0;
}

std::int64_t gpus_of(const std::string& gres) {
  std::int64_t count = 0;
  for (const GresGpus& gpus : gpus_in_gres(gres)) count += gpus.count;
  return count;
}

Admission unknown(const AdmissionRequest& request, const std::string& why) {
  // The controller may read files that the user may not: what they hold stays untold.
  return {Decision::kNote, request.enforces ? "the job could not be read; it is let through"
                                            : fmt::format("unknown, and let through: {}", why)};
}

}  // namespace

std::map<std::string, std::string> gpu_names_in(std::string_view text, const std::string& where) {
  std::map<std::string, std::string> names;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, end);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || !is_slurm_word(entry.substr(0, equals))) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: \"{}\" is not TYPE=GPU; write a100=a100-80gb", where, entry));
    }
    names[std::string(entry.substr(0, equals))] = gpu_named(entry.substr(equals + 1), where).name;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

std::string gpu_of_gres_type(const std::string& type,
                             const std::map<std::string, std::string>& named) {
  if (const auto found = named.find(type); found != named.end()) return found->second;
  std::string name = lowercase(type);
  std::replace(name.begin(), name.end(), '_', '-');
  std::string largest;
  for (const Gpu& gpu : gpus_by_memory()) {
    const bool is_size = gpu.name.starts_with(name + "-") && gpu.name.ends_with("gb") &&
                         gpu.name.substr(name.size() + 1).find('-') == std::string_view::npos;
    if (is_size) largest = gpu.name;
  }
  if (!largest.empty()) return largest;
  const Gpu* const gpu = find_gpu(name);
  return gpu == nullptr ? "" : std::string(gpu->name);
}

AdmissionRequest admission_request(std::string_view text, const std::string& file) {
  const json record = parse_json_value(text, file);
  if (!record.is_object())
    throw Error(ErrorKind::kInput, fmt::format("{} is not a filter request", file));
  AdmissionRequest request;
  request.enforces = text_at(record, "mode") == "enforce";
  if (const auto limit = record.find("probability"); limit != record.end() && limit->is_number())
    request.probability = limit->get<double>();
  request.gpus = gpu_names_in(text_at(record, "gpus"), file);
  request.comment = text_at(record, "comment");
  request.job = text_at(record, "job");
  if (const std::string exported = exported_job(text_at(record, "export")); !exported.empty())
    request.job = exported;
  request.resources = text_at(record, "resources");
  request.per_node = text_at(record, "per_node");
  request.per_job = text_at(record, "per_job");
  request.per_task = text_at(record, "per_task");
  request.nodes = count_in(text_at(record, "nodes"));
  request.tasks = count_in(text_at(record, "tasks"));
  if (request.tasks == 0)
    request.tasks = request.nodes * count_in(text_at(record, "tasks_per_node"));
  if (const auto user = parse_number<uid_t>(text_at(record, "user"))) request.user = user;
  request.work_dir = text_at(record, "work_dir");
  request.script = text_at(record, "script");
  request.script_name = text_at(record, "name");
  if (const std::string options = text_at(record, "options"); !options.empty())
    request.script_path = script_in(parse_json_value(options, file));
  return request;
}

// Slurm chooses the number of nodes where a job names its tasks only: at most one each.
std::int64_t gpus_asked_for(const AdmissionRequest& request) {
  const std::int64_t nodes =
      request.nodes > 0 ? request.nodes : std::max<std::int64_t>(request.tasks, 1);
  const std::int64_t tasks = std::max({request.tasks, request.nodes, std::int64_t{1}});
  return std::max({gpus_of(request.per_node) * nodes, gpus_of(request.per_job),
                   gpus_of(request.per_task) * tasks});
}

Admission admit(const AdmissionRequest& request, const Estimator& estimator) {
  try {
    std::string gpu;
    for (const GresGpus& gpus : gpus_in_gres(request.resources)) {
      if (gpus.type.empty()) continue;
      gpu = gpu_of_gres_type(gpus.type, request.gpus);
      if (gpu.empty()) {
        return {Decision::kNote,
                fmt::format("the GPU type \"{}\" is unknown; it is let through (fleet "
                            "install-filter --gpus {}=NAME)",
                            gpus.type, gpus.type)};
      }
    }
    std::optional<JobInput> input = job_of(request);
    if (!input) return {Decision::kNote, "the job says nothing about itself; it is let through"};
    return judge_admission(
        *input, {.gpu = gpu, .gpus = gpus_asked_for(request), .probability = request.probability},
        estimator);
  } catch (const Error& error) {
    return unknown(request, error.what());
  } catch (const std::exception& error) {
    return unknown(request, error.what());
  }
}

}  // namespace memfathom
