#include "cli/text/recommend_text.h"

#include <fmt/format.h>

#include "cli/language/language.h"
#include "cli/render.h"
#include "cli/text/count_text.h"
#include "cli/text/estimate_text.h"
#include "cli/text/gpu_text.h"
#include "core/yaml_text.h"
#include "estimator/job/describe.h"
#include "estimator/readers/write_back.h"

namespace memfathom {
namespace {

std::string heading(const char* english, const Context& context) {
  const std::string words = translated(context.language, english);
  return context.format == Format::kMarkdown ? fmt::format("\n### {}\n\n", words)
                                             : fmt::format("\n{}:\n", words);
}

// Indented lines, or a block of markdown.
std::string block(const std::string& lines, const char* language, const Context& context) {
  if (context.format == Format::kMarkdown) return fmt::format("```{}\n{}```\n", language, lines);
  std::string text;
  std::size_t start = 0;
  while (start < lines.size()) {
    const std::size_t end = lines.find('\n', start);
    text += "    " + lines.substr(start, end - start + 1);
    start = end + 1;
  }
  return text;
}

// "x1.33"; a tenth of a per cent is more than the model knows.
std::string time_text(double factor) { return fmt::format("x{:.2f}", factor); }

// The changes in the keys of each file, and those that no file can express.
std::string in_source_format(const Patch& patch, const JobInput& input, const Context& context) {
  const WrittenBack written = write_back(input.files.files, patch, input.job.parallel.num_gpus);
  std::string text;
  for (const ChangedFile& file : written.files) {
    const bool json = file.file.ends_with(".json");
    text += fmt::format("  {}:\n", file.file);
    text += block(json ? to_indented_json(file.patch) : to_yaml(file.patch), json ? "json" : "yaml",
                  context);
  }
  for (const KeyChange& change : written.left_over)
    text +=
        "  " + translated(context.language, "set manually: {}", {manual_setting(change)}) + "\n";
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
                       ? translated(context.language, extent.at_least ? "at least {}" : "{}",
                                    {fmt::format("{}", *extent.largest)})
                       : translated(context.language, "none"),
                   extent.largest ? to_string(extent.device_peak) : ""});
  }
  return rendered(table, context);
}

// Whether the unchanged job fits; if only its upper bound does not, explains why.
std::string verdict_words(const Recommendation& recommendation, Language language) {
  if (recommendation.base.verdict.status == VerdictStatus::kUndecided)
    return translated(language, "undecided, because settings that may affect memory were not read");
  if (recommendation.fits) return translated(language, "it fits");
  const Totals& totals = recommendation.base.totals;
  if (totals.device_peak > *recommendation.available)
    return translated(language, "it does not fit");
  const std::optional<double>& probability = recommendation.base.verdict.probability_fits;
  return translated(language, "it may not fit: the interval reaches {}",
                    {to_string(totals.high_to_fit())}) +
         (probability ? translated(language, "; probability of fitting {}",
                                   {probability_text(*probability)})
                      : std::string());
}

std::string base_text(const Recommendation& recommendation, const JobInput& input,
                      Language language) {
  std::string text = job_text(describe(input.document, input.job), recommendation.base, language);
  text +=
      translated(language, "the job takes {}", {to_string(recommendation.base.totals.device_peak)});
  if (!recommendation.available)
    return text +
           translated(language,
                      "; no target given: add --gpu rtx-4090 or --gpu-memory 24 to see what fits") +
           "\n";
  return text +
         translated(language, "; {} of {} is available: {}",
                    {to_string(*recommendation.available),
                     to_string(*recommendation.base.verdict.capacity),
                     verdict_words(recommendation, language)}) +
         "\n";
}

// The configurations in order; a repeated one refers to the previous one.
std::string configurations_text(const Recommendation& recommendation, const JobInput& input,
                                const Context& context) {
  std::string text;
  const Configuration* before = nullptr;
  for (const Configuration& configuration : recommendation.configurations) {
    const std::string title =
        fmt::format("{} ({})", translated(context.language, configuration.name),
                    translated(context.language, configuration.aim));
    if (before != nullptr && to_yaml(configuration.patch) == to_yaml(before->patch)) {
      text += heading(title.c_str(), context) +
              translated(context.language, "  same as {}",
                         {translated(context.language, before->name)}) +
              "\n";
    } else {
      text += configuration_text(configuration, title, input, context);
    }
    before = &configuration;
  }
  return text;
}

// Where keys were not read, no change can be said to be enough.
std::string fits_text(bool fits, bool is_open, Language language) {
  return translated(language, is_open ? "undecided" : fits ? "yes" : "no");
}

// A row for each point, the quickest first.
std::string frontier_text(const std::vector<FrontierPoint>& frontier, bool is_open,
                          const Context& context) {
  const bool exact = context.format == Format::kCsv;
  const auto size = [&](Bytes bytes) {
    return exact ? fmt::format("{}", bytes.count()) : to_string(bytes);
  };
  Table table({{"time", Align::kRight},
               {"device peak", Align::kRight},
               {"host", Align::kRight},
               {"fits"},
               {"training"},
               {"changes"}});
  for (const FrontierPoint& point : frontier) {
    std::string changes;
    for (const std::string& change : point.changes)
      changes += (changes.empty() ? "" : "; ") + translated(context.language, change);
    table.add_row({exact ? fmt::format("{:.4f}", point.time_factor) : time_text(point.time_factor),
                   size(point.device_peak), point.host_of_node ? size(*point.host_of_node) : "",
                   fits_text(point.fits, is_open, context.language),
                   translated(context.language, point.trains_the_same ? "same" : "different"),
                   changes.empty() ? translated(context.language, "none") : changes});
  }
  return rendered(table, context);
}

std::string preflight_text(const std::vector<PreflightItem>& list, const Context& context) {
  if (list.empty()) return "";
  std::string text = heading("before you start", context);
  for (const PreflightItem& item : list)
    text += fmt::format("{}[{}] {}\n", context.format == Format::kMarkdown ? "- " : "  ",
                        item.done ? 'x' : ' ', translated(context.language, item.text));
  return text;
}

}  // namespace

std::string configuration_text(const Configuration& configuration, const std::string& title,
                               const JobInput& input, const Context& context) {
  const bool markdown = context.format == Format::kMarkdown;
  std::string text = heading(title.c_str(), context);
  const Language language = context.language;
  text += (markdown ? "" : "  ") +
          translated(language, "{}, {} % of the free memory, effective batch {}",
                     {to_string(configuration.device_peak),
                      fmt::format("{:.0f}", 100 * configuration.used_fraction),
                      fmt::format("{}", configuration.effective_batch)});
  if (configuration.host_of_node)
    text += translated(language, ", {} on the host", {to_string(*configuration.host_of_node)});
  if (configuration.changes.empty())
    return text + translated(language, ": the job as it is") + "\n";
  text += translated(
      language, ", about {} the time ({})",
      {time_text(configuration.time_factor), translated(language, configuration.time_basis)});
  if (!configuration.trains_the_same) {
    text += translated(language, input.job.training.mode == Mode::kTrain
                                     ? "; changes the training"
                                     : "; the answers differ a little");
  }
  text += markdown ? "\n\n" : "\n";
  return text + (input.has_foreign_files()
                     ? in_source_format(patch_of(configuration.patch), input, context)
                     : block(to_yaml(configuration.patch), "yaml", context));
}

std::string suggestions_text(const std::vector<Suggestion>& suggestions, bool is_open,
                             const Context& context) {
  Table table({{"", Align::kRight},
               {"kind"},
               {"change"},
               {"saves", Align::kRight},
               {"peak after", Align::kRight},
               {"fits"},
               {"time", Align::kRight},
               {"costs"}});
  int number = 0;
  for (const Suggestion& suggestion : suggestions) {
    const bool exact = context.format == Format::kCsv;
    const auto size = [&](Bytes bytes) {
      return exact ? fmt::format("{}", bytes.count()) : to_string(bytes);
    };
    table.add_row(
        {fmt::format("{}", ++number), translated(context.language, suggestion.kind),
         translated(context.language, suggestion.change), size(suggestion.saves),
         size(suggestion.device_peak), fits_text(suggestion.fits, is_open, context.language),
         exact ? fmt::format("{:.4f}", suggestion.time_factor) : time_text(suggestion.time_factor),
         translated(context.language, suggestion.costs)});
  }
  return rendered(table, context);
}

std::string recommendation_text(const Recommendation& recommendation,
                                const std::vector<PreflightItem>& list, const LiveGpu* gpu,
                                const JobInput& input, const Context& context) {
  if (context.format == Format::kCsv)
    return recommendation.frontier.empty()
               ? suggestions_text(recommendation.suggestions, input.is_open(), context)
               : frontier_text(recommendation.frontier, input.is_open(), context);
  std::string text = gpu != nullptr ? gpu_text(*gpu, context) : "";
  text += base_text(recommendation, input, context.language);
  if (!recommendation.suggestions.empty())
    text += heading("changes, cheapest first", context) +
            suggestions_text(recommendation.suggestions, input.is_open(), context);
  if (!recommendation.largest.empty()) text += "\n" + largest_text(recommendation, context);
  if (!recommendation.frontier.empty())
    text += heading("memory against time: nothing is better in both", context) +
            frontier_text(recommendation.frontier, input.is_open(), context);
  text += configurations_text(recommendation, input, context);
  if (recommendation.available && recommendation.configurations.empty()) {
    text +=
        "\n" +
        translated(context.language,
                   "no combination of changes makes the job fit; use a larger GPU, more GPUs or "
                   "a smaller model (memfathom gpus --fits)") +
        "\n";
  }
  text += preflight_text(list, context);
  std::string remarks = remarks_text(recommendation.base, context.language);
  if (!recommendation.suggestions.empty())
    remarks += translated(context.language, "time: {}",
                          {translated(context.language, recommendation.speed)}) +
               "\n";
  if (!remarks.empty()) text += "\n" + remarks;
  return text;
}

}  // namespace memfathom
