#include "estimator/accuracy/measured_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/document.h"
#include "core/error.h"
#include "core/read_line.h"
#include "estimator/job/absolute_paths.h"
#include "estimator/job/read_job.h"
#include "estimator/session/job_input.h"

namespace memfathom {
namespace {

std::vector<std::filesystem::path> files_of(const std::filesystem::path& path) {
  std::error_code unreadable;  // said by whoever opens it
  if (!std::filesystem::is_directory(path, unreadable)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void read_measurement(const Node& node, MeasuredJob& row) {
  node.check_keys({"metric", "bytes", "fits", "phase"});
  const std::optional<Metric> metric = parse_metric(node.at("metric").as_string());
  if (!metric) node.at("metric").refuse("it must be allocated, reserved or device");
  row.metric = *metric;
  if (const Node* bytes = node.find("bytes")) row.bytes = Bytes{bytes->as_int(0)};
  if (const Node* fits = node.find("fits")) row.fits = fits->as_bool();
  if (const Node* phase = node.find("phase")) row.phase = phase->as_string();
  if (!row.bytes && !row.fits) node.refuse("it must have bytes, or fits where only that is known");
}

// A model that cannot be resolved (an unknown preset, a missing file) is the row's own refusal; a
// mistake anywhere else in the job is a mistake of the data.
void read_model(const Node& job, MeasuredJob& row) {
  try {
    row.job = complete_job(job).job;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
    Node model = Node::map();
    model.set("parameters", Node::number(1e9));
    Node other = job;
    other.set("model", std::move(model));
    read_job(other);
    row.refusal = error.what();
  }
}

void read_file(const std::filesystem::path& file, const MeasuredJobsFilter& filter,
               std::vector<MeasuredJob>& rows) {
  std::ifstream input(file);
  if (!input)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: cannot be read; give a file of JSON lines or a folder of them",
                            file.string()));
  std::string line;
  for (int number = 1; read_line(input, file.string(), DocumentLimits{}.max_file_bytes, line);
       ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Node document = parse_json(line, file.string(), number);
    if (document.find("exclude") != nullptr) continue;
    MeasuredJob row;
    row.id = document.at("id").as_string();
    row.dataset = file.stem().string();
    if (const Node* group = document.find("group")) row.group = group->as_string();
    if (!row.group.starts_with(filter.only)) continue;
    Node job = with_absolute_paths(document.at("job"));
    if (filter.rewritten) job = filter.rewritten(std::move(job));
    read_model(job, row);
    row.job.id = row.id;
    row.job_text = to_json(job).dump();
    read_measurement(document.at("measured"), row);
    rows.push_back(std::move(row));
  }
}

}  // namespace

std::vector<MeasuredJob> read_measured_jobs(const std::filesystem::path& path,
                                            const MeasuredJobsFilter& filter) {
  std::vector<MeasuredJob> rows;
  for (const std::filesystem::path& file : files_of(path)) read_file(file, filter, rows);
  if (rows.empty() && !filter.only.empty())
    throw Error(ErrorKind::kInput,
                fmt::format("{}: no group begins with \"{}\"; --groups lists them", path.string(),
                            filter.only));
  if (rows.empty())
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: no measured jobs are in it; see docs/commands/accuracy.md for the format",
                    path.string()));
  return rows;
}

}  // namespace memfathom
