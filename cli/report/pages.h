// Report pages: an estimate, a calibration, a bench comparison as one self-contained HTML page.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/compare.h"
#include "cli/calibrate/calibration_text.h"
#include "cli/job/job_source.h"
#include "estimator/advise/recommend.h"
#include "estimator/answer/estimate.h"
#include "estimator/run/timeline.h"

namespace memfathom {

// External text is escaped; the page contains no scripts.
// `frontier` and `configurations` (those that fit, if the job does not) may be empty.
std::string report_page(const JobInput& input, const Estimate& estimate, const Timeline& timeline,
                        const std::vector<FrontierPoint>& frontier,
                        const std::vector<Configuration>& configurations);
std::string calibration_page(const ListedCalibration& listed);
std::string bench_page(const RequestedComparison& asked);

}  // namespace memfathom
