#include "cli/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "cli/estimate_text.h"
#include "cli/report_chart.h"
#include "core/yaml_text.h"
#include "estimator/job/describe.h"

namespace memfathom {
namespace {

constexpr std::string_view kStyle = R"(
:root { --ink: #1a1a1a; --paper: #fff; --dim: #666; --rule: #ddd; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181c; --dim: #9aa0a6; --rule: #333; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.25rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } th, td { padding: .25rem .6rem .25rem 0; text-align: left; border-bottom: 1px solid var(--rule); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: 2px; }
.verdict { padding: .6rem .9rem; border-left: .4rem solid; margin: 1rem 0; }
.fits { border-color: #228833; } .tight { border-color: #ccbb44; } .does_not_fit { border-color: #cc3311; } .unknown { border-color: #888; }
svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: var(--dim); }
.grid { stroke: var(--rule); } .mark { stroke: var(--dim); stroke-dasharray: 2 3; } .line { stroke: var(--ink); stroke-width: 1.5; } .limit { stroke: #cc3311; stroke-width: 2; }
pre { overflow-x: auto; background: color-mix(in srgb, var(--dim) 12%, transparent); padding: .7rem; } .dim { color: var(--dim); }
)";

using Row = std::vector<std::string>;

// Cells are HTML already; `numbers` are the columns that hold figures.
std::string table(const Row& titles, const std::vector<Row>& rows,
                  const std::vector<std::size_t>& numbers) {
  const auto is_number = [&](std::size_t column) {
    return std::find(numbers.begin(), numbers.end(), column) != numbers.end();
  };
  const auto cells = [&](const Row& row, std::string_view tag) {
    std::string html = "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      html += fmt::format("<{}{}>{}</{}>", tag, is_number(i) ? " class=\"n\"" : "", row[i], tag);
    return html + "</tr>\n";
  };
  std::string html = "<table>\n" + cells(titles, "th");
  for (const Row& row : rows) html += cells(row, "td");
  return html + "</table>\n";
}

std::string components(const Estimate& estimate) {
  std::vector<ComponentLine> lines = estimate.components;
  std::stable_sort(lines.begin(), lines.end(), [](const ComponentLine& a, const ComponentLine& b) {
    return a.bytes > b.bytes;
  });
  const double whole =
      static_cast<double>(std::max<std::int64_t>(estimate.totals.device_peak.count(), 1));
  std::vector<Row> rows;
  for (const ComponentLine& line : lines) {
    rows.push_back({fmt::format("<span class=\"key\" style=\"background:{}\"></span>{}",
                                colour_of(line.component), html_escaped(component_name(line))),
                    to_string(line.bytes),
                    fmt::format("{:.1f} %", 100 * static_cast<double>(line.bytes.count()) / whole),
                    to_string(line.source)});
  }
  rows.push_back({"<b>device peak</b>", "<b>" + to_string(estimate.totals.device_peak) + "</b>",
                  "100.0 %", ""});
  return table({"component", "memory", "share", "source"}, rows, {1, 2});
}

std::string phases(const Estimate& estimate) {
  std::vector<Row> rows;
  for (const PhaseLine& line : estimate.phases) {
    rows.push_back({html_escaped(line.name),
                    line.iteration == 0   ? ""
                    : line.iteration == 1 ? "first"
                                          : "steady",
                    to_string(line.allocated_peak), to_string(line.reserved)});
  }
  return table({"phase", "iteration", "allocated at most", "reserved"}, rows, {2, 3});
}

std::string suggestions(const Estimate& estimate) {
  if (estimate.suggestions.empty()) return "";
  std::vector<Row> rows;
  for (const Suggestion& one : estimate.suggestions) {
    rows.push_back({html_escaped(one.change), to_string(one.saves), to_string(one.device_peak),
                    one.fits ? "yes" : "no", html_escaped(one.costs)});
  }
  return "<h2>What would save memory</h2>\n" +
         table({"change", "saves", "then", "enough", "costs"}, rows, {1, 2});
}

std::string remarks(const Estimate& estimate) {
  std::string items;
  const auto add = [&](std::string_view kind, const std::vector<std::string>& sentences) {
    for (const std::string& sentence : sentences)
      items += fmt::format("<li><b>{}:</b> {}</li>\n", kind, html_escaped(sentence));
  };
  add("warning", estimate.warnings);
  add("not modelled", estimate.not_modelled);
  add("assumed", estimate.assumptions);
  items += fmt::format("<li><b>calibration:</b> {}</li>\n",
                       html_escaped(calibration_sentence(estimate.calibration)));
  return "<h2>What it rests on</h2>\n<ul>\n" + items + "</ul>\n";
}

std::string explanations(const Estimate& estimate) {
  std::string items;
  for (const Explanation& line : estimate.explanations) {
    const std::string module = line.module.empty() ? "" : fmt::format(" ({})", line.module);
    items += fmt::format("<li><b>{}{}:</b> {}</li>\n", html_escaped(line.name),
                         html_escaped(module), html_escaped(line.text));
  }
  if (items.empty()) return "";
  return "<details><summary>How each figure comes about</summary>\n<ul>\n" + items +
         "</ul>\n</details>\n";
}

std::string timeline_section(const Timeline& timeline) {
  const std::string chart = timeline_chart(timeline);
  if (chart.empty()) return "";
  return "<h2>Through the load and two iterations</h2>\n" + chart +
         "<p class=\"dim\">Areas: tensors that are alive, from one allocation to the next (not to "
         "scale in time). Line: what the caching allocator has reserved.</p>\n";
}

}  // namespace

std::string report_page(const JobInput& input, const Estimate& estimate, const Timeline& timeline) {
  const std::string job = describe(input.document, input.job);
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  html += fmt::format("<title>memfathom: {}</title>\n<style>{}</style>\n</head>\n<body>\n",
                      html_escaped(job), kStyle);
  html += fmt::format("<h1>{}</h1>\n", html_escaped(job_text(job, estimate)));
  html += fmt::format("<p class=\"verdict {}\">{}<br>{}</p>\n", to_string(estimate.verdict.status),
                      html_escaped(verdict_sentence(estimate, false)),
                      html_escaped(totals_sentence(estimate)));
  html += peak_chart(estimate) + components(estimate) + suggestions(estimate);
  html += timeline_section(timeline) + phases(estimate) + remarks(estimate);
  html += explanations(estimate);
  html += fmt::format("<details><summary>The job</summary>\n<pre>{}</pre>\n</details>\n",
                      html_escaped(to_yaml(input.document)));
  return html +
         fmt::format("<p class=\"dim\">memfathom {}</p>\n</body>\n</html>\n", MEMFATHOM_VERSION);
}

}  // namespace memfathom
