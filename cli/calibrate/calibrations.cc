#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/calibrate/calibration_text.h"
#include "cli/calibrate/calibrations_diff.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/error.h"
#include "core/json_io.h"
#include "core/suggest.h"
#include "db/store.h"

namespace memfathom {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

constexpr std::array<std::string_view, 3> kActions{"list", "show", "diff"};

json summary_of(const ListedCalibration& listed) {
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

ExitCode list(const Words& words, Context& context) {
  if (!words.empty()) throw Error(ErrorKind::kUsage, "usage: memfathom calibrations list");
  const std::vector<ListedCalibration> all = all_calibrations(open_database_if_exists(context));
  if (context.format == Format::kJson) {
    json summaries = json::array();
    for (const ListedCalibration& listed : all) summaries.push_back(summary_of(listed));
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
  for (const ListedCalibration& listed : all) {
    const Calibration& c = listed.calibration;
    table.add_row({c.id.substr(0, 12), c.name, listed.status, c.environment.gpu, c.created,
                   std::to_string(c.samples), percent_text(c.quality.held_out_median_error)});
  }
  context.out << rendered(table, context);
  return ExitCode::kYes;
}

json details_of(const ListedCalibration& listed) {
  json details = summary_of(listed);
  json whole = to_json(listed.calibration);
  for (const char* key :
       {"source", "provenance", "usable", "refusal", "supersedes", "coefficients", "quality"}) {
    details[key] = std::move(whole[key]);
  }
  details["annotations"] = json::array();
  for (const Annotation& a : listed.annotations)
    details["annotations"].push_back({{"created", a.created}, {"note", a.note}});
  return details;
}

Table table_of(std::vector<Column> columns, const TextRows& rows) {
  Table table(std::move(columns));
  for (const std::vector<std::string>& row : rows)
    table.add_row(std::vector<Cell>(row.begin(), row.end()));
  return table;
}

Table coefficients_of(const Calibration& calibration) {
  return table_of({{"coefficient"},
                   {"value", Align::kRight},
                   {"standard error", Align::kRight},
                   {"source"},
                   {"samples", Align::kRight},
                   {"meaning"}},
                  calibration_coefficients(calibration));
}

ExitCode show(const Words& words, Context& context) {
  if (words.size() != 1)
    throw Error(ErrorKind::kUsage, "usage: memfathom calibrations show NAME|ID");
  const std::optional<Store> store = open_database_if_exists(context);
  const ListedCalibration listed = lookup_calibration(words[0], store);
  if (context.format == Format::kJson) {
    context.out << details_of(listed).dump(2) << '\n';
    return ExitCode::kYes;
  }
  if (context.format == Format::kCsv) {
    context.out << coefficients_of(listed.calibration).csv();  // one table a file
    return ExitCode::kYes;
  }
  context.out << rendered(table_of({{"property"}, {"value"}}, calibration_properties(listed)),
                          context)
              << '\n'
              << rendered(coefficients_of(listed.calibration), context);
  if (!listed.calibration.provenance.empty())
    context.out << '\n' << listed.calibration.provenance << '\n';
  return ExitCode::kYes;
}

ExitCode difference(const Words& words, Context& context) {
  if (words.size() != 2)
    throw Error(ErrorKind::kUsage, "usage: memfathom calibrations diff BEFORE AFTER");
  const std::optional<Store> store = open_database_if_exists(context);
  const ListedCalibration before = lookup_calibration(words[0], store);
  const ListedCalibration after = lookup_calibration(words[1], store);
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
  throw Error(ErrorKind::kUsage, fmt::format("calibrations: unknown action \"{}\"; {}", action,
                                             suggestion(action, kActions)));
}

}  // namespace memfathom
