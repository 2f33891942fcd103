#include "fitter/collectives_fit.h"

#include <algorithm>
#include <cmath>

#include "core/collectives.h"

namespace memfathom {
namespace {

// The scatter of published figures of NCCL, as in fitter/outside_fit.cc.
constexpr double kPublishedScatter = 50.0 * (1 << 20);
constexpr std::size_t kFewestRows = 3;  // that say something about their scatter

struct Point {
  double x = 0;
  double y = 0;
};

struct Line {
  double constant = 0, constant_error = 0;
  double slope = 0, slope_error = 0;
  bool has_slope = false;
};

double scatter_of(double squares, std::size_t rows, std::size_t terms, Bytes quantum) {
  const double rounding = static_cast<double>(quantum.count()) / std::sqrt(12.0);
  if (rows < std::max(kFewestRows, terms + 1)) return std::max(kPublishedScatter, rounding);
  return std::max(std::sqrt(squares / static_cast<double>(rows - terms)), rounding);
}

// y = constant + slope x; without a slope where x does not vary.
Line line_through(const std::vector<Point>& points, Bytes quantum) {
  const double n = static_cast<double>(points.size());
  double x = 0;
  double y = 0;
  for (const Point& point : points) x += point.x / n, y += point.y / n;
  double xx = 0;
  double xy = 0;
  for (const Point& point : points) {
    xx += (point.x - x) * (point.x - x);
    xy += (point.x - x) * (point.y - y);
  }
  Line line;
  line.has_slope = xx > 0;
  line.slope = line.has_slope ? xy / xx : 0;
  line.constant = y - line.slope * x;
  double squares = 0;
  for (const Point& point : points)
    squares += std::pow(point.y - line.constant - line.slope * point.x, 2);
  const double sigma = scatter_of(squares, points.size(), line.has_slope ? 2 : 1, quantum);
  line.slope_error = line.has_slope ? sigma / std::sqrt(xx) : 0;
  line.constant_error = sigma * std::sqrt(1 / n + (line.has_slope ? x * x / xx : 0));
  return line;
}

void add(std::string_view name, double value, double error, std::size_t rows, CollectivesFit& fit) {
  Coefficient coefficient;
  coefficient.name = name;
  coefficient.value = std::max(value, 0.0);
  coefficient.standard_error = error;
  coefficient.unit = "bytes";
  coefficient.samples = static_cast<int>(rows);
  fit.coefficients.push_back(std::move(coefficient));
}

void add_mean(std::string_view name, const std::vector<Point>& points, Bytes quantum,
              CollectivesFit& fit) {
  if (points.empty()) return;
  const Line line = line_through(points, quantum);
  add(name, line.constant, line.constant_error, points.size(), fit);
}

}  // namespace

CollectivesFit fit_collectives(const std::vector<CollectivesRow>& rows, Bytes quantum) {
  CollectivesFit fit;
  std::vector<Point> first, next, ddp, fsdp, by_channels;
  const auto y_of = [](Bytes bytes) { return static_cast<double>(bytes.count()); };
  for (const CollectivesRow& row : rows) {
    if (row.channels) {
      by_channels.push_back({static_cast<double>(*row.channels), y_of(row.communicator)});
      continue;
    }
    first.push_back({static_cast<double>(row.ranks - 2), y_of(row.communicator)});
    next.push_back({0, y_of(row.second_communicator)});
    if (row.ddp) ddp.push_back({0, y_of(*row.ddp)});
    if (row.fsdp) fsdp.push_back({0, y_of(*row.fsdp)});
  }
  if (first.empty()) return fit;
  const Line of_ranks = line_through(first, quantum);
  add(collectives::kFirst, of_ranks.constant, of_ranks.constant_error, first.size(), fit);
  add_mean(collectives::kNext, next, quantum, fit);
  if (of_ranks.has_slope) {
    add(collectives::kPerRank, of_ranks.slope, of_ranks.slope_error, first.size(), fit);
  } else {
    fit.notes.emplace_back(
        "communicators of one size were measured; what a further rank takes is not known");
  }
  add_mean(collectives::kDdp, ddp, quantum, fit);
  add_mean(collectives::kFsdp, fsdp, quantum, fit);
  const Line of_channels = by_channels.empty() ? Line{} : line_through(by_channels, quantum);
  if (of_channels.has_slope)
    add(collectives::kPerChannel, of_channels.slope, of_channels.slope_error, by_channels.size(),
        fit);
  return fit;
}

void append_coefficients(std::vector<Coefficient> added, Calibration& calibration) {
  const std::size_t before = calibration.coefficients.size();
  const std::size_t after = before + added.size();
  if (!calibration.covariance.empty()) {
    std::vector<double> covariance(after * after, 0.0);
    for (std::size_t i = 0; i < before; ++i) {
      for (std::size_t j = 0; j < before; ++j)
        covariance[i * after + j] = calibration.covariance[i * before + j];
    }
    for (std::size_t i = before; i < after; ++i)
      covariance[i * after + i] = std::pow(added[i - before].standard_error, 2);
    calibration.covariance = std::move(covariance);
  }
  std::move(added.begin(), added.end(), std::back_inserter(calibration.coefficients));
}

}  // namespace memfathom
