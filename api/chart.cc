#include "api/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "core/html_escaped.h"

namespace memfathom {
namespace {

constexpr double kWidth = 960;

// Stacking order from bottom to top: persistent components first, transient ones last.
constexpr std::array kOrder{
    Component::kParameters,     Component::kAdapterParameters, Component::kBuffers,
    Component::kOptimizerState, Component::kGradients,         Component::kKvCache,
    Component::kInputs,         Component::kActivations,       Component::kLogitsLoss,
    Component::kTemporaries,    Component::kWorkspaceCublas,   Component::kWorkspaceCudnn,
    Component::kWorkspaceCufft, Component::kCommunication,     Component::kAllocatorSlack,
    Component::kContext,        Component::kFramework,         Component::kUnaccounted};

// A round step that gives three to seven grid lines up to `most`.
double step_for(double most) {
  const double unit = std::pow(10, std::floor(std::log10(std::max(most, 1.0) / 4)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (most / (factor * unit) <= 6) return factor * unit;
  }
  return 10 * unit;
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     html_escaped(words));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view kind) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, kind);
}

// Maps bytes and points in time to chart coordinates.
struct PlotArea {
  double left = 76, right = kWidth - 8, top = 12, bottom = 0;
  double most = 1;   // bytes at the top
  double count = 1;  // points from left to right

  double x(double index) const { return left + (right - left) * index / count; }
  double y(double bytes) const { return bottom - (bottom - top) * bytes / most; }
};

std::string grid(const PlotArea& frame) {
  constexpr double kGiB = 1 << 30;
  constexpr double kMiB = 1 << 20;
  const double unit = frame.most >= 2 * kGiB ? kGiB : kMiB;
  const double step = step_for(frame.most / unit);
  std::string svg;
  for (int i = 0; i * step * unit <= frame.most; ++i) {
    const double value = i * step;
    svg += line(frame.left, frame.y(value * unit), frame.right, frame.y(value * unit), "grid");
    svg += text_at(frame.left - 6, frame.y(value * unit) + 4, "end",
                   fmt::format("{:g} {}", value, unit == kGiB ? "GiB" : "MiB"));
  }
  return svg;
}

// The area of one component in the stack.
std::string area(const PlotArea& frame, const std::vector<double>& low,
                 const std::vector<double>& high, Component component) {
  std::string path = fmt::format("M{:.1f} {:.1f}", frame.x(0), frame.y(high[0]));
  for (std::size_t i = 0; i < high.size(); ++i)
    path += fmt::format("V{:.1f}H{:.1f}", frame.y(high[i]), frame.x(static_cast<double>(i + 1)));
  for (std::size_t i = low.size(); i-- > 0;)
    path += fmt::format("V{:.1f}H{:.1f}", frame.y(low[i]), frame.x(static_cast<double>(i)));
  return fmt::format("<path d=\"{}Z\" fill=\"{}\"><title>{}</title></path>\n", path,
                     colour_of(component), to_string(component));
}

std::string phase_marks(const Timeline& timeline, const PlotArea& frame) {
  std::string svg;
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= timeline.points.size(); ++i) {
    if (i < timeline.points.size() && timeline.points[i].phase == timeline.points[begin].phase)
      continue;
    const TimelinePhase& phase = timeline.phases[timeline.points[begin].phase];
    const double x1 = frame.x(static_cast<double>(begin)), x2 = frame.x(static_cast<double>(i));
    svg += line(x1, frame.top, x1, frame.bottom + 6, "mark");
    const std::string words =
        phase.iteration == 0 ? phase.name : fmt::format("{} {}", phase.name, phase.iteration);
    // A name that does not fit its space is omitted.
    if (x2 - x1 > 7.0 * static_cast<double>(words.size()))
      svg += text_at((x1 + x2) / 2, frame.bottom + 20, "middle", words);
    begin = i;
  }
  return svg;
}

}  // namespace

std::string_view colour_of(Component component) {
  switch (component) {
    case Component::kParameters: return "#4477aa";
    case Component::kAdapterParameters: return "#88aacc";
    case Component::kBuffers: return "#99bbdd";
    case Component::kOptimizerState: return "#228833";
    case Component::kGradients: return "#77bb55";
    case Component::kKvCache: return "#ccbb44";
    case Component::kInputs: return "#ddcc77";
    case Component::kActivations: return "#ee8866";
    case Component::kLogitsLoss: return "#ee6677";
    case Component::kTemporaries: return "#aa3377";
    case Component::kWorkspaceCublas:
    case Component::kWorkspaceCudnn:
    case Component::kWorkspaceCufft: return "#882255";
    case Component::kCommunication: return "#44aa99";
    case Component::kAllocatorSlack: return "#bbbbbb";
    case Component::kContext: return "#999999";
    case Component::kFramework: return "#777777";
    case Component::kUnaccounted: return "#555555";
  }
  return "#555555";
}

std::string peak_chart(const Estimate& estimate) {
  const Totals& totals = estimate.totals;
  const Verdict& verdict = estimate.verdict;
  Bytes most = std::max(totals.device_high, totals.device_peak);
  if (verdict.capacity) most = std::max(most, *verdict.capacity);
  const double scale = (kWidth - 20) / static_cast<double>(std::max<std::int64_t>(most.count(), 1));
  const auto x = [&](Bytes bytes) { return 10 + scale * static_cast<double>(bytes.count()); };
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} 96\" role=\"img\">\n", kWidth);
  Bytes at;
  for (const Component component : kOrder) {
    Bytes bytes;
    for (const ComponentLine& one : estimate.components) {
      if (one.component == component) bytes += one.bytes;
    }
    if (bytes.count() <= 0) continue;
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"30\" width=\"{:.1f}\" height=\"34\" fill=\"{}\"><title>{}: "
        "{}</title></rect>\n",
        x(at), x(at + bytes) - x(at), colour_of(component), to_string(component), to_string(bytes));
    at += bytes;
  }
  if (totals.device_high > totals.device_low) {
    const double low = x(totals.device_low), high = x(totals.device_high);
    svg += line(low, 74, high, 74, "line") + line(low, 69, low, 79, "line") +
           line(high, 69, high, 79, "line");
    svg += text_at(std::min((low + high) / 2, kWidth - 110), 92, "middle",
                   fmt::format("{:.0f} % interval", 100 * totals.interval));
  }
  if (verdict.available) {
    svg += line(x(*verdict.available), 18, x(*verdict.available), 68, "limit");
    svg += text_at(std::min(x(*verdict.available), kWidth - 90), 13, "middle",
                   fmt::format("available {}", to_string(*verdict.available)));
  }
  return svg + "</svg>\n";
}

std::string timeline_chart(const Timeline& timeline) {
  if (timeline.points.empty()) return "";
  PlotArea frame;
  frame.bottom = 320;
  frame.count = static_cast<double>(timeline.points.size());
  for (const TimelinePoint& point : timeline.points)
    frame.most = std::max(frame.most, 1.05 * static_cast<double>(point.reserved));
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} 350\" role=\"img\">\n", kWidth);
  svg += grid(frame);
  std::vector<double> low(timeline.points.size(), 0.0);
  for (const Component component : kOrder) {
    std::vector<double> high = low;
    double largest = 0;
    for (std::size_t i = 0; i < high.size(); ++i) {
      const double bytes =
          static_cast<double>(timeline.points[i].live[static_cast<std::size_t>(component)]);
      high[i] += bytes;
      largest = std::max(largest, bytes);
    }
    if (largest > 0) svg += area(frame, low, high, component);
    low = std::move(high);
  }
  std::string path;
  for (std::size_t i = 0; i < timeline.points.size(); ++i) {
    const double y = frame.y(static_cast<double>(timeline.points[i].reserved));
    path += i == 0 ? fmt::format("M{:.1f} {:.1f}", frame.x(0), y) : fmt::format("V{:.1f}", y);
    path += fmt::format("H{:.1f}", frame.x(static_cast<double>(i + 1)));
  }
  svg += fmt::format("<path d=\"{}\" class=\"line\" fill=\"none\"><title>reserved</title></path>\n",
                     path);
  return svg + phase_marks(timeline, frame) + "</svg>\n";
}

std::string frontier_chart(const std::vector<FrontierPoint>& frontier,
                           const std::optional<Bytes>& available) {
  constexpr double kBottom = 260;
  constexpr double kRadius = 5;
  PlotArea frame;
  frame.bottom = kBottom;
  double slowest = 1;
  for (const FrontierPoint& point : frontier) {
    slowest = std::max(slowest, point.time_factor);
    frame.most = std::max(frame.most, 1.05 * static_cast<double>(point.device_peak.count()));
  }
  frame.count = 1.05 * slowest;
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} 300\" role=\"img\">\n", kWidth);
  svg += grid(frame);
  const double step = step_for(frame.count);
  for (int i = 0; i * step <= frame.count; ++i)
    svg += text_at(frame.x(i * step), frame.bottom + 18, "middle", fmt::format("x{:g}", i * step));
  svg += text_at(frame.right, frame.bottom + 36, "end", "time per sample, of the unchanged job's");
  if (available) {
    const double y = frame.y(std::min(static_cast<double>(available->count()), frame.most));
    svg += line(frame.left, y, frame.right, y, "limit");
  }
  for (const FrontierPoint& point : frontier) {
    std::string words;
    for (const std::string& name : point.names) words += (words.empty() ? "" : " + ") + name;
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"><title>{}: x{:.2f}, "
        "{}</title></circle>\n",
        frame.x(point.time_factor), frame.y(static_cast<double>(point.device_peak.count())),
        kRadius, point.trains_the_same ? "#4477aa" : "#ee8866",
        html_escaped(words.empty() ? "unchanged" : words), point.time_factor,
        to_string(point.device_peak));
  }
  return svg +
         "</svg>\n<p class=\"dim\">Blue: the same training. Orange: different training. Red: "
         "the available memory.</p>\n";
}

}  // namespace memfathom
