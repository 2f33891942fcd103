#include "cli/observe/observation_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/job/job_source.h"
#include "core/csv_line.h"
#include "core/document.h"
#include "core/error.h"
#include "core/gpus.h"
#include "core/read_line.h"
#include "core/utf8.h"
#include "estimator/job/absolute_paths.h"

namespace memfathom {
namespace {

struct TextKey {
  std::string_view key;
  std::string Observation::*field;
};
constexpr std::array<TextKey, 9> kTextKeys{{{"gpu", &Observation::gpu},
                                            {"driver", &Observation::driver},
                                            {"cuda", &Observation::cuda},
                                            {"cudnn", &Observation::cudnn},
                                            {"framework", &Observation::framework},
                                            {"framework_version", &Observation::framework_version},
                                            {"source", &Observation::source},
                                            {"group", &Observation::group},
                                            {"note", &Observation::note}}};

// The job as stored. It is completed again at each use, unless it comes only from other tools'
// files.
Node job_in(const std::string& file) {
  const JobInput input = read_job_file(file);
  return with_absolute_paths(input.has_foreign_files() ? input.document : input.files.document);
}

void read_job_of(const Node& row, const std::filesystem::path& file, Observation& observation) {
  const Node* given = row.find("job");
  if (given == nullptr) {
    if (observation.job.empty()) row.refuse("it must have a job: a path, or the job itself");
    return;
  }
  const Node job = given->is_string() ? job_in((file.parent_path() / given->as_string()).string())
                                      : with_absolute_paths(*given);
  const Job read = complete_job(job).job;
  if (observation.gpu.empty()) observation.gpu = read.target.gpu;
  observation.job = to_json(job).dump();
}

void read_figure(const Node& node, Observation& observation) {
  const std::optional<Metric> metric = parse_metric(node.at("metric").as_string());
  if (!metric) node.at("metric").refuse("it must be allocated, reserved or device");
  observation.metric = *metric;
  if (const Node* bytes = node.find("bytes")) observation.bytes = Bytes{bytes->as_int(0)};
  if (const Node* fits = node.find("fits")) observation.fits = fits->as_bool();
  if (!observation.bytes && !observation.fits)
    node.refuse("it must have bytes, or fits where only that is known");
}

// One absurd figure would spoil every fit that uses it.
void check_bytes(const Node& figure, const Observation& observation) {
  if (!observation.bytes) return;
  constexpr Bytes kMaxBytes{std::int64_t{1} << 46};  // 64 TiB: of the host's memory, too
  const Node& bytes = figure.at("bytes");
  if (observation.bytes->count() == 0)
    bytes.refuse("it must be at least 1; leave out what was not measured");
  const Gpu* gpu = find_gpu(observation.gpu);
  const Bytes most = gpu != nullptr ? gpu->memory() : kMaxBytes;
  if (*observation.bytes <= most) return;
  bytes.refuse(fmt::format("it must be at most {}{}; write the bytes of one GPU", most.count(),
                           gpu != nullptr ? fmt::format(", the memory of {}", gpu->name) : ""));
}

// Nothing for rows that are not totals or that set "exclude".
std::optional<Observation> observation_of(const Node& row, const std::filesystem::path& file,
                                          const Observation& defaults) {
  row.check_keys({"id", "job", "measured", "exclude", "metric", "bytes", "fits", "phase", "gpu",
                  "driver", "cuda", "cudnn", "framework", "framework_version", "source", "group",
                  "needs", "note"});
  const Node* measured = row.find("measured");
  const Node& figure = measured != nullptr ? *measured : row;
  if (row.find("exclude") != nullptr || figure.find("phase") != nullptr) return std::nullopt;
  Observation observation = defaults;
  for (const TextKey& text : kTextKeys) {
    if (const Node* value = row.find(text.key)) observation.*text.field = value->as_string();
  }
  if (measured != nullptr) measured->check_keys({"metric", "bytes", "fits"});
  read_figure(figure, observation);
  read_job_of(row, file, observation);
  check_bytes(figure, observation);
  return observation;
}

// A CSV row as the equivalent JSON line; empty fields are unset.
std::string json_of(const std::vector<std::string>& columns, const std::vector<std::string>& fields,
                    const std::string& where) {
  if (fields.size() != columns.size()) {
    throw Error(ErrorKind::kInput, fmt::format("{}: {} fields, but the first line names {} columns",
                                               where, fields.size(), columns.size()));
  }
  std::string text;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].empty()) continue;
    const bool as_it_is =
        columns[i] == "bytes" || columns[i] == "fits" || fields[i].starts_with("{");
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", nlohmann::json(columns[i]).dump(),
                        as_it_is ? fields[i] : nlohmann::json(fields[i]).dump());
  }
  return "{" + text + "}";
}

// The columns of a CSV file. One that names none of ours was not meant as input, and its content is
// not shown.
std::vector<std::string> columns_of(const std::string& line, const std::string& where) {
  std::vector<std::string> columns = csv_fields(line);
  const bool ours = std::any_of(columns.begin(), columns.end(), [](const std::string& name) {
    return name == "job" || name == "metric" || name == "bytes" || name == "fits";
  });
  if (ours) return columns;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: expected a JSON object, or a CSV header with at least job, metric "
                          "and bytes; see memfathom observe --help for the format",
                          where));
}

// Removes the byte order mark that Excel writes. What is not UTF-8 is refused here, because a row
// of CSV becomes JSON before it is parsed.
void check_encoding(std::string& line, const std::string& where, bool first) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (first && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  if (find_invalid_utf8(line) == std::string::npos && line.find('\0') == std::string::npos) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: the text is not UTF-8; save the file as UTF-8", where));
}

}  // namespace

std::vector<Observation> read_observations(const std::filesystem::path& file,
                                           const Observation& defaults) {
  std::ifstream input(file);
  if (!input) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: cannot be read; give a file of CSV or JSON lines", file.string()));
  }
  return read_observations(input, file, defaults);
}

std::vector<Observation> read_observations(std::istream& input, const std::filesystem::path& file,
                                           const Observation& defaults) {
  std::vector<Observation> observations;
  std::vector<std::string> columns;
  std::string line;
  for (int number = 1; read_line(input, file.string(), DocumentLimits{}.max_file_bytes, line);
       ++number) {
    check_encoding(line, fmt::format("{}:{}", file.string(), number), number == 1);
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (!line.starts_with("{") && columns.empty()) {
      columns = columns_of(line, fmt::format("{}:{}", file.string(), number));
      continue;
    }
    if (!columns.empty())
      line = json_of(columns, csv_fields(line), fmt::format("{}:{}", file.string(), number));
    const Node row = parse_json(line, file.string(), number);
    if (std::optional<Observation> one = observation_of(row, file, defaults))
      observations.push_back(std::move(*one));
  }
  return observations;
}

}  // namespace memfathom
