#include "cli/observe/reliability_plot.h"

#include <fmt/format.h>

namespace memfathom {
namespace {

constexpr double kSide = 320;  // of the square, in pixels
constexpr double kMargin = 48;

double x_of(double level) { return kMargin + kSide * level; }
double y_of(double coverage) { return kMargin + kSide * (1 - coverage); }

}  // namespace

std::string reliability_plot(const std::vector<ReliabilityPoint>& points) {
  const double size = kSide + 2 * kMargin;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {0}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0}\" height=\"{0}\" fill=\"white\"/>\n",
      size);
  for (int tenth = 0; tenth <= 10; tenth += 2) {
    const double share = tenth / 10.0;
    svg += fmt::format(
        "<path d=\"M{0} {2}V{3}M{1} {4}H{5}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{0}\" y=\"{6}\" text-anchor=\"middle\">{8} %</text>\n"
        "<text x=\"{7}\" y=\"{4}\" text-anchor=\"end\" dy=\"4\">{8} %</text>\n",
        x_of(share), x_of(0), y_of(0), y_of(1), y_of(share), x_of(1), y_of(0) + 16, x_of(0) - 6,
        10 * tenth);
  }
  svg += fmt::format("<path d=\"M{} {}L{} {}\" stroke=\"#888\" stroke-dasharray=\"4\"/>\n", x_of(0),
                     y_of(0), x_of(1), y_of(1));
  std::string line;
  for (const ReliabilityPoint& point : points) {
    line += fmt::format("{}{} {:.1f}", line.empty() ? 'M' : 'L', x_of(point.level),
                        y_of(point.coverage));
    svg += fmt::format("<circle cx=\"{}\" cy=\"{:.1f}\" r=\"3\" fill=\"#06c\"/>\n",
                       x_of(point.level), y_of(point.coverage));
  }
  svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#06c\"/>\n", line);
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">promised</text>\n"
      "<text x=\"{}\" y=\"{}\">covered</text>\n</svg>\n",
      x_of(0.5), y_of(0) + 34, 6, kMargin - 16);
  return svg;
}

}  // namespace memfathom
