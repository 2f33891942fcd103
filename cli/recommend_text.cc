#include "cli/recommend_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/render.h"
#include "core/yaml_text.h"
#include "estimator/answer/estimate_json.h"

namespace memfathom {
namespace {

using Json = nlohmann::ordered_json;

std::string heading(const char* words, const Context& context) {
  return context.format == Format::kMarkdown ? fmt::format("\n### {}\n\n", words)
                                             : fmt::format("\n{}:\n", words);
}

// A configuration to paste.
std::string yaml_block(const Node& patch, const Context& context) {
  const std::string yaml = to_yaml(patch);
  if (context.format == Format::kMarkdown) return "```yaml\n" + yaml + "```\n";
  std::string text;
  std::size_t start = 0;
  while (start < yaml.size()) {
    const std::size_t end = yaml.find('\n', start);
    text += "    " + yaml.substr(start, end - start + 1);
    start = end + 1;
  }
  return text;
}

std::string largest_text(const Recommendation& recommendation, const Context& context) {
  Table table({{"largest that fits"},
               {"now", Align::kRight},
               {"largest", Align::kRight},
               {"device peak", Align::kRight}});
  for (const LargestExtent& extent : recommendation.largest) {
    table.add_row({extent.name, fmt::format("{}", extent.now),
                   extent.largest
                       ? fmt::format("{}{}", extent.at_least ? "at least " : "", *extent.largest)
                       : "none",
                   extent.largest ? to_string(extent.device_peak) : ""});
  }
  return rendered(table, context);
}

std::string configuration_text(const Configuration& configuration, const Context& context) {
  const std::string title = fmt::format("{} ({})", configuration.name, configuration.aim);
  std::string text = heading(title.c_str(), context);
  text += fmt::format("{}{}, {:.0f} % of what is there, effective batch {}",
                      context.format == Format::kMarkdown ? "" : "  ",
                      to_string(configuration.device_peak), 100 * configuration.used_fraction,
                      configuration.effective_batch);
  if (configuration.host_peak)
    text += fmt::format(", {} on the host", to_string(*configuration.host_peak));
  text += configuration.changes.empty() ? ": the job as it is\n" : "\n";
  if (!configuration.changes.empty())
    text += (context.format == Format::kMarkdown ? "\n" : "") +
            yaml_block(configuration.patch, context);
  return text;
}

Json to_json(const Configuration& configuration) {
  Json json{{"name", configuration.name},
            {"aim", configuration.aim},
            {"changes", configuration.changes},
            {"device_peak_bytes", configuration.device_peak.count()},
            {"used_fraction", configuration.used_fraction},
            {"effective_batch", configuration.effective_batch},
            {"patch", Json::parse(to_json(configuration.patch).dump())},
            {"yaml", to_yaml(configuration.patch)}};
  if (configuration.host_peak) json["host_peak_bytes"] = configuration.host_peak->count();
  return json;
}

Json to_json(const LargestExtent& extent) {
  Json json{{"name", extent.name},
            {"now", extent.now},
            {"largest", extent.largest ? Json(*extent.largest) : Json(nullptr)}};
  if (extent.largest) {
    json["at_least"] = extent.at_least;
    json["device_peak_bytes"] = extent.device_peak.count();
    json["patch"] = Json::parse(to_json(extent.patch).dump());
  }
  return json;
}

}  // namespace

std::string suggestions_text(const std::vector<Suggestion>& suggestions, const Context& context) {
  Table table({{"", Align::kRight},
               {"change"},
               {"saves", Align::kRight},
               {"then", Align::kRight},
               {"enough"},
               {"costs"}});
  int number = 0;
  for (const Suggestion& suggestion : suggestions) {
    const bool exact = context.format == Format::kCsv;
    const auto size = [&](Bytes bytes) {
      return exact ? fmt::format("{}", bytes.count()) : to_string(bytes);
    };
    table.add_row({fmt::format("{}", ++number), suggestion.change, size(suggestion.saves),
                   size(suggestion.device_peak), suggestion.fits ? "yes" : "no", suggestion.costs});
  }
  return rendered(table, context);
}

std::string recommendation_text(const Recommendation& recommendation, const Context& context) {
  if (context.format == Format::kCsv) return suggestions_text(recommendation.suggestions, context);
  std::string text =
      fmt::format("the job takes {}", to_string(recommendation.base.totals.device_peak));
  if (recommendation.available) {
    const Verdict& verdict = recommendation.base.verdict;
    text +=
        fmt::format(" of {} ({} is there); it {}", to_string(*recommendation.available),
                    to_string(*verdict.capacity), recommendation.fits ? "fits" : "does not fit");
  } else {
    text += "; no target was named: add --gpu rtx-4090 or --gpu-memory 24 to hear what fits";
  }
  text += "\n";
  if (!recommendation.suggestions.empty())
    text += heading("changes, what saves most first", context) +
            suggestions_text(recommendation.suggestions, context);
  if (!recommendation.largest.empty()) text += "\n" + largest_text(recommendation, context);
  for (const Configuration& configuration : recommendation.configurations)
    text += configuration_text(configuration, context);
  if (recommendation.available && recommendation.configurations.empty()) {
    text +=
        "\nno combination of changes known here makes it fit: take a larger card, more GPUs or a "
        "smaller model (memfathom gpus --fits)\n";
  }
  return text;
}

std::string recommendation_json(const Recommendation& recommendation) {
  const Verdict& verdict = recommendation.base.verdict;
  Json json{{"schema", "memfathom.recommend/1"},
            {"fits", recommendation.available ? Json(recommendation.fits) : Json(nullptr)},
            {"device_peak_bytes", recommendation.base.totals.device_peak.count()},
            {"capacity_bytes", verdict.capacity ? Json(verdict.capacity->count()) : Json(nullptr)},
            {"available_bytes",
             recommendation.available ? Json(recommendation.available->count()) : Json(nullptr)},
            {"calibration", to_string(recommendation.base.calibration.status)}};
  json["suggestions"] = Json::parse(suggestions_json_text(recommendation.suggestions));
  json["largest"] = Json::array();
  for (const LargestExtent& extent : recommendation.largest)
    json["largest"].push_back(to_json(extent));
  json["configurations"] = Json::array();
  for (const Configuration& configuration : recommendation.configurations)
    json["configurations"].push_back(to_json(configuration));
  json["assumptions"] = recommendation.base.assumptions;
  json["not_modelled"] = recommendation.base.not_modelled;
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace memfathom
