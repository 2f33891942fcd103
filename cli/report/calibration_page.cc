#include <fmt/format.h>

#include <algorithm>

#include "api/chart.h"
#include "cli/calibrate/calibration_text.h"
#include "cli/database.h"
#include "cli/option_parser.h"
#include "cli/report/html.h"
#include "cli/report/pages.h"
#include "core/html_escaped.h"
#include "core/quantile.h"

namespace memfathom {
namespace {

struct Spread {
  std::string group;
  std::size_t rows;
  double low, median, high;  // quantiles of measured / predicted
};

std::vector<Spread> spreads_of(const Calibration& calibration) {
  std::vector<Spread> spreads;
  for (const RatioGroup& group : calibration.ratios) {
    if (group.ratios.empty()) continue;
    spreads.push_back({group.group.empty() ? "all" : group.group, group.ratios.size(),
                       quantile(group.ratios, 0.05), quantile(group.ratios, 0.5),
                       quantile(group.ratios, 0.95)});
  }
  return spreads;
}

// A bar from the 5th to the 95th percentile for each group, with a tick at the median; at 1 the
// measurement equals the prediction.
std::string spread_chart(const std::vector<Spread>& spreads, double width) {
  constexpr double kRow = 26;
  constexpr double kCharacter = 7;  // its width
  double left = 60;                 // the names of the groups stand there
  double least = 0.95, most = 1.05;
  for (const Spread& one : spreads) {
    left = std::clamp(kCharacter * static_cast<double>(one.group.size()) + 16, left, width / 2);
    least = std::min(least, one.low);
    most = std::max(most, one.high);
  }
  const auto x = [&](double ratio) {
    return left + (width - left - 40) * (ratio - least) / (most - least);
  };
  const double bottom = kRow * static_cast<double>(spreads.size()) + 8;
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"measured over predicted\">\n"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">measured / predicted</text>\n",
      width, bottom + 42, width - 8, bottom + 36);
  for (const double mark : {least, 1.0, most}) {
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"4\" x2=\"{0:.1f}\" y2=\"{1:.1f}\" class=\"{2}\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4:.3g}</text>\n",
        x(mark), bottom, mark == 1.0 ? "line" : "grid", bottom + 16, mark);
  }
  double y = 18;
  for (const Spread& one : spreads) {
    svg += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n"
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"12\" "
        "fill=\"#88aacc\"/>\n"
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"3\" height=\"18\" fill=\"#4477aa\"/>\n",
        left - 8, y + 4, html_escaped(one.group), x(one.low), y - 6,
        std::max(x(one.high) - x(one.low), 1.0), x(one.median) - 1.5, y - 9);
    y += kRow;
  }
  return svg + "</svg>\n";
}

std::string spread_section(const Calibration& calibration) {
  const std::vector<Spread> spreads = spreads_of(calibration);
  if (spreads.empty()) {
    return "<p class=\"dim\">It has no held-out rows, so its error was not measured.</p>\n";
  }
  std::vector<HtmlRow> rows;
  for (const Spread& one : spreads) {
    rows.push_back({html_escaped(one.group), std::to_string(one.rows),
                    fmt::format("{:.3f}", one.low), fmt::format("{:.3f}", one.median),
                    fmt::format("{:.3f}", one.high)});
  }
  return html_chart(spread_chart(spreads, kWideChart), spread_chart(spreads, kNarrowChart)) +
         html_table({"jobs", "rows", "5th percentile", "median", "95th percentile"}, rows,
                    {1, 2, 3, 4}) +
         "<p class=\"dim\">Device memory measured over predicted, for rows that were left out of "
         "the fit that predicted them. Intervals and probabilities come from these.</p>\n";
}

std::string verdict_of(const ListedCalibration& listed) {
  const Calibration& c = listed.calibration;
  if (!c.usable) return "refused: " + c.refusal;
  if (c.environment.is_virtual()) return "simulated GPU; no values were measured";
  std::string words = fmt::format("{}: held-out error median {}, 90th percentile {}", listed.status,
                                  percent_text(c.quality.held_out_median_error),
                                  percent_text(c.quality.held_out_p90_error));
  if (c.quality.validation_rows > 0) words += fmt::format(" on {} rows", c.quality.validation_rows);
  return words;
}

const char* colour_of(const ListedCalibration& listed) {
  if (!listed.calibration.usable) return "does_not_fit";
  if (listed.calibration.environment.is_virtual()) return "unknown";
  return listed.status == "superseded" ? "tight" : "fits";
}

}  // namespace

std::string calibration_page(const ListedCalibration& listed) {
  const Calibration& c = listed.calibration;
  std::string html = fmt::format("<h1>calibration {}</h1>\n", html_escaped(c.name)) +
                     html_verdict({colour_of(listed), verdict_of(listed), "", "", ""});
  html += html_section("What it is",
                       html_text_table({"property", "value"}, calibration_properties(listed), {}));
  html += html_section("Error", spread_section(c));
  html += html_section("Coefficients", html_text_table({"coefficient", "value", "standard error",
                                                        "source", "samples", "meaning"},
                                                       calibration_coefficients(c), {1, 2, 4}));
  if (!c.provenance.empty())
    html += html_section("Provenance", fmt::format("<p>{}</p>\n", html_escaped(c.provenance)));
  return html_page("calibration " + c.name, html);
}

}  // namespace memfathom
