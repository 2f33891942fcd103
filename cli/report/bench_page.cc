#include <fmt/format.h>

#include <algorithm>

#include "api/chart.h"
#include "cli/bench/compare.h"
#include "cli/bench/compare_text.h"
#include "cli/report/html.h"
#include "cli/report/pages.h"
#include "core/html_escaped.h"

namespace memfathom {
namespace {

constexpr std::size_t kMaxBars = 24;

bool has_bar(const ComparedBenchmark& b) {
  return b.verdict != BenchVerdict::kSame && b.component != "time" && b.before && b.after;
}

// Two bars per benchmark whose memory changed, before and after, worst first.
std::string change_chart(const BenchComparison& comparison, double width) {
  const bool narrow = width < kWideChart;  // names stand above their bars
  const double left = narrow ? 4 : 330, row = narrow ? 50 : 34;
  std::vector<const ComparedBenchmark*> shown;
  double most = 1;
  for (const ComparedBenchmark& b : comparison.benchmarks) {
    if (!has_bar(b) || shown.size() == kMaxBars) continue;
    shown.push_back(&b);
    most = std::max(most, static_cast<double>(std::max(*b.before, *b.after).count()));
  }
  if (shown.empty()) return "";
  const auto length = [&](Bytes bytes) {
    return (width - left - 120) * static_cast<double>(bytes.count()) / most + 1;
  };
  const auto bar = [&](double y, Bytes bytes, std::string_view colour) {
    return fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"10\" fill=\"{}\"/>\n", left, y,
        length(bytes), colour);
  };
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"memory before and after\">\n", width,
      row * static_cast<double>(shown.size()) + 8);
  double y = narrow ? 22 : 6;
  for (const ComparedBenchmark* b : shown) {
    // The end of a long name is more specific than its start.
    constexpr std::size_t kLongest = 48;
    const std::string name = b->name.size() <= kLongest
                                 ? b->name
                                 : "..." + b->name.substr(b->name.size() - kLongest + 3);
    const bool worse = b->verdict == BenchVerdict::kWorse;
    svg += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}<title>{}</title></text>\n",
        narrow ? left : left - 8, narrow ? y - 6 : y + 15, narrow ? "start" : "end",
        html_escaped(name), html_escaped(b->name));
    svg += bar(y, *b->before, "#88aacc") + bar(y + 11, *b->after, worse ? "#cc3311" : "#228833");
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                       left + length(std::max(*b->before, *b->after)) + 6, y + 15,
                       html_escaped(change_in_words(*b)));
    y += row;
  }
  return svg + "</svg>\n";
}

std::string chart_section(const BenchComparison& comparison) {
  const std::string wide = change_chart(comparison, kWideChart);
  if (wide.empty()) return "";
  return html_section("Memory before and after",
                      html_chart(wide, change_chart(comparison, kNarrowChart)) +
                          "<p class=\"dim\">Above: before. Below: after; red is worse.</p>\n");
}

// The first ones in full, the others at a click.
std::string regressions(const BenchComparison& comparison) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> items;
  for (const ComparedBenchmark& b : comparison.benchmarks) {
    if (b.verdict == BenchVerdict::kWorse)
      items.push_back(fmt::format("<li>{}</li>\n", html_escaped(headline(b))));
  }
  if (items.empty()) return "";
  const auto end = items.begin() + static_cast<std::ptrdiff_t>(std::min(items.size(), kShown));
  std::string html = fmt::format("<ul>\n{}</ul>\n", fmt::join(items.begin(), end, ""));
  if (end != items.end()) {
    html += html_details(fmt::format("{} more", items.end() - end),
                         fmt::format("<ul>\n{}</ul>\n", fmt::join(end, items.end(), "")));
  }
  return html_section("Regressions", html);
}

std::string changes(const RequestedComparison& asked) {
  std::vector<HtmlRow> rows;
  for (const ComparedBenchmark& b : asked.comparison.benchmarks) {
    if (b.verdict == BenchVerdict::kSame && !asked.all) continue;
    const bool fails = b.severity == Severity::kFailure;
    rows.push_back({fmt::format("{}{}", to_string(b.verdict), fails ? ", fails" : ""), b.name,
                    b.component, change_in_words(b), b.blamed, b.reason});
  }
  if (rows.empty()) return "<p>Nothing changed.</p>\n";
  return html_text_table({"verdict", "benchmark", "component", "change", "caused by", "reason"},
                         rows, {3});
}

std::string jobs_section(const std::vector<JobVerdictChange>& jobs) {
  if (jobs.empty()) return "";
  std::vector<HtmlRow> rows;
  for (const JobVerdictChange& job : jobs) {
    if (!job.error.empty()) {
      rows.push_back({job.file, "", "", "", job.error});
      continue;
    }
    rows.push_back(
        {job.file, to_string(job.before), to_string(job.after),
         job.available.count() == 0 ? "" : to_string(job.available),
         fmt::format("{} → {}", to_string(job.status_before), to_string(job.status_after))});
  }
  const auto flips =
      std::count_if(jobs.begin(), jobs.end(), [](const JobVerdictChange& j) { return j.flips(); });
  return html_section(
      fmt::format("{} of {} jobs no longer fit", flips, jobs.size()),
      html_text_table({"job", "before", "after", "available", "verdict"}, rows, {1, 2, 3}) +
          "<p class=\"dim\">Estimated with the calibrations before and after.</p>\n");
}

// The recorded stack versions.
std::string stack_description(const Environment& environment) {
  std::string words;
  const auto add = [&](std::string_view name, const std::string& version) {
    if (!version.empty()) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", name, version);
  };
  add("driver", environment.driver);
  add("CUDA", environment.cuda);
  add("cuBLAS", environment.cublas);
  add("cuDNN", environment.cudnn);
  add("cuFFT", environment.cufft);
  add("module loading", environment.module_loading);
  add(environment.framework, environment.framework_version);
  return words.empty() ? "not recorded" : words;
}

HtmlRow source_row(const char* side, const std::string& named, const BenchFile& file) {
  const Environment& environment = file.environment;
  return {side,
          named,
          environment.is_virtual()  ? file.device + " (simulated, not measured)"
          : environment.gpu.empty() ? file.device
                                    : environment.gpu,
          stack_description(environment),
          file.date,
          std::to_string(file.rows.size())};
}

const char* colour_of(const RequestedComparison& asked) {
  if (asked.exit_code == ExitCode::kNo) return "does_not_fit";
  return asked.comparison.verdict() == "undecided" ? "tight" : "fits";
}

}  // namespace

std::string bench_page(const RequestedComparison& asked) {
  const BenchComparison& comparison = asked.comparison;
  const std::string title = fmt::format("bench: {} → {}", asked.base, asked.now);
  std::string html =
      fmt::format("<h1>{}</h1>\n", html_escaped(title)) +
      html_verdict({colour_of(asked), comparison_summary(comparison), "", "",
                    fmt::format("<p>stack: {}</p>\n", html_escaped(stack_changes(comparison)))});
  html += regressions(comparison) + chart_section(comparison);
  html += html_section("Benchmarks", changes(asked)) + jobs_section(asked.jobs);
  html += html_section(
      "Sources", html_text_table({"side", "file or baseline", "device", "stack", "date", "runs"},
                                 {source_row("before", asked.base, asked.base_file),
                                  source_row("after", asked.now, asked.now_file)},
                                 {5}));
  return html_page(title, html);
}

}  // namespace memfathom
