#include "fitter/residual_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace memfathom {
namespace {

constexpr double kWidth = 860;
constexpr double kHeight = 440;
constexpr double kLeft = 70;
constexpr double kRight = 170;
constexpr double kTop = 44;
constexpr double kBottom = 54;
constexpr double kGiB = 1 << 30;
// Distinguishable for colour-blind readers (Okabe and Ito's palette without yellow).
constexpr std::array<const char*, 7> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                              "#56b4e9", "#e69f00", "#444444"};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

struct Axes {
  double low_x = 0, high_x = 1;  // log2 of GiB
  double reach = 1;              // percent, both ways

  double x(double predicted) const {
    const double at = (std::log2(predicted / kGiB) - low_x) / (high_x - low_x);
    return kLeft + std::clamp(at, 0.0, 1.0) * (kWidth - kLeft - kRight);
  }
  double y(double percent) const {
    const double at = (reach - std::clamp(percent, -reach, reach)) / (2 * reach);
    return kTop + at * (kHeight - kTop - kBottom);
  }
};

// The vertical reach shows 19 points of 20 apart; what lies beyond sits on the edge, where it is
// seen.
Axes axes_for(const FitSummary& summary) {
  Axes axes;
  std::vector<double> sizes;
  std::vector<double> heights;
  for (const ResidualPoint& point : summary.points) {
    sizes.push_back(std::log2(std::max(point.predicted, 1.0) / kGiB));
    heights.push_back(std::abs(point.ratio - 1) * 100);
  }
  if (sizes.empty()) return axes;
  const auto [low, high] = std::minmax_element(sizes.begin(), sizes.end());
  axes.low_x = std::floor(*low * 2) / 2;
  axes.high_x = std::max(std::ceil(*high * 2) / 2, axes.low_x + 0.5);
  std::sort(heights.begin(), heights.end());
  const double interval =
      100 * std::max(std::abs(summary.interval.high - 1), std::abs(1 - summary.interval.low));
  const double wanted =
      std::max({1.2 * heights[(heights.size() - 1) * 19 / 20], 1.2 * interval, 0.05});
  const double unit = std::pow(10, std::floor(std::log10(wanted)));
  axes.reach = unit * (wanted <= 2 * unit ? 2 : wanted <= 5 * unit ? 5 : 10);
  return axes;
}

void add_frame(const Axes& axes, std::string* svg) {
  const double right = kWidth - kRight;
  const double bottom = kHeight - kBottom;
  for (int i = -4; i <= 4; i += 2) {
    const double percent = axes.reach * i / 4;
    *svg += fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}"/>)"
                        "\n"
                        R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">{:+g} %</text>)"
                        "\n",
                        kLeft, axes.y(percent), right, axes.y(percent), i == 0 ? "#888" : "#ddd",
                        kLeft - 8, axes.y(percent) + 4, percent);
  }
  const long step = std::max(1L, std::lround(std::ceil((axes.high_x - axes.low_x) / 8)));
  const long last = std::lround(std::floor(axes.high_x));
  for (long tick = std::lround(std::ceil(axes.low_x)); tick <= last; tick += step) {
    const double power = std::exp2(tick);
    const double at = axes.x(power * kGiB);
    *svg +=
        fmt::format(R"(<line x1="{0:.1f}" y1="{1:.1f}" x2="{0:.1f}" y2="{2:.1f}" stroke="#eee"/>)"
                    "\n"
                    R"(<text x="{0:.1f}" y="{3:.1f}" text-anchor="middle">{4:g} GiB</text>)"
                    "\n",
                    at, kTop, bottom, bottom + 18, power);
  }
  *svg +=
      fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">predicted device peak</text>)"
                  "\n",
                  (kLeft + right) / 2, kHeight - 14);
}

void add_point(const Axes& axes, const ResidualPoint& point, const char* colour, std::string* svg) {
  const double x = axes.x(std::max(point.predicted, 1.0));
  const double y = axes.y((point.ratio - 1) * 100);
  if (point.validation) {
    *svg += fmt::format(
        R"(<rect x="{:.1f}" y="{:.1f}" width="6" height="6" fill="{}" fill-opacity="0.7"/>)"
        "\n",
        x - 3, y - 3, colour);
  } else if (point.outlier) {
    *svg += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5" fill="none" stroke="{}"/>)"
                        "\n",
                        x, y, colour);
  } else {
    *svg += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2.5" fill="{}" fill-opacity="0.6"/>)"
                        "\n",
                        x, y, colour);
  }
}

void add_legend(const std::map<std::string, const char*>& colours, std::string* svg) {
  double y = kTop + 8;
  const double x = kWidth - kRight + 16;
  for (const auto& [group, colour] : colours) {
    *svg += fmt::format(
        R"(<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="{}"/><text x="{:.1f}" y="{:.1f}">{}</text>)"
        "\n",
        x, y, colour, x + 10, y + 4, escaped(group.empty() ? "all" : group));
    y += 18;
  }
  *svg += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" fill="#666">ring: outlier</text>)"
                      "\n"
                      R"(<text x="{:.1f}" y="{:.1f}" fill="#666">square: validation</text>)"
                      "\n",
                      x - 4, y + 12, x - 4, y + 30);
}

}  // namespace

std::string residual_plot(const FitSummary& summary) {
  const Axes axes = axes_for(summary);
  std::map<std::string, const char*> colours;
  for (const ResidualPoint& point : summary.points) colours.emplace(point.group, "");
  std::size_t next = 0;
  for (auto& [group, colour] : colours) colour = kColours[next++ % kColours.size()];

  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" )"
      R"(font-family="sans-serif" font-size="12">)"
      "\n"
      R"(<rect width="{0}" height="{1}" fill="white"/>)"
      "\n"
      R"(<text x="{2}" y="24" font-size="14">{3}: measured / predicted - 1, held out ({4} rows)</text>)"
      "\n",
      kWidth, kHeight, kLeft, escaped(summary.result.name), summary.points.size());
  const double high = axes.y((summary.interval.high - 1) * 100);
  const double low = axes.y((summary.interval.low - 1) * 100);
  svg +=
      fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="#f0f4f8"/>)"
                  "\n",
                  kLeft, high, kWidth - kLeft - kRight, low - high);
  add_frame(axes, &svg);
  for (const ResidualPoint& point : summary.points)
    add_point(axes, point, colours[point.group], &svg);
  add_legend(colours, &svg);
  return svg + "</svg>\n";
}

}  // namespace memfathom
