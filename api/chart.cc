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

// Centred at x, but inside the chart: a character takes about 7 units.
std::string label_at(double x, double y, std::string_view words, double width) {
  const double half = 3.5 * static_cast<double>(words.size());
  return text_at(std::max(half, std::min(x, width - half)), y, "middle", words);
}

std::string opening(double width, double height, std::string_view title) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", width, height,
                     html_escaped(title));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view kind) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, kind);
}

// Maps bytes and points in time to chart coordinates.
struct PlotArea {
  double left = 62, right = 0, top = 24, bottom = 0;
  double most = 1;   // bytes at the top
  double count = 1;  // points from left to right

  double x(double index) const { return left + (right - left) * index / count; }
  double y(double bytes) const { return bottom - (bottom - top) * bytes / most; }
};

// Horizontal lines with their values, and above them what is measured.
std::string grid(const PlotArea& frame, std::string_view quantity) {
  constexpr double kGiB = 1 << 30;
  constexpr double kMiB = 1 << 20;
  const double unit = frame.most >= 2 * kGiB ? kGiB : kMiB;
  const double step = step_for(frame.most / unit);
  std::string svg = text_at(4, 12, "start", quantity);
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

std::string phase_name(const TimelinePhase& phase) {
  return phase.iteration == 0 ? phase.name : fmt::format("{} {}", phase.name, phase.iteration);
}

// What is alive at the highest of some points, largest first.
std::string point_text(const Timeline& timeline, const TimelinePoint& point) {
  std::string words =
      fmt::format("{}: allocated {}, reserved {}", phase_name(timeline.phases[point.phase]),
                  to_string(Bytes{point.allocated}), to_string(Bytes{point.reserved}));
  std::vector<std::pair<std::int64_t, Component>> live;
  for (const Component component : kOrder) {
    if (const std::int64_t bytes = point.live[static_cast<std::size_t>(component)]; bytes > 0)
      live.emplace_back(bytes, component);
  }
  std::sort(live.rbegin(), live.rend());
  for (const auto& [bytes, component] : live)
    words += fmt::format("\n{} {}", to_string(component), to_string(Bytes{bytes}));
  return words;
}

constexpr double kPointsPerUnit = 4;  // a chart of 960 units shows 3,840 allocations one by one
constexpr double kColumnWidth = 6;

// At most so many points: of neighbours the one with the most allocated, and their largest
// reserved.
Timeline thinned(const Timeline& timeline, std::size_t most) {
  if (timeline.points.size() <= most) return timeline;
  Timeline thin = timeline;
  thin.points.clear();
  const std::size_t count = timeline.points.size();
  for (std::size_t i = 0; i < most; ++i) {
    const auto at = [&](std::size_t part) {
      return timeline.points.begin() + static_cast<std::ptrdiff_t>(part * count / most);
    };
    thin.points.push_back(*std::max_element(
        at(i), at(i + 1),
        [](const TimelinePoint& a, const TimelinePoint& b) { return a.allocated < b.allocated; }));
    for (auto point = at(i); point != at(i + 1); ++point)
      thin.points.back().reserved = std::max(thin.points.back().reserved, point->reserved);
  }
  return thin;
}

// Invisible columns over the chart whose titles a browser shows at the pointer.
std::string hover_columns(const Timeline& timeline, const PlotArea& frame, std::size_t columns) {
  const std::size_t count = timeline.points.size();
  const std::size_t width = (count + columns - 1) / columns;
  std::string svg;
  for (std::size_t begin = 0; begin < count; begin += width) {
    const std::size_t end = std::min(begin + width, count);
    const auto highest = std::max_element(
        timeline.points.begin() + static_cast<std::ptrdiff_t>(begin),
        timeline.points.begin() + static_cast<std::ptrdiff_t>(end),
        [](const TimelinePoint& a, const TimelinePoint& b) { return a.allocated < b.allocated; });
    const double x = frame.x(static_cast<double>(begin));
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "fill=\"transparent\"><title>{}</title></rect>\n",
        x, frame.top, frame.x(static_cast<double>(end)) - x, frame.bottom - frame.top,
        html_escaped(point_text(timeline, *highest)));
  }
  return svg;
}

std::string phase_marks(const Timeline& timeline, const PlotArea& frame) {
  std::string svg;
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= timeline.points.size(); ++i) {
    if (i < timeline.points.size() && timeline.points[i].phase == timeline.points[begin].phase)
      continue;
    const double x1 = frame.x(static_cast<double>(begin)), x2 = frame.x(static_cast<double>(i));
    svg += line(x1, frame.top, x1, frame.bottom + 6, "mark");
    const std::string words = phase_name(timeline.phases[timeline.points[begin].phase]);
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

std::string peak_chart(const Estimate& estimate, double width) {
  const Totals& totals = estimate.totals;
  const Verdict& verdict = estimate.verdict;
  Bytes most = std::max(totals.device_high, totals.device_peak);
  if (verdict.capacity) most = std::max(most, *verdict.capacity);
  const double scale = (width - 20) / static_cast<double>(std::max<std::int64_t>(most.count(), 1));
  const auto x = [&](Bytes bytes) { return 10 + scale * static_cast<double>(bytes.count()); };
  constexpr double kPeakHeight = 96;
  std::string svg = opening(width, kPeakHeight, "what the device peak is made of");
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
    svg += label_at((low + high) / 2, 92,
                    fmt::format("{:.0f} % interval: {} to {}", 100 * totals.interval,
                                to_string(totals.device_low), to_string(totals.device_high)),
                    width);
  }
  if (verdict.available) {
    svg += line(x(*verdict.available), 18, x(*verdict.available), 68, "limit");
    svg += label_at(x(*verdict.available), 13,
                    fmt::format("available {}", to_string(*verdict.available)), width);
  }
  return svg + "</svg>\n";
}

std::string timeline_chart(const Timeline& whole, const std::optional<Bytes>& available,
                           double width) {
  if (whole.points.empty()) return "";
  const Timeline timeline = thinned(whole, static_cast<std::size_t>(kPointsPerUnit * width));
  PlotArea frame;
  frame.right = width - 8;
  frame.bottom = 320;
  frame.count = static_cast<double>(timeline.points.size());
  for (const TimelinePoint& point : timeline.points)
    frame.most = std::max(frame.most, 1.05 * static_cast<double>(point.reserved));
  // A limit far above the job would press it flat; it is then left out.
  constexpr double kFar = 1.6;
  const double limit = available ? static_cast<double>(available->count()) : 0;
  const bool shows_limit = limit > 0 && limit < kFar * frame.most;
  if (shows_limit) frame.most = std::max(frame.most, 1.05 * limit);
  constexpr double kTimelineHeight = 366;
  std::string svg = opening(width, kTimelineHeight, "memory from allocation to allocation");
  svg += grid(frame, "memory");
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
  if (shows_limit) {
    svg += line(frame.left, frame.y(limit), frame.right, frame.y(limit), "limit");
    svg += text_at(frame.right, frame.y(limit) - 4, "end",
                   fmt::format("available {}", to_string(*available)));
  }
  svg += text_at(frame.right, frame.bottom + 38, "end", "allocations, not to scale in time");
  return svg + phase_marks(timeline, frame) +
         hover_columns(timeline, frame, static_cast<std::size_t>(width / kColumnWidth)) +
         "</svg>\n";
}

std::string frontier_chart(const std::vector<FrontierPoint>& frontier,
                           const std::optional<Bytes>& available, double width) {
  constexpr double kBottom = 260;
  constexpr double kRadius = 5;
  PlotArea frame;
  frame.right = width - 8;
  frame.bottom = kBottom;
  double slowest = 1;
  for (const FrontierPoint& point : frontier) {
    slowest = std::max(slowest, point.time_factor);
    frame.most = std::max(frame.most, 1.05 * static_cast<double>(point.device_peak.count()));
  }
  frame.count = 1.05 * slowest;
  constexpr double kFrontierHeight = 300;
  std::string svg = opening(width, kFrontierHeight, "device peak over time per sample");
  svg += grid(frame, "device peak");
  const double step = step_for(frame.count);
  for (int i = 0; i * step <= frame.count; ++i)
    svg += text_at(frame.x(i * step), frame.bottom + 18, "middle", fmt::format("x{:g}", i * step));
  svg += text_at(frame.right, frame.bottom + 36, "end", "time per sample, of the unchanged job's");
  if (available) {
    const double y = frame.y(std::min(static_cast<double>(available->count()), frame.most));
    svg += line(frame.left, y, frame.right, y, "limit");
    svg += text_at(frame.right, y - 5, "end", fmt::format("available {}", to_string(*available)));
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
