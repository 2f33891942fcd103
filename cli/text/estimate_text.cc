#include "cli/text/estimate_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/render.h"
#include "cli/text/count_text.h"

namespace memfathom {
namespace {

// Machine-readable: plain numbers, one quantity per column.
Table components_csv(const Estimate& estimate) {
  Table table({{"component"}, {"module"}, {"bytes"}, {"source"}, {"coefficient"}});
  for (const ComponentLine& line : estimate.components) {
    table.add_row({std::string(to_string(line.component)), line.module,
                   fmt::format("{}", line.bytes.count()), to_string(line.source),
                   line.coefficient});
  }
  table.add_row(
      {"device_peak", "", fmt::format("{}", estimate.totals.device_peak.count()), "", ""});
  return table;
}

// Largest first; components that round to 0.0 % share one line unless all are requested.
Table components_table(const Estimate& estimate, bool all, Language language) {
  Table table({{"component"}, {"memory", Align::kRight}, {"share", Align::kRight}, {"source"}});
  const Bytes whole = estimate.totals.device_peak;
  std::vector<ComponentLine> lines = estimate.components;
  std::stable_sort(lines.begin(), lines.end(), [](const ComponentLine& a, const ComponentLine& b) {
    return a.bytes > b.bytes;
  });
  const auto small = [&](const ComponentLine& line) {
    return line.bytes.count() >= 0 && line.bytes.count() < whole.count() / 2000;
  };
  const auto first_small = std::find_if(lines.begin(), lines.end(), small);
  const auto end = all || lines.end() - first_small < 2 ? lines.end() : first_small;
  for (auto line = lines.begin(); line != end; ++line) {
    table.add_row({component_name(*line, language), to_string(line->bytes),
                   share_text(line->bytes, whole), translated(language, to_string(line->source))});
  }
  if (end != lines.end()) {
    Bytes rest;
    for (auto line = end; line != lines.end(); ++line) rest += line->bytes;
    table.add_row(
        {translated(language, "{} smaller components", {std::to_string(lines.end() - end)}),
         to_string(rest), share_text(rest, whole), translated(language, "see --explain")});
  }
  table.add_rule();
  table.add_row({{translated(language, "device peak"), Style::kBold},
                 {to_string(estimate.totals.device_peak), Style::kBold},
                 "100.0 %",
                 ""});
  return table;
}

// The steady-state phase with the allocated peak; empty if unknown.
std::string phase_of_peak(const Estimate& estimate, Language language) {
  for (const PhaseLine& line : estimate.phases) {
    if (line.iteration != 1 && line.allocated_peak == estimate.totals.allocated_peak)
      return translated(language, " in {}", {translated(language, line.name)});
  }
  return "";
}

std::string host_text(const Totals& totals, Language language) {
  if (!totals.host_peak) return "";
  std::string text =
      translated(language, "host memory for offloading: {}", {to_string(*totals.host_peak)});
  if (totals.ranks_per_node > 1)
    text += translated(language, " per GPU process, {} for the {} processes of a node",
                       {to_string(*totals.host_of_node()), std::to_string(totals.ranks_per_node)});
  return text + "\n";
}

std::string phases_text(const Estimate& estimate, const Context& context) {
  Table table({{"phase"},
               {"iteration", Align::kRight},
               {"allocated peak", Align::kRight},
               {"reserved", Align::kRight}});
  for (const PhaseLine& line : estimate.phases) {
    const char* iteration = line.iteration == 0 ? "" : line.iteration == 1 ? "first" : "steady";
    table.add_row({translated(context.language, line.name), translated(context.language, iteration),
                   to_string(line.allocated_peak), to_string(line.reserved)});
  }
  return rendered(table, context);
}

std::string explanation(const Estimate& estimate) {
  std::string text;
  for (const Explanation& line : estimate.explanations) {
    text += line.name;
    if (!line.module.empty()) text += fmt::format(" ({})", line.module);
    text += fmt::format(": {}\n", line.text);
  }
  return text;
}

}  // namespace

std::string verdict_text(VerdictStatus status, Language language) {
  const std::string word = to_string(status);
  // A message of its own: "fits" is a heading too.
  return language == Language::kEnglish ? word : translated(language, "verdict: " + word);
}

std::string verdict_sentence(const Estimate& estimate, bool colour, Language language) {
  const Verdict& verdict = estimate.verdict;
  if (verdict.status == VerdictStatus::kUnknown) {
    return translated(language,
                      "no target given: add --gpu rtx-4090 or --gpu-memory 24 for a verdict") +
           "\n";
  }
  const std::string gpu = verdict.gpu.empty() ? "" : translated(language, " on {}", {verdict.gpu});
  const std::string peak = to_string(estimate.totals.device_peak);
  if (verdict.status == VerdictStatus::kUndecided) {
    return styled(verdict_text(verdict.status, language), Style::kWarning, colour) + gpu +
           translated(
               language,
               ": estimated {} of {} available, but settings that may affect memory were not read",
               {peak, to_string(*verdict.available)}) +
           "\n";
  }
  const bool fits = verdict.status != VerdictStatus::kDoesNotFit;
  const std::string word = !fits && language == Language::kEnglish
                               ? "does not fit"
                               : verdict_text(verdict.status, language);
  const Style style = verdict.status == VerdictStatus::kFits ? Style::kGood
                      : fits                                 ? Style::kWarning
                                                             : Style::kBad;
  std::string text = styled(word, style, colour) + gpu;
  text += translated(language, ": {} of {} available", {peak, to_string(*verdict.available)});
  const bool left = verdict.headroom->count() >= 0;
  const Bytes rest = left ? *verdict.headroom : -*verdict.headroom;
  text += translated(language, left ? ", {} ({}) left" : ", {} ({}) over",
                     {to_string(rest), share_text(rest, *verdict.available)});
  if (verdict.probability_fits)
    text += translated(language, "; probability of fitting {}",
                       {probability_text(*verdict.probability_fits)});
  return text + "\n";
}

std::string totals_sentence(const Estimate& estimate, Language language) {
  const Totals& totals = estimate.totals;
  std::string text = translated(language, "device {}", {to_string(totals.device_peak)});
  const std::string level = fmt::format("{:.0f}", 100 * totals.interval);
  if (totals.device_high_on_gpu) {
    text += translated(language, " ({} %: {} to {}, the whole GPU; up to {} on a larger GPU)",
                       {level, to_string(totals.device_low), to_string(*totals.device_high_on_gpu),
                        to_string(totals.device_high)});
  } else if (totals.device_high > totals.device_low) {
    text += translated(language, " ({} %: {} to {})",
                       {level, to_string(totals.device_low), to_string(totals.device_high)});
  }
  if (totals.comfortable_peak)
    text += translated(language, "; comfortable on a GPU with {}",
                       {to_string(*totals.comfortable_peak)});
  return text +
         translated(language, ", reserved {}, allocated {}",
                    {to_string(totals.reserved_peak), to_string(totals.allocated_peak)}) +
         phase_of_peak(estimate, language) + "\n";
}

std::string calibration_sentence(const CalibrationNote& note, Language language) {
  const std::string day = note.created.substr(0, 10);
  switch (note.status) {
    case CalibrationStatus::kCalibrated:
      return translated(language, "{}, measured on {}", {note.name, day});
    case CalibrationStatus::kStale:
      return translated(language, "{}, measured on {}, now stale", {note.name, day});
    case CalibrationStatus::kPublished:
      return translated(language, "{}, from published measurements", {note.name});
    case CalibrationStatus::kNone: break;
  }
  return translated(language,
                    "none for this GPU; using published figures for the current PyTorch (run "
                    "memfathom calibrate --framework pytorch to measure yours)");
}

std::string component_name(const ComponentLine& line, Language language) {
  std::string name = translated(language, to_string(line.component));
  // Tensors of PyTorch's allocator and NCCL's memory outside it have a line each.
  if (line.component == Component::kCommunication)
    name += line.source == Source::kExact ? " (PyTorch)" : " (NCCL)";
  if (!line.module.empty()) name += " (" + line.module + ")";
  if (!line.coefficient.empty() && line.coefficient != to_string(line.component))
    name += ": " + line.coefficient;
  return name;
}

std::string job_text(const std::string& line, const Estimate& estimate, Language language) {
  std::string text = line;
  if (estimate.parameter_count > 0)
    text += translated(language, "; {} parameters", {count_text(estimate.parameter_count)});
  if (estimate.trainable_count > 0 && estimate.trainable_count < estimate.parameter_count)
    text += translated(language, ", {} trainable", {count_text(estimate.trainable_count)});
  return text + "\n\n";
}

std::string remarks_text(const Estimate& estimate, Language language) {
  std::string text;
  const auto add = [&](std::string_view label, const std::vector<std::string>& sentences) {
    for (const std::string& sentence : sentences)
      text += translated(language, label, {translated(language, sentence)}) + "\n";
  };
  add("assumed: {}", estimate.assumptions);
  add("not modelled: {}", estimate.not_modelled);
  add("warning: {}", estimate.warnings);
  return text;
}

std::string estimate_text(const Estimate& estimate, const std::string& job, const Context& context,
                          bool explain) {
  if (context.format == Format::kCsv) return components_csv(estimate).csv();
  const Language language = context.language;
  std::string text =
      job_text(job, estimate, language) + verdict_sentence(estimate, context.colour, language);
  text += totals_sentence(estimate, language) + host_text(estimate.totals, language);
  text += "\n" + rendered(components_table(estimate, explain, language), context) + "\n";
  text += translated(language, "calibration: {}",
                     {calibration_sentence(estimate.calibration, language)}) +
          "\n" + remarks_text(estimate, language);
  if (explain) text += "\n" + phases_text(estimate, context) + "\n" + explanation(estimate);
  return text;
}

}  // namespace memfathom
