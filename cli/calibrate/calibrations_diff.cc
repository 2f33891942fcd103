#include "cli/calibrate/calibrations_diff.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/render.h"
#include "core/coefficients.h"
#include "fitter/diff.h"

namespace memfathom {
namespace {

using nlohmann::json;

std::string quantity(double value, const std::string& unit) {
  return unit == "bytes" ? fmt::format("{:.1f} MiB", value / (1 << 20))
                         : fmt::format("{:.4g}", value);
}

json as_json(const CoefficientChange& change) {
  return {{"name", change.name},
          {"unit", change.unit},
          {"before", change.before},
          {"after", change.after},
          {"standard_error", change.standard_error},
          {"standard_errors_moved", change.z},
          {"change", to_string(change.change)}};
}

}  // namespace

void print_difference(const Calibration& before, const Calibration& after, Context& context) {
  const std::vector<CoefficientChange> changes = diff(before, after);
  const std::string environment = environment_change(before.environment, after.environment);
  if (context.format == Format::kJson) {
    json coefficients = json::array();
    for (const CoefficientChange& change : changes) coefficients.push_back(as_json(change));
    context.out << json{{"schema", "memfathom.calibrations-diff/1"},
                        {"before", before.id},
                        {"after", after.id},
                        {"environment", environment},
                        {"coefficients", coefficients}}
                       .dump(2)
                << '\n';
    return;
  }
  Table table({{"change"},
               {"coefficient"},
               {"before", Align::kRight},
               {"after", Align::kRight},
               {"difference", Align::kRight},
               {"standard error", Align::kRight},
               {"in standard errors", Align::kRight},
               {"meaning"}});
  for (const CoefficientChange& change : changes) {
    table.add_row({to_string(change.change), change.name, quantity(change.before, change.unit),
                   quantity(change.after, change.unit),
                   quantity(change.after - change.before, change.unit),
                   quantity(change.standard_error, change.unit), fmt::format("{:+.1f}", change.z),
                   describe_coefficient(change.name)});
  }
  if (context.format == Format::kTable) context.out << environment << "\n\n";
  context.out << rendered(table, context);
}

}  // namespace memfathom
