#include "cli/report/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "api/chart.h"
#include "cli/report/html.h"
#include "cli/text/estimate_text.h"
#include "core/html_escaped.h"
#include "core/yaml_text.h"
#include "estimator/job/describe.h"

namespace memfathom {
namespace {

std::string components(const Estimate& estimate) {
  std::vector<ComponentLine> lines = estimate.components;
  std::stable_sort(lines.begin(), lines.end(), [](const ComponentLine& a, const ComponentLine& b) {
    return a.bytes > b.bytes;
  });
  const double whole =
      static_cast<double>(std::max<std::int64_t>(estimate.totals.device_peak.count(), 1));
  std::vector<HtmlRow> rows;
  for (const ComponentLine& line : lines) {
    rows.push_back({fmt::format("<span class=\"key\" style=\"background:{}\"></span>{}",
                                colour_of(line.component), html_escaped(component_name(line))),
                    to_string(line.bytes),
                    fmt::format("{:.1f} %", 100 * static_cast<double>(line.bytes.count()) / whole),
                    to_string(line.source)});
  }
  rows.push_back({"<b>device peak</b>", "<b>" + to_string(estimate.totals.device_peak) + "</b>",
                  "100.0 %", ""});
  return html_table({"component", "memory", "share", "source"}, rows, {1, 2});
}

std::string phases(const Estimate& estimate) {
  std::vector<HtmlRow> rows;
  for (const PhaseLine& line : estimate.phases) {
    rows.push_back({html_escaped(line.name),
                    line.iteration == 0   ? ""
                    : line.iteration == 1 ? "first"
                                          : "steady",
                    to_string(line.allocated_peak), to_string(line.reserved)});
  }
  return html_table({"phase", "iteration", "allocated at most", "reserved"}, rows, {2, 3});
}

std::string suggestions(const Estimate& estimate) {
  if (estimate.suggestions.empty()) return "";
  std::vector<HtmlRow> rows;
  for (const Suggestion& one : estimate.suggestions) {
    rows.push_back({html_escaped(one.change), to_string(one.saves), to_string(one.device_peak),
                    one.fits ? "yes" : "no", fmt::format("x{:.2f}", one.time_factor),
                    html_escaped(one.costs)});
  }
  return "<h2>Changes that save memory</h2>\n" +
         html_table({"change", "saves", "then", "enough", "time", "costs"}, rows, {1, 2, 4});
}

// What to do if the job does not fit, each with all its changes.
std::string fitting_section(const std::vector<Configuration>& configurations) {
  if (configurations.empty()) return "";
  std::vector<HtmlRow> rows;
  for (const Configuration& one : configurations) {
    std::string changes;
    for (const std::string& change : one.changes) changes += (changes.empty() ? "" : "; ") + change;
    rows.push_back({html_escaped(one.name), html_escaped(one.aim), to_string(one.device_peak),
                    fmt::format("x{:.2f}", one.time_factor),
                    one.trains_the_same ? "same" : "different", html_escaped(changes)});
  }
  return "<h2>Configurations that fit</h2>\n" +
         html_table({"configuration", "aim", "device peak", "time", "training", "changes"}, rows,
                    {2, 3});
}

std::string frontier_section(const Estimate& estimate, const std::vector<FrontierPoint>& frontier) {
  if (frontier.empty()) return "";
  std::vector<HtmlRow> rows;
  for (const FrontierPoint& point : frontier) {
    std::string changes;
    for (const std::string& change : point.changes)
      changes += (changes.empty() ? "" : "; ") + change;
    rows.push_back({fmt::format("x{:.2f}", point.time_factor), to_string(point.device_peak),
                    point.host_of_node ? to_string(*point.host_of_node) : "",
                    point.fits ? "yes" : "no", point.trains_the_same ? "same" : "different",
                    html_escaped(changes.empty() ? "none" : changes),
                    html_escaped(point.time_basis)});
  }
  return "<h2>Memory against time</h2>\n" +
         html_scrolled(frontier_chart(frontier, estimate.verdict.available)) +
         html_table({"time", "device peak", "host", "fits", "training", "changes", "basis"}, rows,
                    {0, 1, 2}) +
         "<p class=\"dim\">Nothing else is better in both. Times are computed from FLOPs and bytes "
         "over links, not measured.</p>\n";
}

std::string remarks(const Estimate& estimate) {
  std::string items;
  std::set<std::string_view> said;
  const auto add = [&](std::string_view kind, const std::vector<std::string>& sentences) {
    for (const std::string& sentence : sentences) {
      if (said.insert(sentence).second)
        items += fmt::format("<li><b>{}:</b> {}</li>\n", kind, html_escaped(sentence));
    }
  };
  add("warning", estimate.warnings);
  add("not modelled", estimate.not_modelled);
  add("assumed", estimate.assumptions);
  items += fmt::format("<li><b>calibration:</b> {}</li>\n",
                       html_escaped(calibration_sentence(estimate.calibration)));
  return "<h2>Assumptions and sources</h2>\n<ul>\n" + items + "</ul>\n";
}

std::string explanations(const Estimate& estimate) {
  std::string items;
  for (const Explanation& line : estimate.explanations) {
    const std::string module = line.module.empty() ? "" : fmt::format(" ({})", line.module);
    items += fmt::format("<li><b>{}{}:</b> {}</li>\n", html_escaped(line.name),
                         html_escaped(module), html_escaped(line.text));
  }
  if (items.empty()) return "";
  return "<details><summary>How each value is computed</summary>\n<ul>\n" + items +
         "</ul>\n</details>\n";
}

std::string timeline_section(const Timeline& timeline, const Estimate& estimate) {
  const std::string chart = timeline_chart(timeline, estimate.verdict.available);
  if (chart.empty()) return "";
  return "<h2>Memory during loading and two iterations</h2>\n" + html_scrolled(chart) +
         "<p class=\"dim\">Areas: live tensors, one step per allocation (not to scale in time). "
         "Line: memory reserved by the caching allocator. Point at it for what is alive.</p>\n";
}

}  // namespace

std::string report_page(const JobInput& input, const Estimate& estimate, const Timeline& timeline,
                        const std::vector<FrontierPoint>& frontier,
                        const std::vector<Configuration>& configurations) {
  const std::string job = describe(input.document, input.job);
  std::string html;
  html += fmt::format("<h1>{}</h1>\n", html_escaped(job_text(job, estimate)));
  html += fmt::format("<p class=\"verdict {}\">{}<br>{}</p>\n", to_string(estimate.verdict.status),
                      html_escaped(verdict_sentence(estimate, false)),
                      html_escaped(totals_sentence(estimate)));
  html += html_scrolled(peak_chart(estimate)) + components(estimate);
  html += fitting_section(configurations) + suggestions(estimate);
  html += frontier_section(estimate, frontier);
  html += timeline_section(timeline, estimate) + phases(estimate) + remarks(estimate);
  html += explanations(estimate);
  html += fmt::format("<details><summary>The job</summary>\n<pre>{}</pre>\n</details>\n",
                      html_escaped(to_yaml(input.document)));
  return html_page(job, html);
}

}  // namespace memfathom
