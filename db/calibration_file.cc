#include "db/calibration_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json_io.h"
#include "core/json_value.h"
#include "core/newer_schema.h"
#include "db/content_hash.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "memfathom.calibration/1";
constexpr std::uintmax_t kMaxFileBytes = 64 << 20;  // a typical file has a few hundred KiB

void require_finite(const Calibration& calibration, const std::string& what, double value) {
  if (std::isfinite(value)) return;
  throw Error(ErrorKind::kInput,
              fmt::format("calibration {}: {} is {}; only finite numbers can be stored",
                          calibration.name, what, value));
}

std::string file_name(const Calibration& calibration) {
  std::string name = calibration.name.substr(0, 100);
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '_' && c != '.'; }, '-');
  return fmt::format("{}-{}.json", name.empty() || name.front() == '.' ? "calibration" : name,
                     calibration.id.substr(0, 12));
}

nlohmann::json document_of(std::string_view text, const std::string& where) {
  try {
    return parse_json_value(text, where);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{} is not a calibration: {}", where, error.what()));
  }
}

}  // namespace

void require_storable(const Calibration& calibration) {
  for (const Coefficient& c : calibration.coefficients) {
    require_finite(calibration, fmt::format("coefficient {}", c.name), c.value);
    require_finite(calibration, fmt::format("the standard error of {}", c.name), c.standard_error);
  }
  for (const double value : calibration.covariance)
    require_finite(calibration, "a covariance", value);
  for (const RatioGroup& group : calibration.ratios) {
    for (const double value : group.ratios) require_finite(calibration, "a ratio", value);
  }
  const Quality& quality = calibration.quality;
  for (const std::optional<double>& figure :
       {quality.held_out_median_error, quality.held_out_p90_error, quality.under_by_10_percent,
        quality.coverage_90}) {
    require_finite(calibration, "a figure of its quality", figure.value_or(0));
  }
  const std::size_t size = calibration.coefficients.size();
  if (!calibration.covariance.empty() && calibration.covariance.size() != size * size) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("calibration {}: the covariance has {} numbers; {} coefficients need {}",
                    calibration.name, calibration.covariance.size(), size, size * size));
  }
}

std::string content_id(const Calibration& c) {
  ContentHash hash("calibration");
  hash.add(c.environment)
      .add(c.name)
      .add(c.created)
      .add(to_string(c.source))
      .add(c.provenance)
      .add(c.usable)
      .add(c.refusal);
  hash.add(c.samples).add(static_cast<std::int64_t>(c.coefficients.size()));
  for (const Coefficient& k : c.coefficients) {
    hash.add(k.name)
        .add(k.value)
        .add(k.standard_error)
        .add(k.unit)
        .add(to_string(k.source))
        .add(k.prior_only);
    hash.add(k.samples);
  }
  hash.add(static_cast<std::int64_t>(c.covariance.size()));
  for (const double value : c.covariance) hash.add(value);
  hash.add(static_cast<std::int64_t>(c.ratios.size()));
  for (const RatioGroup& group : c.ratios) {
    hash.add(group.group).add(static_cast<std::int64_t>(group.ratios.size()));
    for (const double value : group.ratios) hash.add(value);
  }
  const Quality& quality = c.quality;
  hash.add(quality.held_out_median_error)
      .add(quality.held_out_p90_error)
      .add(quality.under_by_10_percent);
  return hash.add(quality.coverage_90).add(quality.validation_rows).add(c.supersedes).uid();
}

std::string to_calibration_file(const Calibration& calibration) {
  nlohmann::json document = to_json(calibration);
  document["schema"] = kSchema;
  return document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Calibration from_calibration_file(std::string_view text, const std::string& where) {
  const nlohmann::json document = document_of(text, where);
  const nlohmann::json schema =
      document.is_object() ? document.value("schema", nlohmann::json()) : nlohmann::json();
  if (schema.is_string() && is_newer_schema(schema.get_ref<const std::string&>(), kSchema)) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} was written by a newer memfathom (this one reads {}); use that "
                            "version, or calibrate with this one",
                            where, kSchema));
  }
  if (schema != kSchema) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("{} is not a calibration: a JSON object with \"schema\": \"{}\" is expected",
                    where, kSchema));
  }
  Calibration calibration;
  try {
    calibration = calibration_from_json(document);
    require_storable(calibration);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", where, error.what()));
  }
  const std::string id = content_id(calibration);
  if (!calibration.id.empty() && calibration.id != id) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} was changed after it was exported: its content has the id {}, not "
                            "{}; export it again, or "
                            "remove its \"id\" to import it as another calibration",
                            where, id, calibration.id.substr(0, 64)));
  }
  calibration.id = id;
  return calibration;
}

std::vector<fs::path> export_calibrations(const std::vector<Calibration>& calibrations,
                                          const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{} cannot be made ({})", folder.string(), error.message()));
  }
  std::vector<fs::path> paths;
  for (const Calibration& calibration : calibrations) {
    paths.push_back(folder / file_name(calibration));
    write_file_atomically(paths.back().string(), to_calibration_file(calibration));
  }
  return paths;
}

Calibration read_calibration_file(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} cannot be read; name a file that `memfathom db export` wrote",
                            path.string()));
  }
  if (size > kMaxFileBytes) {
    throw Error(ErrorKind::kInput, fmt::format("{} has {} bytes; a calibration file has at most {}",
                                               path.string(), size, kMaxFileBytes));
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return from_calibration_file(text, path.string());
}

}  // namespace memfathom
