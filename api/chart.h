// Charts of an estimate as SVG, for the pages of `report` and for notebooks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "estimator/advise/recommend.h"
#include "estimator/answer/estimate.h"
#include "estimator/run/timeline.h"

namespace memfathom {

// Units of the drawing, which a browser scales to its place; at their own size labels take 12
// pixels.
inline constexpr double kWideChart = 960;
inline constexpr double kNarrowChart = 340;

// The colour of a component in all charts and legends: "#4477aa".
std::string_view colour_of(Component component);

// The components of the device peak next to the GPU's capacity; the interval as a bracket.
std::string peak_chart(const Estimate& estimate, double width = kWideChart);

// Live tensors during loading and two iterations, stacked; reserved memory as a line, the available
// memory as another one. Pointing at it shows what is alive there.
std::string timeline_chart(const Timeline& timeline, const std::optional<Bytes>& available,
                           double width = kWideChart);

// Memory over time, a point for each set of changes; the available memory as a line.
std::string frontier_chart(const std::vector<FrontierPoint>& frontier,
                           const std::optional<Bytes>& available, double width = kWideChart);

}  // namespace memfathom
