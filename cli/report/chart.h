// Charts of a report, as SVG that stands in an HTML page.
#pragma once

#include <string>
#include <string_view>

#include "core/bytes.h"
#include "estimator/answer/estimate.h"
#include "estimator/run/timeline.h"

namespace memfathom {

// One colour for each component, on every chart and in every legend: "#4477aa".
std::string_view colour_of(Component component);

// What the device peak is made of, beside what the GPU has; the interval as a bracket.
std::string peak_chart(const Estimate& estimate);

// What is alive through load and two iterations, stacked; reserved memory as a line above it.
std::string timeline_chart(const Timeline& timeline);

}  // namespace memfathom
