#include "cli/observe/oom_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/render.h"
#include "cli/text/recommend_text.h"
#include "estimator/json/oom_json.h"
#include "estimator/json/recommendation_json.h"

namespace memfathom {

std::string oom_text(const OomMessage& message, const Context& context) {
  Table table({{"figure"}, {"memory", Align::kRight}, {"meaning"}});
  for (const OomFigure& figure : oom_figures(message)) {
    if (figure.bytes) table.add_row({figure.name, to_string(*figure.bytes), figure.meaning});
  }
  std::string text;
  if (context.format != Format::kCsv) {
    text = fmt::format(
        "{}: out of memory{}, line {}{}\n\n", enum_name(message.source),
        message.gpu ? fmt::format(" on GPU {}", *message.gpu) : "", message.line,
        message.messages > 1 ? fmt::format(" (the last of {} messages)", message.messages) : "");
  }
  text += rendered(table, context);
  if (context.format == Format::kCsv) return text;
  for (const std::string& sentence : oom_advice(message)) text += fmt::format("- {}\n", sentence);
  return text;
}

std::string remedy_text(const OomRemedy& remedy, const JobInput& input, const Context& context) {
  const Bytes peak = remedy.estimate.totals.device_peak;
  if (remedy.estimate.verdict.status != VerdictStatus::kDoesNotFit) {
    return fmt::format(
        "\nthe job as given should fit with {}: what ran was not this job (lengths, batch, "
        "versions), "
        "or the GPU was not empty; memfathom capture records the script itself\n",
        to_string(peak));
  }
  if (!remedy.change) {
    return fmt::format("\nthe job is estimated at {}, and no combination of changes makes it fit\n",
                       to_string(peak));
  }
  return fmt::format("\nthe job is estimated at {}; the smallest change that fits takes {}\n",
                     to_string(peak), to_string(remedy.change->device_peak)) +
         configuration_text(*remedy.change, "change", input, context);
}

nlohmann::ordered_json remedy_json(const OomRemedy& remedy, const JobInput& input) {
  nlohmann::ordered_json json{
      {"device_peak_bytes", remedy.estimate.totals.device_peak.count()},
      {"fits", remedy.estimate.verdict.status != VerdictStatus::kDoesNotFit},
      {"change", nullptr}};
  if (remedy.change) json["change"] = configuration_json(*remedy.change, input);
  return json;
}

}  // namespace memfathom
