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

// "optimizer_state", which may be broken after its words.
std::string breakable(std::string_view name) {
  std::string html;
  for (const char c : html_escaped(name)) html += c == '_' ? "_<wbr>" : std::string(1, c);
  return html;
}

std::string components(const Estimate& estimate) {
  std::vector<ComponentLine> lines = estimate.components;
  std::stable_sort(lines.begin(), lines.end(), [](const ComponentLine& a, const ComponentLine& b) {
    return a.bytes > b.bytes;
  });
  const double whole =
      static_cast<double>(std::max<std::int64_t>(estimate.totals.device_peak.count(), 1));
  std::vector<HtmlRow> rows;
  for (const ComponentLine& line : lines) {
    rows.push_back({fmt::format("<span class=\"key\" style=\"background:{}\"></span>&#8288;{}",
                                colour_of(line.component), breakable(component_name(line))),
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
  return html_section(
      "Changes that save memory",
      html_table({"change", "saves", "peak after", "fits", "time", "costs"}, rows, {1, 2, 4}));
}

// What to do if the job does not fit, each with all its changes.
std::string fitting_section(const std::vector<Configuration>& configurations) {
  if (configurations.empty()) return "";
  std::vector<HtmlRow> rows;
  for (const Configuration& one : configurations) {
    std::string changes;
    for (const std::string& change : one.changes)
      changes += fmt::format("<li>{}</li>", html_escaped(change));
    rows.push_back({html_escaped(one.name), html_escaped(one.aim), to_string(one.device_peak),
                    fmt::format("x{:.2f}", one.time_factor),
                    one.trains_the_same ? "same" : "different", "<ul>" + changes + "</ul>"});
  }
  return html_section("Configurations that fit", html_table({"configuration", "aim", "device peak",
                                                             "time", "training", "changes"},
                                                            rows, {2, 3}));
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
  const auto& available = estimate.verdict.available;
  return html_section("Memory against time",
                      html_chart(frontier_chart(frontier, available),
                                 frontier_chart(frontier, available, kNarrowChart)) +
                          "<p class=\"dim\">Nothing else is better in both. Times are computed "
                          "from FLOPs and bytes "
                          "over links, not measured.</p>\n" +
                          html_details(fmt::format("All {} of them", frontier.size()),
                                       html_table({"time", "device peak", "host", "fits",
                                                   "training", "changes", "basis"},
                                                  rows, {0, 1, 2})));
}

std::string remarks(const Estimate& estimate) {
  std::string items;
  std::set<std::string_view> said;
  const auto add = [&](std::string_view kind, const std::vector<std::string>& sentences) {
    for (const std::string& sentence : sentences) {
      if (said.insert(sentence).second)
        items += fmt::format("<li><b>{}</b> {}</li>\n", kind, html_escaped(sentence));
    }
  };
  add("warning", estimate.warnings);
  add("not modelled", estimate.not_modelled);
  add("assumed", estimate.assumptions);
  items += fmt::format("<li><b>calibration</b> {}</li>\n",
                       html_escaped(calibration_sentence(estimate.calibration)));
  return "<ul>\n" + items + "</ul>\n";
}

std::string explanations(const Estimate& estimate) {
  std::string items;
  for (const Explanation& line : estimate.explanations) {
    const std::string module = line.module.empty() ? "" : fmt::format(" ({})", line.module);
    items += fmt::format("<li><b>{}{}</b> {}</li>\n", html_escaped(line.name), html_escaped(module),
                         html_escaped(line.text));
  }
  if (items.empty()) return "";
  return html_details("How each value is computed", "<ul>\n" + items + "</ul>\n");
}

std::string timeline_section(const Timeline& timeline, const Estimate& estimate) {
  if (timeline.points.empty()) return phases(estimate);
  const auto& available = estimate.verdict.available;
  return html_chart(timeline_chart(timeline, available),
                    timeline_chart(timeline, available, kNarrowChart)) +
         "<p class=\"dim\">Areas: live tensors, one step per allocation (not to scale in time). "
         "Line: memory reserved by the caching allocator. Point at it for what is alive.</p>\n" +
         phases(estimate);
}

// The answer in a figure and two sentences.
std::string answer_section(const Estimate& estimate) {
  const Verdict& verdict = estimate.verdict;
  std::string kind = to_string(verdict.status);
  std::string words = kind;
  std::replace(words.begin(), words.end(), '_', ' ');
  if (verdict.status == VerdictStatus::kUnknown) words = "no GPU was given";
  std::string beside;
  if (verdict.available) {
    beside = fmt::format("of {} available{}", to_string(*verdict.available),
                         verdict.gpu.empty() ? "" : " on " + verdict.gpu);
  }
  return html_verdict(
      {kind, words, to_string(estimate.totals.device_peak), beside,
       fmt::format("<p>{}</p>\n<p>{}</p>\n", html_escaped(verdict_sentence(estimate, false)),
                   html_escaped(totals_sentence(estimate)))});
}

}  // namespace

std::string report_page(const JobInput& input, const Estimate& estimate, const Timeline& timeline,
                        const std::vector<FrontierPoint>& frontier,
                        const std::vector<Configuration>& configurations) {
  const std::string job = describe(input.document, input.job);
  std::string html;
  html += fmt::format("<h1>{}</h1>\n", html_escaped(job_text(job, estimate)));
  html += answer_section(estimate);
  html += html_section(
      "What the peak is made of",
      html_chart(peak_chart(estimate), peak_chart(estimate, kNarrowChart)) + components(estimate));
  html += fitting_section(configurations) + suggestions(estimate);
  html += frontier_section(estimate, frontier);
  html += html_section("Memory during loading and two iterations",
                       timeline_section(timeline, estimate));
  const std::string job_file = "<pre>" + html_escaped(to_yaml(input.document)) + "</pre>\n";
  html += html_section("Assumptions and sources", remarks(estimate) + explanations(estimate) +
                                                      html_details("The job", job_file));
  return html_page(job, html);
}

}  // namespace memfathom
