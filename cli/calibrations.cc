#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/calibrations_diff.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/coefficients.h"
#include "core/error.h"
#include "core/json_io.h"
#include "core/suggest.h"
#include "db/published.h"
#include "db/store.h"

namespace memfathom {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

constexpr std::array<std::string_view, 3> kActions{"list", "show", "diff"};

// A calibration as it is listed: with what can be said of it without asking a device.
struct Listed {
  Calibration calibration;
  std::string status;  // calibrated, superseded, refused; published for the embedded ones
};

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

std::vector<Listed> all_calibrations(const std::optional<Store>& store) {
  std::vector<Listed> all;
  if (store) {
    const std::vector<Calibration> stored = store->calibrations();
    for (const Calibration& calibration : stored)
      all.push_back({calibration, status_of(calibration, stored)});
  }
  for (const Calibration& calibration : published_calibrations())
    all.push_back({calibration, "published"});
  return all;
}

json summary_of(const Listed& listed) {
  const Calibration& c = listed.calibration;
  const std::optional<double>& error = c.quality.held_out_median_error;
  return {{"id", c.id},
          {"name", c.name},
          {"status", listed.status},
          {"device", c.environment.gpu},
          {"environment", to_json(c.environment)},
          {"created", c.created},
          {"samples", c.samples},
          {"held_out_median_error", error ? json(*error) : json(nullptr)}};
}

std::string percent(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:.2f} %", 100 * *fraction) : "-";
}

ExitCode list(const Words& words, Context& context) {
  if (!words.empty()) throw Error(ErrorKind::kUsage, "write: memfathom calibrations list");
  const std::vector<Listed> all = all_calibrations(Store::open_if_exists(database_path(context)));
  if (context.format == Format::kJson) {
    json summaries = json::array();
    for (const Listed& listed : all) summaries.push_back(summary_of(listed));
    context.out << json{{"schema", "memfathom.calibrations/1"}, {"calibrations", summaries}}.dump(2)
                << '\n';
    return ExitCode::kYes;
  }
  Table table({{"id"},
               {"name"},
               {"status"},
               {"device"},
               {"created"},
               {"samples", Align::kRight},
               {"median error", Align::kRight}});
  for (const Listed& listed : all) {
    const Calibration& c = listed.calibration;
    table.add_row({c.id.substr(0, 12), c.name, listed.status, c.environment.gpu, c.created,
                   std::to_string(c.samples), percent(c.quality.held_out_median_error)});
  }
  context.out << rendered(table, context);
  return ExitCode::kYes;
}

// By name or id, in the database first; a published one by the beginning of its id too.
Listed found_calibration(const std::string& wanted, const std::optional<Store>& store) {
  if (store) {
    if (std::optional<Calibration> found = store->find_calibration(wanted)) {
      const std::string status = status_of(*found, store->calibrations());
      return {std::move(*found), status};
    }
  }
  for (const Calibration& published : published_calibrations()) {
    if (published.name == wanted || (wanted.size() >= 4 && published.id.starts_with(wanted))) {
      return {published, "published"};
    }
  }
  throw Error(
      ErrorKind::kInput,
      fmt::format("no calibration has the name or id \"{}\"; `memfathom calibrations list` shows "
                  "them",
                  wanted));
}

json details_of(const Listed& listed, const std::vector<Annotation>& annotations) {
  json details = summary_of(listed);
  json whole = to_json(listed.calibration);
  for (const char* key :
       {"source", "provenance", "usable", "refusal", "supersedes", "coefficients", "quality"}) {
    details[key] = std::move(whole[key]);
  }
  details["annotations"] = json::array();
  for (const Annotation& a : annotations)
    details["annotations"].push_back({{"created", a.created}, {"note", a.note}});
  return details;
}

std::string quantity(double value, const std::string& unit) {
  return unit == "bytes" ? fmt::format("{:.1f} MiB", value / (1 << 20))
                         : fmt::format("{:.4g}", value);
}

Table properties_of(const Listed& listed, const std::vector<Annotation>& annotations) {
  const Calibration& c = listed.calibration;
  Table table({{"property"}, {"value"}});
  table.add_row({"name", c.name});
  table.add_row({"id", c.id});
  table.add_row({"status", listed.status});
  if (!c.refusal.empty()) table.add_row({"refused because", c.refusal});
  table.add_row({"device", c.environment.device_key()});
  table.add_row({"stack", c.environment.stack_key()});
  table.add_row({"created", c.created});
  table.add_row({"source", to_string(c.source)});
  table.add_row({"samples", std::to_string(c.samples)});
  table.add_row({"held-out error",
                 fmt::format("median {}, 90th percentile {} on {} rows",
                             percent(c.quality.held_out_median_error),
                             percent(c.quality.held_out_p90_error), c.quality.validation_rows)});
  table.add_row({"under by more than 10 %", percent(c.quality.under_by_10_percent)});
  table.add_row({"coverage of the 90 % interval", percent(c.quality.coverage_90)});
  if (!c.supersedes.empty()) table.add_row({"supersedes", c.supersedes});
  for (const Annotation& annotation : annotations)
    table.add_row({annotation.created, annotation.note});
  return table;
}

Table coefficients_of(const Calibration& calibration) {
  Table table({{"coefficient"},
               {"value", Align::kRight},
               {"standard error", Align::kRight},
               {"source"},
               {"samples", Align::kRight},
               {"meaning"}});
  for (const Coefficient& c : calibration.coefficients) {
    table.add_row({c.name, quantity(c.value, c.unit), quantity(c.standard_error, c.unit),
                   c.prior_only ? fmt::format("{} (assumed)", to_string(c.source))
                                : std::string(to_string(c.source)),
                   std::to_string(c.samples), meaning_of(c.name)});
  }
  return table;
}

ExitCode show(const Words& words, Context& context) {
  if (words.size() != 1)
    throw Error(ErrorKind::kUsage, "write: memfathom calibrations show NAME|ID");
  const std::optional<Store> store = Store::open_if_exists(database_path(context));
  const Listed listed = found_calibration(words[0], store);
  const std::vector<Annotation> annotations =
      store ? store->annotations(listed.calibration.id) : std::vector<Annotation>{};
  if (context.format == Format::kJson) {
    context.out << details_of(listed, annotations).dump(2) << '\n';
    return ExitCode::kYes;
  }
  if (context.format == Format::kCsv) {
    context.out << coefficients_of(listed.calibration).csv();  // one table a file
    return ExitCode::kYes;
  }
  context.out << rendered(properties_of(listed, annotations), context) << '\n'
              << rendered(coefficients_of(listed.calibration), context);
  if (!listed.calibration.provenance.empty())
    context.out << '\n' << listed.calibration.provenance << '\n';
  return ExitCode::kYes;
}

ExitCode difference(const Words& words, Context& context) {
  if (words.size() != 2)
    throw Error(ErrorKind::kUsage, "write: memfathom calibrations diff BEFORE AFTER");
  const std::optional<Store> store = Store::open_if_exists(database_path(context));
  const Listed before = found_calibration(words[0], store);
  const Listed after = found_calibration(words[1], store);
  print_difference(before.calibration, after.calibration, context);
  return ExitCode::kYes;
}

}  // namespace

ExitCode run_calibrations(const Arguments& arguments, Context& context) {
  std::string action;
  Words words;
  OptionParser options("calibrations");
  options.positional("ACTION", action);
  options.positional("NAME", words);
  options.parse(arguments);
  if (action == "list") return list(words, context);
  if (action == "show") return show(words, context);
  if (action == "diff") return difference(words, context);
  throw Error(ErrorKind::kUsage, fmt::format("calibrations: there is no action \"{}\"; {}", action,
                                             suggestion(action, kActions)));
}

}  // namespace memfathom
