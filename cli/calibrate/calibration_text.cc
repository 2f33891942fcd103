#include "cli/calibrate/calibration_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/coefficients.h"
#include "core/error.h"
#include "core/name_lookup.h"
#include "db/published.h"

namespace memfathom {
namespace {

constexpr const char* kPublished = "published";

bool replaces(const Calibration& newer, const Calibration& older) {
  return newer.usable && newer.environment.device_key() == older.environment.device_key() &&
         newer.environment.stack_key() == older.environment.stack_key() &&
         std::pair(newer.created, newer.id) > std::pair(older.created, older.id);
}

std::string status_of(const Calibration& calibration, const std::vector<Calibration>& stored) {
  if (!calibration.usable) return "refused";
  const bool superseded = std::any_of(stored.begin(), stored.end(), [&](const Calibration& other) {
    return replaces(other, calibration);
  });
  return superseded ? "superseded" : "calibrated";
}

std::string quantity(double value, const std::string& unit) {
  return unit == "bytes" ? fmt::format("{:.1f} MiB", value / (1 << 20))
                         : fmt::format("{:.4g}", value);
}

}  // namespace

std::vector<ListedCalibration> all_calibrations(const std::optional<Store>& store) {
  std::vector<ListedCalibration> all;
  if (store) {
    const std::vector<Calibration> stored = store->calibrations();
    for (const Calibration& calibration : stored)
      all.push_back({calibration, status_of(calibration, stored), {}});
  }
  for (const Calibration& calibration : published_calibrations())
    all.push_back({calibration, kPublished, {}});
  return all;
}

ListedCalibration lookup_calibration(const std::string& wanted, const std::optional<Store>& store) {
  std::vector<ListedCalibration> all = all_calibrations(store);
  std::stable_partition(all.begin(), all.end(),
                        [](const ListedCalibration& c) { return c.status == kPublished; });
  std::vector<NamedEntry> words;
  for (const ListedCalibration& one : all)
    words.push_back({one.calibration.id, one.calibration.name, one.calibration.usable});
  const std::optional<std::size_t> found = find_by_name_or_id(words, wanted, "calibrations");
  if (!found) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("no calibration has the name or id \"{}\"; `memfathom calibrations list` shows "
                    "them",
                    wanted));
  }
  if (store) all[*found].annotations = store->annotations(all[*found].calibration.id);
  return std::move(all[*found]);
}

std::string percent_text(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:.2f} %", 100 * *fraction) : "-";
}

namespace {

std::string stack_text(Environment environment) {
  for (std::string* version :
       {&environment.driver, &environment.cuda, &environment.cublas, &environment.cudnn,
        &environment.cufft, &environment.framework_version}) {
    if (version->empty()) *version = "unknown";
  }
  return environment.stack_key();
}

}  // namespace

TextRows calibration_properties(const ListedCalibration& listed) {
  const Calibration& c = listed.calibration;
  TextRows rows;
  rows.push_back({"name", c.name});
  rows.push_back({"id", c.id});
  rows.push_back({"status", listed.status});
  if (!c.refusal.empty()) rows.push_back({"refused because", c.refusal});
  rows.push_back({"device", c.environment.device_key()});
  rows.push_back({"stack", stack_text(c.environment)});
  rows.push_back({"created", c.created});
  rows.push_back({"source", to_string(c.source)});
  rows.push_back({"samples", std::to_string(c.samples)});
  std::string error =
      fmt::format("median {}, 90th percentile {}", percent_text(c.quality.held_out_median_error),
                  percent_text(c.quality.held_out_p90_error));
  if (c.quality.validation_rows > 0) error += fmt::format(" on {} rows", c.quality.validation_rows);
  rows.push_back({"held-out error", std::move(error)});
  rows.push_back({"under by more than 10 %", percent_text(c.quality.under_by_10_percent)});
  rows.push_back({"coverage of the 90 % interval", percent_text(c.quality.coverage_90)});
  if (!c.supersedes.empty()) rows.push_back({"supersedes", c.supersedes});
  for (const Annotation& annotation : listed.annotations)
    rows.push_back({annotation.created, annotation.note});
  return rows;
}

TextRows calibration_coefficients(const Calibration& calibration) {
  TextRows rows;
  for (const Coefficient& c : calibration.coefficients) {
    rows.push_back({c.name, quantity(c.value, c.unit), quantity(c.standard_error, c.unit),
                    c.prior_only ? fmt::format("{} (assumed)", to_string(c.source))
                                 : std::string(to_string(c.source)),
                    std::to_string(c.samples), describe_coefficient(c.name)});
  }
  return rows;
}

}  // namespace memfathom
