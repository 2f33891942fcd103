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
#include "estimator/command_line/command_line.h"
#include "estimator/readers/merge.h"
#include "estimator/session/answer_job.h"
#include "estimator/session/job_input.h"

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

// The GPUs that are asked for are where the job will run, whatever its file says.
void set_target(Node& document, const std::string& gpu) {
  Node target = Node::map();
  if (const Node* given = document.find("target"); given != nullptr && given->is_map())
    target = *given;
  for (const char* key : {"gpu", "memory", "device", "architecture"}) target.erase(key);
  target.set("gpu", Node::string(gpu));
  document.set("target", std::move(target));
}

std::string percent_below(double probability) {
  return probability < 0.01 ? "below 1 %" : fmt::format("{:.0f} %", 100 * probability);
}

std::string cheapest_change(const Estimate& estimate) {
  for (const Suggestion& suggestion : estimate.suggestions) {
    if (!suggestion.fits) continue;
    return fmt::format("cheapest change with which it fits: {} ({}; {} then)", suggestion.change,
                       suggestion.costs, to_string(suggestion.device_peak));
  }
  return "no single change is enough; `memfathom recommend` combines them";
}

Admission judge(const AdmissionRequest& request, JobInput input, const std::string& gpu,
                const Estimator& estimator) {
  if (!gpu.empty()) set_target(input.document, gpu);
  complete(input);
  const Estimate estimate = answer_estimate(input, {}, estimator).estimate;
  const Verdict& verdict = estimate.verdict;
  if (verdict.status == VerdictStatus::kUnknown || !verdict.available)
    return {Decision::kNote, "the job names no GPU type (--gres=gpu:TYPE:N); it is let through"};
  const std::string figures =
      fmt::format("{} of {} on {}", to_string(estimate.totals.device_peak),
                  to_string(*verdict.available), verdict.gpu.empty() ? "the GPU" : verdict.gpu);
  if (verdict.status == VerdictStatus::kUndecided || !verdict.probability_fits) {
    return {Decision::kNote,
            fmt::format("undecided, since parts of the job were not read: {}; it is let through",
                        figures)};
  }
  const double fits = *verdict.probability_fits;
  if (1 - fits > request.probability) {
    return {Decision::kRefuse,
            fmt::format("this job does not fit: {}, probability of fitting {}; {}", figures,
                        percent_below(fits), cheapest_change(estimate))};
  }
  if (verdict.status == VerdictStatus::kFits)
    return {Decision::kAllow, fmt::format("this job fits: {}", figures)};
  return {Decision::kNote, fmt::format("this job is tight: {}, probability of fitting {}", figures,
                                       percent_below(fits))};
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
    throw Error(ErrorKind::kInput, fmt::format("{} is no request of a filter", file));
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
  request.work_dir = text_at(record, "work_dir");
  request.script = text_at(record, "script");
  request.script_name = text_at(record, "name");
  if (const std::string options = text_at(record, "options"); !options.empty())
    request.script_path = script_in(parse_json_value(options, file));
  return request;
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
    return judge(request, std::move(*input), gpu, estimator);
  } catch (const Error& error) {
    return unknown(request, error.what());
  } catch (const std::exception& error) {
    return unknown(request, error.what());
  }
}

}  // namespace memfathom
